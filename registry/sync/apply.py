"""Carry out a plan: read and stage in batches, publish at once, delete dead rows."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from contextvars import copy_context
from functools import partial
from itertools import compress, islice
from typing import Final, NamedTuple

from registry.core import Core
from registry.db.interface import SyncLock, Writer
from registry.db.read.skills import StoredSkill, by_ids, files_and_findings, findings, has_retired
from registry.db.versions import NewVersion
from registry.db.write.history import drop_old_changes, record_revisions, store_documents
from registry.db.write.names import refresh_names
from registry.db.write.skills import (
    RETIRED_AT_ONCE,
    add_notices,
    delete_retired,
    publish,
    replace_findings,
    replace_notices,
    stage,
    update_stats,
)
from registry.db.write.sources import (
    begin_importing,
    begin_resolving,
    finish_importing,
    record_remote,
    record_sync,
    shared_names,
)
from registry.db.write.usage import drop_old_days
from registry.disk.walk import UNREADABLE, ScannedFolder, Walk
from registry.document.security import is_about_defence
from registry.errors import DatabaseProblem
from registry.model import Diagnostic
from registry.sync.helper import Piece, helping, share
from registry.sync.plan import Plan, SourcePlan
from registry.sync.reading import (
    KnownHashes,
    Previous,
    Reading,
    Recent,
    Task,
    is_current,
    make_version,
    read_folder,
    read_new,
    security_errors,
    stamps_of,
)
from registry.sync.report import Progress
from registry.text import utc_now

PART: Final = 100
"""Versions that a first import publishes in one transaction while other clients wait."""

FEW: Final = 20
"""Maximum number of documents that are kept while other clients wait."""

AT_ONCE: Final = 2
"""Batches that a server stores at once."""

STATISTICS_AFTER: Final = 500
"""Number of new versions after which the planner's statistics are updated."""


class PublishedVersion(NamedTuple):
    """A version that a sync made live."""

    id: int
    replaces: int | None
    folder: str
    status: str


class Store:
    """Stores the versions that a sync has read, invisibly, in threads of its own.

    On a server, the first import of a source is published in parts. The source stays hidden until
    the last part. ``live``: the published versions that readers see. ``published``: these and the
    versions that lost to a change made in the meantime.
    """

    def __init__(self, core: Core, lock: SyncLock, plan: Plan) -> None:
        self._writer, self._lock, self._shared = core.writer, lock, core.backend.shared
        self.live: list[int] = []
        self.published: set[int] = set()
        self._hidden: set[int] = set()
        self._mismatched = frozenset[int]().union(*(part.mismatched for part in plan.sources))
        first = [part for part in plan.sources if part.source.last_sync_at is None]
        self.first = [part.source.id for part in first]
        large = [part.source.id for part in first if len(part.new) > PART]
        if large and self._shared:
            with self._writer.transaction() as connection:
                lock.assert_held(connection)
                self._hidden = begin_importing(connection, large)

    def add_all(self, batches: Iterable[Sequence[NewVersion]]) -> Generator[list[PublishedVersion]]:
        """Store batches, and yield what each is in the database; some are ahead of what is yielded.

        As many wait as are stored at once, so memory stays flat.
        """
        at_once = AT_ONCE if self._shared else 1
        storing: deque[Future[list[PublishedVersion]]] = deque()
        with ThreadPoolExecutor(at_once, "registry-store") as pool:
            for batch in batches:
                if len(storing) == at_once:
                    yield storing.popleft().result()
                storing.append(pool.submit(copy_context().run, self.add, batch))
            for one in storing:
                yield one.result()

    def add(self, batch: Sequence[NewVersion]) -> list[PublishedVersion]:
        """Store a batch, and return what it is in the database."""
        # Nobody sees what is staged: on a server others may write meanwhile.
        first = self._writer.reserve(len(batch))
        if first is not None:
            self.keep([one for v in batch if (one := v.columns["replaces"]) is not None])
        with self._writer.transaction(quiet=first is not None) as connection:
            ids = stage(connection, batch, first=first, mismatched=self._mismatched)
            if first is not None:  # what is done here is not done while all others wait
                brand_new = [v.columns["replaces"] is None for v in batch]
                record_revisions(connection, list(compress(ids, brand_new)))
        hidden = [one.columns["id"] for one in batch if one.columns["source_id"] in self._hidden]
        for start in range(0, len(hidden), PART):
            with self._writer.transaction() as connection:
                self._lock.assert_held(connection)
                self.live += publish(connection, hidden[start : start + PART], [])
        if hidden and not self.published:
            # Without statistics, a server uses an index that covers the whole source.
            self._writer.update_statistics()
        self.published.update(hidden)
        return [
            PublishedVersion(*(version.columns[name] for name in PublishedVersion._fields))
            for version in batch
        ]

    def keep(self, leaving: Sequence[int]) -> None:
        """Keep the documents of versions that are about to be retired.

        On a server this happens in separate transactions before the lock is taken, so that other
        clients wait less. A few documents are faster under the lock.
        """
        if not self._shared or len(leaving) <= FEW:
            return
        for start in range(0, len(leaving), PART):
            with self._writer.transaction(quiet=True) as connection:
                store_documents(connection, leaving[start : start + PART])

    def join(self) -> None:
        """Refresh the names of skills that were published in parts, in parts as well.

        The parts come from this sync or from one that was killed.
        """
        if not (self.first and self._shared):
            return
        with self._writer.transaction() as connection:
            self._lock.assert_held(connection)
            joined = begin_resolving(connection, self.first)
        if not joined:
            return
        with self._writer.transaction(quiet=True) as connection:
            names = shared_names(connection, joined)
        for start in range(0, len(names), PART):
            with self._writer.transaction() as connection:
                self._lock.assert_held(connection)
                refresh_names(connection, names[start : start + PART])


def clear(core: Core, lock: SyncLock) -> None:
    """Delete the versions that no reader sees; the caller must hold the sync lock.

    Raises `DatabaseProblem`, before anything is deleted, if the lock was lost.
    """
    deleted = RETIRED_AT_ONCE
    while deleted == RETIRED_AT_ONCE:
        with core.writer.transaction() as connection:
            lock.assert_held(connection)
            deleted = delete_retired(connection, host=core.host)


BATCH, BATCH_CHARACTERS = 400, 8_000_000
"""Maximum number and size of the skills that are stored at once."""

HELPED_FROM: Final = 2000
"""Number of new skills from which a second process helps to read."""

PIECE, PIECE_BYTES = 50, 1_000_000
"""Maximum number and size of the skills that one process reads at once."""


class Unread(NamedTuple):
    """The findings about unreadable parts of a folder, and whether its document can be read."""

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
    if has_retired(core.reader, core.host):  # what a killed sync left
        clear(core, lock)
    total = sum(len(p.new) + len(p.updates) + len(p.placeholders) for p in plan.sources)
    staged: dict[int, PublishedVersion] = {}
    store = Store(core, lock, plan)
    # Storing waits for the database, which lets other threads run: they read and parse the next
    # batches in the meantime.
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
    if len(store.live) >= STATISTICS_AFTER:  # before others wait again
        writer.update_statistics()
    store.join()
    with writer.transaction() as connection:
        lock.assert_held(connection)
        for part in plan.sources:
            if part.source.remote is not None:  # revisions keep it
                record_remote(connection, part.source.id, part.source.remote)
        waiting = [one for one in staged if one not in store.published]
        live = publish(connection, waiting, removed, plan.settled)
        finish_importing(connection, store.first)
        for part in plan.sources:
            replace_notices(connection, part.source.id, part.notices)
            if part.unread:
                replace_findings(connection, part.source.id, UNREADABLE, part.unread)
            record_sync(connection, part.source.id, now, part.outcome)
        add_notices(connection, plan.notices)
        drop_old_changes(connection, core.host)
        drop_old_days(connection, now)
    published = [staged[new] for new in (*store.live, *live)]
    are_new = len(published) == len(staged) and all(one.replaces is None for one in published)
    if removed or plan.settled or not are_new:
        with suppress(DatabaseProblem):  # all is published; the next sync deletes the rest
            clear(core, lock)
    if len(live) >= STATISTICS_AFTER:
        writer.update_statistics()
    return published


class _Job(NamedTuple):
    """A folder to read, and the version that it replaces."""

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
    folders = _folders(plan)
    while some := list(islice(folders, BATCH)):
        stored = by_ids(core.reader, [known for *_, known in some if known is not None])
        for part, folder, replaces in some:
            before = None if replaces is None else stored.get(replaces)
            if replaces is not None and before is None:
                continue  # another client changed it since the plan was made
            found = part.look_last(folder)
            if found is not None:  # else it vanished since the scan: the next sync sees to it
                yield _Job(part, found, before)


def _versions(core: Core, plan: Plan, scan_ns: int, now: str) -> Generator[NewVersion]:
    """Yield what is read, in the order of the plan."""
    recent = Recent()
    pieces = (
        Piece(
            None if jobs[0].before else _task(core, scan_ns, now, jobs),
            sum(map(_bytes, jobs)),
            partial(_read, core, recent, scan_ns, now, jobs),
        )
        for jobs in _pieces(_jobs(core, plan))
    )
    count = sum(len(part.new) for part in plan.sources)
    with helping() if count >= HELPED_FROM else nullcontext() as helper:
        yield from share(pieces, helper)


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


def _task(core: Core, scan_ns: int, now: str, jobs: Sequence[_Job]) -> Task:
    part = jobs[0].part
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
    core: Core, recent: Recent, scan_ns: int, now: str, jobs: Sequence[_Job]
) -> list[NewVersion]:
    versions = []
    for part, found, before in jobs:
        if before is None:
            return read_new(_task(core, scan_ns, now, jobs), recent)  # they are alike
        what = (part.walk, found, before, part.source.id, scan_ns, now)
        is_remote = part.source.remote is not None
        new = read_version(core, *what, from_remote=is_remote, recent=recent)
        if isinstance(new, NewVersion):
            recent.note_stored(packed.hash for packed in new.contents)
            versions.append(new)
    return versions


def read_version(
    core: Core,
    walk: Walk,
    found: ScannedFolder,
    before: StoredSkill,
    source_id: int,
    scan_ns: int,
    now: str,
    *,
    from_remote: bool,
    recent: Recent | None = None,
) -> NewVersion | Unread:
    """Read a folder into a new version, unless a part can't be read: then ``before`` stays.

    ``from_remote``: it is quarantined if it has security errors, unless ``before`` has the same
    files and is trusted.
    """
    what, keep = (walk.root, found, walk.limits), core.settings.store_files
    read = partial(read_folder, *what, with_contents=keep, recent=recent)
    trusted: KnownHashes = {}
    earlier: Sequence[Diagnostic] = ()
    # Files of an unusable skill are only hashed.
    is_usable = before.skill.status in {"ok", "warning"}
    if is_usable and not before.racy and is_current(before.fingerprint):
        trusted, earlier = files_and_findings(core.reader, [before.id])[before.id]
    reading = read(trusted, earlier=earlier)
    if trusted and _is_other_topic(reading, before):
        # The topic of the skill decides how its supporting files are judged.
        reading = read({})
    if reading.unread and before.skill.status != "no_document":
        return Unread(reading.unread, reading.data is not None)
    previous = Previous(before.id, before.uid, before.skill.created_at)
    version = make_version(reading, source_id, scan_ns, now, previous)
    if from_remote:
        version.columns["held"] = int(_is_held(core, version, before))
    return version


def _is_held(core: Core, version: NewVersion, before: StoredSkill) -> bool:
    """Tell whether to quarantine a new version of a remote skill.

    Trust covers exactly the files that the user was shown. One changed line can turn an accepted
    finding into another: a different host, a different secret. So different files with
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
    while (updates := stamps_of(islice(touched, BATCH), scan_ns)).versions:
        with writer.transaction() as connection:
            update_stats(connection, updates)
