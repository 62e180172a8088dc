"""Store what a sync has read, in parts that nobody sees, and clear away what nobody sees now."""

from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import compress
from typing import Final, NamedTuple

from sqlalchemy import Connection

from registry.core import Core
from registry.db.interface import SyncLock
from registry.db.read.skills import has_retired
from registry.db.versions import NewVersion
from registry.db.write.history import record_revisions, store_documents
from registry.db.write.names import refresh_names
from registry.db.write.skills import delete_retired, publish, stage
from registry.db.write.sources import (
    begin_importing,
    begin_resolving,
    finish_importing,
    shared_names,
)
from registry.sync.planning import Plan

PART: Final = 100
"""Of a first import so many versions are published while others wait."""

FEW: Final = 20
"""So many documents are kept while others wait."""

AT_ONCE: Final = 2
"""Batches that a server is given at once: it stores one while another is made ready."""

STATISTICS_AFTER: Final = 500
"""So many new versions change what the database should know of itself."""


class PublishedVersion(NamedTuple):
    """A version that a sync made live."""

    id: int
    replaces: int | None
    folder: str
    status: str


class Store:
    """Stores what a sync has read, unseen, in threads of its own.

    What a source of which nothing was seen yet holds is published in parts on a server, where all
    others wait for each: the source is hidden until the last. ``live``: what was; ``published``:
    that, and what lost to a change made meanwhile.
    """

    def __init__(self, core: Core, lock: SyncLock, plan: Plan) -> None:
        self._writer, self._lock, self._shared = core.writer, lock, core.backend.shared
        self.live: list[int] = []
        self.published: set[int] = set()
        self._hidden: set[int] = set()
        self._unfit = frozenset[int]().union(*(part.unfit for part in plan.sources))
        first = [part for part in plan.sources if part.source.last_sync_at is None]
        self._first = [part.source.id for part in first]
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
            ids = stage(connection, batch, first=first, unfit=self._unfit)
            if first is not None:  # what is done here is not done while all others wait
                brand_new = (v.columns["replaces"] is None for v in batch)
                record_revisions(connection, list(compress(ids, brand_new)))
        hidden = [one.columns["id"] for one in batch if one.columns["source_id"] in self._hidden]
        for start in range(0, len(hidden), PART):
            with self._writer.transaction() as connection:
                self._lock.assert_held(connection)
                self.live += publish(connection, hidden[start : start + PART], [])
        if hidden and not self.published:
            # What a server has not counted, it looks up by an index that goes over all of a source.
            self._writer.update_statistics()
        self.published.update(hidden)
        return [
            PublishedVersion(*(version.columns[name] for name in PublishedVersion._fields))
            for version in batch
        ]

    def keep(self, leaving: Sequence[int]) -> None:
        """Keep the documents of versions that are to be retired, on a server before others wait.

        In transactions of their own: who stores the same at the same time waits for their end. A
        few take less time under the lock than these do.
        """
        if not self._shared or len(leaving) <= FEW:
            return
        for start in range(0, len(leaving), PART):
            with self._writer.transaction(quiet=True) as connection:
                store_documents(connection, leaving[start : start + PART])

    def tidy(self) -> None:
        """Tidy the tables up after much was published, before others wait again."""
        if len(self.live) >= STATISTICS_AFTER:
            self._writer.update_statistics()

    def join(self) -> None:
        """Tell what was published in parts apart from its namesakes: in parts as well, unseen.

        It was published by this sync or one that was cut off.
        """
        if not (self._first and self._shared):
            return
        with self._writer.transaction() as connection:
            self._lock.assert_held(connection)
            joined = begin_resolving(connection, self._first)
        if not joined:
            return
        with self._writer.transaction(quiet=True) as connection:
            names = shared_names(connection, joined)
        for start in range(0, len(names), PART):
            with self._writer.transaction() as connection:
                self._lock.assert_held(connection)
                refresh_names(connection, names[start : start + PART])

    def show(self, connection: Connection) -> None:
        """Show what was published in parts."""
        if self._first:
            finish_importing(connection, self._first)


def clear(core: Core, lock: SyncLock) -> None:
    """Delete the versions that nobody sees, which only the holder of the sync lock may.

    Raises `DatabaseProblem`, before anything is deleted, where it was lost.
    """
    while has_retired(core.reader, core.host):
        with core.writer.transaction() as connection:
            lock.assert_held(connection)
            delete_retired(connection, host=core.host)
