"""The skills that a visibility policy decides about, with what it looks at; one SELECT."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from registry.db.interface import Reader
from registry.db.queries.filters import FROM, order
from registry.db.queries.rows import columns, skill_of
from registry.db.sight import OFFERABLE, precedes
from registry.model import Skill

_SEEN_BY_TEAM: Final = f"""{OFFERABLE} AND {{within}}
AND ({{shadowed}} = 0 OR {{untaken}} AND NOT EXISTS (
    SELECT 1 FROM skills other JOIN sources home ON home.id = other.source_id
    WHERE other.name = s.name AND other.live = 1 AND other.status IN ('ok', 'warning')
      AND other.held = 0
      AND home.enabled = 1 AND home.scope <> 'project' AND (home.scope <> 'team' OR home.name = ?)
      AND coalesce(home.team, '') = coalesce(src.team, '')
      AND ({precedes("home", "src")} OR other.tree_hash = s.tree_hash
        AND CASE WHEN coalesce(home.owner, '') = coalesce(src.owner, '')
          THEN (-home.precedence, home.strength, other.source_id, other.position)
            < (-src.precedence, src.strength, s.source_id, s.position)
          ELSE other.shadowed = 0 END)))"""
"""A skill of a team that is not seen hides nothing, neither others nor copies of itself."""

_NEEDS_MENTIONED: Final = (
    "(lower(d.front_matter) LIKE '%fallback%for%tools%' "
    "OR lower(d.front_matter) LIKE '%env%required%' "
    "OR lower(d.front_matter) LIKE '%external%cli%alternatives%')"
)
"""What every front matter meets that says what its skill needs (`visibility.needs`)."""


class Candidate(NamedTuple):
    """A usable skill; ``required_tools`` is JSON, as is ``front_matter`` where it may matter."""

    id: int
    hidden: int
    required_tools: str
    front_matter: str | None
    skill: Skill


def candidates(
    reader: Reader, *, team: str | None, name: str | None = None, source_id: int | None = None
) -> Iterator[Candidate]:
    """Yield the usable skills that no stronger source hides, by name, or those of one ``name``.

    Of projects they are those that are seen from here.

    ``team``: sources of other teams hide nothing, and front matter is read; None: they do, and it
    is not. ``source_id``: those of one source, hidden by others or not.
    """
    values: list[object] = []
    sight = reader.sight
    if team is None:
        front_matter, tables, condition = "NULL", FROM, sight.visible
    else:
        front_matter = f"CASE WHEN {_NEEDS_MENTIONED} THEN d.front_matter END"
        tables = f"{FROM} LEFT JOIN documents d ON d.skill_id = s.id"
        condition = _SEEN_BY_TEAM.format(
            within=sight.within, shadowed=sight.shadowed, untaken=sight.untaken
        )
        if source_id is None:
            values.append(team)
    if source_id is not None:
        condition = f"{OFFERABLE} AND {sight.within} AND s.source_id = ?"
        values.append(source_id)
    if name is not None:
        condition += " AND s.name = ?"
        values.append(name)
    rows = reader.stream(
        f"SELECT s.id, s.hidden, s.required_tools, {front_matter}, {columns(sight)} FROM {tables} "
        f"WHERE {condition} ORDER BY {order('name', reverse=False)}",
        values,
    )
    return (Candidate(a, b, c, d, skill_of(facts)) for a, b, c, d, *facts in rows)
