"""Write beside what is there, one process at a time, and let nothing be seen before it is whole."""

import errno
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from registry.disk.atomic import (
    Place,
    make_folder,
    make_path,
    open_named,
    remove_tree,
    replace,
    write_file,
)
from registry.disk.beneath import Folder
from registry.disk.locks import FolderLock
from registry.disk.paths import STATE_SUFFIX
from registry.disk.private import NotOurs, open_own_folder

PREFIX: Final = ".exchange-"
"""How names begin that are in the making; they end so that no sync looks at them."""

LOCK_SECONDS: Final = 30.0

_UNLOCKABLE: Final = {errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}
"""What network file systems answer that can't lock a folder: there is no promise for them."""


@contextmanager
def alone_in(path: str, wait: float = LOCK_SECONDS) -> Iterator[Folder]:
    """Open a folder, made where there is none, and keep other pulls and exports out meanwhile.

    Raises OSError, with words.
    """
    make_path(path)
    with open_named(path) as folder, alone(folder, wait):
        yield folder


@contextmanager
def alone(folder: Folder, wait: float = LOCK_SECONDS) -> Iterator[None]:
    """Keep other pulls and exports out of an open folder. Raises OSError, with words."""
    with FolderLock(folder) as lock:
        try:
            taken = lock.acquire(wait)
        except OSError as error:
            if error.errno not in _UNLOCKABLE:
                raise
            taken = True
        if not taken:
            raise OSError(errno.EBUSY, "another pull or export is writing to it", folder.path)
        yield


def make_staging_dir(folder: Folder, name: str = "") -> str:
    """Make a staging directory in ``folder``, and return its name."""
    name = name or _new_name()
    make_folder(Place(folder, name), 0o700).close()
    return name


def staging_dirs(folder: Folder) -> list[str]:
    """Return the names of this user's staging directories that killed processes left."""
    names = [entry.name for entry in folder.entries()]
    return [name for name in names if _is_staged(name) and is_ours(Place(folder, name))]


def stale_drafts(folder: Folder) -> list[str]:
    """Return the names of the files that killed processes were about to put in place."""
    entries = [entry for entry in folder.entries() if _is_staged(entry.name)]
    return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]


def replace_file(place: Place, data: bytes) -> None:
    """Put a file in the place of what is there, durably, in one step."""
    new = Place(place.folder, _new_name())
    try:
        write_file(new, data)
        replace(new, place)
    except BaseException:
        remove_tree(new)
        raise
    place.folder.sync()


def where(folder: str, error: OSError) -> str:
    """Return the path that an error names, which may be a name below the folder."""
    name = error.filename
    return f"{folder}/{name}" if isinstance(name, str) and name[:1] != "/" else name or folder


def _new_name() -> str:
    return f"{PREFIX}{secrets.token_hex(8)}{STATE_SUFFIX}"


def _is_staged(name: str) -> bool:
    return name.startswith(PREFIX) and name.endswith(STATE_SUFFIX)


def is_ours(place: Place) -> bool:
    """Tell whether there is a folder of this user's own."""
    try:
        open_own_folder(place).close()
    except (NotOurs, FileNotFoundError):
        return False
    return True
