"""What is different between a folder and what was put there, or would be, in a line for people."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from stat import S_ISDIR, S_ISLNK
from typing import Final

from registry.core import Core
from registry.disk.atomic import Place
from registry.disk.files import digest, read_below
from registry.errors import RegistryError
from registry.install.content import Entry, content_as_locked, local_files
from registry.install.lockfile import Locked

MAX_NAMED: Final = 5
MAX_BYTES: Final = 1 << 18
"""Of a text whose lines are counted; of a longer one it is said that it differs."""


def edits(core: Core, place: Place, pulled: Locked) -> str:
    """Say what was edited since a skill was pulled, file by file. Raises OSError.

    With the numbers of lines where the registry still has what was pulled.
    """
    entries = content_as_locked(core, pulled.name, pulled.tree_hash)
    if entries is not None:
        return differences(place, entries)
    if told := _no_folder(place):
        return told
    there = {path: hashed for path, (hashed, _) in local_files(place).items()}
    told = _told(
        [f"{path} is there alone" for path in there.keys() - pulled.files.keys()]
        + [f"{path} is not there" for path in pulled.files.keys() - there.keys()]
        + [
            f"{path} differs"
            for path in there.keys() & pulled.files.keys()
            if there[path] != pulled.files[path]
        ]
    )
    return told or "what may be executed differs"


def differences(place: Place, entries: Sequence[Entry]) -> str:
    """Say what is there that these files are not, file by file. Raises OSError."""
    if no_folder := _no_folder(place):
        return no_folder
    there, coming = local_files(place), {one.path: one for one in entries}
    told = []
    for path in {*there, *coming}:
        if path not in coming:
            told.append(f"{path} is there alone")
        elif path not in there:
            told.append(f"{path} is not there")
        elif there[path] != (digest(coming[path].data), coming[path].executable):
            told.append(f"{path} differs{_lines(place, coming[path])}")
    return _told(told)


def _no_folder(place: Place) -> str:
    mode = place.folder.lstat(place.name).st_mode
    if S_ISDIR(mode):
        return ""
    return "a link is there" if S_ISLNK(mode) else "a file is there"


def _told(told: Sequence[str]) -> str:
    more = f", and {len(told) - MAX_NAMED} more" if told[MAX_NAMED:] else ""
    return ", ".join(sorted(told)[:MAX_NAMED]) + more


def _lines(place: Place, coming: Entry) -> str:
    """Count the lines that only one of two texts has."""
    if len(coming.data) > MAX_BYTES:
        return ""
    with suppress(OSError, RegistryError, UnicodeDecodeError):
        data = read_below(place.folder, f"{place.name}/{coming.path}", MAX_BYTES).data
        mine, theirs = data.decode().splitlines(), coming.data.decode().splitlines()
        more, fewer = Counter(mine) - Counter(theirs), Counter(theirs) - Counter(mine)
        return f" (+{more.total()} -{fewer.total()})"
    return ""
