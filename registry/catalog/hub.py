"""The catalogue as ClawHub registries describe it: slugs, owners, versions.

A slug is a skill's name in a form for URLs. If several skills of a source would have the same slug,
all except the first get a number at the end. The owner is the source. A version is ``0.0.N``. N
counts how often the files of the skill changed. If the files change back to an earlier state, the
skill still gets a new, higher version.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from registry.catalog.browse import Browse
from registry.db.read import history, search
from registry.db.read.history import Revision, revisions
from registry.db.read.listing import Filters
from registry.db.read.search import ids_named
from registry.db.read.skills import Sort, StoredSkill
from registry.text import name_key, slug

_NUMBERED: Final = re.compile(r"(.+)-([2-9]|[1-9][0-9]{1,3})")
_HANDLE: Final = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Offered:
    """A skill with its slug and owner; both together are written ``@owner/slug``.

    ``turn`` is N in its current version ``0.0.N``.
    """

    stored: StoredSkill
    slug: str
    owner: str
    turn: int

    @property
    def version(self) -> str:
        """The current version of the skill, such as ``0.0.3``."""
        return version_of(self.turn)


@dataclass(frozen=True, slots=True)
class StoredState:
    """A stored state of a skill's files, with its version."""

    version: str
    seen_at: str
    revision: Revision


def version_of(turn: int) -> str:
    """Return the version ``0.0.N`` for the number N of a state of a skill's files."""
    return f"0.0.{turn}"


def owner_of(source: str) -> str:
    """Return the owner handle for a source; handles ignore case."""
    return _HANDLE.sub("-", source.lower()).strip("-._") or "source"


def find(browse: Browse, wanted: str, owner: str | None = None) -> list[Offered]:
    """Return the visible skills with a slug.

    If ``owner`` is given, return only the skills of this owner.
    """
    found = _chosen(browse, _ids(browse, wanted), wanted, 1)  # the first skill's slug has no number
    numbered = _NUMBERED.fullmatch(wanted)
    if numbered is not None:
        place = int(numbered[2])
        found += _chosen(browse, _ids(browse, numbered[1]), numbered[1], place)
    if owner is not None:
        handle = owner.removeprefix("@").lower()
        found = [one for one in found if one.owner == handle]
    return found


def page(
    browse: Browse, *, prefix: str, sort: Sort, limit: int, offset: int
) -> tuple[list[Offered], bool]:
    """Return a page of the visible skills, and whether there are more.

    If ``prefix`` is given, the page contains only the skills whose names begin with it, sorted by
    name.
    """
    reader = browse.core.reader
    if prefix:
        condition = browse.condition(browse.filters(Filters()))
        key = name_key(prefix)
        ids = search.beginning(reader, condition, key, limit=limit + 1, offset=offset)
        return offered(browse, browse.by_ids(ids[:limit])), len(ids) > limit
    found = browse.list(Filters(), sort=sort, reverse=False, limit=limit, offset=offset)
    stored = [browse.locate(f"{one.source}/{one.folder}") for one in found]
    return offered(browse, stored), offset + limit < found.total


def offered(browse: Browse, some: Sequence[StoredSkill]) -> list[Offered]:
    """Return skills with their slugs, owners and versions."""
    turns = history.last_turns(browse.core.reader, [one.id for one in some])
    return [
        Offered(one, _slug_of(browse, one), owner_of(one.skill.source), turns.get(one.id, 1))
        for one in some
    ]


def contents(browse: Browse, one: Offered) -> list[StoredState]:
    """Return the stored states of a skill's files, the most recent first."""
    reader = browse.core.reader
    known = {each.number: each for each in revisions(reader, one.stored.uid)}
    return [
        StoredState(version_of(turn.turn), turn.seen_at, known[turn.number])
        for turn in history.turns(reader, one.stored.uid)
        if turn.number in known and (turn.current or known[turn.number].complete)
    ]


def _chosen(browse: Browse, ids: Sequence[int], wanted: str, place: int) -> list[Offered]:
    """Return the skills with the slug ``wanted``: of each owner, the skill number ``place``.

    ``place`` counts from 1.
    """
    by_owner: dict[str, list[StoredSkill]] = {}
    for one in browse.by_ids(history.first_seen(browse.core.reader, ids)):
        by_owner.setdefault(owner_of(one.skill.source), []).append(one)
    turns = history.last_turns(browse.core.reader, ids)
    return [
        Offered(
            some[place - 1],
            wanted if place == 1 else f"{wanted}-{place}",
            owner,
            turns.get(some[place - 1].id, 1),
        )
        for owner, some in by_owner.items()
        if len(some) >= place
    ]


def _ids(browse: Browse, wanted: str) -> list[int]:
    """Return the visible versions with names that convert to the slug ``wanted``."""
    reader = browse.core.reader
    condition = browse.condition(browse.filters(Filters()))
    if slug(wanted) != wanted:
        return []
    found = ids_named(reader, wanted, condition)()
    return sorted({*found, *search.odd_names(reader, condition).get(wanted, ())})


def _slug_of(browse: Browse, one: StoredSkill) -> str:
    """Return the slug of a skill.

    If other skills of the source have the same slug, the result may end with a number.
    """
    base = slug(one.skill.name)
    owner = owner_of(one.skill.source)
    same = [
        other.id
        for other in browse.by_ids(history.first_seen(browse.core.reader, _ids(browse, base)))
        if owner_of(other.skill.source) == owner
    ]
    place = same.index(one.id) + 1 if one.id in same else 1
    return base if place == 1 else f"{base}-{place}"
