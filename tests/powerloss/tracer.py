"""Watch the system calls of a forked child: ptrace, in Python alone.

SQLite writes in C, where no replaced function of Python's sees it; the kernel's own account sees
everything. The child's threads and children are followed (while they stay in its process group).
One call of those that are watched is carried out at a time, so what is heard is the order in which
things happened.
"""

import ctypes
import gc
import os
import platform
import signal
import struct
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any, Final, Protocol

_TRACEME: Final = 0
_CONT_TO_CALL: Final = 24
_SETOPTIONS: Final = 0x4200
_GET_SYSCALL_INFO: Final = 0x420E
_OPTIONS: Final = 0x1 | 0x2 | 0x4 | 0x8 | 0x100000
"""TRACESYSGOOD, TRACEFORK, TRACEVFORK, TRACECLONE, EXITKILL."""
_CALL_STOP: Final = signal.SIGTRAP | 0x80
_ALL_KINDS: Final = 0x40000000  # __WALL: threads as well
_ENTRY: Final = 1
_INFO_BYTES: Final = 88
_REFUSED: Final = 77

_X86_64: Final = """
    write 1 open 2 mmap 9 pwrite64 18 writev 20 msync 26 sendfile 40 fsync 74 fdatasync 75
    truncate 76 ftruncate 77 rename 82 mkdir 83 rmdir 84 creat 85 link 86 unlink 87 symlink 88
    chmod 90 fchmod 91 sync 162 openat 257 mkdirat 258 unlinkat 263 renameat 264 linkat 265
    symlinkat 266 fchmodat 268 fallocate 285 pwritev 296 syncfs 306 renameat2 316
    copy_file_range 326 pwritev2 328 io_uring_enter 426 openat2 437 fchmodat2 452
"""
_AARCH64: Final = """
    mkdirat 34 unlinkat 35 symlinkat 36 linkat 37 renameat 38 truncate 45 ftruncate 46
    fallocate 47 fchmod 52 fchmodat 53 openat 56 write 64 writev 66 pwrite64 68 pwritev 70
    sendfile 71 sync 81 fsync 82 fdatasync 83 mmap 222 msync 227 syncfs 267 renameat2 276
    copy_file_range 285 pwritev2 287 io_uring_enter 426 openat2 437 fchmodat2 452
"""
"""What is watched. Not: utimensat, since times are part of no promise, and sync_file_range, which
makes no size and no name durable, so nothing may be built on it."""
_NUMBERS: Final = {"x86_64": _X86_64, "aarch64": _AARCH64}


class CannotTrace(Exception):
    """Processes can't be watched here; the text says why."""


class Seen(Protocol):
    """Told of each watched call twice; what ``before`` returns comes back in ``after``."""

    def before(self, process: int, name: str, arguments: tuple[int, ...]) -> Any:
        """Hear of a call that is about to happen."""

    def after(
        self, process: int, name: str, arguments: tuple[int, ...], result: int, known: Any
    ) -> None:
        """Hear of a call that has happened; ``result`` is below zero for an error."""


def _watched() -> dict[int, str]:
    words = _NUMBERS.get(platform.machine(), "").split()
    if os.uname().sysname != "Linux" or not words:
        raise CannotTrace(f"system calls of {os.uname().sysname} on {platform.machine()}")
    return {int(number): name for name, number in zip(words[::2], words[1::2], strict=True)}


@cache
def _function() -> Callable[[int, int, int, int], int]:
    """Return the system's ptrace, which is called some thousand times an operation."""
    function = ctypes.CDLL(None, use_errno=True).ptrace
    function.argtypes, function.restype = [ctypes.c_long] * 4, ctypes.c_long
    return function


def _ptrace(request: int, process: int, address: int, data: int) -> None:
    if _function()(request, process, address, data) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def watch(work: Callable[[], object], seen: Seen) -> None:
    """Do ``work`` in a forked child and tell ``seen`` of its calls, to the last process's end.

    Raises `CannotTrace`, and AssertionError where the work itself fails.
    """
    watched = _watched()
    child = os.fork()
    if child == 0:
        _work(work)
    _, status = os.waitpid(child, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        assert os.waitstatus_to_exitcode(status) == _REFUSED
        raise CannotTrace("this system lets no process watch its children (ptrace)")
    try:
        _ptrace(_SETOPTIONS, child, 0, _OPTIONS)
        code = _Tracer(child, watched, seen).run()
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    assert code == 0, f"what was watched ended with {code}"


def _work(work: Callable[[], object]) -> None:
    code = 1
    try:
        gc.disable()  # it would copy all that it shares with its parent by looking at it
        try:
            _ptrace(_TRACEME, 0, 0, 0)
        except OSError:
            os._exit(_REFUSED)
        os.setpgid(0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        work()
        code = 0
    except BaseException:  # noqa: BLE001  # the other side asks for the code only
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


class _Tracer:
    """The processes and threads that are watched; the first is the leader of their group."""

    def __init__(self, first: int, watched: dict[int, str], seen: Seen) -> None:
        self._first = first
        self._watched = watched
        self._seen = seen
        self._known = {first}
        self._info = ctypes.create_string_buffer(_INFO_BYTES)

    def run(self) -> int:
        """Watch to the end; return the exit code of the first process."""
        code = None
        self._go_on(self._first)
        while self._known:
            process, status = os.waitpid(-self._first, _ALL_KINDS)
            if not os.WIFSTOPPED(status):
                self._known.discard(process)
                if process == self._first:
                    code = os.waitstatus_to_exitcode(status)
                continue
            stop = os.WSTOPSIG(status)
            if stop == _CALL_STOP:
                self._call(process)
            elif process not in self._known:  # begins with a stop that is the tracer's own
                self._known.add(process)
                self._go_on(process)
            else:
                self._go_on(process, 0 if stop == signal.SIGTRAP else stop)
        assert code is not None
        return code

    def _go_on(self, process: int, signal_number: int = 0) -> None:
        _ptrace(_CONT_TO_CALL, process, 0, signal_number)

    def _call(self, process: int) -> None:
        kind, number, arguments = self._asked(process)
        name = self._watched.get(number) if kind == _ENTRY else None
        if name is None:
            self._go_on(process)
            return
        known = self._seen.before(process, name, arguments)
        self._go_on(process)
        _, status = os.waitpid(process, _ALL_KINDS)  # all others wait for it
        assert os.WIFSTOPPED(status), f"died in {name}"
        assert os.WSTOPSIG(status) == _CALL_STOP, f"a signal in {name}"
        self._seen.after(process, name, arguments, self._result(process), known)
        self._go_on(process)

    def _asked(self, process: int) -> tuple[int, int, tuple[int, ...]]:
        self._ask(process)
        kind = self._info.raw[0]
        number, *arguments = struct.unpack_from("=7Q", self._info, 24)
        return kind, number, tuple(arguments)

    def _result(self, process: int) -> int:
        self._ask(process)
        return int(struct.unpack_from("=q", self._info, 24)[0])

    def _ask(self, process: int) -> None:
        try:
            _ptrace(_GET_SYSCALL_INFO, process, _INFO_BYTES, ctypes.addressof(self._info))
        except OSError as error:
            raise CannotTrace(f"this kernel does not tell of calls: {error.strerror}") from error
