"""What a person browses: the catalogue as a personality sees it, or one source of it, or all."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeVar

from registry.catalog.resolve import not_found, resolve
from registry.catalog.visibility.decisions import decisions
from registry.catalog.visibility.decisions import personality as personality_of
from registry.catalog.why import Explanation, explained, judged
from registry.core import Core
from registry.db.asked import Condition
from registry.db.interface import Reader
from registry.db.queries import facets, findings, listing, recent, sizes, summary
from registry.db.queries.facets import Facets
from registry.db.queries.filters import Filters, Sort, where
from registry.db.queries.findings import Finding, FindingCount
from registry.db.queries.recent import Change
from registry.db.queries.sizes import Size
from registry.db.queries.skills import StoredSkill, namesakes
from registry.db.queries.sources import list_sources
from registry.db.queries.usage import UsageCount
from registry.errors import PersonalityNotFound, SkillAmbiguous, SkillNotFound, SourceNotFound
from registry.model import Found, Page, Skill, Source
from registry.settings import Personality

FEW: Final = 2000
"""So many skills are gone on with by their versions."""

S = TypeVar("S", bound=Skill)

NOBODY: Final[Sequence[int]] = (-1,)
"""Versions that there are none of."""


class Browse:
    """The part of a registry that is shown to a person.

    ``personality`` sees what its policy lets it; ``source`` shows that one alone. Raises
    `PersonalityNotFound` and `SourceNotFound` when it is made.
    """

    def __init__(
        self, core: Core, personality: str | None = None, source: str | None = None
    ) -> None:
        self.core = core
        self._personality: Personality | None = None
        if personality is not None:
            self._personality = personality_of(core.settings, personality)
        self._source = source
        if source is not None:
            known = [one.name for one in list_sources(core.reader, counted=False)]
            if source not in known:  # a path would be one of whoever started the server
                raise SourceNotFound(name=source, known=known)

    @property
    def is_whole(self) -> bool:
        """Whether nothing narrows it."""
        return self._personality is None and self._source is None

    @property
    def version(self) -> int | None:
        """A number that changes with the database; see `Reader.version`."""
        return self.core.reader.version()

    @property
    def state(self) -> str:
        """A text that changes with skills and sources, and not with how they are used."""
        return summary.state_of_skills(self.core.reader)

    def filters(self, wanted: Filters) -> Filters:
        """Return ``wanted``, of what is shown."""
        if self._source is not None:
            if wanted.source not in {None, self._source}:
                return replace(wanted, ids=NOBODY)
            wanted = replace(wanted, source=self._source)
        if self._personality is not None:
            wanted = replace(wanted, ids=self._ids())
        return wanted

    def list(
        self, wanted: Filters, *, sort: Sort, reverse: bool, limit: int, offset: int
    ) -> Page[Skill]:
        """Return a page of skills, as `SkillRegistry.list` does."""
        chosen, reader = self._matching(wanted), self.core.reader
        bounds = {"limit": limit, "offset": offset}
        found = listing.list_skills(reader, chosen, sort=sort, reverse=reverse, **bounds)
        return replace(found, items=tuple(map(self.told, found)))

    def page(
        self, wanted: Filters, *, sort: Sort, reverse: bool, limit: int, offset: int
    ) -> Sequence[Skill]:
        """Return what `list` does, without counting how many there are in all."""
        chosen, reader = self._matching(wanted), self.core.reader
        bounds = {"limit": limit, "offset": offset}
        found = listing.listing_of(reader, chosen, sort=sort, reverse=reverse, **bounds)
        return tuple(map(self.told, found))

    def search(self, queries: Sequence[str], wanted: Filters, *, limit: int, offset: int) -> Found:
        """Return a page of hits, as `SkillRegistry.search` does."""
        from registry.catalog.search.find import search

        chosen, reader = self.filters(wanted), self.core.reader
        found = search(reader, queries, chosen, limit=limit, offset=offset)
        return replace(found, items=tuple(map(self.told, found)))

    def facets(self, queries: Sequence[str], wanted: Filters) -> Facets:
        """Count what a listing, or where something is asked a search, has of each value."""
        reader = self.core.reader
        if not queries:
            return facets.facets(reader, self.condition(self._matching(wanted)))
        from registry.catalog.search.find import places

        return facets.facets(
            reader, facets.among(reader, places(reader, queries, self.filters(wanted)))
        )

    def _matching(self, wanted: Filters) -> Filters:
        """Return filters of the same skills: by their versions, where these are few.

        What no index leads to is looked for once, and not by the page, its counts and its total.
        """
        chosen = self.filters(wanted)
        if chosen == Filters() or chosen.ids is not None:
            return chosen
        ids = facets.few(self.core.reader, self.condition(chosen), FEW)
        return chosen if ids is None else replace(chosen, ids=ids)

    def locate(self, handle: str) -> StoredSkill:
        """Return the skill that a handle means and that is shown.

        Raises `SkillNotFound`, `SkillAmbiguous` with what is shown.
        """
        try:
            stored = resolve(self.core.reader, handle)
        except SkillAmbiguous as error:
            if self.is_whole:
                raise
            refs = [ref for ref in error.facts["refs"] if self._shows_ref(ref)]
            if len(refs) == 1:
                return resolve(self.core.reader, refs[0])
            if not refs:
                raise SkillNotFound(handle) from None
            raise SkillAmbiguous(handle, refs) from None
        except SkillNotFound:
            if self.is_whole:
                raise
            raise SkillNotFound(handle) from None  # near names may be of what is not shown
        if not self.shows(stored):
            raise SkillNotFound(handle)
        return stored

    def shows(self, stored: StoredSkill) -> bool:
        """Tell whether a skill may be shown."""
        if self.is_whole:
            return True
        if stored.within != 1 or self._source not in {None, stored.skill.source}:
            return False
        return self._personality is None or stored.id in self._known_ids()

    def explain(self, handle: str, personality: str | None = None) -> Sequence[Explanation]:
        """Explain all skills that a handle may mean, as `SkillRegistry.why` does; no folders.

        Raises `SkillNotFound`, and `PersonalityNotFound`, also for who sees less than all.
        """
        reader = self.core.reader
        if personality is not None and not self.is_whole:
            raise PersonalityNotFound(name=personality, similar=(), known=())
        found = [self.why(one) for one in namesakes(reader, handle) if self.shows(one)]
        if not found:
            raise not_found(reader, handle) if self.is_whole else SkillNotFound(handle)
        return found if personality is None else judged(self.core, found, personality)

    def why(self, stored: StoredSkill) -> Explanation:
        """Explain why a skill is, or isn't, listed; only who sees all is told of others."""
        found = explained(self.core, stored)
        if self.is_whole or found.skill is None:
            return found
        return replace(found, reasons=(), skill=self.told(found.skill))

    def told(self, skill: S) -> S:
        """Return a skill as it may be told of: with those of its copies that are shown."""
        if self.is_whole or not skill.copies:
            return skill
        return replace(skill, copies=tuple(self.shown(skill.copies)))

    def shown(self, refs: Sequence[str]) -> Sequence[str]:
        """Return those refs that may be told."""
        return refs if self.is_whole else [ref for ref in refs if self._shows_ref(ref)]

    def sources(self) -> Sequence[Source]:
        """Return the sources that may be told of, the strongest first."""
        found = list_sources(self.core.reader, counted=True)
        if self._source is not None:
            return [one for one in found if one.name == self._source]
        if self._personality is None:
            return found
        seen = {facet.value: facet.count for facet in self.facets((), Filters()).sources}
        return [replace(one, skills=seen[one.name]) for one in found if one.name in seen]

    def counts(self) -> Sequence[FindingCount]:
        """Count the findings in all that is shown, invalid skills included, by code."""
        return findings.count_findings(self.core.reader, self._all())

    def findings(self, code: str, *, limit: int, offset: int) -> Sequence[Finding]:
        """Return a page of the findings of one code."""
        reader = self.core.reader
        return findings.findings_of(reader, self._all(), code, limit=limit, offset=offset)

    def recent(self, *, limit: int, since: str | None = None) -> Sequence[Change]:
        """Return the last changes, the latest first; what went only where all is shown."""
        return recent.recent(
            self.core.reader, self._all(), limit=limit, since=since, gone=self.is_whole
        )

    def sizes(self) -> Sequence[Size]:
        """Count the skills by their size."""
        return sizes.sizes(self.core.reader, self.condition(self.filters(Filters())))

    def most_read(self, limit: int) -> Sequence[UsageCount]:
        """Return what tools read most."""
        condition = self.condition(self.filters(Filters()))
        return sizes.most_read(self.core.reader, condition, limit)

    def count_unread(self) -> int:
        """Return how many skills no tool has read."""
        return sizes.count_unread(self.core.reader, self.condition(self.filters(Filters())))

    def usage_of(self, stored: StoredSkill) -> UsageCount | None:
        """Return how often tools came upon a skill."""
        return sizes.usage_of(self.core.reader, stored.skill.ref, stored.uid)

    def _all(self) -> Condition:
        if self._personality is None:
            return self.condition(self.filters(Filters(all=True)))
        return self.condition(self.filters(Filters()))

    def condition(self, chosen: Filters) -> Condition:
        """Return the condition of filters that `filters` returned."""
        return where(self.core.reader, chosen, self.core.reader.sight)

    def _shows_ref(self, ref: str) -> bool:
        try:
            return self.shows(resolve(self.core.reader, ref))
        except (SkillNotFound, SkillAmbiguous):
            return False

    def _known_ids(self) -> frozenset[int]:
        reader = self.core.reader
        key = f"known to {self._personality!r} {reader.sight.sources}"
        return reader.remembered(key, lambda _: frozenset(self._ids()))

    def _ids(self) -> Sequence[int]:
        """Return the stored versions that the personality sees, until the database changes."""
        personality = self._personality
        assert personality is not None  # noqa: S101  # asked for those alone

        def load(reader: Reader) -> Sequence[int]:
            found = decisions(reader, personality, os.environ)
            return tuple(version for version, _, choice in found if choice.visible)

        reader = self.core.reader
        key = f"browsed by {personality!r} {reader.sight.sources}"
        return reader.remembered(key, load)
