"""SQL that decides which skills of projects are visible from a working folder.

The SQL uses the tables skills ``s`` and sources ``src``. Users see a project's skills if they work
in the project's folder on its host. Only for these users, a project's skills can shadow other
skills.

The stored values (`db.write.names`) don't depend on the working folder. Each query computes the
values that do.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

USABLE: Final = "s.status IN ('ok', 'warning') AND s.held = 0"

OFFERABLE: Final = f"s.live = 1 AND {USABLE} AND src.enabled = 1"
"""Condition for skills that listings may show.

Listings don't show all of them: another skill may shadow the skill, or the skill may belong to
another project.
"""

IMPORTING: Final = 2
"""Value of ``sources.enabled`` while a sync publishes the source for the first time, in parts.

The skills of the source aren't visible yet. Afterwards the value is 1, as for all other enabled
sources.
"""

RESOLVING: Final = 3
"""Value of ``sources.enabled`` after a first import, while the names of its skills are resolved.

The skills aren't visible yet, but they already have their final refs and copies. Only visible
skills shadow them.
"""

IMPORTED: Final = f"src.enabled < {IMPORTING}"

PRECEDENCE: Final = (
    "src.precedence, (SELECT min(o.id) FROM sources o "
    "WHERE coalesce(o.owner, '') = coalesce(src.owner, '')), src.strength"
)
"""SQL for the columns of a `Precedence`.

The number of an owner is the id of the owner's oldest source.
"""

STRONGEST_FIRST: Final = (
    PRECEDENCE.replace("precedence,", "precedence DESC,") + ", s.source_id, s.position"
)
"""ORDER BY list that sorts skills by precedence.

Precedence depends first on the admin's numbers, then on the owner, then on the owner's settings. So
the settings of an owner change only the order of the owner's sources.
"""


class Precedence(NamedTuple):
    """The precedence of a source.

    It consists of the number that an admin set, the number of the owner, and the source's position
    among the owner's sources.
    """

    admin: int = 0
    owner: int = 0
    rank: int = 0


class ProjectSource(NamedTuple):
    """A visible source of a project.

    The project with the lowest number has the highest precedence.
    """

    id: int
    project: int
    strength: int


@dataclass(frozen=True)
class Visibility:
    """SQL conditions and columns for all users who see the same projects.

    ``sources`` holds the ids of the visible projects' sources. ``within`` is true if the source is
    visible. ``beyond`` is true if the source belongs to a project that isn't visible. ``shadowed``
    is 1 if another skill shadows the skill, else 0.

    ``ref`` is the shortest handle (name or ref) that finds the skill from the user's working
    folder. ``project`` is the number of the skill's project; a lower number has a higher
    precedence. Skills without a project have the highest number.
    """

    sources: tuple[int, ...] = ()
    within: str = "1 = 1"
    beyond: str = "1 = 0"
    shadowed: str = "s.shadowed"
    ref: str = "s.ref"
    project: str = "0"

    @cached_property
    def visible(self) -> str:
        """SQL condition: listings show the skill by default."""
        return f"{OFFERABLE} AND {self.within} AND {self.shadowed} = 0"

    @property
    def knows_projects(self) -> bool:
        """Whether any source of the database belongs to a project."""
        return self is not EVERYTHING

    def shows(self, source_id: int, scope: str) -> bool:
        """Tell whether the skills of a source with this id and scope are visible."""
        return scope != "project" or not self.knows_projects or source_id in self.sources


EVERYTHING: Final = Visibility()
"""The visibility that shows everything.

It is for databases without projects, and for internal queries such as a check of the files.
"""


@lru_cache(maxsize=64)
def visibility_of(seen: tuple[ProjectSource, ...]) -> Visibility:
    """Return the visibility of users who see these sources of projects.

    They also see all sources without a project.
    """
    if not seen:
        within = "src.scope <> 'project'"
        return Visibility((), within, "src.scope = 'project'", "s.shadowed", _ref(within))
    ids = _numbers(seen)
    names = (
        f"SELECT p.name FROM skills p WHERE p.source_id IN ({ids}) AND p.live = 1 "
        "AND p.status IN ('ok', 'warning') AND p.held = 0"
    )
    # Each query computes the shadowing of projects' skills, because the sources stored under this
    # host's name may be forged (`db.adopted`). This is fast, because projects have few skills.
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
        ref=_ref(f"{within} AND {shadowed} = 0"),
        project=f"CASE {places} ELSE {len(seen)} END",
    )


def _hidden(one: ProjectSource, seen: Sequence[ProjectSource]) -> str:
    """Return SQL that is 1 if a skill of the projects ``seen`` shadows a skill of ``one``.

    Otherwise the SQL is 0.
    """
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
    """Return SQL for the ref of a skill in this view.

    The ref of a ``visible`` skill is only its name, if this user sees no other skill with the name.
    All other skills keep their stored ref, which finds them from any folder.
    """
    return (
        f"CASE WHEN s.bare = 1 AND s.ref <> s.name AND {OFFERABLE} AND {visible} "
        "THEN s.name ELSE s.ref END"
    )


def _numbers(sources: Sequence[ProjectSource]) -> str:
    return ", ".join(str(one.id) for one in sources)
