"""Decide which skills a view shows, with one SELECT and the rules of the personality."""

import difflib
import json
import os
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple, Self, TypeVar

from registry.catalog.reading import CurrentSkill, document_now
from registry.catalog.resolve import Names, is_storable, nearest, resolve
from registry.catalog.visibility.rules import (
    HIDDEN,
    NO_PERSONALITY,
    Decision,
    Host,
    PolicyFacts,
    decide,
    needs_of,
    read_needs,
)
from registry.core import Core
from registry.db.interface import Reader
from registry.db.read.listing import Candidate, Filters, candidates
from registry.db.read.skills import StoredSkill, by_id
from registry.errors import (
    PersonalityNotFound,
    SkillAmbiguous,
    SkillInvalid,
    SkillNotFound,
    SkillNotVisible,
)
from registry.model import Document, Found, Skill, Source
from registry.settings import Personality, Settings
from registry.sync.sources import find as find_source
from registry.text import name_key, spellings

K = TypeVar("K")


def decisions(
    reader: Reader,
    personality: Personality | None,
    environ: Mapping[str, str] = os.environ,
    *,
    name: str | None = None,
    source_id: int | None = None,
) -> Iterator[tuple[int, Skill, Decision]]:
    """Yield (version id, skill, decision) for each visible skill, sorted by name.

    A visible skill is one that no skill of a source with higher precedence shadows. If the
    personality doesn't see a skill, that skill shadows no other skill. ``environ`` holds the
    environment variables that skills may need, including ``PATH``. ``name`` limits the result to
    skills with this name. ``source_id`` limits the result to this source, and includes its shadowed
    skills.
    """
    among = {"name": name, "source_id": source_id}
    for one, choice in _judged(reader, personality, Host(environ), whole=True, **among):
        yield one.id, one.skill, choice


def _judged(
    reader: Reader,
    personality: Personality | None,
    host: Host,
    *,
    whole: bool = False,
    **among: Any,
) -> Iterator[tuple[Candidate, Decision]]:
    """Yield the candidates of `decisions`, each with its decision."""
    is_one_source = among.get("source_id") is not None
    if personality is None:
        for one in candidates(reader, judged=is_one_source, whole=whole, **among):
            yield one, HIDDEN if one.hidden == 1 else NO_PERSONALITY
        return
    decided = _decided(reader, personality, host, whole=whole, **among)
    for _, namesakes in groupby(decided, key=lambda pair: pair[0].name):
        some = list(namesakes)
        free = _unhidden([one for one, choice in some if choice.visible])
        for one, choice in some:
            is_hidden = one.id not in free if choice.visible else one.shadowed == 1
            if is_one_source or not is_hidden:
                yield one, choice


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions of a personality about all skills, in little memory.

    ``ids`` are the ids of the versions, sorted by the name of the skill. ``choices`` has each
    different decision once. ``places`` has, for each version, the index of its decision in
    ``choices``.
    """

    ids: "array[int]"
    places: "array[int]"
    choices: tuple[Decision, ...]

    @classmethod
    def of(cls, reader: Reader, personality: Personality) -> Self:
        """Gather the decisions of a personality."""
        ids, places = array("q"), array("q")
        choices: dict[Decision, int] = {}
        for one, choice in _judged(reader, personality, Host(os.environ)):
            ids.append(one.id)
            places.append(choices.setdefault(choice, len(choices)))
        return cls(ids, places, tuple(choices))

    def rules(self) -> list[tuple[str, bool, int]]:
        """Return each rule, whether its skills are visible, and the number of its skills.

        The rule with most skills comes first.
        """
        counts = Counter[tuple[str, bool]]()
        for place, count in Counter(self.places).items():
            choice = self.choices[place]
            counts[choice.rule, choice.visible] += count
        return [(*key, count) for key, count in counts.most_common()]

    def page(self, rule: str | None, limit: int, offset: int) -> list[tuple[int, Decision]]:
        """Return a page of the versions that a rule decided, with the decisions."""
        wanted = {at for at, one in enumerate(self.choices) if rule is None or one.rule == rule}
        chosen = (pair for pair in zip(self.ids, self.places, strict=True) if pair[1] in wanted)
        page = islice(chosen, offset, offset + limit)
        return [(version, self.choices[place]) for version, place in page]


def _decided(
    reader: Reader, personality: Personality, host: Host, **among: Any
) -> Iterator[tuple[Candidate, Decision]]:
    """Yield the candidates with their decisions; equal skills get one decision."""
    ingest = personality.global_ingest
    named = ingest.allow | ingest.deny
    known: dict[tuple[object, ...], Decision] = {}
    for one in candidates(reader, judged=True, **among):
        facts = one.source, one.scope, one.tags, one.required_tools, one.needs, one.hidden
        choice = known.get(facts)
        is_named = bool(named) and not named.isdisjoint((one.name, f"{one.source}/{one.name}"))
        if choice is None or is_named:
            choice = decide(_facts(one), personality, host)
            if not is_named and choice.warning is None:  # a warning has the name of the skill
                known[facts] = choice
        yield one, choice


def _facts(one: Candidate) -> PolicyFacts:
    tools = one.required_tools
    return PolicyFacts(
        name=one.name,
        source=one.source,
        scope=one.scope,
        tags=tuple(one.tags.split("\n")) if one.tags else (),
        required_tools=() if tools == "[]" else tuple(json.loads(tools)),
        needs=read_needs(one.needs),
        hidden=one.hidden == 1,
    )


def unhidden(some: Iterable[Candidate]) -> set[int]:
    """Return the ids of those usable skills ``some`` that no other skill in ``some`` shadows.

    The rules are the same as in `db.write.names`. A project's skill shadows the skills of projects
    with lower precedence, and skills outside projects. All other skills shadow only skills of their
    own team. The source of the shadowing skill has higher precedence, and either the same owner or
    a precedence that an admin has set. If skills are copies, only the first is returned. ``some``
    are sorted by name.
    """
    found: set[int] = set()
    for _, namesakes in groupby(some, key=attrgetter("name")):
        found |= _unhidden(list(namesakes))
    return found


def _unhidden(skills: Sequence[Candidate]) -> set[int]:
    """Return the result of `unhidden` for skills with the same name."""
    if len(skills) <= 1:
        return {one.id for one in skills}
    top = min(one.rank.project for one in skills)
    highest: dict[tuple[object, ...], int] = {}
    best: dict[tuple[object, ...], int] = {}
    oldest: dict[tuple[object, ...], int] = {}
    for one in skills:
        rank, mine = one.rank, _among(one)
        _lower(highest, mine, rank.precedence)
        _lower(best, (mine, rank.precedence, rank.owner), rank.strength)
        _lower(oldest, (mine, _content(one), rank.owner), rank.source_id)

    def order(one: Candidate) -> tuple[int, ...]:
        rank, mine = one.rank, _among(one)
        is_beaten = (
            rank.precedence > highest[mine]
            or rank.strength > best[mine, rank.precedence, rank.owner]
        )
        age = oldest[mine, _content(one), rank.owner]
        return (
            *(int(is_beaten), rank.precedence, age),
            *(rank.strength, rank.source_id, rank.position),
        )

    copies: set[tuple[object, ...]] = set()
    found = set()
    for (is_beaten, *_), one in sorted(((order(one), one) for one in skills), key=itemgetter(0)):
        same = _among(one), _content(one)
        is_first = one.rank.project == top and same not in copies
        if is_first and not is_beaten:
            found.add(one.id)
        copies.add(same)
    return found


def _lower(known: dict[K, int], key: K, value: int) -> None:
    known[key] = min(value, known.get(key, value))


def _among(one: Candidate) -> tuple[int, str]:
    """Return a key that is equal for all namesakes that can shadow each other."""
    return one.rank.project, "" if one.scope == "project" else one.rank.team


def _content(one: Candidate) -> str | int:
    """Return a key that is equal for copies of a skill."""
    return one.tree_hash or one.id


def decide_document(
    document: Document,
    source: Source,
    personality: Personality | None,
    environ: Mapping[str, str],
) -> Decision:
    """Decide about a SKILL.md that was just read from a source; it need not be stored yet."""
    facts = PolicyFacts(
        name=document.name,
        source=source.name,
        scope=source.scope,
        tags=document.tags,
        required_tools=document.required_tools,
        needs=needs_of(document.front_matter),
        hidden=document.hidden,
    )
    return decide(facts, personality, Host(environ))


def seen_by(core: Core, name: str, filters: Filters) -> Filters:
    """Return ``filters``, limited to the skills that this personality sees now.

    Raises `PersonalityNotFound`.
    """
    found = _judged(core.reader, personality(core.settings, name), Host(os.environ))
    return replace(filters, ids=[one.id for one, choice in found if choice.visible])


def personality(settings: Settings, name: str) -> Personality:
    """Return a personality from the settings.

    Raises `PersonalityNotFound` with similar names.
    """
    known = settings.personalities
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        raise PersonalityNotFound(name=name, similar=near, known=sorted(known))
    return known[name]


S = TypeVar("S", bound=Skill)
T = TypeVar("T", bound=Any)

MAX_COPIES: Final = 50
"""Maximum number of copies in the facts about a skill."""

MAX_TOLD: Final = 200
"""Maximum number of characters that a message quotes from a handle."""


@dataclass(frozen=True, slots=True)
class ViewLimits:
    """The limits of a view: a source, a scope, a personality, or several of these.

    If ``offered``, lists in the view leave out skills that their authors hide from models.
    """

    source: str | None = None
    scope: str | None = None
    personality: Personality | None = None
    offered: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the view shows all skills."""
        return self.source is None and self.scope is None and self.personality is None


class ViewRow(NamedTuple):
    """A skill in the view; ``everywhere`` is its ref in a view that shows all skills.

    ``usable`` is True if the skill is neither invalid nor quarantined. ``shadowed`` is True if
    another skill of the view shadows it.
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
        """A key that is equal for copies: the name, the team and the hash of the files."""
        return self.name, self.team, self.tree_hash or self.id


class ViewSkills:
    """The skills of a view that doesn't show all skills, at one state of the database.

    ``listed`` holds the versions that listings show. ``unhidden`` also holds invalid and
    quarantined versions. ``every`` also holds shadowed versions. If ``as_stored``, no skill outside
    the view shadows a skill in the view. Then the stored shadowing is correct for this view.
    """

    def __init__(
        self, rows: Sequence[ViewRow], limits: ViewLimits, *, as_stored: bool = False
    ) -> None:
        self._rows = rows
        self.as_stored = as_stored
        self._offered = limits.offered
        self.listed: tuple[int, ...] = tuple(row.id for row in rows if self._lists(row))
        self.unhidden, self.every = self.listed, self.listed
        if limits.personality is None:
            self.unhidden = tuple(row.id for row in rows if not row.shadowed)
            self.every = tuple(row.id for row in rows)

    def _lists(self, row: ViewRow) -> bool:
        return row.usable and not row.shadowed and not (self._offered and row.hidden)

    def localized(self, skill: S) -> S:
        """Return a skill with the ref, the copies and the shadowing that it has in this view."""
        row = self._at.get((skill.source, skill.folder))
        if row is None:  # the skill was added after this view was computed
            return replace(skill, ref=f"{skill.source}/{skill.folder}", copies=())
        copies = tuple(self._refs[one] for one in self.copies_of(row.id)[:MAX_COPIES])
        return replace(skill, ref=self._refs[row.id], copies=copies, shadowed=row.shadowed)

    def localized_all(self, some: Iterable[S]) -> tuple[S, ...]:
        """Return each skill with the ref, the copies and the shadowing that it has in this view."""
        return tuple(map(self.localized, some))

    def localized_hits(self, found: Found) -> Found:
        """Return the hits of a search with their refs and near-duplicates in this view."""
        hits = (replace(hit, alike=self.refs(hit.alike)) for hit in found)
        return replace(found, items=self.localized_all(hits))

    def renamed(self, some: Iterable[T]) -> list[T]:
        """Return values in which refs of this view replace the refs of a view of all skills."""
        known = self.by_ref
        return [replace(one, ref=known[one.ref]) for one in some if one.ref in known]

    def refs(self, some: Iterable[str]) -> tuple[str, ...]:
        """Replace refs of a view of all skills by the refs of this view."""
        return tuple(self.by_ref[ref] for ref in some if ref in self.by_ref)

    def lists(self, stored: StoredSkill) -> bool:
        """Tell whether the view lists a skill."""
        row = self._by_id.get(stored.id)
        return row is not None and self._lists(row)

    def stored(self, reader: Reader, version: int) -> StoredSkill | None:
        """Return a stored version, `localized` for this view; None if it was removed."""
        found = by_id(reader, version)
        return None if found is None else found._replace(skill=self.localized(found.skill))

    def resolve(self, handle: str) -> int:
        """Return the version in this view that a handle means.

        Handles are interpreted in the same order as in `catalog.resolve`. Raises `SkillAmbiguous`
        if several skills of the view match. Raises `SkillNotFound`, without similar names, if none
        matches.
        """
        for spelling in spellings(handle) if is_storable(handle) else ():
            for found in self._attempts(spelling):
                if len(found) == 1:
                    return found[0].id
                if found:
                    raise SkillAmbiguous(handle, sorted(self._refs[one.id] for one in found))
        raise SkillNotFound(handle[:MAX_TOLD])

    def _attempts(self, handle: str) -> Iterator[Sequence[ViewRow]]:
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
        """Return the listed versions with this name.

        If ``usable``, also usable shadowed versions.
        """
        rows = self._named.get(name, ())
        return [row.id for row in rows if self._lists(row) or (usable and row.usable)]

    def namesakes(self, subject: str) -> list[int]:
        """Return all versions of the view that a name or ref may mean, shadowed versions last."""
        source, _, rest = subject.partition("/")
        found = list(self._named.get(subject, ()))
        found += [one for one in self._named.get(rest, ()) if one.source == source]
        found += [self._at[source, rest]] if (source, rest) in self._at else []
        return list(dict.fromkeys(one.id for one in sorted(found, key=lambda one: one.shadowed)))

    def copies_of(self, version: int) -> list[int]:
        """Return the other versions in the view with the same name and files as this version."""
        row = self._by_id.get(version)
        same = self._same_files.get(row.files, ()) if row is not None and row.usable else ()
        return [one.id for one in same if one.id != version]

    def near(self, handle: str) -> list[str]:
        """Return the refs of listed skills with names similar to a handle, best first."""
        return nearest(self._names, handle)

    @cached_property
    def listed_places(self) -> frozenset[tuple[str, str]]:
        """The source and the folder of each listed skill."""
        return frozenset((row.source, row.folder) for row in self._rows if self._lists(row))

    @cached_property
    def _names(self) -> Names:
        rows = (row for row in self._rows if self._lists(row))
        return Names.of((self._refs[row.id], name_key(row.name), row.folder) for row in rows)

    @cached_property
    def _at(self) -> Mapping[tuple[str, str], ViewRow]:
        return {(row.source, row.folder): row for row in self._rows}

    @cached_property
    def _by_id(self) -> Mapping[int, ViewRow]:
        return {row.id: row for row in self._rows}

    @cached_property
    def by_ref(self) -> Mapping[str, str]:
        """A map from the refs in a view of all skills to the refs in this view."""
        return {row.everywhere: self._refs[row.id] for row in self._rows}

    @cached_property
    def _named(self) -> Mapping[str, Sequence[ViewRow]]:
        found: dict[str, list[ViewRow]] = {}
        for row in self._rows:
            found.setdefault(row.name, []).append(row)
        return found

    @cached_property
    def _same_files(self) -> Mapping[tuple[str, str, str | int], Sequence[ViewRow]]:
        found: dict[tuple[str, str, str | int], list[ViewRow]] = {}
        for row in self._rows:
            if row.usable:
                found.setdefault(row.files, []).append(row)
        return found

    @cached_property
    def _refs(self) -> Mapping[int, str]:
        """The shortest handle of each version in this view, by the rules in `db.write.names`."""
        sources = {row.source for row in self._rows}
        return {
            row.id: ref
            for name, rows in self._named.items()
            for row, ref in _refs(name, rows, sources, self._at)
        }


def _refs(
    name: str,
    rows: Sequence[ViewRow],
    sources: Collection[str],
    places: Mapping[tuple[str, str], ViewRow],
) -> Iterator[tuple[ViewRow, str]]:
    """Yield the skills with this name, each with its ref."""
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


def seen(
    reader: Reader, limits: ViewLimits, environ: Mapping[str, str], *, anew: bool = False
) -> ViewSkills:
    """Return a view that doesn't show all skills, cached until the database changes.

    Without a personality, the view has all skills of a source or scope, including invalid skills.
    If ``anew``, look programs and environment variables that skills need up again.
    """

    def load(reader: Reader) -> list[tuple[ViewSkills, Host]]:
        host = Host(environ)
        return [(_load(reader, limits, host), host)]

    known = reader.remembered(f"seen within {limits!r} {reader.visibility.sources}", load)
    if anew and not known[0][1].is_like(environ):
        known[:] = load(reader)
    return known[0][0]


def _load(reader: Reader, limits: ViewLimits, host: Host) -> ViewSkills:
    among: dict[str, Any] = {"source": limits.source, "scope": limits.scope, "whole": False}
    if limits.personality is None:
        some = list(candidates(reader, judged=False, unusable=True, **among))
    else:
        decided = _decided(reader, limits.personality, host, **among)
        some = [one for one, choice in decided if choice.visible]
    free = unhidden(one for one in some if one.usable)
    rows = [_row(one, shadowed=one.usable == 1 and one.id not in free) for one in some]
    pairs = zip(some, rows, strict=True)
    as_stored = bool(rows) and all((one.shadowed == 1) == row.shadowed for one, row in pairs)
    # keep shadowed skills only if they are copies of visible skills
    if limits.personality is not None:
        same = {row.files for row in rows if not row.shadowed}
        rows = [row for row in rows if not row.shadowed or row.files in same]
    return ViewSkills(rows, limits, as_stored=as_stored)


def _row(one: Candidate, *, shadowed: bool) -> ViewRow:
    return ViewRow(
        one.id,
        one.ref,
        one.source,
        one.folder,
        one.name,
        one.rank.team,
        one.tree_hash,
        one.usable == 1,
        one.hidden == 1,
        shadowed,
    )


def shown_now(
    core: Core,
    handle: str,
    current: CurrentSkill,
    personality: Personality | None,
    environ: Mapping[str, str],
) -> CurrentSkill:
    """Return a skill if both its stored version and the SKILL.md on disk are visible.

    Raises `SkillInvalid` if the SKILL.md on disk is invalid, and `SkillNotVisible` if it isn't
    visible. Also raises the errors of reading the file.
    """
    if not current.is_behind:
        return current
    document, skill = document_now(core, current), current.stored.skill
    if not document.usable:
        raise SkillInvalid(name=handle, problems=document.diagnostics, path=skill.path)
    source = find_source(core, skill.source)
    choice = decide_document(document, source, personality, environ)
    if not choice.visible:
        raise SkillNotVisible(name=handle, rule=choice.rule, reason=choice.reason)
    return current


class CatalogView:
    """A view of the registry: all skills, or only those within its limits.

    The ref and the copies of a skill depend on the view. If ``anew``, each use of the view looks
    programs and environment variables that skills need up again.
    """

    def __init__(
        self, core: Core, limits: ViewLimits, environ: Mapping[str, str], *, anew: bool = False
    ) -> None:
        self.core = core
        self.limits = limits
        self._environ = environ
        self._anew = anew

    @property
    def is_unlimited(self) -> bool:
        """Whether the view has no limits; it may still leave out the skills of some projects."""
        return self.limits.is_whole

    @property
    def _seen(self) -> ViewSkills:
        """The skills of a view that has limits, cached until the database changes."""
        return seen(self.core.reader, self.limits, self._environ, anew=self._anew)

    def _within(self, wanted: Filters) -> Filters:
        """Return the filters ``wanted``, limited to the ids of the skills of a limited view."""
        seen = self._seen
        ids = seen.listed if wanted.status is None else seen.unhidden
        return replace(wanted, ids=seen.every if wanted.all else ids)

    def _stored(self, handle: str) -> StoredSkill:
        """Return the stored skill for a name or ref in this view; it need not be listed.

        Raises `SkillNotFound` and `SkillAmbiguous`; the errors name only skills of this view.
        """
        if self.is_unlimited:
            return resolve(self.core.reader, handle)
        seen = self._seen
        found = seen.stored(self.core.reader, seen.resolve(handle))
        if found is None:  # another process has just replaced the skill
            raise SkillNotFound(handle)
        return found

    def localized(self, skill: S) -> S:
        """Return a skill with the ref and the copies that it has in this view."""
        return skill if self.is_unlimited else self._seen.localized(skill)

    def localized_all(self, some: Iterable[S]) -> tuple[S, ...]:
        """Return each skill with the ref and the copies that it has in this view."""
        return tuple(some) if self.is_unlimited else self._seen.localized_all(some)

    def localized_hits(self, found: Found) -> Found:
        """Return search hits whose skills have the refs and copies of this view."""
        return found if self.is_unlimited else self._seen.localized_hits(found)

    def renamed(self, some: Iterable[T]) -> Sequence[T]:
        """Return values with the refs that their skills have in this view."""
        return tuple(some) if self.is_unlimited else self._seen.renamed(some)
