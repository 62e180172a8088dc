"""Rename without overwriting, write durably, and compute digests of whole folders.

A `Place` is an open folder and a name in it. If another process replaces a parent folder by a link
in the meantime, the write still goes to the opened folder. "Durable" means flushed to disk, so that
the change survives a power failure.
"""

import ctypes
import errno
import hashlib
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import Final, NamedTuple

from registry.disk.beneath import READ, WRITE_NEW, Folder

_NOREPLACE: Final = 1
_EXCHANGE: Final = 2
_UNSUPPORTED: Final = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}

MAX_DEPTH: Final = 200
"""Maximum depth of nested folders to copy or digest; each level needs an open file descriptor."""


class Place(NamedTuple):
    """A name in an open folder; a file or folder with this name need not exist."""

    folder: Folder
    name: str

    @property
    def path(self) -> str:
        """The absolute path of this name, for messages."""
        return self.folder.path_of(self.name)


class ExchangeUnsupported(OSError):
    """This system or file system can't exchange two names atomically."""


def renameat2() -> Callable[..., int] | None:
    """Return the system call that renames without overwriting.

    Returns None if the system doesn't have it.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        function: Callable[..., int] = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    return function


def _rename(source: Place, target: Place, flags: int) -> bool:
    """Call renameat2(2); return False if the system or the file system doesn't support it."""
    function = renameat2()
    if function is None:
        return False
    one, other = os.fsencode(source.name), os.fsencode(target.name)
    if function(source.folder.fd, one, target.folder.fd, other, flags) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), source.path, None, target.path)


def rename_new(source: Place, target: Place) -> None:
    """Rename ``source`` to ``target``. Raises FileExistsError if ``target`` exists."""
    if _rename(source, target, _NOREPLACE):
        return
    # Check this first, because without renameat2, a rename silently replaces a file or an empty
    # folder.
    if not is_gone(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target.path)
    replace(source, target)


def replace(source: Place, target: Place) -> None:
    """Rename ``source`` to ``target``, and overwrite an existing file."""
    os.rename(source.name, target.name, src_dir_fd=source.folder.fd, dst_dir_fd=target.folder.fd)


def exchange(one: Place, other: Place) -> None:
    """Exchange two names atomically. Raises `ExchangeUnsupported`."""
    if not _rename(one, other, _EXCHANGE):
        raise ExchangeUnsupported(errno.ENOSYS, "exchange is not supported", one.path)


def sync_folder(folder: Folder) -> None:
    """Flush the names in a folder to disk.

    After an error, don't try again, because the second attempt may wrongly succeed.
    """
    folder.sync()


def write_file(
    place: Place,
    data: bytes,
    mode: int = 0o644,
    *,
    times: tuple[int, int] | None = None,
    durable: bool = True,
) -> None:
    """Write a new file; if the name exists already, raise FileExistsError.

    If ``durable``, flush the file to disk. ``times`` are the times of the last access and the last
    change, in nanoseconds.
    """
    descriptor = os.open(place.name, WRITE_NEW, mode, dir_fd=place.folder.fd)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, mode)
        if times is not None:
            os.utime(descriptor, ns=times)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_below(tree: Folder, path: str, data: bytes, mode: int) -> None:
    """Write a new file at ``path`` in the folder ``tree``, and create missing folders."""
    above, _, name = path.rpartition("/")
    with make_folders(tree, above) as holder:
        write_file(Place(holder, name), data, mode)


def make_folder(place: Place, mode: int = 0o777) -> Folder:
    """Create a folder and open it; if the name exists already, raise FileExistsError."""
    os.mkdir(place.name, mode, dir_fd=place.folder.fd)
    return place.folder.folder(place.name)


def make_folders(folder: Folder, path: str) -> Folder:
    """Open the folder at ``path`` in ``folder``, without following links.

    Missing folders are created durably.
    """
    at = folder.folder(".")
    for part in filter(None, path.split("/")):
        with at:
            try:
                os.mkdir(part, dir_fd=at.fd)
            except FileExistsError:
                pass
            else:
                at.sync()
            inner = at.folder(part)
        at = inner
    return at


def open_named(path: str) -> Folder:
    """Open a folder at a path from the user; if the path is a link, follow it."""
    return Folder(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), path)


OWN: Final = 0o700
"""Mode of the folders with the registry's own data; the umask doesn't change this mode."""


def make_path(path: str, mode: int = 0o777) -> None:
    """Create a folder and its missing parents durably; the umask limits ``mode``."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    make_path(parent, mode)
    # Another process may create the folder first. If it creates a file, the later opening fails.
    with suppress(FileExistsError):
        os.mkdir(path, mode)
    with open_named(parent) as above:
        above.sync()


def missing_folders(path: str) -> list[str]:
    """Return the folders that `make_path` would create, the outermost first."""
    found: list[str] = []
    while not os.path.lexists(path):
        found.insert(0, path)
        path = os.path.dirname(path)
    return found


def sync_tree(place: Place) -> None:
    """Flush the names in all folders of a tree to disk.

    The innermost folders come first, and the name of the tree itself comes last.
    """

    def fail(error: OSError) -> None:
        raise error

    tree = os.fwalk(place.name, topdown=False, onerror=fail, dir_fd=place.folder.fd)
    for _, _, _, descriptor in tree:
        os.fsync(descriptor)
    place.folder.sync()


def copy_tree(source: Place, target: Place) -> None:
    """Copy a folder with all its contents and their times durably.

    Raises OSError if this fails, or if the folder contains special files such as sockets and
    devices.
    """
    with source.folder.folder(source.name) as tree:
        _copy(tree, target, 0)


def _copy(source: Folder, target: Place, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _too_deep(source.path)
    with make_folder(target) as to:
        for entry in source.entries():
            name, place = entry.name, Place(to, entry.name)
            mode = entry.stat(follow_symlinks=False).st_mode
            if S_ISLNK(mode):
                os.symlink(os.readlink(name, dir_fd=source.fd), name, dir_fd=to.fd)
            elif S_ISDIR(mode):
                with source.folder(name) as inner:
                    _copy(inner, place, depth + 1)
            else:
                _copy_file(Place(source, name), place)
        os.fchmod(to.fd, os.fstat(source.fd).st_mode & 0o777)
        to.sync()


def _copy_file(source: Place, target: Place) -> None:
    with os.fdopen(source.folder.open_file(source.name, READ), "rb") as file:
        facts = os.fstat(file.fileno())
        if not S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "a special file can't be copied", source.path)
        times = facts.st_atime_ns, facts.st_mtime_ns
        write_file(target, file.read(), facts.st_mode & 0o777, times=times)


def remove_tree(place: Place) -> None:
    """Remove a file, or a folder with all its contents; if it is missing, do nothing."""
    with suppress(FileNotFoundError):
        if S_ISDIR(place.folder.lstat(place.name).st_mode):
            shutil.rmtree(place.name, dir_fd=place.folder.fd)
        else:
            os.unlink(place.name, dir_fd=place.folder.fd)


def is_gone(place: Place) -> bool:
    """Tell whether a file or folder certainly doesn't exist.

    If the disk reports any error other than "not found", the result is False, because the file may
    still exist.
    """
    try:
        place.folder.lstat(place.name)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def exists(folder: Folder, path: str) -> bool:
    """Tell whether ``path`` exists in a folder.

    Raises OSError if this is unknown, for example if a folder on the path is a link.
    """
    try:
        folder.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def digest_of(place: Place) -> str | None:
    """Return a digest of a file, or of a folder with all its contents; None if it doesn't exist.

    The digest includes every entry, because callers remove folders with a known digest.
    """
    try:
        mode = place.folder.lstat(place.name).st_mode
    except FileNotFoundError:
        return None
    total = hashlib.sha256()
    _digest(place, "", mode, total, 0)
    return total.hexdigest()


def _digest(place: Place, shown: str, mode: int, total: "hashlib._Hash", depth: int) -> None:
    if depth > MAX_DEPTH:
        raise _too_deep(place.path)
    label, name = os.fsencode(shown), place.name
    if S_ISLNK(mode):
        total.update(_link_line(label, os.readlink(name, dir_fd=place.folder.fd)))
    elif S_ISDIR(mode):
        total.update(b"d%d\0%s\n" % (len(label), label))
        with place.folder.folder(name) as folder:
            for entry in sorted(folder.entries(), key=lambda entry: os.fsencode(entry.name)):
                inner = f"{shown}/{entry.name}" if shown else entry.name
                inner_mode = entry.stat(follow_symlinks=False).st_mode
                _digest(Place(folder, entry.name), inner, inner_mode, total, depth + 1)
    elif S_ISREG(mode):
        with os.fdopen(place.folder.open_file(name, READ), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if not S_ISREG(mode):
                raise OSError(errno.ESTALE, "the file changed while it was being read", place.path)
            content = hashlib.file_digest(file, "sha256")
        executable = b"x" if mode & 0o100 else b"-"
        total.update(b"f%d\0%s\0%s%s\n" % (len(label), label, executable, content.digest()))
    else:
        total.update(b"s%d\0%s\n" % (len(label), label))


def digest_of_link(target: str) -> str:
    """Return the digest that `digest_of` returns for a link to ``target``."""
    return hashlib.sha256(_link_line(b"", target)).hexdigest()


def _link_line(label: bytes, target: str) -> bytes:
    return b"l%d\0%s\0%s\n" % (len(label), label, os.fsencode(target))


def _too_deep(path: str) -> OSError:
    return OSError(errno.ENAMETOOLONG, "the folders are nested too deeply", path)
