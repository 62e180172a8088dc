"""Publish a skill from a folder or an archive: unpack, check, then make an ordinary change.

The change replaces exactly the version whose tree hash the caller names. Archives come from people
who may publish, but not from trusted programs, so the rules for imported archives apply.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from stat import S_IXUSR
from typing import ClassVar, Final, Literal, NoReturn, TypeAlias

from registry.catalog.reading import CurrentSkill
from registry.changes.create import create_files
from registry.changes.review import Intent, proposing
from registry.changes.untrusted import read_files
from registry.changes.update import update_files
from registry.core import Core
from registry.db.audit_context import audit_context
from registry.db.read.skills import StoredSkill, by_place, places_of_name
from registry.db.read.skills import files as stored_files
from registry.disk.files import digest, open_home, read_inside
from registry.disk.links import real_path
from registry.disk.paths import ROOT, called_on_disk
from registry.disk.walk import Walk
from registry.document.differing import difference
from registry.document.names import check_folder_name
from registry.document.parse import parse_document
from registry.errors import (
    ArchiveRefused,
    FileChanging,
    HashNeeded,
    HashOutdated,
    InvalidName,
    PublishRefused,
    RegistryError,
    SkillAmbiguous,
    SkillMissing,
    SkillProposed,
)
from registry.install.content import content_of
from registry.install.imports import NO_DOCUMENT, Unpacked, read_archive, unpacked
from registry.model import DOCUMENT_NAMES, Diagnostic, Source, Value
from registry.sync.reading import read_folder, security_errors, tree_hash
from registry.sync.sources import check_ours, check_writable

MAX_DIFF: Final = 2000
"""Maximum number of lines of a diff that is shown before a skill is published."""

MAX_COMPARED: Final = 1 << 18
"""Maximum size of a file whose lines are compared, in bytes."""

EVENT: Final = "skill published"
"""Event that the audit log records for each published skill."""

Outcome: TypeAlias = Literal["created", "updated", "unchanged", "proposed"]


@dataclass(frozen=True, slots=True)
class Package:
    """The files of a skill to publish, with the result of its check.

    ``name`` is the name in the SKILL.md, ``folder`` the name of its folder if it is created.
    """

    name: str
    folder: str
    files: Mapping[str, bytes]
    executable: frozenset[str]
    tree_hash: str
    findings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """The change that publishing would make. ``current`` is None if it would create the skill."""

    package: Package
    home: Source
    current: StoredSkill | None

    @property
    def replaces(self) -> str | None:
        """The tree hash of the version that would be replaced."""
        return None if self.current is None else self.current.skill.tree_hash

    @property
    def outcome(self) -> Outcome:
        """The kind of change."""
        if self.current is None:
            return "created"
        return "unchanged" if self.replaces == self.package.tree_hash else "updated"


@dataclass(frozen=True, slots=True)
class Published(Value):
    """The result of publishing a skill.

    ``replaced`` is the tree hash of the version that was replaced. ``proposal`` is the id of the
    proposal, if the source is under review. If ``dry_run``, nothing was changed.
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


def read_package(core: Core, path: str, name: str | None = None) -> Package:
    """Return the package in a folder or an archive on this machine.

    ``name`` is the name of the folder in which the skill is created; by default the skill's name.
    Raises `ArchiveRefused`, `InvalidName`, `SkillInaccessible`, `FileChanging`.
    """
    place = os.path.expanduser(path)
    if os.path.isdir(place):
        return package(
            core, *_read_folder(core, place), name=name, usual=os.path.basename(real_path(place))
        )
    return package(core, *read_archive(path, core.settings.limits), name=name)


def unpack_package(core: Core, data: bytes, name: str | None = None) -> Package:
    """Return the package in the bytes of an archive. Raises the errors of `read_package`."""
    return package(core, *unpacked(data, "the archive", core.settings.limits), name=name)


def package(
    core: Core,
    files: Mapping[str, bytes],
    executable: frozenset[str],
    *,
    name: str | None = None,
    usual: str = "",
) -> Package:
    """Return the package of these files, checked as `check` checks a folder.

    If the SKILL.md has no name, the name is ``name`` or ``usual``. Raises `InvalidName`,
    `PublishRefused` if the files can't be a skill.
    """
    document = next(one for one in DOCUMENT_NAMES if one in files)
    parsed = parse_document(files[document], folder_name=name or usual)
    folder = name or parsed.name
    if (reason := check_folder_name(folder)) is not None:
        raise InvalidName(name=folder, reason=reason)
    reading = read_files(core, files, executable, folder)
    hashed = tree_hash(reading.found, reading.hashes)
    if hashed is None or reading.document is None or not parsed.usable:
        raise PublishRefused(name=parsed.name, problems=reading.findings)
    return Package(parsed.name, folder, files, executable, hashed, reading.findings)


def _read_folder(core: Core, place: str) -> Unpacked:
    """Read the files that a sync would read. Raises `ArchiveRefused`, `SkillInaccessible`."""
    root, limits = real_path(place), core.settings.limits
    found = Walk(root, limits, ()).one(ROOT)
    if found is None or found.document is None:
        problem = next(iter(found.problems), None) if found is not None else None
        raise ArchiveRefused(path=place, reason=problem.message if problem else NO_DOCUMENT)
    reading = read_folder(root, found, limits, {})
    refused = [one for one in reading.findings if one.severity == "error"]
    if reading.document is None or any(one.category == "format" for one in refused):
        raise PublishRefused(name=place, problems=reading.findings)
    files, executable, left = {}, set(), limits.skill_bytes
    with open_home(root, ROOT) as home:
        for file in found.files:
            data = read_inside(home, called_on_disk(file.path), left, root).data
            if digest(data) != reading.hashes.get(file.path):
                raise FileChanging(path=os.path.join(place, file.path))
            left -= len(data)
            files[file.path] = data
            if file.mode & S_IXUSR:
                executable.add(file.path)
    return files, frozenset(executable)


def plan(core: Core, wanted: Package, home: Source) -> Plan:
    """Return the change that publishing a package into a source would make, without making it.

    Raises `SourceReadOnly`, `SourceElsewhere`, `SourceNotYours`, `SkillAmbiguous`,
    `SkillInaccessible`.
    """
    check_ours(core, home)
    check_writable(home)
    return Plan(wanted, home, _current(core, home, wanted.name))


def _current(core: Core, home: Source, name: str) -> StoredSkill | None:
    """Return the skill with this name in a source, as it is on disk now; None if there is none."""
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
    """Check that a plan may be carried out.

    Raises `PublishRefused` if the package has security errors, unless ``trust``. Raises
    `HashNeeded` if a skill would be replaced and ``if_match`` is None, and `HashOutdated` if
    ``if_match`` is not the tree hash of the current version.
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
    """Create or replace a skill in one change, and record it in the audit log.

    ``by`` names the token that published the skill. Raises the errors of `check`, `SkillExists`,
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
        with proposing(_propose):
            made = _publish(core, planned, by)
    except SkillProposed as proposed:
        return replace(done, outcome="proposed", proposal=proposed.id)
    return replace(done, ref=made.skill.ref)


def _propose(core: Core, source: Source, intent: Intent) -> NoReturn:
    from registry.publish.proposals import propose

    propose(core, source, intent)


def _publish(core: Core, planned: Plan, by: str | None) -> StoredSkill:
    wanted, current = planned.package, planned.current
    with audit_context("publish", by, event=EVENT):
        if current is None:
            what = wanted.folder, wanted.name, wanted.files, wanted.executable
            return create_files(core, planned.home, *what)
        return replace_files(core, current, wanted.files, wanted.executable)


def replace_files(
    core: Core, current: StoredSkill, files: Mapping[str, bytes], executable: frozenset[str]
) -> StoredSkill:
    """Replace all files of a skill in one change. Raises the errors of `update.update_files`."""
    before = {one.path: one for one in stored_files(core.reader, current.id)}
    edits: dict[str, bytes | None] = {}
    for path, data in files.items():
        old = before.get(path)
        if old is None or (old.hash, old.executable) != (digest(data), path in executable):
            edits[path] = data
    edits |= {path: None for path in before if path not in files}
    runs = {path: path in executable for path in files}
    return update_files(core, current, edits, executable=runs)


def diff(core: Core, planned: Plan) -> str:
    """Return a unified diff of the change, cut after `MAX_DIFF` lines."""
    before: dict[str, bytes] = {}
    if planned.current is not None:
        with suppress(RegistryError):
            entries = content_of(core, planned.current.skill, quarantined=True)
            before = {one.path: one.data for one in entries}
    return shortened(differences(before, planned.package.files))


def differences(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the lines of a unified diff between two sets of files."""
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path, b""), after.get(path, b"")
        if path in before and path in after and old == new:
            continue
        if max(len(old), len(new)) > MAX_COMPARED:
            yield f"Files {path} (current) and {path} (new) differ\n"
            continue
        yield from difference(path, old, new, "current", "new")
        if path not in after:
            yield f"Removed {path}\n"


def shortened(lines: Iterator[str]) -> str:
    """Return the first `MAX_DIFF` lines of a diff, with a note if there are more."""
    shown: Sequence[str] = list(islice(lines, MAX_DIFF + 1))
    more = f"The diff has more than {MAX_DIFF} lines.\n" if shown[MAX_DIFF:] else ""
    return "".join(shown[:MAX_DIFF]) + more
