"""The skills that a toolset may show.

These skills are limited to a personality, a source, a scope and the user's projects.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from registry.catalog.reading import CurrentSkill, at_version, current_detail, unusable
from registry.catalog.resolve import is_storable, lost, resolve, split_label
from registry.catalog.resolve import near as similar
from registry.catalog.visibility.decisions import (
    CatalogView,
    ViewLimits,
    decide_document,
    decisions,
    shown_now,
)
from registry.catalog.visibility.decisions import personality as personality_of
from registry.catalog.visibility.rules import HIDDEN
from registry.db.read import listing
from registry.db.read import skills as stored_skills
from registry.db.read.history import latest_tombstone
from registry.db.read.listing import Filters, Offer, list_skills
from registry.db.read.search import same_files_as
from registry.db.read.skills import StoredSkill
from registry.db.read.sources import list_sources
from registry.errors import (
    DatabaseProblem,
    RegistryError,
    SkillAmbiguous,
    SkillGone,
    SkillInvalid,
    SkillMissing,
    SkillNotFound,
    SkillNotVisible,
)
from registry.model import Document, Scope, Skill, SkillDetail, Source
from registry.settings import Personality
from registry.sync.sources import find as find_source
from registry.sync.sources import is_here
from registry.toolsets.base import Context

_NAMED_ONLY: Final = frozenset({"none", "explicit"})
"""Modes of a personality in which the settings name all skills that it sees."""


class View(CatalogView):
    """The skills of a registry that one toolset shows.

    If ``explains``, errors name the rule that hides a skill. Only the local user may get such
    errors, because a model or a limited token must not learn about hidden skills.

    The constructor raises `PersonalityNotFound` and `SourceNotFound`.
    """

    def __init__(self, context: Context, *, explains: bool = False) -> None:
        chosen: Personality | None = None
        if context.personality is not None:
            chosen = personality_of(context.core.settings, context.personality)
        source = context.source and find_source(context.core, context.source).name
        limits = ViewLimits(source, context.scope, chosen, offered=True)
        super().__init__(context.core, limits, context.environ, anew=True)
        self._explains = explains
        self._personality, self._source, self._scope = chosen, source, context.scope

    @property
    def is_whole(self) -> bool:
        """Whether the view has no limits and no projects.

        Its errors may then name any skill.
        """
        return self.is_unlimited and not self.core.reader.visibility.knows_projects

    def offers(self) -> list[Offer]:
        """Return the visible skills by name, with the fields for a list for models."""
        if self.is_unlimited:
            return listing.offers(self.core.reader)
        return [
            Offer(skill.ref, skill.scope, skill.description, skill.source, skill.folder)
            for skill in self.skills()
        ]

    def some_offers(self, first: Sequence[str], most: int) -> tuple[list[Offer], int]:
        """Return at most ``most`` of the skills of `offers`, and the number of all of them.

        The skills in ``first`` come first.
        """
        if self.is_unlimited:
            return listing.some_offers(self.core.reader, first, most)
        offers = self.offers()
        chosen = [offer for ref in first for offer in offers if offer.ref == ref]
        chosen += [offer for offer in offers if offer.ref not in first]
        return chosen[:most], len(offers)

    def skills(self, name: str | None = None) -> list[Skill]:
        """Return the visible skills, sorted by name.

        If ``name`` is given, return only the skills with this name.
        """
        if self.is_unlimited and name is None:
            return list(list_skills(self.core.reader, Filters(offered=True)))
        if self.is_unlimited:
            decided = decisions(self.core.reader, None, self._environ, name=name)
            return [skill for _, skill, choice in decided if choice.visible]
        seen = self._seen
        ids = seen.listed if name is None else seen.of_name(name)
        return list(seen.localized_all(list_skills(self.core.reader, Filters(ids=ids))))

    def refs(self) -> Mapping[str, str] | None:
        """Return a map from the refs in the whole registry to the refs in this view.

        Returns None if the view has no limits.
        """
        return None if self.is_unlimited else self._seen.by_ref

    def listed(self) -> frozenset[tuple[str, str]] | None:
        """Return (source, folder) of the listed skills; None if the view has no limits."""
        return None if self.is_unlimited else self._seen.listed_places

    def sources(self) -> list[Source]:
        """Return the visible sources in order of precedence, without counts of their skills."""
        visibility, found = (
            self.core.reader.visibility,
            list_sources(self.core.reader, counted=False),
        )
        sources = [one for one in found if visibility.shows(one.id, one.scope)]
        if self.is_unlimited:
            return sources
        seen: set[str] | None = None
        if self._personality is not None and self._personality.global_ingest.mode in _NAMED_ONLY:
            seen = {skill.source for skill in self.skills()}
        return [one for one in sources if self._includes(one, seen)]

    def _includes(self, source: Source, seen: set[str] | None) -> bool:
        if self._source not in {None, source.name} or self._scope not in {None, source.scope}:
            return False
        if self._is_other_teams(source.scope, source.name):
            return False
        return seen is None or source.scope in {"project", "team"} or source.name in seen

    def filters(self, wanted: Filters) -> Filters:
        """Return the filters ``wanted`` with the limits of this view."""
        return replace(wanted if self.is_unlimited else self._within(wanted), offered=True)

    def find(self, handle: str) -> SkillDetail:
        """Return the skill that a name or ref means in this view, read from disk.

        Raises `SkillNotFound`, `SkillAmbiguous`, `SkillInvalid`, `SkillNotVisible`, and the errors
        of `SkillRegistry.get`.
        """
        return self.localized(current_detail(self.core, self.locate(handle)))

    def locate(self, handle: str) -> CurrentSkill:
        """Return the skill for a handle as `find` does, in a form from which its files can be read.

        ``NAME@LABEL`` means a version of the skill. Raises `VersionNotFound`, `VersionYanked`,
        `VersionNotStored`.
        """
        parts = split_label(self.core.reader, handle)
        if parts is not None:
            return at_version(self.core, self.locate(parts[0]), parts[1], yanked=False)
        if not self.is_unlimited:
            found = self._located(handle, partial(CurrentSkill.of_stored, self.core))
        else:
            found = self._choose(handle, lambda one: CurrentSkill.of(self.core, one))
        return shown_now(self.core, handle, found, self._personality, self._environ)

    def resolve(self, handle: str, *, broken: bool = False) -> StoredSkill:
        """Return the stored skill for a name or ref, to change the skill.

        If ``broken``, an unusable skill is also returned, unless it is hidden or a personality
        limits the view. Raises the errors of `find`.
        """
        try:
            if not self.is_unlimited:
                return self._located(handle, lambda one: CurrentSkill(one, None)).stored
            return self._choose(
                handle, lambda one: CurrentSkill(resolve(self.core.reader, one), None)
            ).stored
        except SkillInvalid:
            stored = self._stored(handle)
            is_ours = stored.enabled and not stored.hidden and self._personality is None
            if not broken or not is_ours:
                raise
            return stored

    def admitted(self, some: Sequence[StoredSkill]) -> list[StoredSkill]:
        """Return the skills that this view would show if they weren't copies of other skills."""
        sources = {source.id for source in self.sources()} if some else set()
        return [
            one
            for one in some
            if one.source_id in sources and not one.hidden and self._is_ours(one)
        ]

    def broken(self) -> list[StoredSkill]:
        """Return the unusable skills in this view, sorted by ref."""
        found = stored_skills.broken(self.core.reader)
        ours = (one for one in found if self._is_ours(one))
        return [one._replace(skill=self.localized(one.skill)) for one in ours]

    def in_folder(self, name: str) -> CurrentSkill | None:
        """Return the skill in the top-level folder with this name; the skill may have another name.

        Returns None if this view has no such folder. Raises `SkillInvalid` for an unusable skill,
        and `SkillNotVisible` for a skill that is hidden from models.
        """
        for source in self.sources():
            stored = stored_skills.by_place(self.core.reader, source.id, name)
            if stored is not None:
                try:
                    return self.locate(stored.place)
                except SkillInvalid as error:
                    raise SkillInvalid(**{**error.facts, "name": name}) from None
                except SkillNotVisible as error:
                    if error.facts["rule"] == HIDDEN.rule:
                        raise
                except RegistryError:  # the skill is removed, or hidden in this view
                    continue
        return None

    def folders(self, source: Source) -> dict[str, bool]:
        """Return the stored folders of a source, and for each whether it is shown.

        A folder inside a hidden folder is hidden. Shadowed skills are shown. Unusable skills are
        shown unless a personality limits the view.
        """
        hidden = stored_skills.folders(self.core.reader, source.id)
        shown = {folder for folder, is_hidden in hidden.items() if not is_hidden}
        if self._personality is not None:
            shown &= self._folders_seen(source)
        closed = hidden.keys() - shown
        return {
            folder: folder in shown and folder.partition("/")[0] not in closed for folder in hidden
        }

    def shows_folder(self, source: Source, stored: StoredSkill) -> bool:
        """Tell whether this folder of a source is shown, by the rules of `folders`."""
        if not self.shows(source) or stored.hidden or stored.held:
            return False
        return self._personality is None or stored.folder in self._folders_seen(source)

    def admits(self, source: Source, document: Document) -> bool:
        """Tell whether a SKILL.md that was just read in a source may be shown."""
        if not self.shows(source) or (self._personality is not None and not document.usable):
            return False
        return decide_document(document, source, self._personality, self._environ).visible

    def _folders_seen(self, source: Source) -> set[str]:
        found = decisions(self.core.reader, self._personality, self._environ, source_id=source.id)
        return {skill.folder for _, skill, choice in found if choice.visible}

    def _located(self, handle: str, look: Callable[[StoredSkill], CurrentSkill]) -> CurrentSkill:
        """Return the skill for a name or ref in a limited view.

        Errors don't mention skills outside the view.
        """
        try:
            stored = self._stored(handle)
        except SkillNotFound:
            problem = self._gone(handle) or self._rule_against(handle)
            if problem is not None:
                raise problem from None
            raise SkillNotFound(handle, self.near(handle)) from None
        try:
            found = look(stored)
        except SkillMissing:
            copy = self._copy_here(stored, look) if handle == stored.skill.name else None
            if copy is None:
                raise
            return copy
        if found.stored is not stored:  # the skill changed while this method read it
            changed, was_listed = found.stored, self._sees(stored)
            if was_listed and not changed.is_usable:
                raise unusable(self.core.reader, changed, handle)
            try:
                found = replace(found, stored=self._stored(changed.place))
            except SkillNotFound:
                raise SkillNotFound(handle, self.near(handle)) from None
        if self._sees(found.stored):
            return found
        raise self._refusal(handle, found.stored)

    def _copy_here(
        self, stored: StoredSkill, look: Callable[[StoredSkill], CurrentSkill]
    ) -> CurrentSkill | None:
        """Return a copy, in this view, of a skill whose folder no longer exists.

        Returns None if there is no such copy.
        """
        for version in self._seen.copies_of(stored.id):
            copy = self._seen.stored(self.core.reader, version)
            if copy is not None and is_here(self.core, copy.host, copy.root):
                with suppress(SkillMissing):
                    return look(copy)
        return None

    def _gone(self, handle: str) -> SkillNotFound | None:
        """Return the error for a skill that was removed; None if no removal is recorded.

        Only removals from sources in this view count. If a personality limits the view, no removal
        counts.
        """
        if self._personality is not None or not is_storable(handle):
            return None
        tombstone = latest_tombstone(self.core.reader, handle, {one.name for one in self.sources()})
        return None if tombstone is None else lost(handle, tombstone)

    def _rule_against(self, handle: str) -> SkillNotVisible | None:
        """If this view ``explains``, return the error that names the rule that hides a skill."""
        if not self._explains:
            return None
        reader = self.core.reader
        stored = resolve(reader, handle)
        for _, one, choice in decisions(
            reader, self._personality, self._environ, source_id=stored.source_id
        ):
            if one.folder == stored.folder and not choice.visible:
                return SkillNotVisible(name=handle, rule=choice.rule, reason=choice.reason)
        return None

    def _choose(self, handle: str, look: Callable[[str], CurrentSkill]) -> CurrentSkill:
        problem: RegistryError
        try:
            found = look(handle)
        except DatabaseProblem:
            raise
        except RegistryError as error:
            problem = error if self._may_tell(handle, error) else SkillNotFound(handle)
        else:
            # Judge only the skill as it was read, because it may have changed since it was found.
            if self._sees(found.stored) or self._stands_in(found.stored):
                return found
            problem = self._refusal(handle, found.stored)
        named = self.skills(handle)
        if len(named) > 1:
            raise SkillAmbiguous(handle, [skill.ref for skill in named])
        if named:
            found = look(f"{named[0].source}/{named[0].folder}")
            if self._sees(found.stored):
                return found
        if isinstance(problem, SkillGone) and self._may_tell_gone(problem):
            raise problem
        if isinstance(problem, SkillNotFound | SkillAmbiguous):
            raise SkillNotFound(handle, self.near(handle))
        raise problem

    def near(self, handle: str) -> list[str]:
        """Return refs of visible skills with names similar to ``handle``, the best match first."""
        if not self.is_unlimited:
            return self._seen.near(handle)
        near = similar(self.core.reader, handle)
        seen = {offer.ref for offer in self.some_offers(near, len(near))[0]}
        return [ref for ref in near if ref in seen]

    def _sees(self, stored: StoredSkill) -> bool:
        if self.is_unlimited:
            return stored.is_visible and not stored.hidden
        return self._seen.lists(stored)

    def _stands_in(self, stored: StoredSkill) -> bool:
        """Tell whether a skill is a copy of a skill in this view."""
        copies = same_files_as(self.core.reader, stored) if self.admitted([stored]) else []
        return any(map(self._sees, copies))

    def _may_tell(self, handle: str, error: RegistryError) -> bool:
        """Tell whether this view may show an error about a skill.

        The error must not reveal a hidden skill.
        """
        if self.is_whole or isinstance(error, SkillNotFound | SkillAmbiguous):
            return True
        try:
            stored = resolve(self.core.reader, handle)
        except (SkillNotFound, SkillAmbiguous):
            return False
        return self._is_ours(stored)

    def _may_tell_gone(self, gone: SkillGone) -> bool:
        """Tell whether this view may show that a skill was removed.

        The result is False if a personality limits the view.
        """
        if self.is_whole:
            return True
        sources = {source.name for source in self.sources()}
        return self._personality is None and gone.facts["source"] in sources

    def _is_other_teams(self, scope: Scope, source: str) -> bool:
        viewer = self._personality
        return viewer is not None and scope == "team" and source != viewer.team

    def _is_within(self, skill: Skill) -> bool:
        return self._source in {None, skill.source} and self._scope in {None, skill.scope}

    def _is_ours(self, stored: StoredSkill) -> bool:
        """Tell whether a skill is within the view's limits, even if it is unusable.

        The limits are those of the context, the personality's team source, and projects.
        """
        skill = stored.skill
        theirs = self._is_other_teams(skill.scope, skill.source)
        return stored.within == 1 and self._is_within(skill) and not theirs

    def shows(self, source: Source) -> bool:
        """Tell whether this view shows the skills of a source."""
        if not source.enabled or self._scope not in {None, source.scope}:
            return False
        return self.core.reader.visibility.shows(source.id, source.scope)

    def _refusal(self, handle: str, stored: StoredSkill) -> RegistryError:
        """Return the error for an existing skill that the view doesn't show.

        The error reveals nothing about hidden skills.
        """
        skill = stored.skill
        if not self._is_ours(stored):
            return SkillNotFound(handle, self.near(handle))
        if stored.hidden:
            return SkillNotVisible(name=handle, rule=HIDDEN.rule, reason=HIDDEN.reason)
        if skill.status not in {"ok", "warning"} or stored.held:
            return unusable(self.core.reader, stored, handle)
        reason = "it is shadowed by a skill of the same name in a stronger source"
        return SkillNotVisible(name=handle, rule="shadowed", reason=reason)
