"""Which skills of projects are visible from a working folder, as SQL about ``s`` and ``src``.

A project's skills are seen by who works in its folder on its host, and hide others only there. What
is stored (`db.write.names`) holds wherever one stands; what depends on that is worked out by each
query.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

USABLE: Final = "s.status IN ('ok', 'warning') AND s.held = 0"

OFFERABLE: Final = f"s.live = 1 AND {USABLE} AND src.enabled = 1"
"""Visible unless shadowed by a skill of the same name, or part of another project."""

IMPORTING: Final = 2
"""``sources.enabled`` while a first import is published in parts: its skills are not visible yet.

When it is complete it is 1, as of all others.
"""

RESOLVING: Final = 3
"""``sources.enabled`` while names of a complete first import are resolved: not visible yet.

They have the refs and copies that they will have, and are hidden by nothing that isn't seen.
"""

IMPORTED: Final = f"src.enabled < {IMPORTING}"

PRECEDENCE: Final = (
    "src.precedence, (SELECT min(o.id) FROM sources o "
    "WHERE coalesce(o.owner, '') = coalesce(src.owner, '')), src.strength"
)
"""The columns of a `Precedence`; the number of an owner is that of its oldest source."""

STRONGEST_FIRST: Final = (
    PRECEDENCE.replace("precedence,", "precedence DESC,") + ", s.source_id, s.position"
)
"""The order of skills: as admins decided, then owner by owner. No owner moves up by a setting."""


def precedes(one: str, other: str) -> str:
    """Return the condition that the source ``one`` is stronger than the source ``other``, as SQL.

    Scope and priority compare sources of one owner. Between owners only an admin's decision counts.
    """
    return (
        f"({one}.precedence > {other}.precedence OR {one}.precedence = {other}.precedence "
        f"AND coalesce({one}.owner, '') = coalesce({other}.owner, '') "
        f"AND {one}.strength < {other}.strength)"
    )


class Precedence(NamedTuple):
    """The precedence of a source: what an admin set, its owner, and its rank among the owner's."""

    admin: int = 0
    owner: int = 0
    rank: int = 0


class ProjectSource(NamedTuple):
    """A source of a project that is seen; ``project`` numbers the projects, the strongest first."""

    id: int
    project: int
    strength: int


@dataclass(frozen=True)
class Visibility:
    """SQL conditions and columns for all users who see the same projects.

    ``sources``: the ids of the projects' sources that are seen. ``within``: the source is seen.
    ``beyond``: it is a project's that is not. ``shadowed``: 1 for what another skill hides, else 0.
    ``untaken``: it is of no project, and no skill of a project that is seen has its name. ``ref``:
    the shortest handle that finds it from here. ``project``: the number of the project that a skill
    belongs to, the strongest first; the highest number for skills of no project.
    """

    sources: tuple[int, ...] = ()
    within: str = "1 = 1"
    beyond: str = "1 = 0"
    shadowed: str = "s.shadowed"
    untaken: str = "1 = 1"
    ref: str = "s.ref"
    project: str = "0"

    @cached_property
    def visible(self) -> str:
        """The condition that a skill is listed unless all are asked for."""
        return f"{OFFERABLE} AND {self.within} AND {self.shadowed} = 0"

    @property
    def knows_projects(self) -> bool:
        """Whether any source belongs to a project."""
        return self is not EVERYTHING

    def shows(self, source_id: int, scope: str) -> bool:
        """Tell whether the skills of a source are seen."""
        return scope != "project" or not self.knows_projects or source_id in self.sources


EVERYTHING: Final = Visibility()
"""Without projects, and for internal queries such as a check of the file."""


@lru_cache(maxsize=64)
def visibility_of(seen: tuple[ProjectSource, ...]) -> Visibility:
    """Return the visibility for users who see these projects' sources, and all other sources."""
    if not seen:
        within, untaken = "src.scope <> 'project'", "src.scope <> 'project'"
        return Visibility((), within, "src.scope = 'project'", "s.shadowed", untaken, _ref(within))
    ids = _numbers(seen)
    names = (
        f"SELECT p.name FROM skills p WHERE p.source_id IN ({ids}) AND p.live = 1 "
        "AND p.status IN ('ok', 'warning') AND p.held = 0"
    )
    # Of a project's skills it is asked anew who hides them: whose sources a server has under this
    # host's name says nothing (`db.adopted`), and these are few.
    places = " ".join(f"WHEN s.source_id = {one.id} THEN {one.project}" for one in seen)
    judged = " ".join(f"WHEN s.source_id = {one.id} THEN {_hidden(one, seen)}" for one in seen)
    shadowed = (
        f"CASE WHEN NOT ({USABLE}) THEN 0 {judged} "
        f"WHEN src.scope <> 'project' AND s.name IN ({names}) THEN 1 ELSE s.shadowed END"
    )
    within = f"(src.scope <> 'project' OR s.source_id IN ({ids}))"
    return Visibility(
        sources=tuple(one.id for one in seen),
        within=within,
        beyond=f"src.scope = 'project' AND s.source_id NOT IN ({ids})",
        shadowed=shadowed,
        untaken=f"src.scope <> 'project' AND s.name NOT IN ({names})",
        ref=_ref(f"{within} AND {shadowed} = 0"),
        project=f"CASE {places} ELSE {len(seen)} END",
    )


def _hidden(one: ProjectSource, seen: Sequence[ProjectSource]) -> str:
    """Return 1 or 0 as SQL: whether another skill of these projects hides one of a source."""
    rank = one.project, one.strength
    stronger = [other for other in seen if (other.project, other.strength) < rank]
    equal = [other for other in seen if (other.project, other.strength) == rank]
    before = [other for other in equal if other.id < one.id]
    copies = f"o.source_id = {one.id} AND o.position < s.position"
    if before:
        copies = f"({copies} OR o.source_id IN ({_numbers(before)}))"
    hides = f"o.tree_hash = s.tree_hash AND {copies}"
    if stronger:
        hides = f"(o.source_id IN ({_numbers(stronger)}) OR {hides})"
    return (
        "CASE WHEN EXISTS (SELECT 1 FROM skills o WHERE o.name = s.name AND o.live = 1 "
        f"AND o.status IN ('ok', 'warning') AND o.held = 0 AND {hides}) THEN 1 ELSE 0 END"
    )


def _ref(visible: str) -> str:
    """Return the ref of ``visible`` skills: the bare name if it is unambiguous for this user.

    What is not keeps the ref by which it is found from anywhere.
    """
    return (
        f"CASE WHEN s.bare = 1 AND s.ref <> s.name AND {OFFERABLE} AND {visible} "
        "THEN s.name ELSE s.ref END"
    )


def _numbers(sources: Sequence[ProjectSource]) -> str:
    return ", ".join(str(one.id) for one in sources)
