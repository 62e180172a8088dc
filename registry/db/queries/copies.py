"""Skills that may be the same: those of one name, and texts to be compared."""

import json
from collections.abc import Sequence
from typing import Final

from registry.db.interface import Reader
from registry.db.queries.filters import FROM, order
from registry.db.queries.rows import columns, skill_of, skills
from registry.db.queries.skills import StoredSkill, select
from registry.db.sight import OFFERABLE, STRONGEST_FIRST
from registry.model import Skill

_REPEATED: Final = (
    f"SELECT s.name FROM {FROM} WHERE {OFFERABLE} GROUP BY s.name HAVING count(*) > 1"
)


def repeated(reader: Reader, name: str | None = None) -> tuple[Skill, ...]:
    """Return the usable skills whose name several have, or those of one ``name``, by name."""
    named = f"s.name IN ({_REPEATED})" if name is None else "s.name = ?"
    rows = reader.rows(
        f"SELECT {columns(reader.sight)} FROM {FROM} WHERE {OFFERABLE} AND {named} "
        f"ORDER BY {order('name', reverse=False)}",
        () if name is None else (name,),
    )
    return skills(rows)


def same_as(reader: Reader, stored: StoredSkill) -> list[StoredSkill]:
    """Return the other usable skills of the same name with the same files, the strongest first."""
    return select(
        reader,
        f"s.name = ? AND s.tree_hash = ? AND s.id <> ? AND {OFFERABLE} ORDER BY {STRONGEST_FIRST}",
        *(stored.skill.name, stored.skill.tree_hash, stored.id),
    )


def listed_sketches(reader: Reader, listed: Sequence[int] | None = None) -> dict[int, bytes]:
    """Return what is kept of the texts of all that is listed (`document.likeness`), by name.

    ``listed``: the versions that count as listed.
    """
    condition, values = f"{OFFERABLE} AND {reader.sight.visible}", []
    if listed is not None:
        condition, values = f"s.id {reader.in_json_array}", [json.dumps(list(listed))]
    rows = reader.rows(
        f"SELECT s.id, k.data FROM {FROM} JOIN sketches k ON k.skill_id = s.id "
        f"WHERE {condition} ORDER BY {order('name', reverse=False)}",
        values,
    )
    return {row[0]: bytes(row[1]) for row in rows}


def sketch_at(reader: Reader, skill: Skill) -> bytes:
    """Return what is kept of the text of a skill that is there; empty: nothing."""
    rows = reader.rows(
        f"SELECT k.data FROM {FROM} JOIN sketches k ON k.skill_id = s.id "
        "WHERE s.live = 1 AND src.name = ? AND s.folder = ?",
        [skill.source, skill.folder],
    )
    return bytes(rows[0][0]) if rows else b""


def skills_of(reader: Reader, ids: Sequence[int]) -> dict[int, Skill]:
    """Return the skills of versions, in this order."""
    rows = reader.rows(
        f"SELECT s.id, {columns(reader.sight)} FROM {FROM} WHERE s.id {reader.in_json_array}",
        [json.dumps(list(ids))],
    )
    found = {row[0]: skill_of(row[1:]) for row in rows}
    return {one: found[one] for one in ids if one in found}
