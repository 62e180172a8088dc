"""Skills with their front matter and files, page by page: what a client needs to fetch them."""

import json
from dataclasses import dataclass
from typing import Final

from registry.db.interface import Reader
from registry.db.queries.filters import FROM, NO_LIMIT, Filters, order, where
from registry.db.queries.rows import DESCRIPTION

_NESTED: Final = "JOIN skills c ON c.source_id = p.source_id AND c.live = 1 AND c.id <> p.id "

_FILES: Final = (
    "SELECT skill_id, path, hash, size FROM skill_files WHERE skill_id {chosen} "
    "UNION ALL "
    "SELECT p.id, substr(c.folder, length(p.folder) + 2) || '/' || f.path, f.hash, f.size "
    f"FROM skills p {_NESTED} AND c.folder > p.folder || '/' AND c.folder < p.folder || '0' "
    "JOIN skill_files f ON f.skill_id = c.id WHERE p.id {chosen} AND p.folder <> '.' "
    f"UNION ALL SELECT p.id, c.folder || '/' || f.path, f.hash, f.size FROM skills p {_NESTED} "
    "JOIN skill_files f ON f.skill_id = c.id WHERE p.id {chosen} AND p.folder = '.' "
    "ORDER BY 1, 2"
)
"""The files of the chosen skills, and of skills in folders below theirs ('0' follows '/')."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file: its path below the skill's folder, ``sha256:…`` of its bytes, its size."""

    path: str
    hash: str | None
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """A skill and all files below its folder, those of skills inside it among them.

    ``document`` is the path of the skill file, ``text`` what is in it.
    """

    ref: str
    name: str
    description: str
    source: str
    folder: str
    document: str
    text: str
    files: tuple[FileEntry, ...]


def manifests(
    reader: Reader, filters: Filters, *, limit: int = NO_LIMIT, offset: int = 0
) -> tuple[Manifest, ...]:
    """Return a page (all by default) of the skills that pass the filters, by name."""
    sight = reader.sight
    condition, values = where(reader, filters, sight)
    with reader.snapshot():
        rows = reader.rows(
            f"SELECT s.id, {sight.ref}, s.name, {DESCRIPTION}, src.name, s.folder, "
            f"s.document, d.text FROM {FROM} JOIN documents d ON d.skill_id = s.id "
            f"WHERE {condition} ORDER BY {order('name', reverse=False)} LIMIT ? OFFSET ?",
            [*values, limit, offset],
        )
        files: dict[int, list[FileEntry]] = {row[0]: [] for row in rows}
        ids = json.dumps(list(files))
        wanted = _FILES.format(chosen=reader.in_json_array)
        for skill_id, *entry in reader.rows(wanted, (ids, ids, ids)):
            files[skill_id].append(FileEntry(*entry))
    facts = [(*row[1:], tuple(files[row[0]])) for row in rows]
    return tuple(Manifest(*each) for each in facts)
