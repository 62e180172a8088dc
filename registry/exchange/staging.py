"""Write beside what is there, one process at a time, and let nothing be seen before it is whole."""

import errno
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from registry.disk.atomic import remove_tree, sync_folder, write_file
from registry.disk.locks import FolderLock
from registry.disk.paths import STATE_SUFFIX

PREFIX: Final = ".exchange-"
"""How names begin that are in the making; they end so that no sync looks at them."""

LOCK_SECONDS: Final = 30.0

_UNLOCKABLE: Final = {errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}
"""What network file systems answer that can't lock a folder: there is no promise for them."""


@contextmanager
def alone_in(folder: str) -> Iterator[None]:
    """Make a folder where there is none, and keep other pulls and exports out of it meanwhile.

    Raises OSError, with words.
    """
    os.makedirs(folder, exist_ok=True)
    lock = FolderLock(folder)
    try:
        taken = lock.acquire(LOCK_SECONDS)
    except OSError as error:
        if error.errno not in _UNLOCKABLE:
            raise
        taken = True
    if not taken:
        raise OSError(errno.EBUSY, "another pull or export is writing to it", folder)
    with lock:
        yield


def make_staging_dir(folder: str) -> str:
    """Make a staging directory in ``folder``, and return its path."""
    return tempfile.mkdtemp(prefix=PREFIX, suffix=STATE_SUFFIX, dir=folder)


def staging_dirs(folder: str) -> list[str]:
    """Return the paths of the staging directories that killed processes left in ``folder``."""
    with os.scandir(folder) as listing:
        return [
            entry.path
            for entry in listing
            if entry.name.startswith(PREFIX)
            and entry.name.endswith(STATE_SUFFIX)
            and not entry.is_symlink()
        ]


def replace_file(path: str, data: bytes) -> None:
    """Put a file in the place of what is there, durably, in one step."""
    folder = os.path.dirname(path)
    new = os.path.join(folder, f"{PREFIX}{secrets.token_hex(8)}{STATE_SUFFIX}")
    try:
        write_file(new, data)
        os.rename(new, path)
    except BaseException:
        remove_tree(new)
        raise
    sync_folder(folder)
