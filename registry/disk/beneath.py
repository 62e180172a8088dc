"""Open what lies below a folder by its handle: no link on the way is followed, nothing outside met.

A path is looked up anew by every call that is given it, and whoever may write below a source can
exchange a folder on it with a link between two of them. So a folder is opened once, and what lies
below it is opened from there, each part of the path checked by the system as it is passed
(``openat2`` with ``RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS``; where that is missing, one handle a
part). What is decided about a file is decided on what was opened, never on its name again.
"""

import errno
import os
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Final, Self

_HOW: Final = struct.Struct("=QQQ")
"""``struct open_how``: flags, mode, resolve."""

_OPENAT2: Final = 437  # on every architecture of Linux
_NO_SYMLINKS: Final = 0x04
_BENEATH: Final = 0x08
_RETRIES: Final = 8
"""How often the system may say that something was renamed while it looked."""

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
PASS: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""For folders that are only passed through: permission to list them is not needed."""

GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
"""What the system says where nothing can be; anything else proves nothing."""


@cache
def _openat2() -> Callable[[int, bytes, int, int, int], int] | None:
    """Return the system call, if this system has it and lets us use it.

    It takes a folder, a path, flags, mode and how to resolve, and returns a descriptor, or the
    number of an error as a negative one.
    """
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # not by who only reads the database

    try:
        syscall: Callable[..., int] = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None

    def call(folder: int, path: bytes, flags: int, mode: int, resolve: int) -> int:
        how = _HOW.pack(flags, mode, resolve)
        opened = syscall(_OPENAT2, folder, path, how, len(how))
        return opened if opened >= 0 else -ctypes.get_errno()

    here = os.open("/", PASS)
    try:
        opened = call(here, b".", PASS, 0, _BENEATH)
    finally:
        os.close(here)
    if opened < 0:
        return None
    os.close(opened)
    return call


def open_beneath(folder: int, path: str, flags: int, mode: int = 0o600) -> int:
    """Open ``path``, relative to the open ``folder``, and return its descriptor.

    Raises OSError: as `os.open`, ELOOP where any part is a link (the last one included), EXDEV
    where the path is absolute or has ``..``, EINVAL where it has a NUL.
    """
    _check(path)
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW
    if "/" not in path:
        return _open_part(folder, path or ".", flags, mode)
    call = _openat2()
    if call is not None:
        name, mode_made = os.fsencode(path), mode if flags & os.O_CREAT else 0
        for _ in range(_RETRIES):
            opened = call(folder, name, flags, mode_made, _BENEATH | _NO_SYMLINKS)
            if opened >= 0:
                return opened
            code = -opened
            if code not in {errno.EAGAIN, errno.EINTR}:
                break
        if code not in {errno.EAGAIN, errno.EINTR, errno.ENAMETOOLONG}:
            raise OSError(code, os.strerror(code), path)
    return _walk(folder, path, flags, mode)


def reason_of(error: OSError) -> str:
    """Say in words why something below a folder could not be opened."""
    match error.errno:
        case errno.ELOOP:
            return "it, or a folder on its path, is a link"
        case errno.EXDEV:
            return "its path leads out of the folder that it is to be in"
        case _:
            return error.strerror or str(error)


def _check(path: str) -> None:
    if path.startswith("/") or ".." in path.split("/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    if "\0" in path:  # where the system would take the path to end
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)


def _walk(folder: int, path: str, flags: int, mode: int) -> int:
    """Open ``path`` one part at a time."""
    *above, name = [part for part in path.split("/") if part not in {"", "."}] or ["."]
    held = -1
    try:
        for part in above:
            inner = _open_part(folder if held < 0 else held, part, PASS)
            if held >= 0:
                os.close(held)
            held = inner
        return _open_part(folder if held < 0 else held, name, flags, mode)
    finally:
        if held >= 0:
            os.close(held)


def _open_part(folder: int | None, name: str, flags: int, mode: int = 0) -> int:
    try:
        return os.open(name, flags, mode, dir_fd=folder)
    except NotADirectoryError:
        # What O_DIRECTORY says of a link, too; openat2 tells them apart.
        if not os.path.islink(name if folder is None else f"/dev/fd/{folder}/{name}"):
            raise
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None


class Folder:
    """An open folder; what is in it is named by paths relative to it, and reached by its handle.

    ``path`` is for messages alone. Not inherited by other programs. Close it, or use it in
    ``with``.
    """

    __slots__ = ("fd", "path")

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path

    @classmethod
    def open(cls, path: str) -> Self:
        """Open the folder at ``path``, which must not be a link. Raises OSError.

        For the roots that a user named; what is below them is opened by `folder`.
        """
        return cls(_open_part(None, path, FOLDER), path)

    @classmethod
    def passing(cls, path: str) -> Self:
        """Open the folder as `open`, only to reach what is below it: it can't be listed."""
        return cls(_open_part(None, path, PASS), path)

    def folder(self, path: str, flags: int = FOLDER) -> "Folder":
        """Open a folder below this one (``.``: this one anew). Raises as `open_beneath`."""
        return Folder(open_beneath(self.fd, path, flags), self.path_of(path))

    def parent(self, path: str) -> "tuple[Folder, str]":
        """Open the folder that holds ``path``; return it with the last part's name."""
        _check(path)
        above, _, name = path.rpartition("/")
        return self.folder(above), name

    def open_file(self, path: str, flags: int = READ, mode: int = 0o600) -> int:
        """Open a file below this folder and return its descriptor. Raises as `open_beneath`."""
        return open_beneath(self.fd, path, flags, mode)

    def lstat(self, path: str) -> os.stat_result:
        """Return what stat says of ``path`` below this folder; a link is described itself."""
        _check(path)
        if "/" not in path:
            return os.stat(path or ".", dir_fd=self.fd, follow_symlinks=False)
        above, _, name = path.rpartition("/")
        with self.folder(above, PASS) as holder:
            return os.stat(name, dir_fd=holder.fd, follow_symlinks=False)

    def holds(self, path: str) -> bool:
        """Tell whether there is something at ``path`` below this folder, a link perhaps."""
        try:
            self.lstat(path)
        except OSError:
            return False
        return True

    def entries(self) -> "list[os.DirEntry[str]]":
        """Return what is in it; their ``path`` is the name, and they go stale when it is closed."""
        with os.scandir(self.fd) as listing:
            return list(listing)

    def path_of(self, path: str) -> str:
        """Return the absolute path of what lies below, for messages."""
        return self.path if path in {"", "."} else f"{self.path.rstrip('/')}/{path}"

    def sync(self) -> None:
        """Make the names in it durable. An error is never tried again: it may pass unseen."""
        os.fsync(self.fd)

    def close(self) -> None:
        """Give the handle back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
