"""A second process that reads skills during a large first import.

Python runs one thread at a time, so a second thread would not read or parse faster. The helper gets
folders as the scan saw them and returns versions that are not stored yet. It opens no database and
ends with the import. If it can't start or ends early, the first process reads its folders.
"""

import gc
import json
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple, TypeAlias

from registry.db.versions import NewVersion
from registry.sync.reading import Recent, Task, read_new

_AHEAD: Final = 8
"""Pieces that the helper is given at once: it reads on while this process waits for a batch to be
stored."""

_WAITING: Final = 12
_WAITING_BYTES: Final = 8_000_000
"""Pieces that are held in memory until their turn has come, which is that of the plan."""

# No folder but those that this process imports from itself: not the one it was started in, nor any
# that the environment names.
_MAIN: Final = (
    "import json, sys; sys.dont_write_bytecode, sys.path[:] = json.loads(sys.argv[1]);"
    "from registry.sync.helper import serve; serve()"
)


Versions: TypeAlias = list[NewVersion]


class Piece(NamedTuple):
    """Folders that one process reads at once.

    ``task``: the helper's input; None if the helper can't read them. ``read`` reads them in this
    process. ``size`` is in bytes.
    """

    task: Task | None
    bytes: int
    read: Callable[[], Versions]


class Helper:
    """The other process, as long as it answers."""

    def __init__(self, process: "subprocess.Popen[bytes]", pool: ThreadPoolExecutor) -> None:
        self._process, self._pool = process, pool
        self._given = 0
        self._answers = True

    @property
    def is_free(self) -> bool:
        """Whether it can be given more."""
        return self._answers and self._given < _AHEAD

    def ask(self, task: Task) -> "Future[Versions]":
        """Have it read something."""
        self._given += 1
        return self._pool.submit(self._ask, task)

    def answer(self, asked: "Future[Versions]") -> Versions | None:
        """Return what it has read; None: it could not, and is asked no more."""
        self._given -= 1
        try:
            return asked.result()
        except Exception:  # noqa: BLE001  # whatever became of it, its work is done here
            self._answers = False
            self._process.kill()
            return None

    def _ask(self, task: Task) -> Versions:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None  # noqa: S101  # as it was started
        assert answers is not None  # noqa: S101
        pickle.dump(task, asked, pickle.HIGHEST_PROTOCOL)
        asked.flush()
        versions: Versions = pickle.load(answers)  # noqa: S301  # a process of our own
        wanted = [found.folder for found in task.folders]
        if [version.columns["folder"] for version in versions] != wanted:
            raise ValueError(wanted)
        return versions


@contextmanager
def helping() -> Iterator[Helper | None]:
    """Start the other process, and end it; None: there is no way to, or it would gain nothing."""
    process = _start() if _has_cores() and _is_python() else None
    if process is None:
        yield None
        return
    pool = ThreadPoolExecutor(1, "registry-helper")
    try:
        yield Helper(process, pool)
    finally:
        process.kill()
        pool.shutdown()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        process.wait()


def _start() -> "subprocess.Popen[bytes] | None":
    folders = [path for path in sys.path if os.path.isabs(path)]
    told = json.dumps([sys.dont_write_bytecode, folders])
    with suppress(OSError):
        return subprocess.Popen(  # noqa: S603  # this very program
            [sys.executable, "-I", "-c", _MAIN, told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # an interrupt of the import goes to this process only
        )
    return None


def _has_cores() -> bool:
    """Tell whether two processes can work at the same time."""
    try:
        return len(os.sched_getaffinity(0)) > 1
    except AttributeError:  # macOS
        return (os.cpu_count() or 1) > 1


def _is_python() -> bool:
    """Tell whether this process is a Python interpreter, not a program that embeds one."""
    name = os.path.basename(sys.executable or "")
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


def share(pieces: Iterable[Piece], helper: Helper | None) -> Iterator[NewVersion]:
    """Yield what is read of ``pieces``, in their order: some of them here, others there."""
    if helper is None:
        for one in pieces:
            yield from one.read()
        return
    left = iter(pieces)
    waiting: deque[tuple[Piece, Future[Versions] | Versions]] = deque()
    while True:
        is_late = waiting and isinstance(first := waiting[0][1], Future) and not first.done()
        has_room = len(waiting) < _WAITING and sum(one.bytes for one, _ in waiting) < _WAITING_BYTES
        if not waiting or (has_room and (is_late or helper.is_free)):
            piece = next(left, None)
            if piece is not None:
                given = helper.is_free and piece.task
                waiting.append((piece, helper.ask(given) if given else piece.read()))
                continue
        if not waiting:
            return
        piece, versions = waiting.popleft()
        if isinstance(versions, Future):
            answered = helper.answer(versions)
            versions = piece.read() if answered is None else answered
        yield from versions


def serve() -> None:
    """Run as the helper process until the parent closes the pipe."""
    gc.set_threshold(50_000, 20, 100)  # as the program does
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    recent = Recent()
    with suppress(EOFError, BrokenPipeError):
        while True:
            versions = read_new(pickle.load(asked), recent)  # noqa: S301  # of who started it
            pickle.dump(versions, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
