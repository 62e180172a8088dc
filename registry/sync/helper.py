"""Further processes that read skills during a large first import.

Python runs only one thread at a time, so a second thread would not make reading or parsing faster.
A helper process gets the scanned folders and returns new versions, which the first process stores.
Helpers don't open the database, and they end with the import. If a helper can't start or ends
early, the first process reads the helper's folders itself.
"""

import gc
import json
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Final, NamedTuple, TypeAlias

from registry.db.versions import NewVersion
from registry.sync.reading import Recent, Task, read_new

MAX_HELPERS: Final = 3
"""Maximum number of helpers. Storing what more helpers read would take longer than reading it."""

_AHEAD: Final = 8
"""Maximum number of pieces that wait for one helper.

The helper reads these pieces while the first process stores a batch.
"""

_WAITING: Final = 12
_WAITING_BYTES: Final = 8_000_000
"""Maximum number of pieces in memory for each helper, and maximum number of bytes of their files.

A piece stays in memory until all earlier pieces of the plan are stored.
"""

# A helper imports modules only from the folders in this process's `sys.path`. A helper ignores the
# working folder, and environment variables such as PYTHONPATH.
_MAIN: Final = (
    "import json, sys; sys.dont_write_bytecode, sys.path[:] = json.loads(sys.argv[1]);"
    "from registry.sync.helper import serve; serve()"
)


Versions: TypeAlias = list[NewVersion]


class Piece(NamedTuple):
    """A group of skill folders that one process reads in one step.

    ``task`` describes the folders for the helper process; None if the helper can't read these
    folders. The function ``read`` reads the folders in this process. ``bytes`` is the total size of
    their files.
    """

    task: Task | None
    bytes: int
    read: Callable[[], Versions]


class Helpers:
    """The helper processes. After the first failure of one of them, none gets more tasks."""

    def __init__(
        self, processes: "Sequence[subprocess.Popen[bytes]]", pool: ThreadPoolExecutor
    ) -> None:
        """``pool`` has a thread for each process."""
        self.number = len(processes)
        self._pool = pool
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        for process in processes:
            self._idle.put(process)
        self._given = 0
        self._answers = True

    @property
    def are_free(self) -> bool:
        """Whether a helper can get another task.

        A helper can get a task if none has failed and fewer than `_AHEAD` tasks wait for each.
        """
        return self._answers and self._given < _AHEAD * self.number

    def ask(self, task: Task) -> "Future[Versions]":
        """Send a task to a helper, and return a future for the versions that it reads."""
        self._given += 1
        return self._pool.submit(self._ask, task)

    def answer(self, asked: "Future[Versions]") -> Versions | None:
        """Wait until a helper has read versions, and return them; None if it failed."""
        self._given -= 1
        try:
            return asked.result()
        except Exception:  # noqa: BLE001  # after any error, this process reads the folders
            self._answers = False
            return None

    def _ask(self, task: Task) -> Versions:
        process = self._idle.get()
        try:
            return self._asked(process, task)
        except BaseException:
            process.kill()  # what it would answer next may belong to this task
            raise
        finally:
            self._idle.put(process)

    def _asked(self, process: "subprocess.Popen[bytes]", task: Task) -> Versions:
        asked, answers = process.stdin, process.stdout
        assert asked is not None  # noqa: S101  # both streams are pipes, see `_start`
        assert answers is not None  # noqa: S101
        pickle.dump(task, asked, pickle.HIGHEST_PROTOCOL)
        asked.flush()
        versions: Versions = pickle.load(answers)  # noqa: S301  # from a process that we started
        wanted = [found.folder for found in task.folders]
        if [version.columns["folder"] for version in versions] != wanted:
            raise ValueError(wanted)
        return versions


@contextmanager
def helping() -> Iterator[Helpers | None]:
    """Run a helper process for each further processor core during a ``with`` block.

    Yields None if no process can be started, or if this process may use only one core.
    """
    count = min(_cores() - 1, MAX_HELPERS) if _is_python() else 0
    processes = [process for _ in range(count) if (process := _start()) is not None]
    if not processes:
        yield None
        return
    pool = ThreadPoolExecutor(len(processes), "registry-helper")
    try:
        yield Helpers(processes, pool)
    finally:
        for process in processes:
            process.kill()
        pool.shutdown()
        for process in processes:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()
            process.wait()


def _start() -> "subprocess.Popen[bytes] | None":
    folders = [path for path in sys.path if os.path.isabs(path)]
    told = json.dumps([sys.dont_write_bytecode, folders])
    with suppress(OSError):
        return subprocess.Popen(  # noqa: S603  # starts this Python interpreter
            [sys.executable, "-I", "-c", _MAIN, told],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # so that Ctrl+C reaches only this process
        )
    return None


def _cores() -> int:
    """Return the number of processor cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS has no `sched_getaffinity`
        return os.cpu_count() or 1


def _is_python() -> bool:
    """Tell whether this process is a Python interpreter, and not a program with an embedded one."""
    name = os.path.basename(sys.executable or "")
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


def share(pieces: Iterable[Piece], helpers: Helpers | None) -> Iterator[NewVersion]:
    """Read all pieces in this process and the helpers, and yield their versions in order."""
    if helpers is None:
        for one in pieces:
            yield from one.read()
        return
    left = iter(pieces)
    most, most_bytes = _WAITING * helpers.number, _WAITING_BYTES * helpers.number
    waiting: deque[tuple[Piece, Future[Versions] | Versions]] = deque()
    while True:
        is_late = waiting and isinstance(first := waiting[0][1], Future) and not first.done()
        has_room = len(waiting) < most and sum(one.bytes for one, _ in waiting) < most_bytes
        if not waiting or (has_room and (is_late or helpers.are_free)):
            piece = next(left, None)
            if piece is not None:
                given = helpers.are_free and piece.task
                waiting.append((piece, helpers.ask(given) if given else piece.read()))
                continue
        if not waiting:
            return
        piece, versions = waiting.popleft()
        if isinstance(versions, Future):
            answered = helpers.answer(versions)
            versions = piece.read() if answered is None else answered
        yield from versions


def serve() -> None:
    """Read folders for the parent process until it closes the pipe.

    The function runs in a helper process.
    """
    gc.set_threshold(50_000, 20, 100)  # the main process uses the same values
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    recent = Recent()
    with suppress(EOFError, BrokenPipeError):
        while True:
            versions = read_new(pickle.load(asked), recent)  # noqa: S301  # sent by the parent
            pickle.dump(versions, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
