"""The skills that a narrowed view shows, and their names in it.

A view that a source, a scope or a personality narrows tells nothing of the skills that it leaves
out. Three stored facts of a skill (its ref, its copies, whether a namesake hides it) depend on all
skills of its name, so a narrowed view works these out again from its own skills only.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar

from registry.catalog.resolve import is_storable
from registry.catalog.similar import Names, nearest
from registry.catalog.visibility.decisions import admitted, unhidden
from registry.catalog.visibility.rules import Host
from registry.db.interface import Reader
from registry.db.read.listing import Candidate, candidates
from registry.db.read.skills import StoredSkill, by_id
from registry.errors import SkillAmbiguous, SkillNotFound
from registry.model import Found, Skill
from registry.settings import Personality
from registry.text import name_key, spellings

S = TypeVar("S", bound=Skill)
T = TypeVar("T", bound=Any)

MAX_COPIES: Final = 50
"""Maximum number of copies that are named with a skill."""

MAX_TOLD: Final = 200
"""Maximum length of a handle in a message, in characters."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a view: a source, a scope, a personality, or several of these.

    ``offered``: skills that hide themselves from models are left out of lists.
    """

    source: str | None = None
    scope: str | None = None
    personality: Personality | None = None
    offered: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether nothing narrows the view."""
        return self.source is None and self.scope is None and self.personality is None


class Row(NamedTuple):
    """A skill of the view; ``everywhere`` is its ref in an unlimited view.

    ``usable``: neither invalid nor quarantined. ``shadowed``: another skill of the view hides it.
    """

    id: int
    everywhere: str
    source: str
    folder: str
    name: str
    team: str
    tree_hash: str | None
    usable: bool
    hidden: bool
    shadowed: bool

    @property
    def files(self) -> tuple[str, str, str | int]:
        """The same for copies: one name and the same files."""
        return self.name, self.team, self.tree_hash or self.id


class Seen:
    """The skills of a narrowed view at one state of the database.

    ``listed``: versions that a listing shows; ``unhidden``: also those that can't be used;
    ``every``: also those that others hide. ``as_stored``: skills beyond the view hide none of it,
    so what is stored of each skill says which ones it lists.
    """

    def __init__(self, rows: Sequence[Row], limits: Limits, *, as_stored: bool = False) -> None:
        self._rows = rows
        self.as_stored = as_stored
        self._offered = limits.offered
        self.listed: tuple[int, ...] = tuple(row.id for row in rows if self._lists(row))
        self.unhidden, self.every = self.listed, self.listed
        if limits.personality is None:
            self.unhidden = tuple(row.id for row in rows if not row.shadowed)
            self.every = tuple(row.id for row in rows)

    def _lists(self, row: Row) -> bool:
        return row.usable and not row.shadowed and not (self._offered and row.hidden)

    def localized(self, skill: S) -> S:
        """Return a skill with the ref, the copies and the shadowing that it has in this view."""
        row = self._at.get((skill.source, skill.folder))
        if row is None:  # it came after this was worked out
            return replace(skill, ref=f"{skill.source}/{skill.folder}", copies=())
        copies = tuple(self._refs[one] for one in self.copies_of(row.id)[:MAX_COPIES])
        return replace(skill, ref=self._refs[row.id], copies=copies, shadowed=row.shadowed)

    def localized_all(self, some: Iterable[S]) -> tuple[S, ...]:
        """Return each skill `localized`."""
        return tuple(map(self.localized, some))

    def localized_hits(self, found: Found) -> Found:
        """Return the hits of a search, each `localized`, also the skills that are alike."""
        hits = (replace(hit, alike=self.refs(hit.alike)) for hit in found)
        return replace(found, items=self.localized_all(hits))

    def renamed(self, some: Iterable[T]) -> list[T]:
        """Return values that have the ref of a skill from everywhere with the ref in this view."""
        known = self.by_ref
        return [replace(one, ref=known[one.ref]) for one in some if one.ref in known]

    def refs(self, some: Iterable[str]) -> tuple[str, ...]:
        """Return the refs in this view of skills that are named by their refs from everywhere."""
        return tuple(self.by_ref[ref] for ref in some if ref in self.by_ref)

    def lists(self, stored: StoredSkill) -> bool:
        """Tell whether the view lists a skill."""
        return stored.id in self.listed_set

    def stored(self, reader: Reader, version: int) -> StoredSkill | None:
        """Return a stored version, `localized`; None: the version is gone."""
        found = by_id(reader, version)
        return None if found is None else found._replace(skill=self.localized(found.skill))

    def resolve(self, handle: str) -> int:
        """Return the version that a handle means among the skills of the view.

        Handles are read in the order of `catalog.resolve`. Raises `SkillNotFound`, which names no
        others, and `SkillAmbiguous`.
        """
        for spelling in spellings(handle) if is_storable(handle) else ():
            for found in self._attempts(spelling):
                if len(found) == 1:
                    return found[0].id
                if found:
                    raise SkillAmbiguous(handle, sorted(self._refs[one.id] for one in found))
        raise SkillNotFound(handle[:MAX_TOLD])

    def _attempts(self, handle: str) -> Iterator[Sequence[Row]]:
        source, slash, rest = handle.partition("/")
        if slash:
            placed = self._at.get((source, rest))
            yield [] if placed is None else [placed]
            yield [one for one in self._named.get(rest, ()) if one.source == source]
        whole = self._named.get(handle, ())
        free = [one for one in whole if one.usable and not one.shadowed]
        meant = [one for one in free if self._lists(one)] or free or whole
        if len(meant) > 1:
            meant = [one for one in meant if self._refs[one.id] == handle] or meant
        yield meant

    def of_name(self, name: str, *, usable: bool = False) -> list[int]:
        """Return the listed versions of a name; ``usable``: also those that others hide."""
        rows = self._named.get(name, ())
        return [row.id for row in rows if self._lists(row) or (usable and row.usable)]

    def namesakes(self, subject: str) -> list[int]:
        """Return all versions of the view that a name or ref may mean, the listed ones first."""
        source, _, rest = subject.partition("/")
        found = list(self._named.get(subject, ()))
        found += [one for one in self._named.get(rest, ()) if one.source == source]
        found += [self._at[source, rest]] if (source, rest) in self._at else []
        return list(dict.fromkeys(one.id for one in sorted(found, key=lambda one: one.shadowed)))

    def copies_of(self, version: int) -> list[int]:
        """Return the other versions of the view that have the name and the files of one."""
        row = self._by_id.get(version)
        same = self._same_files.get(row.files, ()) if row is not None and row.usable else ()
        return [one.id for one in same if one.id != version]

    def near(self, handle: str) -> list[str]:
        """Return the refs of listed skills whose names look like a handle, the nearest first."""
        return nearest(self._names, handle)

    @cached_property
    def listed_set(self) -> frozenset[int]:
        """The listed versions, to look one up."""
        return frozenset(self.listed)

    @cached_property
    def listed_places(self) -> frozenset[tuple[str, str]]:
        """The places (source, folder) of what is listed."""
        return frozenset((row.source, row.folder) for row in self._rows if self._lists(row))

    @cached_property
    def _names(self) -> Names:
        rows = (row for row in self._rows if self._lists(row))
        return Names.of((self._refs[row.id], name_key(row.name), row.folder) for row in rows)

    @cached_property
    def _at(self) -> Mapping[tuple[str, str], Row]:
        return {(row.source, row.folder): row for row in self._rows}

    @cached_property
    def _by_id(self) -> Mapping[int, Row]:
        return {row.id: row for row in self._rows}

    @cached_property
    def by_ref(self) -> Mapping[str, str]:
        """The refs in this view, by the refs that skills have in an unlimited view."""
        return {row.everywhere: self._refs[row.id] for row in self._rows}

    @cached_property
    def _named(self) -> Mapping[str, Sequence[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self._rows:
            found.setdefault(row.name, []).append(row)
        return found

    @cached_property
    def _same_files(self) -> Mapping[tuple[str, str, str | int], Sequence[Row]]:
        found: dict[tuple[str, str, str | int], list[Row]] = {}
        for row in self._rows:
            if row.usable:
                found.setdefault(row.files, []).append(row)
        return found

    @cached_property
    def _refs(self) -> Mapping[int, str]:
        """The shortest handle of each version, as `db.write.names` chooses it among all skills."""
        sources = {row.source for row in self._rows}
        return {
            row.id: ref
            for name, rows in self._named.items()
            for row, ref in _refs(name, rows, sources, self._at)
        }


def _refs(
    name: str,
    rows: Sequence[Row],
    sources: Collection[str],
    places: Mapping[tuple[str, str], Row],
) -> Iterator[tuple[Row, str]]:
    """Yield namesakes with their refs."""
    meant = [row for row in rows if row.usable and not row.shadowed] or rows
    is_place = any(name[:end] in sources for end, one in enumerate(name) if one == "/")
    times: dict[str, int] = {}
    for row in rows:
        times[row.source] = times.get(row.source, 0) + 1
    for row in rows:
        twin = places.get((row.source, name))
        if len(meant) == 1 and row is meant[0] and not row.team and not is_place:
            yield row, name
        elif times[row.source] == 1 and (twin is None or twin is row):
            yield row, f"{row.source}/{name}"
        else:
            yield row, f"{row.source}/{row.folder}"


def seen(reader: Reader, limits: Limits, environ: Mapping[str, str], *, anew: bool = False) -> Seen:
    """Return what a narrowed view shows; the answer is kept until the database changes.

    Without a personality that is all of a source or a scope, also what can't be used. ``anew``:
    look whether the surroundings have changed that skills may need.
    """

    def load(reader: Reader) -> list[tuple[Seen, Host]]:
        host = Host(environ)
        return [(_load(reader, limits, host), host)]

    known = reader.remembered(f"seen within {limits!r} {reader.visibility.sources}", load)
    if anew and not known[0][1].is_like(environ):
        known[:] = load(reader)
    return known[0][0]


def _load(reader: Reader, limits: Limits, host: Host) -> Seen:
    source, scope = limits.source, limits.scope
    if limits.personality is None:
        some = list(candidates(reader, judged=False, source=source, scope=scope, unusable=True))
    else:
        some = admitted(reader, limits.personality, host, source=source, scope=scope)
    free = unhidden(one for one in some if one.usable)
    rows = [_row(one, shadowed=one.usable == 1 and one.id not in free) for one in some]
    pairs = zip(some, rows, strict=True)
    as_stored = bool(rows) and all(one.skill.shadowed == row.shadowed for one, row in pairs)
    if limits.personality is not None:  # hidden skills stay only if they are copies
        same = {row.files for row in rows if not row.shadowed}
        rows = [row for row in rows if not row.shadowed or row.files in same]
    return Seen(rows, limits, as_stored=as_stored)


def _row(one: Candidate, *, shadowed: bool) -> Row:
    skill = one.skill
    return Row(
        one.id,
        skill.ref,
        skill.source,
        skill.folder,
        skill.name,
        one.rank.team,
        skill.tree_hash,
        one.usable == 1,
        one.hidden == 1,
        shadowed,
    )
