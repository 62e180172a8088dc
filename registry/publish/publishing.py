"""Publish a skill from a folder or an archive: unpack, check, then make an ordinary change.

The change replaces exactly the version with the tree hash that the caller gives. An archive comes
from a person who may publish, but any program may have made it. So the archive must follow the
rules for imported archives.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, TypeAlias

from registry.catalog.reading import CurrentSkill
from registry.changes.create import create_files
from registry.changes.review import proposing
from registry.core import Core
from registry.db.audit_context import audit_context
from registry.db.read.skills import StoredSkill, by_place, places_of_name
from registry.db.read.sources import list_sources
from registry.errors import (
    HashNeeded,
    HashOutdated,
    PublishRefused,
    RegistryError,
    SkillAmbiguous,
    SkillMissing,
    SkillProposed,
)
from registry.install.content import content_of
from registry.model import Diagnostic, Source, Value
from registry.publish.packages import Package, differences, replace_files, shortened
from registry.publish.proposals import propose
from registry.publish.versions import check_label
from registry.sync.reading import security_errors
from registry.sync.sources import check_ours, check_writable, is_ours

EVENT: Final = "skill published"
"""Name of the event that the audit log records for each published skill."""

Outcome: TypeAlias = Literal["created", "updated", "unchanged", "proposed"]


@dataclass(frozen=True, slots=True)
class Plan:
    """The change that publishing would make; ``current`` is None if it would create the skill."""

    package: Package
    home: Source
    current: StoredSkill | None

    @property
    def replaces(self) -> str | None:
        """The tree hash of the version that the change would replace."""
        return None if self.current is None else self.current.skill.tree_hash

    @property
    def outcome(self) -> Outcome:
        """The type of the change."""
        if self.current is None:
            return "created"
        return "unchanged" if self.replaces == self.package.tree_hash else "updated"


@dataclass(frozen=True, slots=True)
class Published(Value):
    """The result of publishing a skill.

    ``replaced`` is the tree hash of the replaced version. ``proposal`` is the id of the proposal,
    if the source is under review. If ``dry_run``, nothing was changed.
    """

    KEYS: ClassVar = tuple(
        "outcome ref source tree_hash replaced proposal dry_run findings".split()
    )

    outcome: Outcome
    ref: str
    source: str
    tree_hash: str
    replaced: str | None
    proposal: str | None
    dry_run: bool
    findings: tuple[Diagnostic, ...]


def publishable(core: Core, limit: str | None = None) -> list[Source]:
    """Return the sources into which a token may publish; ``limit`` is the token's source."""
    return [
        one
        for one in list_sources(core.reader, counted=False)
        if is_ours(core, one) and one.remote is None and limit in {None, one.name}
    ]


def plan(core: Core, wanted: Package, home: Source) -> Plan:
    """Return the change that publishing a package into a source would make.

    Raises `SourceReadOnly`, `SourceElsewhere`, `SourceNotYours`, `SkillAmbiguous`,
    `SkillInaccessible`, and `VersionExists` if the package has the label of other files.
    """
    check_ours(core, home)
    check_writable(home)
    planned = Plan(wanted, home, _current(core, home, wanted.name))
    if planned.current is not None and planned.outcome == "updated" and wanted.version is not None:
        check_label(core, planned.current, wanted.version, wanted.tree_hash)
    return planned


def _current(core: Core, home: Source, name: str) -> StoredSkill | None:
    """Return the skill with this name in a source, with its files on disk.

    Returns None if there is no such skill.
    """
    folders = [
        folder for source, folder in core.reader.rows(*places_of_name(name)) if source == home.id
    ]
    if len(folders) > 1:
        raise SkillAmbiguous(name, [f"{home.name}/{folder}" for folder in sorted(folders)])
    stored = by_place(core.reader, home.id, folders[0]) if folders else None
    if stored is None:
        return None
    with suppress(SkillMissing):
        now = CurrentSkill.of_stored(core, stored)
        now.check_whole()
        return now.stored if now.stored.uid == stored.uid else None
    return None


def check(planned: Plan, if_match: str | None, *, trust: bool = False) -> None:
    """Check whether a plan may be carried out.

    Raises `PublishRefused` if the package has security errors, unless ``trust``. Raises
    `HashNeeded` if the change would replace a skill and ``if_match`` is None, and `HashOutdated` if
    ``if_match`` isn't the tree hash of the current version.
    """
    wanted, now = planned.package, planned.replaces
    if if_match is not None and if_match != now:
        raise HashOutdated(name=wanted.name, tree_hash=now)
    if planned.outcome == "unchanged":
        return
    if not trust and security_errors(wanted.findings):
        raise PublishRefused(name=wanted.name, problems=wanted.findings)
    if now is not None and if_match is None:
        raise HashNeeded(name=wanted.name, tree_hash=now)


def publish(
    core: Core,
    planned: Plan,
    if_match: str | None,
    *,
    trust: bool = False,
    dry_run: bool = False,
    by: str | None = None,
) -> Published:
    """Create or replace a skill in one change, and record this in the audit log.

    ``by`` names the token of the publisher. Raises the errors of `check`, `SkillExists`,
    `SkillChangedOnDisk`, and the errors of `commit.commit`.
    """
    check(planned, if_match, trust=trust)
    wanted, current = planned.package, planned.current
    done = Published(
        planned.outcome,
        f"{planned.home.name}/{wanted.folder}" if current is None else current.skill.ref,
        planned.home.name,
        wanted.tree_hash,
        planned.replaces,
        None,
        dry_run,
        wanted.findings,
    )
    if planned.outcome == "unchanged":
        return done
    if planned.home.review and dry_run:
        return replace(done, outcome="proposed")
    if dry_run:
        return done
    try:
        with proposing(propose):
            made = _publish(core, planned, by)
    except SkillProposed as proposed:
        return replace(done, outcome="proposed", proposal=proposed.id)
    return replace(done, ref=made.skill.ref)


def _publish(core: Core, planned: Plan, by: str | None) -> StoredSkill:
    wanted, current = planned.package, planned.current
    with audit_context("publish", by, command="", event=EVENT):
        if current is None:
            what = wanted.folder, wanted.name, wanted.files, wanted.executable
            return create_files(core, planned.home, *what)
        return replace_files(core, current, wanted.files, wanted.executable)


def diff(core: Core, planned: Plan) -> str:
    """Return a unified diff of the change, at most `MAX_DIFF` lines."""
    before: dict[str, bytes] = {}
    if planned.current is not None:
        with suppress(RegistryError):
            entries = content_of(core, planned.current.skill, quarantined=True)
            before = {one.path: one.data for one in entries}
    return shortened(differences(before, planned.package.files))
