"""Open files in a folder by file descriptors; no link is followed, and no path leaves the folder.

Each system call with a path resolves the path again. Between two calls, a process with write access
to a source can replace a folder on the path by a link. So a folder is opened once, and the files in
it are opened relative to its descriptor. The system checks each part of the path (``openat2`` with
``RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS``). Without ``openat2``, each part is opened separately.
Decisions about a file use the opened descriptor, and never the file's name again.
"""

import errno
import os
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import Final, Self

_HOW: Final = struct.Struct("=QQQ")
"""``struct open_how`` of openat2(2): flags, mode, resolve."""

_OPENAT2: Final = 437  # the number is the same on all architectures of Linux
_NO_SYMLINKS: Final = 0x04
_BENEATH: Final = 0x08
_RETRIES: Final = 8
"""Maximum number of attempts if the system reports a rename during a lookup."""

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
PASS: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags for a folder that is opened only to open files in it.

These flags don't require the permission to list the folder.
"""

GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
"""Error numbers which prove that a path doesn't exist; other errors prove nothing."""


@cache
def openat2() -> Callable[[int, bytes, int, int, int], int] | None:
    """Return a function that calls openat2; None if the system doesn't have openat2.

    The function returns a file descriptor or a negative error number.
    """
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # imported here, because programs that only read the database don't need it

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
    """Open ``path``, relative to the open ``folder``, and return its file descriptor.

    Raises the OSErrors of `os.open`. Also raises OSError: with ELOOP if any part of the path is a
    link (including the last part), with EXDEV if the path is absolute or contains ``..``, and with
    EINVAL if it contains a NUL.
    """
    _check(path)
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW
    if "/" not in path:
        return _open_part(folder, path or ".", flags, mode)
    call = openat2()
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
    """Return the reason, in words, why a file in a folder could not be opened."""
    match error.errno:
        case errno.ELOOP:
            return "it, or a folder on its path, is a link"
        case errno.EXDEV:
            return "its path leads out of the folder that must contain it"
        case _:
            return error.strerror or str(error)


def _check(path: str) -> None:
    if path.startswith("/") or ".." in path.split("/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    if "\0" in path:  # the system would end the path at this character
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)


def _walk(folder: int, path: str, flags: int, mode: int) -> int:
    """Open ``path`` one part at a time, for systems without openat2."""
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
        # With O_DIRECTORY, the system reports the same error for links and for files.
        if not os.path.islink(name if folder is None else f"/dev/fd/{folder}/{name}"):
            raise
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None


class Folder:
    """An open folder; its methods open files relative to its descriptor.

    ``path`` is only for messages.
    """

    __slots__ = ("fd", "path")

    def __init__(self, fd: int, path: str) -> None:
        self.fd = fd
        self.path = path

    @classmethod
    def open(cls, path: str) -> Self:
        """Open a folder at a path from the user; it must not be a link. Raises OSError."""
        return cls(_open_part(None, path, FOLDER), path)

    @classmethod
    def passing(cls, path: str) -> Self:
        """Open a folder as `open` does, but only to open files in it.

        The folder can't be listed.
        """
        return cls(_open_part(None, path, PASS), path)

    def folder(self, path: str, flags: int = FOLDER) -> "Folder":
        """Open a folder in this folder, or this folder again (``.``).

        Raises the errors of `open_beneath`.
        """
        return Folder(open_beneath(self.fd, path, flags), self.path_of(path))

    def parent(self, path: str) -> "tuple[Folder, str]":
        """Open the folder that contains ``path``.

        Return this folder and the last part of the path.
        """
        _check(path)
        above, _, name = path.rpartition("/")
        return self.folder(above), name

    def open_file(self, path: str, flags: int = READ, mode: int = 0o600) -> int:
        """Open a file in this folder and return its descriptor.

        Raises the errors of `open_beneath`.
        """
        return open_beneath(self.fd, path, flags, mode)

    def lstat(self, path: str) -> os.stat_result:
        """Return the stat result of ``path`` in this folder; links are not followed."""
        _check(path)
        if "/" not in path:
            return os.stat(path or ".", dir_fd=self.fd, follow_symlinks=False)
        above, _, name = path.rpartition("/")
        with self.folder(above, PASS) as holder:
            return os.stat(name, dir_fd=holder.fd, follow_symlinks=False)

    def holds(self, path: str) -> bool:
        """Tell whether a file, folder or link exists at ``path`` in this folder."""
        try:
            self.lstat(path)
        except OSError:
            return False
        return True

    def entries(self) -> "list[os.DirEntry[str]]":
        """Return the entries (files, folders and links) of this folder.

        The ``path`` of an entry is only its name. Don't use the entries after closing the folder.
        """
        with os.scandir(self.fd) as listing:
            return list(listing)

    def path_of(self, path: str) -> str:
        """Return the absolute path of a file below the folder, for messages."""
        return self.path if path in {"", "."} else f"{self.path.rstrip('/')}/{path}"

    def sync(self) -> None:
        """Flush the names in this folder to disk.

        After an error, don't try again, because the second attempt may wrongly succeed.
        """
        os.fsync(self.fd)

    def close(self) -> None:
        """Close the folder's file descriptor."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
