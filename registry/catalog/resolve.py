"""The one resolver: a name or ref in, one skill out.

A handle is tried as ``source/folder/path``, then ``source/name``, then as a name. `store.names`
gives each skill the shortest handle that this order answers with exactly that skill.
"""

from typing import Any

from registry.catalog.similar import near
from registry.db.queries.filters import FROM, VISIBLE
from registry.db.queries.rows import COLUMNS
from registry.db.reader import Reader
from registry.errors import SkillAmbiguous, SkillNotFound

LONGEST_HANDLE = 1 << 16


def find(reader: Reader, handle: str) -> tuple[int, tuple[Any, ...]]:
    """Return the version id and the row (`rows.COLUMNS`) of the skill that ``handle`` names.

    Raises `SkillAmbiguous` with the refs to choose from, `SkillNotFound` with near names.
    """
    if 0 < len(handle) <= LONGEST_HANDLE and "\0" not in handle:
        with reader.snapshot():
            for found in _attempts(reader, handle):
                if len(found) == 1:
                    return found[0][0], found[0][1:]
                if found:
                    raise SkillAmbiguous(handle, sorted(row[1] for row in found))
    raise SkillNotFound(handle[:200], near(reader, handle))


def _attempts(reader: Reader, handle: str) -> "list[list[tuple[Any, ...]]] | Any":
    source, slash, rest = handle.partition("/")
    select = f"SELECT s.id, {COLUMNS} FROM {FROM} WHERE s.live = 1 AND "
    if slash:
        yield reader.rows(select + "src.name = ? AND s.folder = ?", (source, rest))
        yield reader.rows(select + "src.name = ? AND s.name = ?", (source, rest))
    named = reader.rows(f"{select} s.name = ? AND {VISIBLE}", (handle,))
    yield named or reader.rows(f"{select} s.name = ?", (handle,))
