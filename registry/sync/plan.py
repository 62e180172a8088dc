"""Compare the folders of the sources with the stored skills, and plan a sync."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from registry.db.interface import Reader
from registry.db.read.corruption import mismatched_texts
from registry.db.read.findings import notice_digest
from registry.db.read.skills import (
    KnownFiles,
    RemovedSkill,
    StoredFingerprint,
    files_and_findings,
    fingerprints,
    removed_skills,
)
from registry.disk.links import LINK_KNOWN
from registry.disk.paths import ROOT, position
from registry.disk.walk import UNREADABLE, WALK_CODES, RootGone, RootUnreadable, ScannedFolder, Walk
from registry.model import Diagnostic, RemoteState, Source
from registry.settings import Limits
from registry.sync.reading import content_now, hash_files, is_current, is_same, stamp
from registry.sync.report import Fetched, Outcome, Progress, SourceReport, newer_notice

PROGRESS_EVERY = 200
MAX_CACHED_SCANS = 20_000

WITHDRAWN: Final = " was withdrawn: "
"""Part of the sentence of the report about a withdrawn version, before the reason."""

BATCH: Final = 400
"""Number of skills for which one query reads the stored files and findings."""


class Difference(NamedTuple):
    """The difference between a folder on disk (``found``) and its stored version (``known``).

    If ``known`` is None, the folder is new. If ``found`` is None, the folder was removed. ``same``
    is True if the files are unchanged.
    """

    found: ScannedFolder | None
    known: StoredFingerprint | None
    same: bool = False


@dataclass(slots=True)
class SourcePlan:
    """The planned changes in one source, as folders and version ids; the files are read later.

    ``updates`` and ``touches`` map folders to the ids of their stored versions. A touch is a folder
    with unchanged files but different file times. ``rechecked`` holds the updated folders with
    unchanged files, which were last checked with older rules.

    ``newly_inactive`` holds the versions that the remote source deprecated or withdrew since
    the last sync. ``mismatched`` holds versions with a stored SKILL.md that doesn't match its
    hash; it is empty if the hashes weren't checked. ``unread`` holds versions that stay stored
    because a part of their folder can't be read; it maps their ids to the folder and the
    findings.
    """

    source: Source
    walk: Walk
    outcome: Outcome = "ok"
    message: str | None = None
    kept: int = 0
    notices: list[tuple[str, Diagnostic]] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    placeholders: list[str] = field(default_factory=list)
    updates: dict[str, int] = field(default_factory=dict)
    touches: dict[str, int] = field(default_factory=dict)
    rechecked: set[str] = field(default_factory=set)
    unread: dict[int, tuple[str, list[Diagnostic]]] = field(default_factory=dict)
    mismatched: frozenset[int] = frozenset()
    gone: list[int] = field(default_factory=list)
    gone_placeholders: list[int] = field(default_factory=list)
    unchanged: int = 0
    invalid_unchanged: int = 0
    seen: int = 0
    seen_folders: dict[str, ScannedFolder] = field(default_factory=dict)
    notices_changed: bool = False
    moved_on: bool = False
    fetched: Fetched | None = None
    newly_inactive: Sequence[tuple[str, RemoteState]] = ()

    @property
    def links(self) -> set[str]:
        """Return the folders that are links to known skills.

        These skills are counted in their own folders, and not at the links.
        """
        return {one.folder for one in self.walk.notices if one.diagnostic.code == LINK_KNOWN}

    def remember(self, found: ScannedFolder) -> None:
        """Cache the scan of a folder, unless the cache already has `MAX_CACHED_SCANS` scans."""
        if len(self.seen_folders) < MAX_CACHED_SCANS:
            self.seen_folders[found.folder] = found

    def look(self, folder: str) -> ScannedFolder | None:
        """Return the cached scan of a folder, or scan it again; None if the folder was removed.

        If a file has changed since the scan, this does no harm: the new bytes are stored with the
        old fingerprint, so the next sync reads the file again.
        """
        return self.seen_folders.get(folder) or self.walk.one(folder)

    def look_last(self, folder: str) -> ScannedFolder | None:
        """Return the result of `look`, and remove the scan from the cache."""
        return self.seen_folders.pop(folder, None) or self.walk.one(folder)

    def count_unchanged(self, row: StoredFingerprint) -> None:
        """Count an unchanged skill; don't count a folder without SKILL.md."""
        if row.status != "no_document":
            self.unchanged += 1
            self.invalid_unchanged += row.status == "invalid"

    def report(self) -> SourceReport:
        """Return the report for the source, under the assumption that the plan succeeds."""
        remote = self.source.remote
        told: list[str] = []
        if self.fetched is not None:
            told += self.fetched.notices
            if remote is not None and remote.ref is not None and self.fetched.newer:
                told.append(newer_notice(self.source.name, remote.ref, self.fetched.newer))
        return SourceReport(
            self.source.name,
            self.source.path,
            self.outcome,
            self.message,
            skills=self.unchanged + len(self.new) + len(self.updates) + self.kept,
            kept=self.kept,
            notices=tuple(self.notices),
            remote=remote,
            fetched=(*told, *map(_told, self.newly_inactive)),
        )

    def take(self, fetched: Fetched) -> None:
        """Record the result of fetching the remote source, which happens before the scan.

        The result also contains the new state of the remote source.
        """
        self.moved_on = fetched.remote != self.source.remote
        self.fetched, self.source = fetched, replace(self.source, remote=fetched.remote)
        is_failed = fetched.outcome != "ok"
        # If a checkout is new, because the database was restored, the failure is the cause.
        if self.outcome == "ok" or (is_failed and self.kept):
            self.outcome, self.message = fetched.outcome, fetched.message

    @property
    def is_idle(self) -> bool:
        """Whether nothing changes in this source, apart from file times and removed skills."""
        work = self.new, self.placeholders, self.updates, self.unread, self.gone_placeholders
        return not any((*work, self.notices_changed, self.moved_on))


def _told(changed: tuple[str, RemoteState]) -> str:
    """Return what the report says of a version that the remote source deprecated or withdrew."""
    name, one = changed
    done = WITHDRAWN if one.state == "yanked" else " was deprecated: "
    instead = f"; use {one.replacement} instead" if one.replacement else ""
    reason = (one.reason or "no reason is recorded").rstrip(".")
    return f"version {one.label} of {name}{done}{reason}{instead}"


def plan_source(
    reader: Reader,
    source: Source,
    roots: Sequence[str],
    limits: Limits,
    *,
    verify: bool,
    progress: Progress,
) -> SourcePlan:
    """Scan a source and compare it with the database, without writing."""
    plan = SourcePlan(source, Walk(source.path, limits, roots))
    if verify:
        plan.mismatched = frozenset(one.id for one in mismatched_texts(reader, limits, source.id))
    gone: list[StoredFingerprint] = []
    suspects: list[tuple[ScannedFolder, StoredFingerprint]] = []
    try:
        for difference in compare(plan.walk, fingerprints(reader, source.id), verify=verify):
            _sort_in(plan, difference, suspects, gone)
            if plan.seen % PROGRESS_EVERY == 0:
                progress(f"scanning {source.name}", plan.seen, None)
    except RootGone:
        plan.outcome, plan.message = "missing", "the folder does not exist"
    except RootUnreadable as error:
        plan.outcome, plan.message = "unreadable", f"the folder can't be read: {error}"
    if plan.outcome != "ok":
        gone = list(fingerprints(reader, source.id))
    for number, one in enumerate(_with_stored(reader, suspects)):
        progress(f"reading {source.name}", number, len(suspects))
        _examine(plan, *one, verify=verify)
    lost = [notice.folder for notice in plan.walk.notices if notice.lost]
    for row in gone:
        if any(place in (row.folder, ROOT) or row.folder.startswith(f"{place}/") for place in lost):
            plan.unchanged += row.status != "no_document"
        else:
            (plan.gone_placeholders if row.status == "no_document" else plan.gone).append(row.id)
    plan.notices += ((notice.folder, notice.diagnostic) for notice in plan.walk.notices)
    plan.notices.sort(key=lambda entry: (entry[0], entry[1].code))
    noticed = notice_digest(reader, source.id)
    plan.notices_changed = [(folder, d.code) for folder, d in plan.notices] != noticed
    return plan


def _sort_in(
    plan: SourcePlan,
    difference: Difference,
    suspects: list[tuple[ScannedFolder, StoredFingerprint]],
    gone: list[StoredFingerprint],
) -> None:
    found, row, same = difference
    plan.seen += found is not None and found.is_skill
    if row is not None and found is None:
        gone.append(row)
    elif row is not None and same:
        plan.count_unchanged(row)
    elif found is not None:
        plan.remember(found)
        if row is None:
            (plan.new if found.is_skill else plan.placeholders).append(found.folder)
        else:
            suspects.append((found, row))


def compare(
    scanned: Iterable[ScannedFolder],
    known: Iterable[StoredFingerprint],
    *,
    verify: bool,
) -> Iterator[Difference]:
    """Yield the differences between scanned and stored folders, which are sorted by `position`.

    A folder is the ``same`` if its fingerprint is equal and its file times are old enough. If the
    file times are old enough, every later change of a file also changes the fingerprint. With
    ``verify``, no folder is the ``same``, because an equal fingerprint isn't trusted.
    """
    rows = iter(known)
    row = next(rows, None)
    for found in scanned:
        here = position(found.folder)
        while row is not None and row.position < here:
            yield Difference(None, row)
            row = next(rows, None)
        if row is None or row.position > here:
            yield Difference(found, None)
            continue
        trusted = row.fingerprint == stamp(found) and not row.racy and not verify
        yield Difference(found, row, trusted)
        row = next(rows, None)
    while row is not None:
        yield Difference(None, row)
        row = next(rows, None)


def _with_stored(
    reader: Reader, suspects: Sequence[tuple[ScannedFolder, StoredFingerprint]]
) -> Iterator[tuple[ScannedFolder, StoredFingerprint, KnownFiles, Sequence[Diagnostic]]]:
    """Yield each changed folder and its stored version, with the version's files and findings."""
    for start in range(0, len(suspects), BATCH):
        some = suspects[start : start + BATCH]
        stored = files_and_findings(reader, [row.id for _, row in some])
        yield from ((found, row, *stored[row.id]) for found, row in some)


def _examine(
    plan: SourcePlan,
    found: ScannedFolder,
    row: StoredFingerprint,
    before: KnownFiles,
    stored: Sequence[Diagnostic],
    *,
    verify: bool,
) -> None:
    """If the files of a folder changed, plan an update.

    If only their times changed, plan a touch.
    """
    if not found.is_skill or row.status == "no_document":
        if found.is_skill or row.status != "no_document":
            plan.updates[found.folder] = row.id
        return
    is_of_today = is_current(row.fingerprint)
    if not is_of_today and not row.racy and is_same(row.fingerprint, found):
        plan.updates[found.folder] = row.id
        plan.rechecked.add(found.folder)
        return
    # If times and sizes are equal, the files are equal only if the times were old enough at the
    # last sync.
    trusted = {} if verify or row.racy else before
    hashed = hash_files(plan.source.path, found, trusted, plan.walk.limits)
    unread = [*found.unread, *hashed.unread]
    if unread:
        # If the folder can't be read now, the skill may still exist, so its stored version stays.
        plan.count_unchanged(row)
        now = {finding for finding in unread if finding.code == UNREADABLE}
        plan.notices += ((found.folder, one) for one in now.difference(found.unread))
        if now != {finding for finding in stored if finding.code == UNREADABLE}:
            plan.unread[row.id] = found.folder, sorted(now, key=lambda one: one.sort_key)
        return
    same = hashed.hashes == {path: content for path, (_, content) in before.items()}
    modes = {file.path: file.mode & 0o100 for file in found.files}
    same = same and modes == {path: facts[0] & 0o100 for path, (facts, _) in before.items()}
    codes = {finding.code for finding in stored} & WALK_CODES
    same = same and codes == {problem.code for problem in found.problems}
    same = same and row.id not in plan.mismatched
    if same and is_of_today:
        plan.count_unchanged(row)
        plan.touches[found.folder] = row.id
        return
    plan.updates[found.folder] = row.id
    if same:
        plan.rechecked.add(found.folder)


BRAKE: Final = 10
"""Maximum number of missing skills that a sync removes without confirmation.

If more skills are missing, and they are more than half of the source's skills, they stay stored
until the user confirms the removal.
"""

Moves: TypeAlias = dict[tuple[int, str], RemovedSkill]
"""Maps a new folder (source id, folder) to the removed version whose files moved there."""


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """Options of a sync; see `SkillRegistry.sync`."""

    dry_run: bool = False
    verify: bool = False
    allow_prune: bool = False


@dataclass(slots=True)
class Plan:
    """All changes that a sync will make."""

    sources: list[SourcePlan]
    moves: Moves
    removed: list[RemovedSkill]
    became_links: list[int]
    """Ids of stored versions of links.

    The links led outside all sources, and now lead into a source.
    """
    notices: list[tuple[int, str, Diagnostic]] = field(default_factory=list)
    """New findings in sources outside this sync: source id, folder, finding."""

    @property
    def total(self) -> int:
        """The maximum number of new versions that this sync stores."""
        return sum(len(p.new) + len(p.updates) + len(p.placeholders) for p in self.sources)

    @property
    def touched(self) -> Iterator[tuple[int, ScannedFolder]]:
        """The versions with unchanged files but new file times, with their folders."""
        for part in self.sources:
            for folder, version in part.touches.items():
                found = part.look(folder)
                if found is not None:
                    yield version, found

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to store except file times."""
        work = self.moves, self.removed, self.became_links
        return not any(work) and all(part.is_idle for part in self.sources)


def make_plan(
    reader: Reader,
    targets: Sequence[Source],
    roots: Sequence[str],
    limits: Limits,
    options: SyncOptions,
    progress: Progress,
) -> Plan:
    """Scan the sources and plan all changes, without writing."""
    parts = [
        plan_source(reader, source, roots, limits, verify=options.verify, progress=progress)
        for source in targets
    ]
    leaving = {part.source.id: removed_skills(reader, part.gone) for part in parts}
    moves = _find_moves(parts, [one for some in leaving.values() for one in some])
    moved = {one.id for one in moves.values()}
    removed: list[RemovedSkill] = []
    became_links: list[int] = []
    for part in parts:
        lost = [one for one in leaving[part.source.id] if one.id not in moved]
        # If a folder has become a link to a known skill, count that skill in its own folder.
        linked = part.links
        became_links += [one.id for one in lost if one.folder in linked and not one.file_count]
        removed += [one for one in lost if one.folder in linked and one.file_count]
        lost = [one for one in lost if one.folder not in linked]
        # If a nested source now contains a skill's folder, the skill isn't missing.
        theirs = {one.id for one in lost if part.outcome == "ok" and part.walk.leaves(one.folder)}
        removed += [one for one in lost if one.id in theirs]
        lost = [one for one in lost if one.id not in theirs]
        had = len(leaving[part.source.id]) - len(theirs)
        if _keeps_lost(part, lost, had, prune=options.allow_prune):
            part.kept, part.gone_placeholders = len(lost), []
        else:
            removed += lost
    return Plan(parts, moves, removed, became_links)


def _keeps_lost(
    part: SourcePlan, lost: Sequence[RemovedSkill], leaving: int, *, prune: bool
) -> bool:
    """Decide whether stored skills stay in the catalogue if the sync no longer finds them.

    Records the reason in ``part.outcome`` and ``part.message``. If the source can't be read, the
    skills always stay. If the loss looks like an unmounted drive or an accident, they stay unless
    the user has confirmed the removal (``prune``). Otherwise they are removed.

    ``lost`` holds the missing skills. ``leaving`` is the number of stored skills whose folder is
    gone, including skills that moved to another folder.
    """
    if part.outcome == "ok" and lost and not prune:
        had = part.unchanged + len(part.updates) + leaving
        if part.seen == 0 and not part.links:
            part.outcome, part.message = "empty", "the folder holds no skills any more"
        elif len(lost) > BRAKE and len(lost) > had / 2:
            part.outcome = "shrunk"
            part.message = f"{len(lost)} of {had} skills are gone from the folder"
    return part.outcome == "unreadable" or (part.outcome != "ok" and not prune)


def _find_moves(parts: Sequence[SourcePlan], leaving: Sequence[RemovedSkill]) -> Moves:
    # Hash a new folder only if a removed skill had the same number of files and bytes.
    shapes = {(one.file_count, one.bytes) for one in leaving if one.tree_hash}
    added: list[tuple[int, str, str]] = []
    for part in parts if shapes else ():
        for folder in part.new:
            found = part.look(folder)
            if found is None or (len(found.files), sum(f.size for f in found.files)) not in shapes:
                continue
            tree = content_now(part.source.path, found, part.walk.limits)
            if tree:
                added.append((part.source.id, folder, tree))
    return pair_moves(added, leaving)


def pair_moves(added: Iterable[tuple[int, str, str]], leaving: Iterable[RemovedSkill]) -> Moves:
    """Pair new folders with removed versions that have the same files.

    ``added`` holds the source id, folder and tree hash of each new folder. If several removed
    versions have the files of a new folder, the first version from a folder with the same name is
    taken. If there is none, the first of these versions is taken.
    """
    by_hash: dict[str | None, list[RemovedSkill]] = {}
    for one in leaving:
        by_hash.setdefault(one.tree_hash, []).append(one)
    moves: Moves = {}
    for source_id, folder, tree in added:
        candidates = by_hash.get(tree)
        if candidates:
            name = os.path.basename(folder)
            namesakes = (one for one in candidates if os.path.basename(one.folder) == name)
            moves[source_id, folder] = best = next(namesakes, candidates[0])
            candidates.remove(best)
    return moves
