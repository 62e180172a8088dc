"""A SQLite file as the database: locks beside it, facts, health, copies."""

import errno
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final

from registry.db.backend import SHARED_REFS, Backend, Counts, DatabaseInfo, Place
from registry.db.sqlite.dialect import BUSY_SECONDS, State, has_wal_reset_bug, translate
from registry.db.sqlite.reader import SqliteReader, may_write
from registry.disk.locks import FileLock
from registry.errors import DatabaseProblem, UsageProblem

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from registry.db.writer import Writer


_UNWRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


_ENDING: Final = ".sync.lock"


class SyncFile(FileLock):
    """The lock of a sync; whoever holds it is written into it."""

    _refused: OSError | None = None

    def acquire(self, wait: float) -> bool:
        """Take the lock, trying for ``wait`` seconds; False: somebody else holds it.

        Where nothing can be written, a sync needs no lock to find that there is nothing to do.
        """
        try:
            taken = super().acquire(wait)
        except OSError as error:
            self._refused = error
            if error.errno not in _UNWRITABLE:
                self.now_ns()
            return True
        if taken:
            self.sign("sync")
        return taken

    def now_ns(self) -> int:
        """Return the present; asked before anything is written, which needs the lock."""
        if self._refused is not None:
            reason = f"the lock of a sync can't be taken: {self._refused.strerror} ({self.path})"
            raise DatabaseProblem(path=self.path.removesuffix(_ENDING), reason=reason)
        return super().now_ns()

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

    @property
    def writable(self) -> bool:
        """Whether this process may write the file, and make others beside it."""
        return may_write(self.path)

    def make_current(self) -> None:
        """Create the file, or upgrade it after a copy of it was made."""
        if os.path.exists(self.path) and not self.writable:
            if self.state() is State.CURRENT:
                return
            reason = (
                "it must be brought to the newest schema first, and it or its folder can't be "
                "written; somebody who may runs 'skill-registry db upgrade'"
            )
            raise DatabaseProblem(path=self.path, reason=reason)
        from registry.db.migrate import ensure_file_current

        ensure_file_current(self.path)

    def open_writer(self) -> "Writer":
        """Return the writing lane."""
        from registry.db.sqlite.writer import SqliteWriter

        return SqliteWriter(self.path)

    def sync_lock(self) -> SyncFile:
        """Return the lock beside the file."""
        return SyncFile(self.path + _ENDING)

    def mark_unchanged(self, source_ids: Sequence[int], now: str) -> None:
        """Write ``now`` as the last sync of the sources, where anything can be written."""
        if not self.writable:
            return
        from registry.db.sqlite.bare import mark_unchanged

        mark_unchanged(self.path, source_ids, now)

    def add_usage(self, counted: Mapping[Place, Counts], wait: float) -> bool:
        """Add counts of use; False: the file was busy for ``wait`` seconds."""
        from registry.db.sqlite.bare import add_usage

        return add_usage(self.path, counted, wait)

    def info(self) -> DatabaseInfo:
        """Collect the facts."""
        from registry.disk.mounts import file_system

        return DatabaseInfo(
            path=self.path,
            exists=os.path.exists(self.path),
            bytes=sum(_size(self.path + ending) for ending in ("", "-wal")),
            revision=self.revision(),
            journal_mode=self.reader.journal_mode,
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
            if not self.writable:
                with closing(self.reader.connect()) as connection:
                    return list(_problems(connection, None))
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
                closing(self.reader.connect()) as source,
                closing(sqlite3.connect(draft)) as copy,
            ):
                source.backup(copy)
            os.replace(draft, target)
        except (sqlite3.Error, OSError) as error:
            if os.path.exists(draft):
                os.unlink(draft)
            raise DatabaseProblem(path=target, reason=str(error)) from error


def _problems(connection: sqlite3.Connection, path: str | None) -> Iterator[str]:
    """Yield what is wrong; without a path what can be found without writing."""
    for row in connection.execute("PRAGMA integrity_check(20)"):
        if row[0] != "ok":
            yield f"the file is damaged: {row[0]}"
    for row in connection.execute("PRAGMA foreign_key_check").fetchmany(20):
        yield f"a row of {row[0]} refers to a missing row of {row[2]}"
    if path is not None:
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
