"""What is different between a folder and what would take its place, in a line for people."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from stat import S_ISDIR, S_ISLNK
from typing import Final

from registry.disk.atomic import Place
from registry.disk.files import digest, read_below
from registry.errors import RegistryError
from registry.exchange.content import Entry, local_files

MAX_NAMED: Final = 5
MAX_BYTES: Final = 1 << 18
"""Of a text whose lines are counted; of a longer one it is said that it differs."""


def differences(place: Place, entries: Sequence[Entry]) -> str:
    """Say what is there that would be replaced, file by file. Raises OSError."""
    mode = place.folder.lstat(place.name).st_mode
    if not S_ISDIR(mode):
        return "a link is there" if S_ISLNK(mode) else "a file is there"
    there, coming = local_files(place), {one.path: one for one in entries}
    told = []
    for path in sorted({*there, *coming}):
        if path not in coming:
            told.append(f"{path} is there alone")
        elif path not in there:
            told.append(f"{path} is not there")
        elif there[path] != (digest(coming[path].data), coming[path].executable):
            told.append(f"{path} differs{_lines(place, coming[path])}")
    more = f", and {len(told) - MAX_NAMED} more" if told[MAX_NAMED:] else ""
    return ", ".join(told[:MAX_NAMED]) + more


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
