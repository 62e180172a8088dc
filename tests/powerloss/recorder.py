"""Record what a piece of work does to the files below a folder, call by call.

What is recorded has paths as they were at the time of the call, links on the way resolved. A call
that had an effect in a way that is not understood (a writable shared mapping, a rename across the
folder's border, io_uring) ends the recording with an error: nothing is passed over in silence.
SQLite's ``-shm`` files are left out: they are made anew from the log by whoever opens it first.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.powerloss.tracer import watch

_HERE: Final = -100  # AT_FDCWD
_REMOVES_FOLDER: Final = 0x200
_EXCHANGE: Final = 2
_WRITABLE: Final = 2
_PAGE: Final = 4096
_UNUSED: Final = os.O_DSYNC | getattr(os, "O_TMPFILE", 0) & ~os.O_DIRECTORY

Acknowledge = Callable[[], None]


class Call(NamedTuple):
    """One effect.

    ``kind``: create, mkdir (``number``: mode), symlink (``data``: its target), link, rename,
    exchange (of ``path`` and ``other``), unlink, rmdir; write (``data`` at ``number``), truncate
    (to ``number`` bytes), chmod; fsync, fdatasync, sync (of everything); done: what the work
    acknowledged.
    """

    kind: str
    path: str = ""
    other: str = ""
    number: int = 0
    data: bytes = b""

    def __str__(self) -> str:
        size = f" {len(self.data)} bytes at {self.number}" if self.kind == "write" else ""
        return " ".join(filter(None, [self.kind, self.path, self.other])) + size


class NotUnderstood(Exception):
    """A call that may change files in a way that is not recorded."""


def record(work: Callable[[Acknowledge], object], base: str) -> list[Call]:
    """Do ``work`` in a child, and return what it did below ``base``.

    The work calls what it is given when it would tell its user that something is done. Raises
    `tracer.CannotTrace`, `NotUnderstood`.
    """
    reading, writing = os.pipe()
    try:
        recorder = _Recorder(os.path.realpath(base), os.readlink(f"/proc/self/fd/{writing}"))
        watch(lambda: work(lambda: _acknowledge(writing)), recorder)
    finally:
        os.close(reading)
        os.close(writing)
    return recorder.calls


def _acknowledge(pipe: int) -> None:
    os.write(pipe, b".")


def _int(argument: int) -> int:
    return ctypes.c_int(argument & 0xFFFFFFFF).value


class _Recorder:
    """Turns system calls into effects; the names of its methods are those of the calls."""

    def __init__(self, base: str, pipe: str) -> None:
        self.calls: list[Call] = []
        self._base = base
        self._pipe = pipe

    def before(self, process: int, name: str, arguments: tuple[int, ...]) -> Any:
        look = getattr(self, f"_see_{name}", None)
        return look(process, arguments) if look else None

    def after(
        self, process: int, name: str, arguments: tuple[int, ...], result: int, known: Any
    ) -> None:
        if result >= 0:
            getattr(self, f"_do_{name}")(process, arguments, result, known)

    def _add(self, call: Call) -> None:
        paths = [path for path in (call.path, call.other) if path]
        inside = [self._is_inside(path) for path in paths]
        if any(inside) and not all(inside):
            raise NotUnderstood(f"{call} leads out of what is recorded")
        if all(inside) and not call.path.endswith("-shm"):
            self.calls.append(call)

    def _is_inside(self, path: str) -> bool:
        return path == self._base or path.startswith(f"{self._base}/")

    # What the arguments of calls mean

    def _opened(self, process: int, number: int) -> str:
        """Return the path of an open file as it is now; nothing for one that has none."""
        path = os.readlink(f"/proc/{process}/fd/{_int(number)}")
        return "" if path.endswith(" (deleted)") else path

    def _text(self, process: int, address: int) -> str:
        text = b""
        with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
            while b"\0" not in text:
                memory.seek(address + len(text))
                text += memory.read(_PAGE - (address + len(text)) % _PAGE)
        return os.fsdecode(text[: text.index(b"\0")])

    def _path(self, process: int, folder: int, address: int) -> str:
        """Return the path that is meant, but for its last part without links."""
        at = "cwd" if _int(folder) == _HERE else f"fd/{_int(folder)}"
        path = os.path.join(os.readlink(f"/proc/{process}/{at}"), self._text(process, address))
        head, name = os.path.split(path.rstrip("/"))
        return os.path.join(os.path.realpath(head), name)

    def _position(self, process: int, number: int) -> int:
        with open(f"/proc/{process}/fdinfo/{_int(number)}", encoding="ascii") as facts:
            return int(facts.readline().split()[1])

    # Opening

    def _see_openat(self, process: int, a: tuple[int, ...]) -> tuple[str, bool, int]:
        return self._opening(process, a[0], a[1], a[2])

    def _see_open(self, process: int, a: tuple[int, ...]) -> tuple[str, bool, int]:
        return self._opening(process, _HERE, a[0], a[1])

    def _see_creat(self, process: int, a: tuple[int, ...]) -> tuple[str, bool, int]:
        return self._opening(process, _HERE, a[0], os.O_CREAT | os.O_TRUNC | os.O_WRONLY)

    def _see_openat2(self, process: int, a: tuple[int, ...]) -> tuple[str, bool, int]:
        with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
            memory.seek(a[2])
            (flags,) = struct.unpack("=Q", memory.read(8))
        return self._opening(process, a[0], a[1], flags)

    def _opening(
        self, process: int, folder: int, address: int, flags: int
    ) -> tuple[str, bool, int]:
        if not flags & (os.O_CREAT | os.O_TRUNC | _UNUSED):
            return "", False, flags
        path = self._path(process, folder, address)
        if flags & _UNUSED and self._is_inside(path):
            raise NotUnderstood(f"{path} is opened with flags {flags:o}")
        return path, os.path.exists(path), flags

    def _do_openat(self, process: int, _: Any, result: int, known: tuple[str, bool, int]) -> None:
        asked, existed, flags = known
        path = self._opened(process, result) if asked else ""
        if not self._is_inside(path):
            return
        if not existed:
            self._add(Call("create", path, number=stat.S_IMODE(os.lstat(path).st_mode)))
        elif flags & os.O_TRUNC:
            self._add(Call("truncate", path))

    _do_open = _do_creat = _do_openat2 = _do_openat

    # Contents

    def _wrote(self, process: int, number: int, end: int, size: int) -> None:
        """Hear of ``size`` bytes that were written up to ``end``: the file itself has them now."""
        path = self._opened(process, number)
        if path == self._pipe:
            self._add(Call("done", self._base))
        elif self._is_inside(path) and size:
            with open(path, "rb") as file:
                file.seek(end - size)
                data = file.read(size)
            self._add(Call("write", path, number=end - size, data=data))

    def _do_write(self, process: int, a: tuple[int, ...], result: int, _: Any) -> None:
        self._wrote(process, a[0], self._position(process, a[0]), result)

    _do_writev = _do_sendfile = _do_write

    def _do_pwrite64(self, process: int, a: tuple[int, ...], result: int, _: Any) -> None:
        self._wrote(process, a[0], a[3] + result, result)

    _do_pwritev = _do_pwrite64

    def _do_pwritev2(self, process: int, a: tuple[int, ...], result: int, _: Any) -> None:
        own = _int(a[3]) == -1
        end = self._position(process, a[0]) if own else a[3] + result
        self._wrote(process, a[0], end, result)

    def _see_copy_file_range(self, process: int, a: tuple[int, ...]) -> int | None:
        if not a[3]:
            return None
        with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
            memory.seek(a[3])
            return int(struct.unpack("=q", memory.read(8))[0])

    def _do_copy_file_range(
        self, process: int, a: tuple[int, ...], result: int, known: int | None
    ) -> None:
        end = self._position(process, a[2]) if known is None else known + result
        self._wrote(process, a[2], end, result)

    def _do_ftruncate(self, process: int, a: tuple[int, ...], _: int, __: Any) -> None:
        self._add(Call("truncate", self._opened(process, a[0]), number=a[1]))

    def _see_truncate(self, process: int, a: tuple[int, ...]) -> str:
        return os.path.realpath(self._path(process, _HERE, a[0]))

    def _do_truncate(self, _: int, a: tuple[int, ...], __: int, path: str) -> None:
        self._add(Call("truncate", path, number=a[1]))

    def _do_fallocate(self, process: int, a: tuple[int, ...], _: int, __: Any) -> None:
        path = self._opened(process, a[0])
        if self._is_inside(path):
            if a[1]:
                raise NotUnderstood(f"fallocate of {path} in mode {a[1]}")
            self._add(Call("truncate", path, number=os.path.getsize(path)))

    def _do_mmap(self, process: int, a: tuple[int, ...], _: int, __: Any) -> None:
        if a[2] & _WRITABLE and a[3] & 3 in {1, 3} and _int(a[4]) >= 0:
            path = self._opened(process, a[4])
            if self._is_inside(path) and not path.endswith("-shm"):
                raise NotUnderstood(f"{path} is mapped to be written")

    def _do_msync(self, *_: object) -> None:
        pass  # of what is mapped nothing is recorded

    def _do_io_uring_enter(self, *_: object) -> None:
        raise NotUnderstood("io_uring")

    # Making durable

    def _do_fsync(self, process: int, a: tuple[int, ...], _: int, __: Any) -> None:
        if path := self._opened(process, a[0]):
            self._add(Call("fsync", path))

    def _do_fdatasync(self, process: int, a: tuple[int, ...], _: int, __: Any) -> None:
        if path := self._opened(process, a[0]):
            self._add(Call("fdatasync", path))

    def _do_sync(self, *_: object) -> None:
        self._add(Call("sync", self._base))

    _do_syncfs = _do_sync

    # Names

    def _see_mkdirat(self, process: int, a: tuple[int, ...]) -> str:
        return self._path(process, a[0], a[1])

    def _see_mkdir(self, process: int, a: tuple[int, ...]) -> str:
        return self._path(process, _HERE, a[0])

    def _do_mkdirat(self, _: int, __: Any, ___: int, path: str) -> None:
        self._add(Call("mkdir", path, number=stat.S_IMODE(os.lstat(path).st_mode)))

    _do_mkdir = _do_mkdirat

    def _see_symlinkat(self, process: int, a: tuple[int, ...]) -> str:
        return self._path(process, a[1], a[2])

    def _see_symlink(self, process: int, a: tuple[int, ...]) -> str:
        return self._path(process, _HERE, a[1])

    def _do_symlinkat(self, _: int, __: Any, ___: int, path: str) -> None:
        self._add(Call("symlink", path, data=os.fsencode(os.readlink(path))))

    _do_symlink = _do_symlinkat

    def _see_unlinkat(self, process: int, a: tuple[int, ...]) -> Call:
        return Call("rmdir" if a[2] & _REMOVES_FOLDER else "unlink", self._path(process, *a[:2]))

    def _see_unlink(self, process: int, a: tuple[int, ...]) -> Call:
        return Call("unlink", self._path(process, _HERE, a[0]))

    def _see_rmdir(self, process: int, a: tuple[int, ...]) -> Call:
        return Call("rmdir", self._path(process, _HERE, a[0]))

    def _see_renameat2(self, process: int, a: tuple[int, ...]) -> Call:
        kind = "exchange" if a[4] & _EXCHANGE else "rename"
        return Call(kind, self._path(process, *a[:2]), self._path(process, *a[2:4]))

    def _see_renameat(self, process: int, a: tuple[int, ...]) -> Call:
        return Call("rename", self._path(process, *a[:2]), self._path(process, *a[2:4]))

    def _see_rename(self, process: int, a: tuple[int, ...]) -> Call:
        return Call("rename", self._path(process, _HERE, a[0]), self._path(process, _HERE, a[1]))

    def _see_linkat(self, process: int, a: tuple[int, ...]) -> Call:
        return Call("link", self._path(process, *a[:2]), self._path(process, *a[2:4]))

    def _see_link(self, process: int, a: tuple[int, ...]) -> Call:
        return Call("link", self._path(process, _HERE, a[0]), self._path(process, _HERE, a[1]))

    def _do_rename(self, _: int, __: Any, ___: int, call: Call) -> None:
        self._add(call)

    _do_renameat = _do_renameat2 = _do_link = _do_linkat = _do_rename
    _do_unlinkat = _do_unlink = _do_rmdir = _do_rename

    # Modes

    def _see_fchmodat(self, process: int, a: tuple[int, ...]) -> str:
        return os.path.realpath(self._path(process, a[0], a[1]))

    def _see_chmod(self, process: int, a: tuple[int, ...]) -> str:
        return os.path.realpath(self._path(process, _HERE, a[0]))

    def _see_fchmod(self, process: int, a: tuple[int, ...]) -> str:
        return self._opened(process, a[0])

    _see_fchmodat2 = _see_fchmodat

    def _do_chmod(self, _: int, __: Any, ___: int, path: str) -> None:
        if self._is_inside(path):
            self._add(Call("chmod", path, number=stat.S_IMODE(os.lstat(path).st_mode)))

    _do_fchmodat = _do_fchmod = _do_fchmodat2 = _do_chmod
