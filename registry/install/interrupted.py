"""Notes of pulls at work, so that a sync finds what killed pulls left.

One small file each (0600, in a folder of 0700 in this user's data folder), named after the folder
of the lock. A pull writes it before it changes anything, and removes it at its end.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from registry.disk.atomic import OWN, Place, make_path, open_named, write_file
from registry.disk.beneath import Folder
from registry.disk.private import open_own_folder, read_own_file
from registry.install.targets import Target
from registry.settings import data_folder

FOLDER: Final = "pulls"
MAX_BYTES: Final = 1 << 16


def note(target: Target) -> None:
    """Note that a pull changes a target. Without a note only the next pull there clears up."""
    with suppress(OSError, ValueError):  # ValueError: a path that is not UTF-8 text
        make_path(str(data_folder()), OWN)
        with _notes(make=True) as folder, suppress(FileExistsError):
            write_file(_place(folder, target), _data(target), 0o600)


def forget(target: Target) -> None:
    """Forget the note of a target: nothing unfinished is there."""
    with suppress(OSError, ValueError), _notes() as folder:
        os.unlink(_place(folder, target).name, dir_fd=folder.fd)


def interrupted() -> list[Target]:
    """Return the targets that pulls change now, or were killed changing."""
    try:
        with _notes() as folder:
            return [one for name in os.listdir(folder.fd) for one in _noted(folder, name)]
    except OSError:
        return []


def _noted(folder: Folder, name: str) -> Iterator[Target]:
    with suppress(OSError, ValueError, KeyError, TypeError):
        facts = json.loads(read_own_file(Place(folder, name), MAX_BYTES))
        target = Target(str(facts["path"]), is_global=facts["is_global"] is True)
        if os.path.isabs(target.path) and _place(folder, target).name == name:
            yield target


def _place(folder: Folder, target: Target) -> Place:
    return Place(folder, hashlib.sha256(_data(target)).hexdigest())


def _data(target: Target) -> bytes:
    facts = {"path": target.path, "is_global": target.is_global}
    return json.dumps(facts, sort_keys=True, ensure_ascii=False).encode()


@contextmanager
def _notes(*, make: bool = False) -> Iterator[Folder]:
    with (
        open_named(str(data_folder())) as home,
        open_own_folder(Place(home, FOLDER), make=make) as folder,
    ):
        yield folder
