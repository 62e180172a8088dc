"""Read the details of search hits, near-duplicates, and skills by name."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from registry.db.interface import Condition, Reader
from registry.db.read.skills import (
    BY_NAME,
    DESCRIPTION,
    FROM,
    StoredSkill,
    bodies_and_skills,
    columns,
    select,
    select_refs,
    skill_of,
)
from registry.db.visibility import OFFERABLE, PRECEDENCE, STRONGEST_FIRST, Precedence, Visibility
from registry.model import Skill
from registry.text import slug

if TYPE_CHECKING:
    from registry.document.minhash import Part


def ids_named(reader: Reader, key: str, condition: Condition) -> Callable[[], list[int]]:
    """Queue a SELECT for the ids of skills that have this name key and meet a condition.

    Returns a function that returns the ids.
    """
    sql = f"SELECT s.id FROM {FROM} WHERE s.name_key = ? AND {condition[0]} ORDER BY s.id"
    rows = reader.pipeline((sql, [key, *condition[1]]))
    return lambda: [row[0] for row in rows()]


def heads_of(reader: Reader, ids: Sequence[int]) -> Callable[[], dict[int, str]]:
    """Queue a SELECT for the head of each version: its name, tags and description as one text.

    Returns a function that returns the heads.
    """
    told = reader.index.metadata(ids)
    known = {one: it.head for one, it in told.items() if it.head is not None}
    left = [one for one in ids if one not in known]
    if not left:
        return lambda: known
    sql = (
        f"SELECT s.id, s.name || ' ' || s.tags || ' ' || {DESCRIPTION} FROM skills s "
        f"WHERE s.id {reader.in_json_array}"
    )
    rows = reader.pipeline((sql, [json.dumps(left)]))
    return lambda: known | dict(rows())


_BEGINNING: Final = 12_000
"""Number of characters at the beginning of a body that are compared to find translations."""


def names_and_bodies(reader: Reader, ids: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Return the name key and the beginning of the body of each version."""
    rows = reader.rows(
        "SELECT s.id, s.name_key, substr(d.text, d.body_start + 1, ?) FROM skills s "
        f"JOIN documents d ON d.skill_id = s.id WHERE s.id {reader.in_json_array}",
        [_BEGINNING, json.dumps(list(ids))],
    )
    return {version: (name, body or "") for version, name, body in rows}


def precedences_of(reader: Reader, ids: Sequence[int]) -> dict[int, Precedence]:
    """Return the precedence of the source of each version."""
    told = reader.index.metadata(ids)
    if len(told) == len(ids):
        return {one: known.precedence for one, known in told.items()}
    sql = f"SELECT s.id, {PRECEDENCE} FROM {FROM} WHERE s.id {reader.in_json_array}"
    rows = reader.rows(sql, [json.dumps(list(ids))])
    return {one: Precedence(*facts) for one, *facts in rows}


def sketches(reader: Reader, ids: Sequence[int]) -> dict[int, bytes]:
    """Return the MinHash sketches of versions, which estimate how similar their texts are.

    See `document.minhash`.
    """
    told = reader.index.metadata(ids)
    if len(told) == len(ids):
        return {one: known.sketch for one, known in told.items() if known.sketch is not None}
    sql = f"SELECT skill_id, data FROM sketches WHERE skill_id {reader.in_json_array}"
    return {row[0]: bytes(row[1]) for row in reader.rows(sql, [json.dumps(list(ids))])}


def vectors(reader: Reader, key: bytes) -> list[tuple[int, bytes]]:
    """Return the stored vectors of the model with this key, each with its version."""
    sql = "SELECT skill_id, vector FROM sketches WHERE substr(vector, 1, ?) = ? ORDER BY skill_id"
    return [(one, bytes(data)) for one, data in reader.rows(sql, [len(key), key])]


def without_vector(reader: Reader, key: bytes) -> list[int]:
    """Return the live versions of this user's sources that have no vector of this model."""
    sql = (
        f"SELECT s.id FROM {FROM} JOIN sketches k ON k.skill_id = s.id WHERE s.live = 1 "
        f"AND {reader.own} = 1 AND coalesce(substr(k.vector, 1, ?) <> ?, 1 = 1) ORDER BY s.id"
    )
    return [row[0] for row in reader.rows(sql, [len(key), key])]


def ids_meeting(reader: Reader, ids: Sequence[int], condition: Condition) -> set[int]:
    """Return which of these versions meet a condition."""
    sql = f"SELECT s.id FROM {FROM} WHERE s.id {reader.in_json_array} AND {condition[0]}"
    return {row[0] for row in reader.rows(sql, [json.dumps(ids), *condition[1]])}


def hit_details(
    reader: Reader, ids: Sequence[int], others: Sequence[int], visibility: Visibility
) -> tuple[dict[int, tuple[str, Skill]], dict[int, str]]:
    """Return the body and the skill of each version, and the refs of the versions ``others``.

    This function runs the last SELECTs of the snapshot.
    """
    refs = reader.pipeline(select_refs(reader, others, visibility)) if others else list
    reader.finish()
    return bodies_and_skills(reader, ids, visibility), dict(refs())


_REPEATED: Final = (
    f"SELECT s.name FROM {FROM} WHERE {OFFERABLE} GROUP BY s.name HAVING count(*) > 1"
)


def skills_sharing_names(reader: Reader, name: str | None = None) -> tuple[Skill, ...]:
    """Return the usable skills that share their name with another usable skill.

    If ``name`` is given, return all usable skills with this name.
    """
    named = f"s.name IN ({_REPEATED})" if name is None else "s.name = ?"
    rows = reader.rows(
        f"SELECT {columns(reader.visibility)} FROM {FROM} WHERE {OFFERABLE} AND {named} "
        f"ORDER BY {BY_NAME}",
        () if name is None else (name,),
    )
    return tuple(map(skill_of, rows))


def same_files_as(reader: Reader, stored: StoredSkill) -> list[StoredSkill]:
    """Return the other usable skills with this skill's name and files, by precedence."""
    return select(
        reader,
        f"s.name = ? AND s.tree_hash = ? AND s.id <> ? AND {OFFERABLE} ORDER BY {STRONGEST_FIRST}",
        *(stored.skill.name, stored.skill.tree_hash, stored.id),
    )


def sketches_of(
    reader: Reader,
    condition: Condition,
    *,
    sharing: "Sequence[Sequence[Sequence[Part]]] | None" = None,
) -> Iterable[tuple[int, str, bytes]]:
    """Yield the id, name and MinHash sketch of each skill that meets a condition, by name.

    If ``sharing`` is given, return only sketches that meet this condition of `minhash.probes`.
    """
    meets, values = condition[0], list(condition[1])
    if sharing is not None:
        # The database checks this condition on the sketches before it reads any skill.
        meets += f" AND s.id IN (SELECT skill_id FROM sketches WHERE {_any_of(sharing)})"
        values += [part for groups in sharing for group in groups for _, part in group]
    return reader.stream(
        f"SELECT s.id, s.name, k.data FROM {FROM} JOIN sketches k ON k.skill_id = s.id "
        f"WHERE {meets} ORDER BY {BY_NAME}",
        values,
    )


def _any_of(sharing: "Sequence[Sequence[Sequence[Part]]]") -> str:
    """Return the SQL for a condition of `minhash.probes`."""
    if not sharing:
        return "1 = 0"
    return " OR ".join(
        " AND ".join(
            "("
            + " OR ".join(f"substr(data, {at + 1}, {len(part)}) = ?" for at, part in group)
            + ")"
            for group in groups
        )
        for groups in sharing
    )


def sketch_at(reader: Reader, skill: Skill) -> bytes:
    """Return the sketch of a stored skill; empty if no sketch is stored."""
    rows = reader.rows(
        f"SELECT k.data FROM {FROM} JOIN sketches k ON k.skill_id = s.id "
        "WHERE s.live = 1 AND src.name = ? AND s.folder = ?",
        [skill.source, skill.folder],
    )
    return bytes(rows[0][0]) if rows else b""


def skills_of(reader: Reader, ids: Sequence[int]) -> dict[int, Skill]:
    """Return the skills of these versions by id, in the order of ``ids``."""
    rows = reader.rows(
        f"SELECT s.id, {columns(reader.visibility)} FROM {FROM} WHERE s.id {reader.in_json_array}",
        [json.dumps(list(ids))],
    )
    found = {row[0]: skill_of(row[1:]) for row in rows}
    return {one: found[one] for one in ids if one in found}


def odd_names(reader: Reader, condition: Condition) -> dict[str, list[int]]:
    """Return the versions that meet a condition and have a name that isn't a slug.

    The result groups the versions by the slug of their name. The result is cached until the
    database changes.
    """

    def load(reader: Reader) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        sql = f"SELECT s.id, s.name FROM {FROM} WHERE {condition[0]}"
        for version, name in reader.stream(sql, condition[1]):
            if (made := slug(name)) != name:
                found.setdefault(made, []).append(version)
        return found

    return reader.remembered(f"odd names {condition[0]} {list(condition[1])}", load)


def beginning(
    reader: Reader, condition: Condition, prefix: str, *, limit: int, offset: int
) -> list[int]:
    """Return the versions whose names begin with ``prefix``, by name."""
    rows = reader.rows(
        f"SELECT s.id FROM {FROM} WHERE s.name_key >= ? AND s.name_key < ? AND {condition[0]} "
        "ORDER BY s.name_key, s.name, s.source_id, s.position LIMIT ? OFFSET ?",
        [prefix, f"{prefix}\U0010ffff", *condition[1], limit, offset],
    )
    return [row[0] for row in rows]
