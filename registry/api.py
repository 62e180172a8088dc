"""`SkillRegistry`: every operation, one method each."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING

from registry.db.queries.filters import Filters
from registry.model import Parameter, Scope, Skill, SkillDetail, Source
from registry.readable import ReadableRegistry

if TYPE_CHECKING:
    from registry.catalog.prompt import PromptText, Style
    from registry.catalog.visibility import Decision
    from registry.changes.trash import Trashed
    from registry.db.queries.revisions import Revision
    from registry.db.queries.usage import UsageCount
    from registry.exchange.export import Export
    from registry.exchange.pull import Pulled
    from registry.sync.report import Progress, SyncReport
    from registry.toolsets.base import Toolset


class SkillRegistry(ReadableRegistry):
    """One catalogue over all registered sources.

    Open it with `SkillRegistry.open`. One object may serve many threads, and many processes may
    share one database. All methods raise subclasses of `registry.errors.RegistryError` only.
    """

    # Changes: disk and database together or not at all

    def create(
        self,
        name: str,
        *,
        description: str,
        body: str = "",
        tags: Sequence[str] = (),
        kind: str | None = None,
        parameters: Sequence[Parameter] = (),
        source: str | None = None,
        files: Mapping[str, bytes] = MappingProxyType({}),
    ) -> SkillDetail:
        """Create a skill in the folder of its name, with supporting ``files`` (path: content).

        Raises `InvalidName`, `SkillExists`, `SourceUnclear`, `SourceNotFound`, `ChangeRefused`.
        """
        from registry.changes.authoring import create

        return create(
            self,
            name,
            description=description,
            body=body,
            tags=tags,
            kind=kind,
            parameters=parameters,
            source=source,
            files=files,
        )

    def update(
        self,
        name: str,
        *,
        description: str | None = None,
        body: str | None = None,
        tags: Sequence[str] | None = None,
        kind: str | None = None,
        parameters: Sequence[Parameter] | None = None,
        files: Mapping[str, bytes | None] = MappingProxyType({}),
        if_hash: str | None = None,
        force: bool = False,
    ) -> SkillDetail:
        """Change what is given and leave every other byte as it was; a file of None is removed.

        Raises `SkillChangedOnDisk` where the SKILL.md is not ``if_hash`` (by default: what the
        last sync saw) unless ``force``, and what `get` and `create` raise.
        """
        from registry.changes.authoring import update

        return update(
            self,
            name,
            description=description,
            body=body,
            tags=tags,
            kind=kind,
            parameters=parameters,
            files=files,
            if_hash=if_hash,
            force=force,
        )

    def delete(self, name: str, *, if_hash: str | None = None, force: bool = False) -> "Trashed":
        """Move a skill to the trash. Raises as `update`."""
        from registry.changes.changing import delete

        return delete(self, name, if_hash=if_hash, force=force)

    def restore(self, name: str, *, source: str | None = None) -> SkillDetail:
        """Bring back what was deleted last under a name, trash id, or source/folder.

        Raises `NotInTrash`, `SkillExists`.
        """
        from registry.changes.changing import detail_of, restore

        return detail_of(self, restore(self, name, source=source))

    def trash(self) -> "Sequence[Trashed]":
        """Return what can be restored, the latest first."""
        from registry.changes.changing import trash

        return trash(self)

    def empty_trash(self, chosen: "Sequence[Trashed] | None" = None) -> int:
        """Remove deleted skills (None: all of them) for good; return how many."""
        from registry.changes.changing import empty_trash

        return empty_trash(self, chosen)

    # What skills were like

    def history(self, name: str) -> "Sequence[Revision]":
        """Return the contents that a skill had, the newest first. Raises as `get`."""
        from registry.changes.history import history

        return history(self, name)

    def read_revision(self, name: str, number: int, path: str | None = None) -> bytes:
        """Return the bytes of a file of a revision, the skill file by default.

        Raises `RevisionNotFound`, `ContentMissing`, and as `get`.
        """
        from registry.changes.history import read

        return read(self, name, number, path)

    def diff(self, name: str, old: int | None = None, new: int | None = None) -> str:
        """Return what is different between two revisions; see `history.diff`."""
        from registry.changes.history import diff

        return diff(self, name, old, new)

    def restore_revision(self, name: str, number: int) -> SkillDetail:
        """Make a skill what it was, as one change. Raises `RevisionNotFound`, and as `update`."""
        from registry.changes.changing import detail_of
        from registry.changes.history import restore_revision

        return detail_of(self, restore_revision(self, name, number))

    def prune(self, *, keep: int = 20, before: str | None = None) -> tuple[int, int]:
        """Forget revisions beyond the newest ``keep`` of each skill, seen before a time.

        The current one stays. Returns how many revisions, and contents that only they had, went.
        """
        from registry.changes.history import prune

        return prune(self, keep=keep, before=before)

    def pull(self, skills: Sequence[Skill], to: str, *, force: bool = False) -> "Sequence[Pulled]":
        """Put skills into folders of their names below ``to``; see `exchange.pull.pull`."""
        from registry.exchange.pull import pull

        return pull(self, skills, to, force=force)

    def check_pulled(self, to: str, skills: Sequence[Skill] | None = None) -> "Sequence[Pulled]":
        """Say how pulled skills differ from these (None: all that were pulled) as they are now."""
        from registry.exchange.pull import check

        return check(self, skills, to)

    def export(self, skills: Sequence[Skill], to: str) -> "Export":
        """Publish skills for discovery below ``to``; see `exchange.export.export`."""
        from registry.exchange.export import export

        return export(self, skills, to)

    def bring(
        self, path: str, *, source: str | None = None, name: str | None = None
    ) -> SkillDetail:
        """Create the skill that an archive holds; see `exchange.bring.bring`."""
        from registry.exchange.archives import bring

        return bring(self, path, source=source, name=name)

    # What agents are given

    def toolset(
        self,
        name: str,
        *,
        source: str | None = None,
        scope: Scope | None = None,
        personality: str | None = None,
        workdir: str | None = None,
    ) -> "Toolset":
        """Return a toolset: ``native``, ``basic``, ``miniclaw``, ``ethos`` or ``wave``.

        It shows the skills of one source, scope or personality, where that is given, and of
        projects only those below ``workdir``. Raises `ToolsetNotFound`, `SourceUnclear`,
        `SourceNotFound`, `PersonalityNotFound`.
        """
        # By name, since toolsets lie above this layer and are made of its operations.
        make = import_module("registry.toolsets.open").open_toolset
        made: Toolset = make(
            self, name, source=source, scope=scope, personality=personality, workdir=workdir
        )
        return made

    def prompt(
        self,
        personality: str | None = None,
        *,
        style: "Style" = "xml",
        max_chars: int | None = None,
    ) -> "PromptText":
        """Return the catalogue for a system prompt, as XML or Markdown, within a budget.

        Raises `PersonalityNotFound`.
        """
        from registry.catalog.prompt import prompt

        return prompt(self, personality, style=style, max_chars=max_chars)

    def decisions(self, personality: str | None = None) -> "Sequence[tuple[Skill, Decision]]":
        """Return each visible skill by name, with whether a personality sees it and why.

        Raises `PersonalityNotFound`.
        """
        from registry.catalog.visibility import decide_all
        from registry.catalog.visibility import personality as named

        chosen = None if personality is None else named(self.settings, personality)
        return decide_all(self.reader, chosen)

    def seen_by(self, personality: str, filters: Filters | None = None) -> Filters:
        """Return filters, for `list` and `search`, of only what a personality sees now.

        Raises `PersonalityNotFound`.
        """
        from registry.catalog.visibility import personality as named
        from registry.catalog.visibility import seen_ids

        ids = seen_ids(self.reader, named(self.settings, personality))
        return replace(filters or Filters(), ids=ids)

    def usage_counts(self) -> "Sequence[UsageCount]":
        """Return how often tools listed, found and read each skill, the most read first."""
        from registry.db.queries.usage import usage

        return usage(self.reader)

    # Sources and sync

    def add_source(
        self, path: str, *, name: str | None = None, scope: Scope = "personal", priority: int = 0
    ) -> Source:
        """Register a folder. Raises `SourceInvalid`, `SourceExists`."""
        from registry.sync.sources import add

        return add(self, path, name=name, scope=scope, priority=priority)

    def remove_source(self, name: str) -> Source:
        """Forget a source and its skills; the disk stays as it is. Raises `SourceNotFound`."""
        from registry.sync.sources import remove

        return remove(self, name)

    def sync(
        self,
        *targets: str,
        scope: Scope | None = None,
        name: str | None = None,
        dry_run: bool = False,
        verify: bool = False,
        allow_prune: bool = False,
        wait: bool = False,
        progress: "Progress | None" = None,
    ) -> "SyncReport":
        """Bring the database in line with the sources (all, or the targets: names or folders).

        A folder that is no source yet becomes one. Raises `SourceNotFound`, `SourceInvalid`,
        `SyncRunning` unless ``wait``.
        """
        from registry.sync.planning import SyncOptions
        from registry.sync.run import sync

        options = SyncOptions(dry_run=dry_run, verify=verify, allow_prune=allow_prune)
        return sync(self, targets, options, scope=scope, name=name, wait=wait, progress=progress)

    def finish_changes(self) -> None:
        """Finish or undo what a dead process left unfinished; opening does so."""
        from registry.changes.changing import recover_all

        recover_all(self)
