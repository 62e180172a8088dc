"""Everything that is stored of one skill."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from stat import S_IXUSR
from typing import Any

from registry.db.queries.filters import FROM
from registry.db.queries.rows import COLUMNS, diagnostic
from registry.db.reader import Reader
from registry.model import Diagnostic, JsonValue, SkillFile


@dataclass(frozen=True, slots=True)
class Version:
    """The stored version of a skill, with what a check for staleness needs."""

    id: int
    uid: str
    root: str
    source_id: int
    folder: str
    document: str | None
    fingerprint: str
    racy: int
    tree_hash: str | None
    created_at: str
    content_hash: str | None
    host: str


def version(reader: Reader, skill_id: int) -> Version | None:
    """Return the facts of a stored version; None: it is no longer live."""
    rows = reader.rows(
        "SELECT s.id, s.uid, src.path, s.source_id, s.folder, s.document, s.fingerprint, s.racy, "
        f"s.tree_hash, s.created_at, s.content_hash, src.host FROM {FROM} "
        "WHERE s.id = ? AND s.live = 1",
        (skill_id,),
    )
    return Version(*rows[0]) if rows else None


def row_of(reader: Reader, source_id: int, folder: str) -> tuple[int, tuple[Any, ...]] | None:
    """Return version id and row (`rows.COLUMNS`) of the skill in ``folder``."""
    rows = reader.rows(
        f"SELECT s.id, {COLUMNS} FROM {FROM} WHERE s.live = 1 AND s.source_id = ? AND s.folder = ?",
        (source_id, folder),
    )
    return (rows[0][0], rows[0][1:]) if rows else None


def document(reader: Reader, skill_id: int) -> tuple[str, int, Mapping[str, JsonValue]] | None:
    """Return the SKILL.md's text, where its body starts, and its front matter."""
    rows = reader.rows(
        "SELECT text, body_start, front_matter FROM documents WHERE skill_id = ?", (skill_id,)
    )
    return (rows[0][0], rows[0][1], json.loads(rows[0][2])) if rows else None


def files(reader: Reader, skill_id: int) -> tuple[SkillFile, ...]:
    """Return the skill's files, SKILL.md among them, by path."""
    return tuple(
        SkillFile(path, size, content, bool(mode & S_IXUSR))
        for path, size, content, mode in reader.rows(
            "SELECT path, size, hash, mode FROM skill_files WHERE skill_id = ? ORDER BY path",
            (skill_id,),
        )
    )


def findings(reader: Reader, skill_id: int) -> tuple[Diagnostic, ...]:
    """Return the skill's diagnostics, the worst first."""
    rows = reader.rows(
        "SELECT code, severity, message, line, fix, path FROM diagnostics WHERE skill_id = ?",
        (skill_id,),
    )
    return tuple(sorted(map(diagnostic, rows), key=lambda finding: finding.sort_key))


def extras(reader: Reader, skill_id: int) -> tuple[str | None, str, str, str | None]:
    """Return compatibility, required tools (JSON), parameters (JSON) and the document's name."""
    rows = reader.rows(
        "SELECT compatibility, required_tools, parameters, document FROM skills WHERE id = ?",
        (skill_id,),
    )
    compatibility, tools, declared, document_name = rows[0]
    return compatibility, tools, declared, document_name


def shadowers(reader: Reader, name: str) -> list[str]:
    """Return the refs of the visible skills of this name."""
    return [
        row[0]
        for row in reader.rows(
            f"SELECT s.ref FROM {FROM} WHERE s.name = ? AND s.live = 1 AND s.shadowed = 0 "
            "AND s.status IN ('ok', 'warning') ORDER BY src.strength",
            (name,),
        )
    ]


def refs_of(reader: Reader, ids: Sequence[int]) -> dict[int, str]:
    """Return the refs of versions, live or not."""
    found: dict[int, str] = {}
    for start in range(0, len(ids), 500):
        some = ids[start : start + 500]
        marks = ",".join("?" * len(some))
        sql = f"SELECT id, ref FROM skills WHERE id IN ({marks})"
        found.update((row[0], row[1]) for row in reader.rows(sql, some))
    return found
