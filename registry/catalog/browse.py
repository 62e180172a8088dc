"""The catalogue that a visitor sees: all skills, those of a source, or those of a personality."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, Literal

from registry.catalog.copies import (
    Alike,
    Copies,
    Group,
    alike,
    copies,
    copies_among,
    near_duplicates,
)
from registry.catalog.reading import CurrentSkill, at_version, current_detail, unusable
from registry.catalog.resolve import not_found, resolve
from registry.catalog.visibility.decisions import CatalogView, Decided, ViewLimits
from registry.catalog.visibility.decisions import personality as personality_of
from registry.catalog.why import Explanation, explained, judged
from registry.core import Core
from registry.db.interface import Condition, Reader
from registry.db.read import findings, groups, listing, recent, signs, summary, usage
from registry.db.read.findings import Finding, FindingCount
from registry.db.read.listing import Facet, Facets, Filters, where
from registry.db.read.recent import EVERY, ChangeFilters, ChangeGroup, RecentChange
from registry.db.read.signs import Signs
from registry.db.read.skills import Sort, StoredSkill, by_ids, same_name
from registry.db.read.sources import list_sources
from registry.db.read.summary import Size, SourceCount
from registry.db.read.usage import UsageCount
from registry.db.visibility import USABLE
from registry.document.labels import split
from registry.errors import (
    PersonalityNotFound,
    SkillAmbiguous,
    SkillNotFound,
    SourceNotFound,
    VersionYanked,
)
from registry.model import Found, Page, Skill, SkillDetail, Source

FEW: Final = 2000
"""If at most this many skills match, `Browse` selects them by their version ids."""

NOBODY: Final[Sequence[int]] = (-1,)
"""Version ids that select no skill."""


class Browse(CatalogView):
    """The part of a registry that a visitor sees.

    If ``personality`` is given, the view has only the skills that its policy allows. If ``source``
    is given, the view has only the skills of this source. Raises `PersonalityNotFound` or
    `SourceNotFound` if the registry doesn't have the personality or the source. ``limits`` holds
    the personality and the source.
    """

    def __init__(
        self, core: Core, personality: str | None = None, source: str | None = None
    ) -> None:
        chosen = None if personality is None else personality_of(core.settings, personality)
        super().__init__(core, ViewLimits(source=source, personality=chosen), os.environ)
        self._personality, self._source = chosen, source
        if source is not None:
            known = [one.name for one in list_sources(core.reader, counted=False)]
            if source not in known:  # don't accept a path, because it would be a path on the server
                raise SourceNotFound(name=source, known=known)

    @property
    def is_whole(self) -> bool:
        """Whether the visitor sees all skills."""
        return self.is_unlimited

    @property
    def version(self) -> int | None:
        """A number that changes when the database changes; see `Reader.version`."""
        return self.core.reader.version()

    @property
    def state(self) -> str:
        """A text that changes when skills or sources change, but not when usage counts change."""
        return summary.state_of_skills(self.core.reader)

    def filters(self, wanted: Filters) -> Filters:
        """Return the filters ``wanted``, limited to the visible skills."""
        if self.is_whole:
            return wanted
        if self._is_other(wanted):
            return replace(wanted, ids=NOBODY)
        # this is faster, because sources have an index
        if self._personality is None and self._seen.as_stored:
            return replace(wanted, source=self._source)
        return self._among(wanted)

    def _among(self, wanted: Filters) -> Filters:
        """Return the filters for a search, limited to the ids of the visible versions.

        A search with these filters computes how rare a word is only from these versions.
        """
        if self.is_whole or self._is_other(wanted):
            return replace(wanted, ids=None if self.is_whole else NOBODY)
        return self._within(wanted)

    def _is_other(self, wanted: Filters) -> bool:
        return self._source is not None and wanted.source not in {None, self._source}

    def list(
        self, wanted: Filters, *, sort: Sort, reverse: bool, limit: int, offset: int
    ) -> Page[Skill]:
        """Return a page of the visible skills, as `SkillRegistry.list` does."""
        chosen, reader = self._matching(wanted), self.core.reader
        bounds = {"limit": limit, "offset": offset}
        found = listing.list_skills(reader, chosen, sort=sort, reverse=reverse, **bounds)
        return replace(found, items=self.localized_all(found))

    def page(
        self,
        wanted: Filters,
        *,
        sort: Sort | Literal["used"],
        reverse: bool,
        limit: int,
        offset: int,
    ) -> Sequence[Skill]:
        """Return the skills that `list` returns, without counting all matches.

        The skills can also be sorted by use.
        """
        chosen, reader = self._matching(wanted), self.core.reader
        found: Iterable[Skill]
        if sort == "used":
            found = listing.by_use(reader, chosen, reverse=reverse, limit=limit, offset=offset)
        else:
            found = listing.listing_of(
                reader, chosen, sort=sort, reverse=reverse, limit=limit, offset=offset
            )
        return self.localized_all(found)

    def search(self, queries: Sequence[str], wanted: Filters, *, limit: int, offset: int) -> Found:
        """Return a page of hits among the visible skills, as `SkillRegistry.search` does."""
        from registry.catalog.search.find import search

        chosen, reader = self._among(wanted), self.core.reader
        found = search(reader, queries, chosen, limit=limit, offset=offset)
        return self.localized_hits(found)

    def facets(self, queries: Sequence[str], wanted: Filters) -> Facets:
        """Count each value of each facet among the listed skills; with a query, among its hits."""
        reader = self.core.reader
        if not queries:
            return listing.facets(reader, self.condition(self._matching(wanted), counts=True))
        from registry.catalog.search.find import places

        return listing.facets(
            reader, listing.among(reader, places(reader, queries, self._among(wanted)))
        )

    def _matching(self, wanted: Filters) -> Filters:
        """Return filters that select the same skills as ``wanted``, by version id if they are few.

        If at most `FEW` skills match, the database evaluates a slow filter only once, and not
        separately for the page, its counts and the total.
        """
        chosen = self.filters(wanted)
        if chosen == Filters() or chosen.ids is not None:
            return chosen
        ids = listing.few(self.core.reader, self.condition(chosen), FEW)
        return chosen if ids is None else replace(chosen, ids=ids)

    def locate(self, handle: str) -> StoredSkill:
        """Return the visible skill that a handle means.

        Raises `SkillNotFound` if no visible skill matches, and `SkillAmbiguous` if several match.
        The errors name only visible skills; to a visitor who sees all skills, also yanked skills.
        """
        try:
            return self._stored(handle)
        except SkillNotFound:
            if self.is_whole and (problem := _yanked(self.core.reader, handle)):
                raise problem from None
            raise

    def by_ids(self, ids: Sequence[int]) -> Sequence[StoredSkill]:
        """Return the stored skills whose versions have these ids.

        Ids that no longer exist are skipped.
        """
        found = by_ids(self.core.reader, ids).values()
        return [one._replace(skill=self.localized(one.skill)) for one in found]

    def current(self, stored: StoredSkill) -> CurrentSkill:
        """Compare a skill from `locate` with its folder, and return the skill's current version.

        The result has the skill's ref in this view. Raises the errors of `SkillRegistry.get`.
        """
        found = CurrentSkill.of_stored(self.core, stored)
        if self.is_whole or found.stored is stored:
            return found
        return replace(found, stored=self.locate(found.stored.place))

    def located(self, handle: str) -> tuple[CurrentSkill, str | None]:
        """Return the current skill that a handle means, and the label of the version, if any.

        For ``NAME@LABEL``, this is the version of the skill with the label. Raises the errors of
        `locate` and `current`, and `VersionNotFound`, `VersionYanked`, `VersionNotStored`.
        """
        stored, label = self.versioned(handle)
        current = self.current(stored)
        if label is not None:
            current = at_version(self.core, current, label, yanked=False)
        return current, label

    def versioned(self, handle: str) -> tuple[StoredSkill, str | None]:
        """Return the visible skill that ``NAME`` or ``NAME@LABEL`` means, and the label, if any.

        If the whole handle is the name of a skill, return this skill without a label. Raises the
        errors of `locate`.
        """
        try:
            return self.locate(handle), None
        except SkillNotFound:
            parts = split(handle)
            if parts is None:
                raise
        return self.locate(parts[0]), parts[1]

    def detail(self, current: CurrentSkill) -> SkillDetail:
        """Return all facts about a skill. Raises the errors of `SkillRegistry.get`."""
        return self.localized(current_detail(self.core, current))

    def copies(self, stored: StoredSkill) -> Sequence[Copies]:
        """Return the copies and near-duplicates of a skill, as `SkillRegistry.copies` does."""
        reader = self.core.reader
        if self.is_whole:
            return copies(reader, stored.place)
        seen = self._seen
        same = seen.of_name(stored.skill.name, usable=True)
        listed = self.condition(self.filters(Filters()))
        found = copies_among(reader, stored, same, listed)
        return [replace(group, skills=seen.localized_all(group.skills)) for group in found]

    def explain(self, handle: str, personality: str | None = None) -> Sequence[Explanation]:
        """Explain all skills that a handle can mean, as `SkillRegistry.why` does.

        Unlike `SkillRegistry.why`, this method does not accept the path of a folder. Raises
        `SkillNotFound` if no visible skill matches. Raises `PersonalityNotFound` if ``personality``
        is given in a view that doesn't show all skills.
        """
        reader = self.core.reader
        if not self.is_whole:
            if personality is not None:
                raise PersonalityNotFound(name=personality, similar=(), known=())
            found = [self.why(one) for one in self.by_ids(self._seen.namesakes(handle))]
            if not found:
                raise SkillNotFound(handle)
            return found
        found = [self.why(one) for one in same_name(reader, handle)]
        if not found:
            raise not_found(reader, handle)
        return judged(self.core, found, personality)

    def why(self, stored: StoredSkill) -> Explanation:
        """Explain why a skill is listed or not.

        If the view doesn't show all skills, the explanation has no reasons.
        """
        found = explained(self.core, stored)
        return found if self.is_whole else replace(found, reasons=())

    def decided(self, personality: str) -> Decided:
        """Return the decision of a personality for each skill. Raises `PersonalityNotFound`."""
        chosen = personality_of(self.core.settings, personality)
        return Decided.of(self.core.reader, chosen)

    def sources(self) -> Sequence[Source]:
        """Return the visible sources, in order of precedence."""
        found = list_sources(self.core.reader, counted=True)
        if self._source is not None:
            return [one for one in found if one.name == self._source]
        if self._personality is None:
            return found
        seen = {facet.value: facet.count for facet in self.facets((), Filters()).sources}
        return [_as_seen(one, seen[one.name]) for one in found if one.name in seen]

    def source_counts(self) -> Mapping[str, SourceCount]:
        """Count the visible skills of each source by state: listed, overridden, invalid."""
        every, listed = (
            self.condition(self.filters(Filters(all=every))) for every in (True, False)
        )
        return summary.count_by_source(self.core.reader, every, listed)

    def tags(self, part: str = "", *, limit: int, offset: int) -> tuple[Sequence[Facet], int]:
        """Return a page of the tags of the listed skills, and the number of all tags."""
        condition = self.condition(self.filters(Filters()))
        return groups.tags(self.core.reader, condition, part, limit=limit, offset=offset)

    def same_names(self) -> Sequence[str]:
        """Return the names that several skills share, the most frequent first."""
        return groups.names(self.core.reader, self._usable())

    def named(self, names: Sequence[str]) -> Sequence[groups.SameName]:
        """Count the skills with each of these names, and their different contents."""
        return groups.named(self.core.reader, self._usable(), names)

    def _usable(self) -> Condition:
        condition, values = self.condition(self.filters(Filters(all=True)))
        return f"{condition} AND {USABLE}", values

    def near_duplicates(self) -> Sequence[Group]:
        """Group the near-duplicates among the listed skills; see `alike`."""
        return near_duplicates(self.core.reader, self.condition(self.filters(Filters())))

    def alike(self, some: Sequence[Group], most: int) -> Sequence[Alike]:
        """Return groups of `near_duplicates` with at most ``most`` skills of each."""
        found = alike(self.core.reader, some, most)
        return [replace(one, skills=self.localized_all(one.skills)) for one in found]

    def counts(self) -> Sequence[FindingCount]:
        """Count the findings of all visible skills, including invalid ones, by code."""
        return findings.count_findings(self.core.reader, self._all())

    def findings(
        self,
        code: str,
        *,
        limit: int,
        offset: int,
        severity: str | None = None,
        frequent: bool = False,
    ) -> Sequence[Finding]:
        """Return a page of the findings with one code, the most severe first."""
        reader, bounds = self.core.reader, {"limit": limit, "offset": offset}
        found = findings.findings_of(
            reader, self._all(), code, severity, frequent=frequent, **bounds
        )
        return self.renamed(found)

    def signs(self, skills: Sequence[Skill]) -> Mapping[tuple[str, str], Signs]:
        """Return facts that help users choose among these skills, by source and folder."""
        return signs.signs(self.core.reader, skills)

    def recent(
        self, wanted: ChangeFilters = EVERY, *, limit: int, offset: int = 0
    ) -> Sequence[RecentChange]:
        """Return the latest changes, the newest first.

        Changes that removed a skill are included only if the visitor sees all skills.
        """
        gone, chosen = self.is_whole, self._all()
        found = recent.recent(
            self.core.reader, chosen, wanted, limit=limit, offset=offset, gone=gone
        )
        return self.renamed(found)

    def change_groups(self, wanted: ChangeFilters = EVERY) -> Sequence[ChangeGroup]:
        """Group the changes by day, type and source, the latest first; see `recent`."""
        return recent.change_groups(self.core.reader, self._all(), wanted, gone=self.is_whole)

    def sizes(self) -> Sequence[Size]:
        """Count the skills by size class."""
        return summary.sizes(self.core.reader, self.condition(self.filters(Filters())))

    def most_read(self, limit: int) -> Sequence[UsageCount]:
        """Return the counts of the most read skills; reads through tools count."""
        condition = self.condition(self.filters(Filters()))
        found = usage.most_read(self.core.reader, condition, limit)
        return self.renamed(found)

    def count_unread(self) -> int:
        """Return the number of skills that no tool has read."""
        return usage.count_unread(self.core.reader, self.condition(self.filters(Filters())))

    def usage_of(self, stored: StoredSkill) -> UsageCount | None:
        """Return how often tools used a skill; None if no tool has used it."""
        return usage.usage_of(self.core.reader, stored.skill.ref, stored.uid)

    def _all(self) -> Condition:
        if self._personality is None:
            return self.condition(self.filters(Filters(all=True)))
        return self.condition(self.filters(Filters()))

    def condition(self, chosen: Filters, *, counts: bool = False) -> Condition:
        """Return the SQL condition for filters that `filters` returned; see `where`."""
        return where(self.core.reader, chosen, self.core.reader.visibility, counts=counts)


def _as_seen(source: Source, skills: int) -> Source:
    """Return a source with its number of visible skills, without facts about hidden skills."""
    remote = source.remote and replace(source.remote, only=())
    return replace(source, skills=skills, held=0, remote=remote)


def _yanked(reader: Reader, handle: str) -> VersionYanked | None:
    """Return the error for a yanked skill that only the owner of its source sees.

    Returns None if the handle means no such skill.
    """
    with suppress(SkillNotFound, SkillAmbiguous):
        stored = resolve(reader.with_yanked(), handle)
        if stored.yanked and isinstance(error := unusable(reader, stored, handle), VersionYanked):
            return error
    return None
