"""A database in a SQLite file: its lock files, facts, checks and copies."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing

from registry.db.forks import activity
from registry.db.interface import (
    NO_UPDATES,
    Backend,
    DatabaseInfo,
    State,
    StatUpdates,
    UsageRow,
    Writer,
)
from registry.db.read.summary import problems, registered, staged
from registry.db.sqlite.dialect import (
    BUSY_SECONDS,
    ERRORS,
    SyncLockFile,
    WriterLock,
    copy_file,
    copy_target,
    has_wal_reset_bug,
    translate,
)
from registry.db.sqlite.reader import SqliteReader, may_write, size_of
from registry.db.write.usage import statements
from registry.disk.mounts import file_system
from registry.errors import DatabaseBusy, DatabaseCorrupt, DatabaseProblem, UsageProblem


class SqliteBackend(Backend):
    """The SQLite file at ``path`` as a database."""

    host = ""

    def __init__(self, path: str) -> None:
        self.reader: SqliteReader = SqliteReader(path)
        self.identity = os.path.realpath(path)  # all links to the file give the same path

    @property
    def writable(self) -> bool:
        return may_write(self.path)

    def make_current(self) -> None:
        if os.path.exists(self.path) and not self.writable:
            if self.reader.state() is State.CURRENT:
                return
            reason = (
                "its schema needs an upgrade, but you can't write it or its folder. Ask its "
                "owner to run: skill-registry db upgrade"
            )
            raise DatabaseProblem(path=self.path, reason=reason)
        from registry.db.sqlite.writer import ensure_current

        with activity:
            ensure_current(self.path)

    def open_writer(self) -> Writer:
        from registry.db.sqlite.writer import SqliteWriter

        return SqliteWriter(self.path)

    def sync_lock(self) -> SyncLockFile:
        return SyncLockFile(self.path)

    def mark_unchanged(
        self, source_ids: Sequence[int], now: str, updates: StatUpdates = NO_UPDATES
    ) -> None:
        if not self.writable:
            return
        sql = "UPDATE sources SET last_sync_at = ?, last_result = 'ok' WHERE id = ?"
        rows = [(now, source_id) for source_id in source_ids]
        stats = [(update, [values]) for update, values in updates.statements(self.reader)]
        if not self._write([*stats, (sql, rows)], BUSY_SECONDS):
            raise DatabaseBusy(path=self.path, seconds=BUSY_SECONDS)

    def add_usage(self, rows: Sequence[UsageRow], wait: float) -> bool:
        return self._write([(sql, [one]) for sql, one in statements(self.reader, rows)], wait)

    def _write(self, work: Iterable[tuple[str, Sequence[Sequence[object]]]], wait: float) -> bool:
        """Run statements under the file lock, without SQLAlchemy.

        Returns False if other processes hold the lock for ``wait`` seconds. ``work`` holds
        statements, each with its rows of values. Tool calls use this method to count usage, and a
        sync without changes uses it to record its time. Importing SQLAlchemy would slow both down.
        """
        with WriterLock(self.path) as lock:
            if not lock.acquire(wait):
                return False
            try:
                with activity, closing(self._plain(wait)) as connection:
                    connection.execute("BEGIN IMMEDIATE")
                    for sql, rows in work:
                        connection.executemany(sql, rows)
                    connection.execute("COMMIT")
            except ERRORS as error:
                raise translate(error, self.path) from error
        return True

    def _plain(self, wait: float) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=wait, isolation_level=None)

    def info(self) -> DatabaseInfo:
        revision, sources, skills = registered(self.reader)
        unseen, unseen_bytes = staged(self.reader)
        return DatabaseInfo(
            path=self.path,
            exists=os.path.exists(self.path),
            bytes=size_of(self.path) + size_of(self.path, "-wal"),
            revision=revision,
            journal_mode=self.reader.journal_mode,
            sqlite_version=sqlite3.sqlite_version,
            wal_reset_bug=has_wal_reset_bug(),
            file_system=file_system(self.path) or None,
            sources=sources,
            skills=skills,
            staged=unseen,
            staged_bytes=unseen_bytes,
        )

    def check(self) -> Sequence[str]:
        if self.reader.empty:
            return []
        try:
            if not self.writable:
                with activity, closing(self.reader.connect()) as connection:
                    return list(_problems(connection, None))
            with activity, closing(self._plain(BUSY_SECONDS)) as connection:
                return list(_problems(connection, self.path))
        except ERRORS as error:
            raise translate(error, self.path) from error

    def backup(self, target: str, *, overwrite: bool) -> None:
        if self.reader.empty:
            raise UsageProblem(message=f"there is no database at {self.path} yet")
        target = copy_target(target, overwrite=overwrite)
        if os.path.exists(target) and os.path.samefile(target, self.path):
            raise UsageProblem(message=f"{target} is the database itself; choose another name")
        with activity, closing(self.reader.connect()) as source:
            copy_file(source, target)

    def replace_by(self, other: "SqliteBackend") -> None:
        """Replace the content of this file by that of another file, in one transaction.

        Programs that use this file see all of the old or all of the new content. Raises
        `DatabaseCorrupt` if the other file is damaged.
        """
        self.reader.close()
        with activity, closing(other.reader.connect()) as source, WriterLock(self.path) as lock:
            if damage := next(_problems(source, None), None):
                raise DatabaseCorrupt(path=other.path, reason=damage)
            if not lock.acquire(BUSY_SECONDS):
                raise DatabaseBusy(path=self.path, seconds=BUSY_SECONDS)
            try:
                with closing(self._plain(BUSY_SECONDS)) as connection:
                    source.backup(connection)
            except ERRORS as error:
                raise translate(error, self.path) from error


def _problems(connection: sqlite3.Connection, path: str | None) -> Iterator[str]:
    """Yield the problems of the database file.

    If ``path`` is None, skip the checks that must write to the file.
    """
    for row in connection.execute("PRAGMA integrity_check(20)"):
        if row[0] != "ok":
            yield f"the file is damaged: {row[0]}"
    for row in connection.execute("PRAGMA foreign_key_check").fetchmany(20):
        yield f"a row of {row[0]} refers to a missing row of {row[2]}"
    if path is not None:
        with WriterLock(path) as lock:
            if lock.acquire(BUSY_SECONDS):
                yield from _check_search(connection)
    indexed = "SELECT h.id FROM search_heads_docsize h JOIN search_bodies_docsize b ON b.id = h.id"
    yield from problems(connection.execute, indexed)


def _check_search(connection: sqlite3.Connection) -> list[str]:
    try:
        for name in ("search_heads", "search_bodies"):
            connection.execute(f"INSERT INTO {name} ({name}) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        return [f"the full-text index is damaged: {error}"]
    return []
