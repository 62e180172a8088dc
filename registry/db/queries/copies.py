"""Skills that may be the same: those of one name, and texts to be compared."""

from collections.abc import Sequence
from typing import Final

from registry.db.interface import Reader
from registry.db.queries.filters import FROM, order
from registry.db.queries.rows import columns, skill_of, skills
from registry.db.queries.skills import StoredSkill, select
from registry.db.sight import OFFERABLE
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
        f"s.name = ? AND s.tree_hash = ? AND s.id <> ? AND {OFFERABLE} "
        "ORDER BY src.strength, s.source_id, s.position",
        *(stored.skill.name, stored.skill.tree_hash, stored.id),
    )


def bodies(reader: Reader, refs: Sequence[str]) -> list[tuple[str, Skill]]:
    """Return the Markdown body (empty: there is none) and the skill of each of a few refs."""
    marks, sight = ", ".join("?" * len(refs)), reader.sight
    rows = reader.rows(
        f"SELECT substr(d.text, d.body_start + 1), {columns(sight)} FROM {FROM} "
        "LEFT JOIN documents d ON d.skill_id = s.id "
        f"WHERE s.live = 1 AND {sight.ref} IN ({marks})",
        refs,
    )
    return [(row[0] or "", skill_of(row[1:])) for row in rows]
