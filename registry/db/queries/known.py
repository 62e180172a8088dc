"""What the disk is compared with: fingerprints and findings, in the order of the walk."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from registry.db.interface import Reader, Select
from registry.model import Diagnostic

PAGE: Final = 500
"""Skills whose findings are read at once."""


class StoredFingerprint(NamedTuple):
    """A stored version, as far as the comparison needs it."""

    position: str
    id: int
    folder: str
    fingerprint: str
    racy: int
    status: str


def fingerprints(reader: Reader, source_id: int) -> Iterator[StoredFingerprint]:
    """Yield the live versions of a source in the order of `disk.paths.position`."""
    sql = (
        "SELECT position, id, folder, fingerprint, racy, status FROM skills "
        "WHERE source_id = ? AND live = 1 ORDER BY position"
    )
    return map(StoredFingerprint._make, reader.stream(sql, (source_id,)))


def known_hashes(reader: Reader, skill_id: int) -> dict[str, tuple[tuple[int, ...], str | None]]:
    """Return per file of a version its stat (mode, size, mtime, ctime, inode) and its hash."""
    return {
        path: (tuple(facts), content)
        for path, content, *facts in reader.rows(
            "SELECT path, hash, mode, size, mtime_ns, ctime_ns, inode FROM skill_files "
            "WHERE skill_id = ?",
            (skill_id,),
        )
    }


class StoredOrigin(NamedTuple):
    """A live version of a skill, and the origin that is stored for it as an installed copy."""

    id: int
    source_id: int
    folder: str
    tree_hash: str | None
    installed: str | None


def stored_origins(reader: Reader, folders: Mapping[int, Sequence[str]]) -> list[StoredOrigin]:
    """Return the live skills in these folders of sources, by the source's id.

    And those of these sources that count as installed copies, wherever they are.
    """
    begin = "SELECT id, source_id, folder, tree_hash, installed FROM skills WHERE live = 1 AND"
    asked: list[Select] = [(f"{begin} installed IS NOT NULL", ())]
    for source_id, wanted in folders.items():
        for start in range(0, len(wanted), PAGE):
            some = wanted[start : start + PAGE]
            marks = ", ".join("?" * len(some))
            sql = f"{begin} source_id = ? AND folder IN ({marks})"
            asked.append((sql, (source_id, *some)))
    found = [StoredOrigin._make(row) for rows in reader.many(asked) for row in rows]
    return [one for one in dict.fromkeys(found) if one.source_id in folders]


class KnownFindings(NamedTuple):
    """What was found in a stored version that can be used: of which files, by which rules.

    ``tags``: one a line; where there are any ``front_matter`` is JSON.
    """

    position: str
    fingerprint: str
    tree_hash: str | None
    name: str
    tags: str
    front_matter: str | None
    findings: tuple[Diagnostic, ...]


_FINDINGS: Final = (
    "SELECT s.*, d.code, d.severity, d.message, d.line, d.fix, d.path FROM ("
    "SELECT id, position, fingerprint, tree_hash, name, tags, CASE WHEN tags <> '' THEN "
    "(SELECT front_matter FROM documents WHERE skill_id = skills.id) END AS front_matter "
    "FROM skills WHERE source_id = ? AND live = 1 AND status IN ('ok', 'warning') "
    "AND position > ? ORDER BY position LIMIT ?) s "
    "LEFT JOIN diagnostics d ON d.skill_id = s.id ORDER BY s.position, d.id"
)


def known_findings(reader: Reader, source_id: int) -> Iterator[KnownFindings]:
    """Yield what was found in the live versions of a source, in the order of `position`.

    They are read page by page: who goes through them reads files meanwhile, and would hold up who
    writes.
    """
    last, number = "", PAGE
    while number == PAGE:
        number = 0
        rows = reader.rows(_FINDINGS, (source_id, last, PAGE))
        for _, found in groupby(rows, key=itemgetter(0)):
            first, *others = found
            facts = first[1:7]
            findings = tuple(Diagnostic(*row[7:]) for row in (first, *others) if row[7])
            yield KnownFindings._make((*facts, findings))
            number, last = number + 1, first[1]


class RemovedSkill(NamedTuple):
    """A version whose folder is gone, as far as finding its new place needs it."""

    id: int
    ref: str
    name: str
    folder: str
    tree_hash: str | None
    file_count: int
    bytes: int
    source: str = ""


def removed_skills(reader: Reader, ids: Sequence[int]) -> list[RemovedSkill]:
    """Return the facts by which moved skills are recognised."""
    sql = (
        "SELECT s.id, s.ref, s.name, s.folder, s.tree_hash, s.file_count, s.bytes, src.name "
        "FROM skills s JOIN sources src ON src.id = s.source_id "
        f"WHERE s.id {reader.in_json_array} ORDER BY s.id"
    )
    return [RemovedSkill(*row) for row in reader.rows(sql, (json.dumps(ids),))] if ids else []


def has_retired(reader: Reader, host: str) -> bool:
    """Tell whether a host's sources have versions that nobody sees."""
    sql = (
        "SELECT 1 FROM skills s JOIN sources src ON src.id = s.source_id "
        "WHERE s.live = 0 AND src.host = ? LIMIT 1"
    )
    return bool(reader.rows(sql, (host,)))


def links_outside(reader: Reader) -> list[tuple[int, int, str]]:
    """Return (id, source id, folder) of versions that stand for links out of every source."""
    return reader.rows(
        "SELECT s.id, s.source_id, s.folder FROM diagnostics d JOIN skills s ON s.id = d.skill_id "
        "WHERE d.code = 'link-outside' AND d.path IS NULL AND s.live = 1 AND s.file_count = 0 "
        "ORDER BY s.id"
    )


def links_known(
    reader: Reader, host: str, messages: Sequence[str], most: int
) -> list[tuple[str, str, str]]:
    """Return (root, folder, message) of the links in a host's sources with one of these messages.

    A root is its source's path; that the source is on this machine is the host's claim.
    """
    marks = ", ".join("?" * len(messages))
    return reader.rows(
        "SELECT src.path, d.folder, d.message FROM diagnostics d "
        "JOIN sources src ON src.id = d.source_id WHERE d.skill_id IS NULL "
        "AND d.code = 'link-known' AND src.host = ? "
        f"AND d.message IN ({marks}) ORDER BY src.path, d.folder LIMIT ?",
        (host, *messages, most),
    )


def links_in(reader: Reader, source_id: int) -> list[str]:
    """Return where in a source there are links to folders that are counted elsewhere."""
    sql = (
        "SELECT folder FROM diagnostics "
        "WHERE source_id = ? AND skill_id IS NULL AND code = 'link-known'"
    )
    return [folder for (folder,) in reader.rows(sql, (source_id,))]


def notice_digest(reader: Reader, source_id: int) -> list[tuple[str, str]]:
    """Return (folder, code) of the stored findings that belong to no skill."""
    sql = (
        "SELECT folder, code FROM diagnostics WHERE source_id = ? AND skill_id IS NULL "
        "ORDER BY folder, code"
    )
    return reader.rows(sql, (source_id,))
