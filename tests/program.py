"""The program in processes of its own, without an interpreter that starts each time.

One process a run imports the program, and each of these is forked from it: a process like any
other, clean of what the tests do in theirs. What is about the start itself, the imports or the
encodings that an interpreter chooses, needs one that really starts.
"""

import ctypes
import json
import multiprocessing
import os
import signal
import socket
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import NoReturn, TextIO

REPOSITORY = Path(__file__).resolve().parent.parent

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
"""What a client of MCP says first."""

PRELOADED = (
    *("catalog", "changes", "cli/commands", "db/postgres", "db/sqlite", "exchange"),
    *("mcp", "sync", "toolsets", "web"),
)

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        __name__,
        "registry.api",
        *(
            ".".join(path.relative_to(REPOSITORY).with_suffix("").parts)
            for place in PRELOADED
            for path in sorted((REPOSITORY / "registry" / place).rglob("*.py"))
            if path.stem != "__init__"
        ),
    ]
)


@dataclass(frozen=True)
class Ran:
    """What a process printed and how it ended."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode()


def start(
    arguments: Sequence[str | bytes],
    *,
    environ: Mapping[str, str],
    cwd: str | Path = REPOSITORY,
    streams: tuple[int, int, int],
    before: Callable[[], None] | None = None,
    main: Callable[[list[str]], object] | None = None,
) -> ForkServerProcess:
    """Start the program with these descriptors as its streams, which stay open here.

    ``before``: a function of a module, to be called in the process first. ``main``: one that is
    called in the program's place.
    """
    handles = [Connection(os.dup(stream)) for stream in streams]
    process = FORKS.Process(
        target=_run,
        args=([*map(os.fsdecode, arguments)], {**environ}, str(cwd), handles, before, main),
        daemon=True,
    )
    process.start()
    for handle in handles:
        handle.close()
    return process


def environment(database: object, home: object) -> dict[str, str]:
    """Return the environment of a program that uses a database, in a home of its own."""
    own = {"SKILL_REGISTRY_DB": database, "PYTHONPATH": REPOSITORY, "HOME": home}
    return {**os.environ, **{name: str(value) for name, value in own.items()}}


def serve(
    arguments: Sequence[str], environ: Mapping[str, str], beginning: str = "Serving http"
) -> tuple[ForkServerProcess, TextIO]:
    """Start a server; once it has said where it serves return it, and what it says from then on."""
    reading, writing = os.pipe()
    with open(os.devnull, "r+b") as nothing:
        streams = nothing.fileno(), nothing.fileno(), writing
        process = start(arguments, environ=environ, streams=streams)
    os.close(writing)
    said = open(reading)  # noqa: SIM115  # until it ends
    line = said.readline()
    if not line.startswith(beginning):
        process.kill()
        said.close()
        raise AssertionError(line)
    return process, said


def run(
    arguments: Sequence[str | bytes],
    *,
    environ: Mapping[str, str],
    cwd: str | Path = REPOSITORY,
    before: Callable[[], None] | None = None,
) -> Ran:
    """Run the program in pipes, to its end."""
    out, err = os.pipe(), os.pipe()
    with open(os.devnull, "rb") as nothing:
        streams = (nothing.fileno(), out[1], err[1])
        process = start(arguments, environ=environ, cwd=cwd, streams=streams, before=before)
    for _, writing in (out, err):
        os.close(writing)
    with open(out[0], "rb") as first, open(err[0], "rb") as second, ThreadPoolExecutor(2) as pool:
        printed = list(pool.map(lambda stream: stream.read(), (first, second)))
    process.join()
    return Ran(process.exitcode, *printed)


KNOCK = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as door:
    door.connect(sys.argv[1])
    said = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
    socket.send_fds(door, [len(said).to_bytes(4, "big")], [0, 1, 2])
    door.sendall(said)
    sys.exit(int(door.recv(9) or b"1"))
"""


@contextmanager
def command() -> Iterator[list[str]]:
    """Yield a command that starts the program, for what starts its own processes.

    It hands its streams, environment and folder to a process of this module, and ends with it.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX) as door,
        ThreadPoolExecutor() as pool,
    ):
        door.bind(f"{folder}/door")
        door.listen()
        running = []

        def open_door() -> None:
            while True:
                try:
                    visitor, _ = door.accept()
                except OSError:  # shut below
                    return
                running.append(pool.submit(_let_in, visitor))

        opened = pool.submit(open_door)
        try:
            yield [sys.executable, "-I", "-S", "-c", KNOCK, f"{folder}/door"]
        finally:
            door.shutdown(socket.SHUT_RDWR)
            for each in (opened, *running):
                each.result(60)


def _let_in(visitor: socket.socket) -> None:
    with visitor:
        length, streams, *_ = socket.recv_fds(visitor, 4, 3)
        with visitor.makefile("rb") as said:
            arguments, environ, cwd = json.loads(said.read(int.from_bytes(length, "big")))
        process = start(arguments, environ=environ, cwd=cwd, streams=tuple(streams))
        for stream in streams:
            os.close(stream)
        process.join()
        with suppress(OSError):  # who knocked was ended first
            visitor.sendall(str(process.exitcode % 256).encode())


class Script:
    """A script of Python in a process that has imported the program; its input is empty.

    What it prints goes to files, and so nobody has to read it while it runs.
    """

    def __init__(self, text: str, *arguments: object) -> None:
        self._out, self._err = (tempfile.TemporaryFile("w+") for _ in range(2))  # noqa: SIM115
        with open(os.devnull, "rb") as nothing:
            self.process = start(
                [text, *map(str, arguments)],
                environ=os.environ,
                streams=(nothing.fileno(), self._out.fileno(), self._err.fileno()),
                main=execute,
            )

    def end(self, seconds: float = 120) -> Ran:
        """Wait for its end, and return what it printed."""
        self.process.join(seconds)
        assert self.process.exitcode is not None
        printed = []
        for file in (self._out, self._err):
            with file:
                file.seek(0)
                printed.append(file.read().encode())
        return Ran(self.process.exitcode, *printed)


def execute(arguments: list[str]) -> None:
    """Do what an interpreter does with ``-c``."""
    text, sys.argv = arguments[0], ["-c", *arguments[1:]]
    status = 0
    try:
        exec(compile(text, "<script>", "exec"), {"__name__": "__main__"})  # the tests' own
    except Exception:  # noqa: BLE001  # as an interpreter tells of it
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    raise SystemExit(status)


def patient() -> None:
    """Draw no bar, on a busy machine neither."""
    from registry.cli import progress

    progress.PATIENCE = float("inf")  # type: ignore[misc]


def without_rights() -> None:
    """Give up what lets root pass over permissions (capabilities, of Linux)."""
    header = struct.pack("Ii", 0x20080522, 0)
    if ctypes.CDLL(None).capset(ctypes.create_string_buffer(header), bytes(24)):
        raise PermissionError


def _run(
    arguments: list[str],
    environ: dict[str, str],
    cwd: str,
    streams: list[Connection],
    before: Callable[[], None] | None,
    main: Callable[[list[str]], object] | None,
) -> NoReturn:
    status: object = 70
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream.fileno(), number)
            stream.close()
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, buffering, encoding="utf-8", closefd=False)  # noqa: SIM115  # to the end
            for number, mode, buffering in ((0, "r", -1), (1, "w", -1), (2, "w", 1))
        )
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as it is in the foreground
        os.environ.clear()
        os.environ.update(environ)
        time.tzset()
        os.chdir(cwd)
        if before is not None:
            before()
        if main is None:
            from registry.cli import main
        main(arguments)
    except SystemExit as end:
        status = end.code
    finally:  # not through multiprocessing's end, which would flush what the program forgot
        os._exit(status if isinstance(status, int) else 1)
