"""Read the contents of a git repository of skills: skills, their stable names and their files."""

import json
from collections.abc import Iterator, Sequence
from stat import S_IXUSR
from typing import NamedTuple

from registry.db.interface import Condition, Reader
from registry.db.read.skills import FROM, columns, skill_of
from registry.model import Scope, Skill, SkillFile


class RepositorySkill(NamedTuple):
    """A skill of a git repository; ``document`` is the path of its skill file.

    ``seen_at`` is the time at which the skill first had its current files. ``turn`` counts how
    often the files changed.
    """

    id: int
    uid: str
    document: str | None
    seen_at: str
    turn: int
    skill: Skill


class Claim(NamedTuple):
    """A name that a skill has or had.

    Claims are sorted by the time at which the skill got the name. ``source`` is the name of the
    skill's source, and ``owner`` is the owner of the source on a server. If the skill was removed,
    ``scope`` is None, but ``source`` and ``owner`` are still set. ``slot`` is the number, from 1,
    of this skill among the skills of the source with the same name. ``number`` is N in the version
    ``0.0.N``. ``live`` tells whether the skill has the name now.
    """

    uid: str
    name: str
    source: str
    owner: str
    scope: Scope | None
    slot: int
    number: int
    live: bool


def published(reader: Reader, condition: Condition) -> list[RepositorySkill]:
    """Return the skills that meet a condition."""
    rows = reader.rows(
        f"SELECT s.id, s.uid, s.document, coalesce(r.seen_at, ''), "
        f"coalesce(r.turn, r.number, 0), {columns(reader.visibility)} "
        f"FROM {FROM} LEFT JOIN revisions r ON r.uid = s.uid AND r.tree_hash = s.tree_hash "
        f"WHERE {condition[0]}",
        condition[1],
    )
    return [RepositorySkill(a, b, c, d, e, skill_of(facts)) for a, b, c, d, e, *facts in rows]


class Release(NamedTuple):
    """A version of a skill with its files; ``turn`` is the first turn of the files.

    It is the number of their revision, and it never changes (see `CurrentTurn`). ``document`` is
    the path of the skill file.
    """

    label: str
    tree_hash: str
    document: str | None
    seen_at: str
    turn: int
    files: list[SkillFile]


def releases(reader: Reader, uid: str) -> Iterator[Release]:
    """Yield the versions of a skill, except the yanked versions."""
    rows = reader.rows(
        "SELECT l.label, l.tree_hash, r.document, r.seen_at, r.number, "
        "r.files FROM labels l JOIN revisions r ON r.uid = l.uid AND r.tree_hash = l.tree_hash "
        "WHERE l.number = 0 AND l.uid = ? AND (SELECT x.state FROM labels x WHERE x.uid = l.uid "
        "AND x.label = l.label ORDER BY x.number DESC LIMIT 1) <> 'yanked' ORDER BY l.label",
        (uid,),
    )
    for *facts, files in rows:
        found = [
            SkillFile(path, size, one, bool(runs)) for path, runs, size, one in json.loads(files)
        ]
        yield Release._make((*facts, found))


def claims(reader: Reader, name: str | None = None) -> list[Claim]:
    """Return all claims, the oldest first; if ``name`` is given, only the claims of this name."""
    only = "" if name is None else "WHERE e.name = ? "
    rows = reader.rows(
        "SELECT e.uid, e.name, coalesce(src.name, e.source), coalesce(src.owner, e.owner, ''), "
        "src.scope, e.slot, e.number, CASE WHEN s.name = e.name THEN 1 ELSE 0 END "
        "FROM entries e LEFT JOIN skills s ON s.uid = e.uid AND s.live = 1 "
        f"LEFT JOIN sources src ON src.id = s.source_id {only}ORDER BY e.id",
        () if name is None else (name,),
    )
    return [Claim._make((*facts, live == 1)) for *facts, live in rows]


def uids(reader: Reader, condition: Condition) -> set[str]:
    """Return the uids of the skills that meet a condition."""
    return {
        uid
        for (uid,) in reader.rows(f"SELECT s.uid FROM {FROM} WHERE {condition[0]}", condition[1])
    }


def files(reader: Reader, ids: Sequence[int]) -> dict[int, list[SkillFile]]:
    """Return the files of each version, sorted by path."""
    found: dict[int, list[SkillFile]] = {one: [] for one in ids}
    for version, path, size, hashed, mode in reader.rows(
        "SELECT skill_id, path, size, hash, mode FROM skill_files "
        f"WHERE skill_id {reader.in_json_array} ORDER BY skill_id, path",
        (json.dumps(list(ids)),),
    ):
        found[version].append(SkillFile(path, size, hashed, bool(mode & S_IXUSR)))
    return found


def contents(
    reader: Reader, hashes: Sequence[str], limit: int
) -> Iterator[tuple[str, bool, bytes | None]]:
    """Yield the stored contents with these hashes: hash, whether the data is a zlib stream, data.

    The data is None if it has more than ``limit`` bytes. This function doesn't check the hashes.
    """
    those = f"SELECT {reader.json_item.format(0)} FROM {reader.json_each.format('?')} e"
    rows = reader.rows(
        f"SELECT hash, packed, CASE WHEN length(data) <= ? THEN data END FROM contents "
        f"WHERE hash IN ({those})",
        (limit, json.dumps([[one] for one in hashes])),
    )
    return ((hashed, packed == 1, data) for hashed, packed, data in rows)


def texts(reader: Reader, ids: Sequence[int]) -> dict[int, str]:
    """Return the text of each version's skill file."""
    sql = f"SELECT skill_id, text FROM documents WHERE skill_id {reader.in_json_array}"
    return dict(reader.rows(sql, (json.dumps(list(ids)),)))
