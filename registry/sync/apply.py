"""Carry out a sync plan: read and store new versions in batches, then publish them together.

Readers don't see the new versions before they are published ("staged"). At the end, old versions
are deleted.
"""

from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, nullcontext, suppress
from contextvars import copy_context
from functools import partial
from itertools import compress, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from registry.core import Core
from registry.db.interface import SyncLock
from registry.db.read.skills import StoredContent, StoredSkill, has_retired, with_contents
from registry.db.versions import NewVersion
from registry.db.write.history import (
    drop_old_changes,
    packed_texts,
    record_revisions,
    store_documents,
)
from registry.db.write.labels import follow_remote
from registry.db.write.names import refresh_names
from registry.db.write.skills import (
    add_notices,
    delete_retired,
    exchange,
    publish,
    replace_findings,
    replace_notices,
    stage,
)
from registry.db.write.sources import (
    begin_importing,
    begin_resolving,
    finish_importing,
    record_remote,
    record_sync,
    shared_names,
)
from registry.db.write.statements import execute
from registry.db.write.usage import drop_old_days
from registry.disk.walk import UNREADABLE, ScannedFolder, Walk
from registry.document.security import is_about_defence
from registry.errors import DatabaseBusy, DatabaseProblem
from registry.model import Diagnostic
from registry.sync.helper import Piece, helping, share
from registry.sync.plan import Plan, SourcePlan
from registry.sync.reading import (
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

if TYPE_CHECKING:
    from sqlalchemy import Connection

PART: Final = 100
"""Maximum number of versions that one transaction publishes.

Other clients that write wait until the transaction ends.
"""

AT_ONCE: Final = 2
"""Number of batches that a sync stores at the same time on a server."""

STATISTICS_AFTER: Final = 500
"""Minimum number of new skills after which a sync updates the query planner's statistics.

The sources must also have at least as many new skills as unchanged skills. Otherwise the server's
autovacuum is enough.
"""


class PublishedVersion(NamedTuple):
    """A version that a sync published."""

    id: int
    replaces: int | None
    folder: str
    status: str


class Store:
    """Stores new versions in worker threads; readers don't see them before they are published.

    On a server, the first import of a large source is published in parts. The source stays hidden
    until the last part is published.

    ``live`` holds the ids of the published versions that became current. ``published`` also holds
    the ids of the versions that were dropped because another client changed the skill.
    """

    def __init__(self, core: Core, lock: SyncLock, plan: Plan) -> None:
        self._writer, self._lock, self._shared = core.writer, lock, core.backend.shared
        self.live: list[int] = []
        self.published: set[int] = set()
        self._hidden: set[int] = set()
        self._mismatched = frozenset[int]().union(*(part.mismatched for part in plan.sources))
        # If the sync stores fewer versions than planned, the other ids stay unused.
        self._free = self._writer.reserve(plan.total) if plan.total else None
        first = [part for part in plan.sources if part.source.last_sync_at is None]
        self.first = [part.source.id for part in first]
        large = [part.source.id for part in first if len(part.new) > PART]
        if large and self._shared:
            with self._writer.transaction() as connection:
                lock.assert_held(connection)
                self._hidden = begin_importing(connection, large)

    def add_all(self, batches: Iterable[Sequence[NewVersion]]) -> Generator[list[PublishedVersion]]:
        """Store the batches; yield the stored versions of each batch, in order.

        While the caller handles a batch, further batches are stored. At most `AT_ONCE` batches are
        in progress at a time, so memory use is limited.
        """
        at_once = AT_ONCE if self._shared else 1
        storing: deque[Future[list[PublishedVersion]]] = deque()
        with ThreadPoolExecutor(at_once, "registry-store") as pool:
            for batch in batches:
                if len(storing) == at_once:
                    yield storing.popleft().result()
                storing.append(pool.submit(copy_context().run, self.add, batch, self._free))
                self._free = None if self._free is None else self._free + len(batch)
            for one in storing:
                yield one.result()

    def add(self, batch: Sequence[NewVersion], first: int | None) -> list[PublishedVersion]:
        """Store a batch of versions, and return the stored versions with their new ids.

        ``first`` is the first of the ids reserved for these versions; None if no ids are reserved.
        """
        # Readers don't see staged versions, so on a server, other clients may write at the same
        # time.
        with self._writer.transaction(quiet=first is not None) as connection:
            ids = stage(connection, batch, first=first, mismatched=self._mismatched)
            if first is not None:  # during the next transaction, all other writers wait
                brand_new = [v.columns["replaces"] is None for v in batch]
                record_revisions(connection, list(compress(ids, brand_new)))
        hidden = [one.columns["id"] for one in batch if one.columns["source_id"] in self._hidden]
        for start in range(0, len(hidden), PART):
            with self._writer.transaction() as connection:
                self._lock.assert_held(connection)
                self.live += publish(connection, hidden[start : start + PART], [])
        if hidden and not self.published:
            # Without statistics, the server would choose an index that covers the whole source.
            self._writer.update_statistics()
        self.published.update(hidden)
        return [
            PublishedVersion(*(version.columns[name] for name in PublishedVersion._fields))
            for version in batch
        ]

    def keep(self, leaving: Sequence[int]) -> None:
        """Before versions are removed, store their SKILL.md files in history.

        On a server, separate transactions do this before the write lock is taken, so that other
        clients wait less.
        """
        for start in range(0, len(leaving) if self._shared else 0, BATCH):
            with self._writer.transaction(quiet=True) as connection:
                store_documents(connection, leaving[start : start + BATCH])

    def join(self) -> None:
        """Resolve the names of skills that were published in parts.

        Each transaction resolves some names. This sync published the parts, or an earlier sync that
        was killed.
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
    """Delete the versions that readers don't see; the caller must hold the sync lock.

    If the lock was lost, raises `DatabaseProblem` and deletes nothing.
    """
    is_left = True
    while is_left:
        with core.writer.transaction(quiet=True) as connection:
            lock.assert_held(connection)
            is_left = delete_retired(connection, host=core.host)


BATCH, BATCH_CHARACTERS = 400, 8_000_000
"""Maximum number of skills in a stored batch, and maximum number of characters of the batch."""

HELPED_FROM: Final = 2000
"""Minimum number of new skills for which further processes help to read skills."""

PIECE, PIECE_BYTES = 50, 1_000_000
"""Maximum number of skills that a process reads in one step, and maximum number of their bytes."""


class Unread(NamedTuple):
    """The result of reading a folder with an unreadable part.

    The value holds the findings about the unreadable parts, and whether SKILL.md is readable.
    """

    findings: Sequence[Diagnostic]
    has_document: bool


def apply_plan(
    core: Core, plan: Plan, lock: SyncLock, progress: Progress
) -> list[PublishedVersion]:
    """Write the planned changes; readers see all of them or none.

    Returns the published versions. If another client changed a skill in the meantime, that client's
    change stays. If this sync lost its lock, raises `DatabaseProblem` and publishes nothing.
    """
    writer, scan_ns, now = core.writer, lock.now_ns(), utc_now()
    if has_retired(core.reader, core.host):  # versions from a sync that was killed
        clear(core, lock)
    staged: dict[int, PublishedVersion] = {}
    store = Store(core, lock, plan)
    # While one thread waits for the database, other threads can read and parse the next batches.
    with (
        closing(_versions(core, plan, scan_ns, now)) as versions,
        closing(store.add_all(_batches(versions))) as stored,
    ):
        for some in stored:
            staged.update((one.id, one) for one in some)
            progress("importing", len(staged), plan.total)
    _touch(core, plan, scan_ns)
    removed = [one.id for one in plan.removed]
    removed += [version for part in plan.sources for version in part.gone_placeholders]
    progress("publishing", plan.total, plan.total)
    store.keep(removed)
    # before the next step, in which other clients must wait
    if len(store.live) >= STATISTICS_AFTER:
        writer.update_statistics()
    store.join()
    waiting = [one for key, one in staged.items() if key not in store.published]
    live = _publish(core, plan, lock, waiting, removed, now)
    published = [staged[new] for new in (*store.live, *live)]
    are_new = len(published) == len(staged) and all(one.replaces is None for one in published)
    if removed or plan.became_links or not are_new:
        # all versions are published; the next sync deletes the old ones
        with suppress(DatabaseProblem):
            clear(core, lock)
    if are_new and len(live) >= max(STATISTICS_AFTER, sum(p.unchanged for p in plan.sources)):
        writer.update_statistics()
    return published


def _publish(
    core: Core,
    plan: Plan,
    lock: SyncLock,
    waiting: Sequence[PublishedVersion],
    removed: Sequence[int],
    now: str,
) -> list[int]:
    """Publish the staged versions and retire old ones in one transaction; see `publish`.

    Most versions are exchanged before the transaction takes the lock of writers, so that other
    clients wait less. If another client then waits for one of these skills, this transaction is
    rolled back, and a second transaction does everything under the lock.
    """
    writer = core.writer
    first = [part.source.id for part in plan.sources if part.source.last_sync_at is None]

    def under_lock(connection: "Connection", exchanged: Collection[int] = ()) -> list[int]:
        lock.assert_held(connection)
        live = publish(
            connection, [one.id for one in waiting], removed, plan.became_links, exchanged
        )
        finish_importing(connection, first)
        for part in plan.sources:
            replace_notices(connection, part.source.id, part.notices)
            if part.unread:
                replace_findings(connection, part.source.id, UNREADABLE, part.unread)
            record_sync(connection, part.source.id, now, part.outcome)
            if part.fetched is not None and part.fetched.states is not None:
                states = part.fetched.states
                part.newly_inactive = follow_remote(connection, part.source.id, core.host, states)
        add_notices(connection, plan.notices)
        drop_old_changes(connection, core.host)
        drop_old_days(connection, now)
        return live

    def record_remotes(connection: "Connection") -> None:
        for part in plan.sources:
            if part.source.remote is not None:  # entries in the history name the remote source
                record_remote(connection, part.source.id, part.source.remote)

    replaced = {one.replaces: one.id for one in waiting if one.replaces is not None}
    if replaced and core.backend.shared:
        with suppress(DatabaseBusy), writer.transaction(quiet=True) as connection:
            record_remotes(connection)
            exchanged = exchange(connection, replaced)
            writer.lock(connection)
            return under_lock(connection, exchanged)
    with writer.transaction() as connection:
        record_remotes(connection)
        return under_lock(connection)


NOTHING: Final[StoredContent] = ({}, ())


class _Job(NamedTuple):
    """A folder to read, and the stored version that the new version will replace.

    The stored version is None if the skill is new. ``known`` holds its files and findings.
    ``unstored`` holds the hash and the text of its SKILL.md if history doesn't have it yet.
    """

    part: SourcePlan
    found: ScannedFolder
    before: StoredSkill | None
    known: StoredContent
    unstored: tuple[str, str] | None = None


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
        replaced = [known for *_, known in some if known is not None]
        stored, contents, texts = with_contents(core.reader, replaced)
        for part, folder, replaces in some:
            before = None if replaces is None else stored.get(replaces)
            if replaces is not None and before is None:
                continue  # another client changed the skill since the plan was made
            found = part.look_last(folder)
            if found is not None:  # if the folder is gone, the next sync removes the skill
                if before is None:
                    yield _Job(part, found, None, NOTHING)
                else:
                    yield _Job(part, found, before, contents[before.id], texts.get(before.id))


def _versions(core: Core, plan: Plan, scan_ns: int, now: str) -> Generator[NewVersion]:
    """Yield the new versions of all folders in the plan, in the order of the plan."""
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
    with helping() if count >= HELPED_FROM else nullcontext() as helpers:
        yield from share(pieces, helpers)


def _pieces(jobs: Iterable[_Job]) -> Iterator[list[_Job]]:
    """Group folders; one process reads the folders of a group in one step.

    If a group has several folders, they are all new and from one source. The number and the total
    size of its folders are limited.
    """
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
    for part, found, before, known, unstored in jobs:
        if before is None:
            return read_new(_task(core, scan_ns, now, jobs), recent)  # all these folders are new
        what = (part.walk, found, before, known, part.source.id, scan_ns, now)
        is_remote = part.source.remote is not None
        new = read_version(core, *what, from_remote=is_remote, recent=recent)
        if isinstance(new, NewVersion):
            if unstored is not None:  # the old version is deleted after the sync
                new.contents = [*new.contents, *packed_texts([unstored])]
            recent.note_stored(packed.hash for packed in new.contents)
            versions.append(new)
    return versions


def read_version(
    core: Core,
    walk: Walk,
    found: ScannedFolder,
    before: StoredSkill,
    known: StoredContent,
    source_id: int,
    scan_ns: int,
    now: str,
    *,
    from_remote: bool,
    recent: Recent | None = None,
) -> NewVersion | Unread:
    """Read a folder into a new version; return `Unread` if a part of the folder can't be read.

    ``known`` holds the files and findings of the stored version ``before``. If the result is
    `Unread`, the stored version stays current. If ``from_remote``, a new version with security
    errors is quarantined, unless ``before`` has the same files and is trusted.
    """
    what, keep = (walk.root, found, walk.limits), core.settings.store_files
    read = partial(read_folder, *what, with_contents=keep, recent=recent)
    # The files of an unusable skill were only hashed and not checked, so there are no findings to
    # use again.
    is_usable = before.skill.status in {"ok", "warning"}
    is_known = is_usable and not before.racy and is_current(before.fingerprint)
    trusted, earlier = known if is_known else NOTHING
    reading = read(trusted, earlier=earlier)
    if trusted and _is_other_topic(reading, before):
        # The topic of a skill decides which findings its supporting files can get.
        reading = read({})
    if reading.unread and before.skill.status != "no_document":
        return Unread(reading.unread, reading.data is not None)
    previous = Previous(before.id, before.uid, before.skill.created_at)
    version = make_version(reading, source_id, scan_ns, now, previous)
    if from_remote:
        version.columns["held"] = int(_is_quarantined(version, before, known[1]))
    return version


def _is_quarantined(
    version: NewVersion, before: StoredSkill, earlier: Sequence[Diagnostic]
) -> bool:
    """Tell whether to quarantine a new version of a remote skill with these ``earlier`` findings.

    The user's trust is only for the files that the user has seen. One changed line can turn an
    accepted finding into a different one, for example with another host or secret. Therefore,
    changed files with security errors are quarantined again. If only newer rules find the security
    errors, the skill is also quarantined.
    """
    grave = security_errors(version.findings)
    tree, source = version.columns["tree_hash"], version.columns["source_id"]
    is_same = tree is not None and (tree, source) == (before.skill.tree_hash, before.source_id)
    if before.quarantined or not is_same:
        return bool(grave)
    return bool(grave - security_errors(earlier))


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


def _touch(core: Core, plan: Plan, scan_ns: int) -> None:
    touched = plan.touched
    while (updates := stamps_of(islice(touched, BATCH), scan_ns)).versions:
        with core.writer.transaction() as connection:
            for sql, values in updates.statements(core.reader):
                execute(connection, sql, *values)
