"""Read and write folders and files that only this user can access.

The registry uses their data to complete changes, to restore files, and to decide whom to trust. So
they are opened without following links, and the owner of the opened file is checked.
"""

import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from shlex import quote
from stat import S_ISDIR, S_ISREG, S_ISVTX
from typing import Final

from registry.disk.atomic import (
    OWN,
    Place,
    make_path,
    open_named,
    remove_tree,
    rename_new,
    write_file,
)
from registry.disk.beneath import FOLDER, READ, Folder
from registry.settings import data_folder

_OTHERS: Final = 0o077

_ELSE: Final = frozenset({errno.ENOTDIR, errno.ELOOP, errno.EISDIR})
"""Error numbers which mean that the path is a link, or a file and not a folder, or the reverse."""


class NotOurs(OSError):
    """A file or folder exists, but isn't private to this user."""

    def __init__(
        self, path: str, reason: str = "this registry did not create it for you; move it away"
    ) -> None:
        super().__init__(errno.EPERM, reason, path)


def open_own_folder(place: Place, *, make: bool = False) -> Folder:
    """Open a folder of this user (mode 0700); if it is missing and ``make``, create it.

    Raises `NotOurs` if other users can access it. Raises FileNotFoundError if it is missing and not
    ``make``.
    """
    folder, name = place
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder.fd)
            folder.sync()
    try:
        opened = Folder(os.open(name, FOLDER, dir_fd=folder.fd), place.path)
    except OSError as error:
        if error.errno in _ELSE:
            raise NotOurs(place.path) from error
        raise
    try:
        _check_ours(os.fstat(opened.fd), place.path)
    except NotOurs:
        opened.close()
        raise
    return opened


@contextmanager
def open_data_folder(name: str, *, make: bool = False) -> Iterator[Folder]:
    """Open the folder ``name`` in this user's data folder; if ``make``, create missing folders.

    Raises the errors of `open_own_folder`.
    """
    home = str(data_folder())
    if make:
        make_path(home, OWN)
    with open_named(home) as above, open_own_folder(Place(above, name), make=make) as folder:
        yield folder


def read_own_file(place: Place, limit: int) -> bytes:
    """Return at most ``limit`` bytes of a file of this user (mode 0600).

    Raises `NotOurs` if other users can access the file, and FileNotFoundError if it is missing.
    """
    try:
        descriptor = os.open(place.name, READ, dir_fd=place.folder.fd)
    except OSError as error:
        if error.errno in _ELSE:
            raise NotOurs(place.path) from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(descriptor)
        if not S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            raise NotOurs(place.path)
        _check_ours(facts, place.path)
        return file.read(limit)


def write_own_file(place: Place, data: bytes) -> None:
    """Write a new file (mode 0600) atomically and durably. Raises FileExistsError, OSError."""
    draft = Place(place.folder, f".{place.name}.{secrets.token_hex(8)}")
    try:
        write_file(draft, data, 0o600)
        rename_new(draft, place)
    except BaseException:
        remove_tree(draft)
        raise
    place.folder.sync()


def is_ours_alone(path: str) -> bool:
    """Tell whether only this user can write a SQLite file and its side files (such as ``-wal``)."""
    real = os.path.realpath(path)
    for name in (real, *(real + ending for ending in ("-wal", "-shm", "-journal"))):
        try:
            facts = os.stat(name, follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError:
            return False
        if not S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o022:
            return False
    return True


def open_to_others(paths: Iterable[str]) -> list[str]:
    """Return the paths to which other users may write.

    A folder with the sticky bit protects its files, so it isn't returned.
    """
    found = []
    for path in dict.fromkeys(paths):
        with suppress(OSError):
            mode = os.stat(path).st_mode
            if mode & 0o022 and not (S_ISDIR(mode) and mode & S_ISVTX):
                found.append(path)
    return found


def _check_ours(facts: os.stat_result, path: str) -> None:
    """Raise `NotOurs` if another user owns the file, or if other users can access it.

    The message lets the user decide what to do. For example, the user may have run a command that
    gave other users access to the trash.
    """
    if facts.st_uid != os.geteuid():
        raise NotOurs(path)
    if facts.st_mode & _OTHERS:
        raise NotOurs(
            path,
            "others may open it; if this registry made it, "
            f"chmod -R go-rwx {quote(path)} closes it, else move it away",
        )
