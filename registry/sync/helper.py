"""A second process that reads skills during a large first import.

Python runs one thread at a time, so a second thread would not read or parse faster. The helper gets
the scanned folders and returns versions that are not stored yet. It opens no database and ends with
the import. If the helper can't start or ends early, the first process reads its folders.
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
"""Maximum number of pieces that wait at the helper, so that it can work while we store a batch."""

_WAITING: Final = 12
_WAITING_BYTES: Final = 8_000_000
"""Maximum number of pieces in memory, and their maximum size in bytes.

The pieces wait until all earlier pieces of the plan are done.
"""

# The helper imports only from this process's folders. It ignores the working directory and folders
# that environment variables name.
_MAIN: Final = (
    "import json, sys; sys.dont_write_bytecode, sys.path[:] = json.loads(sys.argv[1]);"
    "from registry.sync.helper import serve; serve()"
)


Versions: TypeAlias = list[NewVersion]


class Piece(NamedTuple):
    """Folders that one process reads at once.

    ``task`` is the input of the helper; None if the helper can't read the folders. ``read`` reads
    the folders in this process. ``bytes`` is their size.
    """

    task: Task | None
    bytes: int
    read: Callable[[], Versions]


class Helper:
    """The helper process; it gets no more work after its first failure."""

    def __init__(self, process: "subprocess.Popen[bytes]", pool: ThreadPoolExecutor) -> None:
        self._process, self._pool = process, pool
        self._given = 0
        self._answers = True

    @property
    def is_free(self) -> bool:
        """Whether the helper can get another task."""
        return self._answers and self._given < _AHEAD

    def ask(self, task: Task) -> "Future[Versions]":
        """Send a task to the helper."""
        self._given += 1
        return self._pool.submit(self._ask, task)

    def answer(self, asked: "Future[Versions]") -> Versions | None:
        """Return the versions that the helper has read; None if it failed.

        After a failure the helper gets no more tasks.
        """
        self._given -= 1
        try:
            return asked.result()
        except Exception:  # noqa: BLE001  # after any error, this process reads the folders
            self._answers = False
            self._process.kill()
            return None

    def _ask(self, task: Task) -> Versions:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None  # noqa: S101  # both are pipes, see `_start`
        assert answers is not None  # noqa: S101
        pickle.dump(task, asked, pickle.HIGHEST_PROTOCOL)
        asked.flush()
        versions: Versions = pickle.load(answers)  # noqa: S301  # sent by our own process
        wanted = [found.folder for found in task.folders]
        if [version.columns["folder"] for version in versions] != wanted:
            raise ValueError(wanted)
        return versions


@contextmanager
def helping() -> Iterator[Helper | None]:
    """Run the helper process; yield None if it can't be started or would save no time."""
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
        return subprocess.Popen(  # noqa: S603  # starts this same program
            [sys.executable, "-I", "-c", _MAIN, told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl+C then reaches only this process
        )
    return None


def _has_cores() -> bool:
    """Tell whether this process may use more than one processor core."""
    try:
        return len(os.sched_getaffinity(0)) > 1
    except AttributeError:  # macOS
        return (os.cpu_count() or 1) > 1


def _is_python() -> bool:
    """Tell whether this process is a Python interpreter, not a program that embeds one."""
    name = os.path.basename(sys.executable or "")
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


def share(pieces: Iterable[Piece], helper: Helper | None) -> Iterator[NewVersion]:
    """Yield the versions of all pieces, in order; this process and the helper share the reading."""
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
    gc.set_threshold(50_000, 20, 100)  # the same values as in the main process
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    recent = Recent()
    with suppress(EOFError, BrokenPipeError):
        while True:
            versions = read_new(pickle.load(asked), recent)  # noqa: S301  # from the parent process
            pickle.dump(versions, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
