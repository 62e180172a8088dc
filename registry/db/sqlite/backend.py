"""A SQLite file as the database: locks beside it, facts, health, copies."""

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from registry.db.backend import SHARED_REFS, Backend, Counts, DatabaseInfo, Place
from registry.db.sqlite.dialect import BUSY_SECONDS, State, has_wal_reset_bug, translate
from registry.db.sqlite.reader import SqliteReader
from registry.disk.locks import FileLock
from registry.errors import DatabaseProblem, UsageProblem

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from registry.db.writer import Writer


class SyncFile(FileLock):
    """The lock of a sync; whoever holds it is written into it."""

    def acquire(self, wait: float) -> bool:
        """Take the lock, trying for ``wait`` seconds; False: somebody else holds it."""
        taken = super().acquire(wait)
        if taken:
            self.sign("sync")
        return taken

    def assert_held(self, _writing: "Connection") -> None:
        """Nothing to ask: the system keeps it until this process ends."""


class SqliteBackend(Backend):
    """The SQLite file at ``path``, opened by the bare driver wherever nothing is written."""

    host = ""

    def __init__(self, path: str) -> None:
        self.reader: SqliteReader = SqliteReader(path)

    def state(self) -> State:
        """Say how the file's schema relates to this program."""
        return self.reader.state()

    def make_current(self) -> None:
        """Create the file, or upgrade it after a copy of it was made."""
        from registry.db.migrate import ensure_file_current

        ensure_file_current(self.path)

    def open_writer(self) -> "Writer":
        """Return the writing lane."""
        from registry.db.sqlite.writer import SqliteWriter

        return SqliteWriter(self.path)

    def sync_lock(self) -> SyncFile:
        """Return the lock beside the file."""
        return SyncFile(f"{self.path}.sync.lock")

    def mark_unchanged(self, source_ids: Sequence[int], now: str) -> None:
        """Write ``now`` as the last sync of the sources."""
        from registry.db.sqlite.bare import mark_unchanged

        mark_unchanged(self.path, source_ids, now)

    def add_usage(self, counted: Mapping[Place, Counts], wait: float) -> bool:
        """Add counts of use; False: the file was busy for ``wait`` seconds."""
        from registry.db.sqlite.bare import add_usage

        return add_usage(self.path, counted, wait)

    def info(self) -> DatabaseInfo:
        """Collect the facts."""
        from registry.disk.mounts import file_system

        journal = self.reader.rows("PRAGMA journal_mode")
        return DatabaseInfo(
            path=self.path,
            exists=os.path.exists(self.path),
            bytes=sum(_size(self.path + ending) for ending in ("", "-wal")),
            revision=self.revision(),
            journal_mode=journal[0][0] if journal else None,
            sqlite_version=sqlite3.sqlite_version,
            wal_reset_bug=has_wal_reset_bug(),
            file_system=file_system(self.path) or None,
            sources=self.count_sources(),
            skills=self.count_skills(),
        )

    def check(self) -> Sequence[str]:
        """Look for damage."""
        if self.reader.empty:
            return []
        try:
            with closing(
                sqlite3.connect(self.path, BUSY_SECONDS, isolation_level=None)
            ) as connection:
                return list(_problems(connection, self.path))
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def backup(self, target: str, *, overwrite: bool) -> None:
        """Copy the file while it is in use."""
        if self.reader.empty:
            raise UsageProblem(message=f"there is no database at {self.path} yet")
        target = os.path.abspath(os.path.expanduser(target))
        if os.path.exists(target) and (not overwrite or os.path.samefile(target, self.path)):
            raise UsageProblem(message=f"{target} exists already; remove it or choose another name")
        draft = f"{target}.part"
        try:
            with (
                closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as source,
                closing(sqlite3.connect(draft)) as copy,
            ):
                source.backup(copy)
            os.replace(draft, target)
        except (sqlite3.Error, OSError) as error:
            if os.path.exists(draft):
                os.unlink(draft)
            raise DatabaseProblem(path=target, reason=str(error)) from error


def _problems(connection: sqlite3.Connection, path: str) -> Iterator[str]:
    for row in connection.execute("PRAGMA integrity_check(20)"):
        if row[0] != "ok":
            yield f"the file is damaged: {row[0]}"
    for row in connection.execute("PRAGMA foreign_key_check").fetchmany(20):
        yield f"a row of {row[0]} refers to a missing row of {row[2]}"
    with FileLock(f"{path}.lock") as lock:
        if lock.acquire(BUSY_SECONDS):
            yield from _check_search(connection)
    for row in connection.execute(
        "SELECT ref FROM skills WHERE live = 1 AND status IN ('ok', 'warning') AND id "
        "NOT IN (SELECT id FROM skill_search_docsize) LIMIT 20"
    ):
        yield f"skill {row[0]} has no entry in the full-text index"
    for row in connection.execute(SHARED_REFS):
        yield f"two skills share the ref {row[0]}"


def _check_search(connection: sqlite3.Connection) -> list[str]:
    try:
        connection.execute("INSERT INTO skill_search (skill_search) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        return [f"the full-text index is damaged: {error}"]
    return []


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
