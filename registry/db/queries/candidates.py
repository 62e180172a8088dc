"""The skills that a visibility policy decides about, with what it looks at; one SELECT."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from registry.db.interface import Reader
from registry.db.queries.filters import FROM, order
from registry.db.queries.rows import columns, skill_of
from registry.db.sight import ARRIVED, OFFERABLE
from registry.model import Skill

_NEEDS_MENTIONED: Final = (
    "(lower(d.front_matter) LIKE '%fallback%for%tools%' "
    "OR lower(d.front_matter) LIKE '%env%required%' "
    "OR lower(d.front_matter) LIKE '%external%cli%alternatives%')"
)
"""What every front matter meets that says what its skill needs (`visibility.needs`)."""


class Rank(NamedTuple):
    """Decides which namesake hides the others: the lowest is the strongest.

    ``project`` numbers the projects that are seen, the strongest first; skills of no project share
    the highest number. ``precedence`` is the negative of what an admin set. ``strength`` compares
    the sources of one ``owner``. ``team``: only its members see the source.
    """

    project: int
    precedence: int
    owner: str
    strength: int
    source_id: int
    position: int
    team: str


_RANK: Final = len(Rank._fields)


class Candidate(NamedTuple):
    """A skill to decide about; ``required_tools`` is JSON, as is ``front_matter`` if it matters.

    ``usable``: 0 for a skill that is invalid, quarantined or of a disabled source.
    """

    id: int
    hidden: int
    required_tools: str
    front_matter: str | None
    usable: int
    rank: Rank
    skill: Skill


def candidates(
    reader: Reader,
    *,
    judged: bool,
    name: str | None = None,
    source_id: int | None = None,
    source: str | None = None,
    scope: str | None = None,
    unusable: bool = False,
) -> Iterator[Candidate]:
    """Yield the usable skills that are seen from here, by name.

    ``judged``: also those that a namesake hides, and with front matter, for a policy to decide.
    ``name``, ``source_id``, ``source`` and ``scope`` leave out all others. ``unusable``: add skills
    that can't be used.
    """
    sight = reader.sight
    front_matter, tables = "NULL", FROM
    condition = f"{OFFERABLE} AND {sight.within}" if judged else sight.visible
    if judged:
        front_matter = f"CASE WHEN {_NEEDS_MENTIONED} THEN d.front_matter END"
        tables = f"{FROM} LEFT JOIN documents d ON d.skill_id = s.id"
    if unusable:
        condition = f"s.live = 1 AND {ARRIVED} AND {sight.within}"
    values: list[object] = []
    for column, value in (
        ("s.source_id", source_id),
        ("s.name", name),
        ("src.name", source),
        ("src.scope", scope),
    ):
        if value is not None:
            condition += f" AND {column} = ?"
            values.append(value)
    rows = reader.stream(
        f"SELECT s.id, s.hidden, s.required_tools, {front_matter}, "
        f"CASE WHEN {OFFERABLE} THEN 1 ELSE 0 END, "
        f"{sight.project}, -src.precedence, coalesce(src.owner, ''), src.strength, s.source_id, "
        f"s.position, coalesce(src.team, ''), "
        f"{columns(sight)} FROM {tables} "
        f"WHERE {condition} ORDER BY {order('name', reverse=False)}",
        values,
    )
    return (
        Candidate(*(a, b, c, d, e), Rank._make(facts[:_RANK]), skill_of(facts[_RANK:]))
        for a, b, c, d, e, *facts in rows
    )
