"""Renames that never replace, contents that are really on the disk, digests of whole folders."""

import ctypes
import errno
import hashlib
import os
import sys
from collections.abc import Callable
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Final

_AT_FDCWD: Final = -100
_NOREPLACE: Final = 1
_EXCHANGE: Final = 2
_UNSUPPORTED: Final = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}

CHUNK: Final = 1 << 20


class ExchangeUnsupported(OSError):
    """This system or file system can't swap two names in one step."""


def _renameat2() -> Callable[..., int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        function: Callable[..., int] = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    return function


def _rename(source: str, target: str, flags: int) -> bool:
    """Call renameat2; False: it is not to be had here."""
    function = _renameat2()
    if function is None:
        return False
    if function(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), source, None, target)


def rename_new(source: str, target: str) -> None:
    """Rename ``source`` to ``target``, which must not exist (FileExistsError)."""
    if _rename(source, target, _NOREPLACE):
        return
    # Without the system call: a plain rename replaces an empty folder or a file in silence.
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
    os.rename(source, target)


def exchange(one: str, other: str) -> None:
    """Swap what two names stand for, in one step. Raises `ExchangeUnsupported`."""
    if not _rename(one, other, _EXCHANGE):
        raise ExchangeUnsupported(errno.ENOSYS, "exchange is not supported", one)


def sync_folder(path: str) -> None:
    """Make the names in a folder durable. An error is never tried again: it may pass unseen."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: str, data: bytes, mode: int = 0o644) -> None:
    """Write a new file (it must not exist) and make its content durable."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_below(tree: str, path: str, data: bytes, mode: int) -> None:
    """Write a new file at ``path`` below the folder ``tree``; its folders are made."""
    os.makedirs(os.path.dirname(f"{tree}/{path}"), exist_ok=True)
    write_file(f"{tree}/{path}", data, mode)


def sync_tree(tree: str) -> None:
    """Make the names of all folders of ``tree`` durable, bottom-up, and its own name last."""
    for folder, _, _ in os.walk(tree, topdown=False):
        sync_folder(folder)
    sync_folder(os.path.dirname(tree))


def copy_tree(source: str, target: str) -> None:
    """Copy a folder with everything in it, times included, durably; ``target`` must not exist.

    Raises OSError; special files raise it too, since they can't be copied.
    """
    os.mkdir(target)
    with os.scandir(source) as listing:
        entries = list(listing)
    for entry in entries:
        to = f"{target}/{entry.name}"
        facts = entry.stat(follow_symlinks=False)
        if S_ISLNK(facts.st_mode):
            os.symlink(os.readlink(entry.path), to)
        elif S_ISDIR(facts.st_mode):
            copy_tree(entry.path, to)
        elif S_ISREG(facts.st_mode):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(entry.path, flags)
            with os.fdopen(descriptor, "rb") as file:
                write_file(to, file.read(), facts.st_mode & 0o777)
            os.utime(to, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        else:
            raise OSError(errno.EINVAL, "a special file can't be copied", entry.path)
    facts = os.stat(source)
    os.chmod(target, facts.st_mode & 0o777)
    sync_folder(target)


def remove_tree(path: str) -> None:
    """Remove a file or a folder with all it holds; what is gone already is not an error."""
    try:
        mode = os.lstat(path).st_mode
        if not S_ISDIR(mode):
            os.unlink(path)
            return
        with os.scandir(path) as listing:
            for entry in list(listing):
                remove_tree(entry.path)
        os.rmdir(path)
    except FileNotFoundError:
        return


def is_gone(path: str) -> bool:
    """Tell whether there is surely nothing; a disk that does not answer proves nothing."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def digest_path(path: str) -> str | None:
    """Return a digest of everything a file or folder holds; None where nothing is there.

    It covers names, kinds, permission to execute, contents and link targets, and passes over
    nothing: what it vouches for may be removed.
    """
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    total = hashlib.sha256()
    _digest(path, "", mode, total)
    return total.hexdigest()


def _digest(path: str, name: str, mode: int, total: "hashlib._Hash") -> None:
    label = os.fsencode(name)
    if S_ISLNK(mode):
        total.update(b"l%d\0%s\0%s\n" % (len(label), label, os.fsencode(os.readlink(path))))
    elif S_ISDIR(mode):
        total.update(b"d%d\0%s\n" % (len(label), label))
        with os.scandir(path) as listing:
            entries = sorted(listing, key=lambda entry: os.fsencode(entry.name))
        for entry in entries:
            inner = f"{name}/{entry.name}" if name else entry.name
            _digest(entry.path, inner, entry.stat(follow_symlinks=False).st_mode, total)
    elif S_ISREG(mode):
        content = hashlib.sha256()
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            while chunk := file.read(CHUNK):
                content.update(chunk)
        executable = b"x" if mode & 0o100 else b"-"
        total.update(b"f%d\0%s\0%s%s\n" % (len(label), label, executable, content.digest()))
    else:
        total.update(b"s%d\0%s\n" % (len(label), label))
