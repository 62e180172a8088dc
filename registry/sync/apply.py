"""Carry out a plan: read and stage in batches, publish at once, clear away what is dead."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from registry.core import Core
from registry.db.interface import SyncLock, Writer
from registry.db.read.skills import StoredSkill, by_id, findings, stored_file_hashes
from registry.db.versions import NewVersion
from registry.db.write.history import drop_old_changes
from registry.db.write.skills import (
    add_notices,
    publish,
    replace_findings,
    replace_notices,
    update_stats,
)
from registry.db.write.sources import record_remote, record_sync
from registry.db.write.usage import drop_old_days
from registry.disk.walk import UNREADABLE, ScannedFolder, Walk
from registry.document.security import is_about_defence
from registry.errors import DatabaseProblem
from registry.model import Diagnostic
from registry.sync.fingerprint import is_current, mark_of, stamps_of
from registry.sync.folder import (
    Previous,
    Reading,
    make_version,
    read_folder,
    read_new,
    security_errors,
)
from registry.sync.hashing import KnownHashes
from registry.sync.planning import Plan
from registry.sync.recent import Recent
from registry.sync.report import Progress
from registry.sync.scan import SourcePlan
from registry.sync.storing import STATISTICS_AFTER, PublishedVersion, Store, clear
from registry.text import utc_now

if TYPE_CHECKING:
    from registry.sync.helper import Task

BATCH: Final = 400
BATCH_CHARACTERS: Final = 8_000_000
"""A batch ends at whichever comes first, so that memory stays flat for files of any size."""

HELPED_FROM: Final = 2000
"""New skills that pay for starting another process that reads."""

PIECE: Final = 50
PIECE_BYTES: Final = 1_000_000
"""The same of what one process reads while another reads something else."""


class Unread(NamedTuple):
    """What can't be read of a folder now, and whether its document can."""

    findings: Sequence[Diagnostic]
    has_document: bool


def apply_plan(
    core: Core, plan: Plan, lock: SyncLock, progress: Progress
) -> list[PublishedVersion]:
    """Write what the plan says; readers see all of it or nothing.

    Returns the versions that went live. Whatever a change made meanwhile to a skill wins. Raises
    `DatabaseProblem`, before anything is published, where the lock of this sync was lost.
    """
    writer, scan_ns, now = core.writer, lock.now_ns(), utc_now()
    clear(core, lock)  # what a killed sync left
    total = sum(len(p.new) + len(p.updates) + len(p.placeholders) for p in plan.sources)
    staged: dict[int, PublishedVersion] = {}
    store = Store(core, lock, plan)
    # What is stored waits for the database, which lets other threads run: the next batches are read
    # and parsed meanwhile.
    with (
        closing(_versions(core, plan, scan_ns, now)) as versions,
        closing(store.add_all(_batches(versions))) as stored,
    ):
        for some in stored:
            staged.update((one.id, one) for one in some)
            progress("importing", len(staged), total)
    _touch(writer, plan, scan_ns)
    removed = [one.id for one in plan.removed]
    removed += [version for part in plan.sources for version in part.gone_placeholders]
    progress("publishing", total, total)
    store.keep(removed)
    store.tidy()
    store.join()
    with writer.transaction() as connection:
        lock.assert_held(connection)
        for part in plan.sources:
            if part.source.remote is not None:  # revisions keep it
                record_remote(connection, part.source.id, part.source.remote)
        waiting = [one for one in staged if one not in store.published]
        live = publish(connection, waiting, removed, plan.settled)
        store.show(connection)
        for part in plan.sources:
            replace_notices(connection, part.source.id, part.notices)
            if part.unread:
                replace_findings(connection, part.source.id, UNREADABLE, part.unread)
            record_sync(connection, part.source.id, now, part.outcome)
        add_notices(connection, plan.notices)
        drop_old_changes(connection, core.host)
        drop_old_days(connection, now)
    with suppress(DatabaseProblem):  # what is published is published; the next sync clears it away
        clear(core, lock)
    if len(live) >= STATISTICS_AFTER:
        writer.update_statistics()
    return [staged[new] for new in (*store.live, *live)]


class _Job(NamedTuple):
    """A folder that is to be read, and the version it replaces."""

    part: SourcePlan
    found: ScannedFolder
    before: StoredSkill | None


def _folders(plan: Plan) -> Iterator[tuple[SourcePlan, str, int | None]]:
    for part in plan.sources:
        for folder in part.new:
            before = plan.moves.get((part.source.id, folder))
            yield part, folder, before.id if before else None
        for folder in part.placeholders:
            yield part, folder, None
        for folder, known in part.updates.items():
            yield part, folder, known


def _jobs(core: Core, plan: Plan) -> Iterator[_Job]:
    for part, folder, replaces in _folders(plan):
        before = by_id(core.reader, replaces) if replaces is not None else None
        if replaces is not None and before is None:
            continue  # changed by somebody else since the plan was made
        found = part.look_last(folder)
        if found is not None:  # else it vanished since the scan: the next sync sees to it
            yield _Job(part, found, before)


def _versions(core: Core, plan: Plan, scan_ns: int, now: str) -> Generator[NewVersion]:
    """Yield what is read, in the order of the plan."""
    read = partial(_read, core, Recent(), scan_ns, now)
    count = sum(len(part.new) for part in plan.sources)
    # What packages add to the rules is known to this process alone.
    if count >= HELPED_FROM and not core.dialects:
        from registry.sync.helper import Piece, helping, share

        for_helper = partial(_task, core, scan_ns, now)
        pieces = (
            Piece(for_helper(jobs), sum(map(_bytes, jobs)), partial(read, jobs))
            for jobs in _pieces(_jobs(core, plan))
        )
        with helping() as helper:
            yield from share(pieces, helper)
    else:
        for job in _jobs(core, plan):
            yield from read([job])


def _pieces(jobs: Iterable[_Job]) -> Iterator[list[_Job]]:
    """Put together what is read in one go: new folders of one source, with few and small files."""
    piece: list[_Job] = []
    size = 0
    for job in jobs:
        more = _bytes(job)
        alike = piece and piece[0].part is job.part and piece[0].before is job.before is None
        if piece and (not alike or len(piece) >= PIECE or size + more > PIECE_BYTES):
            yield piece
            piece, size = [], 0
        piece.append(job)
        size += more
    if piece:
        yield piece


def _bytes(job: _Job) -> int:
    return sum(file.size for file in job.found.files)


def _task(core: Core, scan_ns: int, now: str, jobs: Sequence[_Job]) -> "Task | None":
    """Return what another process needs to know to read folders; None: it can't."""
    part, _, before = jobs[0]
    if before is not None:
        return None
    from registry.sync.helper import Task

    return Task(
        part.walk.root,
        part.walk.limits,
        part.source.id,
        scan_ns,
        now,
        [job.found for job in jobs],
        with_contents=core.settings.store_files,
        from_remote=part.source.remote is not None,
    )


def _read(
    core: Core, recent: Recent, scan_ns: int, now: str, jobs: Iterable[_Job]
) -> list[NewVersion]:
    versions = []
    for part, found, before in jobs:
        what = (part.walk, found, before, part.source.id)
        new = read_version(
            core,
            *what,
            scan_ns,
            now,
            with_contents=core.settings.store_files,
            from_remote=part.source.remote is not None,
            recent=recent,
        )
        if isinstance(new, NewVersion):
            recent.note_stored(packed.hash for packed in new.contents)
            versions.append(new)
    return versions


def read_version(
    core: Core,
    walk: Walk,
    found: ScannedFolder,
    before: StoredSkill | None,
    source_id: int,
    scan_ns: int,
    now: str,
    *,
    with_contents: bool = False,
    from_remote: bool = False,
    recent: Recent | None = None,
) -> NewVersion | Unread:
    """Read a folder into a new version, unless a part can't be read: then ``before`` stays.

    ``with_contents``: with the bytes of all files that are read. ``from_remote``: it is quarantined
    if it has security errors, unless ``before`` has the same files and is trusted.
    """
    what = (walk.root, found, walk.limits)
    if before is None:
        return read_new(
            *(*what, source_id, scan_ns, now),
            with_contents=with_contents,
            from_remote=from_remote,
            dialects=core.dialects,
            recent=recent,
        )
    read = partial(
        read_folder, *what, with_contents=with_contents, dialects=core.dialects, recent=recent
    )
    trusted: KnownHashes = {}
    told: Sequence[Diagnostic] = ()
    if _were_looked_through(before, mark_of(core.dialects)):
        trusted, told = stored_file_hashes(core.reader, before.id), findings(core.reader, before.id)
    reading = read(trusted, told=told)
    if trusted and _is_other_topic(reading, before):
        # What the supporting files say is judged by what the skill says it is for.
        reading = read({})
    if reading.unread and before.skill.status != "no_document":
        return Unread(reading.unread, reading.data is not None)
    previous = Previous(before.id, before.uid, before.skill.created_at)
    version = make_version(reading, source_id, scan_ns, now, previous)
    if from_remote:
        version.columns["held"] = int(_is_held(core, version, before))
    return version


def _were_looked_through(before: StoredSkill, mark: str) -> bool:
    """Tell whether the files of a version were, by the rules of today, as their times prove.

    Those of a skill that can't be used are only hashed.
    """
    usable = before.skill.status in {"ok", "warning"}
    return usable and not before.racy and is_current(before.fingerprint, mark)


def _is_held(core: Core, version: NewVersion, before: StoredSkill) -> bool:
    """Tell whether to quarantine a new version of a remote skill.

    Trust covers exactly the files that the user was shown. One changed line elsewhere can turn an
    accepted finding into another: a different host, a different secret. So different files with
    security errors are quarantined again, and so are errors that only newer rules find.
    """
    grave = security_errors(version.findings)
    tree, source = version.columns["tree_hash"], version.columns["source_id"]
    is_same = tree is not None and (tree, source) == (before.skill.tree_hash, before.source_id)
    if before.quarantined or not is_same:
        return bool(grave)
    return bool(grave - security_errors(findings(core.reader, before.id)))


def _is_other_topic(reading: Reading, before: StoredSkill) -> bool:
    document, skill = reading.document, before.skill
    return document is not None and (
        is_about_defence(document.name, document.description)
        != is_about_defence(skill.name, skill.description)
    )


def _batches(versions: Iterator[NewVersion]) -> Iterator[list[NewVersion]]:
    batch: list[NewVersion] = []
    size = 0
    for new in versions:
        batch.append(new)
        size += len(new.text or "") + sum(len(packed.data) for packed in new.contents)
        if len(batch) >= BATCH or size >= BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _touch(writer: Writer, plan: Plan, scan_ns: int) -> None:
    touched = plan.touched
    while (stamps := stamps_of(islice(touched, BATCH), scan_ns)).versions:
        with writer.transaction() as connection:
            update_stats(connection, stamps)
