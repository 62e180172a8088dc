"""Code that readers and writers of a SQLite file share: version, errors, locks, copies."""

import errno
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Final

from registry.db.interface import State
from registry.disk.beneath import WRITE_NEW
from registry.disk.locks import FileLock, NotALock
from registry.disk.mounts import is_remote
from registry.errors import (
    DatabaseBusy,
    DatabaseCorrupt,
    DatabaseProblem,
    NotWritable,
    RegistryError,
    UsageProblem,
)
from registry.text import segment

if TYPE_CHECKING:
    from sqlalchemy import Connection


def copy_target(target: str, *, overwrite: bool) -> str:
    """Return the absolute path of a copy of the database.

    Raises `UsageProblem` if the path is a folder, or if the file exists and ``overwrite`` is False.
    Raises `NotWritable` if the folder of the file doesn't exist.
    """
    path = os.path.abspath(os.path.expanduser(target))
    if os.path.isdir(path):
        example = os.path.join(path, "registry-copy.db")
        raise UsageProblem(message=f"{path} is a folder: name a file in it, such as {example}")
    if os.path.lexists(path) and not overwrite:
        raise UsageProblem(message=f"{path} exists already. Choose another name.")
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise NotWritable(path=path, reason=f"there is no folder {folder}")
    return path


def unwritable(path: str, error: OSError) -> NotWritable:
    """Turn a system error that occurred during a write to the file into `NotWritable`."""
    reason = "it is not a folder" if isinstance(error, FileExistsError) else error.strerror
    about = error.filename
    where = f" ({about})" if about and not str(about).startswith(path) else ""
    return NotWritable(path=path, reason=f"{reason or error}{where}")


BUSY_SECONDS: Final = 5.0

MAX_SHOWN: Final = 60
"""Maximum number of characters that an error message shows of a name from the database file."""

OLDEST_SQLITE: Final = (3, 37, 0)

WAL_RESET_FIXED: Final = ((3, 44, 6), (3, 50, 7))
"""The oldest SQLite version without the bug, for two older release lines.

The bug can lose a commit if a checkpoint and a write happen at the same time (see
`has_wal_reset_bug`).
"""

TABLES: Final = frozenset(
    "alembic_version audit changes contents diagnostics documents entries gone journal labels "
    "proposals revisions sketches skill_files skill_tags skills sources tokens usage "
    "usage_days".split()
)
"""Names of the registry's tables, without its full-text indexes.

A test compares them with the schema.
"""

INDEXES: Final = "search_"
"""Prefix of the names of full-text indexes, and of the tables that FTS5 creates for them."""

ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""Errors that the driver can raise.

It raises UnicodeDecodeError if an error message can't be decoded because the file is damaged.
"""


def schema_state(connection: sqlite3.Connection, path: str) -> State:
    """Read the revision of the database at ``path``, and return its `State`.

    Raises `DatabaseTooNew` or `DatabaseTooOld` if this program doesn't know the revision. Raises
    `DatabaseProblem` if the database belongs to another program, or if another program added views
    or triggers to the registry's tables.
    """
    made = connection.execute("SELECT type, name, tbl_name FROM sqlite_master").fetchall()
    if not made:
        return State.EMPTY
    if "alembic_version" not in {name for _, name, _ in made}:
        reason = "it is the database of another program (it has no alembic_version table)"
        raise DatabaseProblem(path=path, reason=reason)
    for kind, name, table in made:
        # SQLite would run the code of this view or trigger, and that code may never end.
        of = str(table).lower()
        if kind in {"view", "trigger"} and (of in TABLES or of.startswith(INDEXES)):
            reason = (
                f"the {kind} {str(name)[:MAX_SHOWN]!r} in it is none of the registry's; drop it, "
                "or sync your folders into a new database"
            )
            raise DatabaseProblem(path=path, reason=reason)
    found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return State.of(found and str(found[0])[:MAX_SHOWN], path)


MAX_VALUE: Final = 64 << 20
"""Maximum size of a value, in bytes; SQLite refuses to read larger values."""


def connect(path: str) -> sqlite3.Connection:
    """Connect to the file at ``path`` for writing, in autocommit mode."""
    journal = "TRUNCATE" if is_remote(path) else "WAL"
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.execute(f"PRAGMA journal_mode = {journal}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA journal_size_limit = 16777216")
    connection.execute("PRAGMA cache_size = -16384")
    connection.create_function("segment", 1, segment, deterministic=True)
    return connection


def check_version(path: str) -> None:
    """Raise `DatabaseProblem` if the SQLite library is too old."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        needed = ".".join(map(str, OLDEST_SQLITE))
        reason = f"SQLite {sqlite3.sqlite_version} is too old, {needed} is needed"
        raise DatabaseProblem(path=path, reason=reason)


def has_wal_reset_bug(version: tuple[int, ...] = sqlite3.sqlite_version_info) -> bool:
    """Tell whether this SQLite can lose a commit if a checkpoint and a write happen at once.

    Versions 3.7.0 to 3.51.2 have the bug. The registry's write lock avoids it.
    """
    patched = any(version[:2] == fixed[:2] and version >= fixed for fixed in WAL_RESET_FIXED)
    return (3, 7, 0) <= version <= (3, 51, 2) and not patched


def copy_file(connection: sqlite3.Connection, target: str) -> None:
    """Copy a database to the file ``target``, and replace an existing file or link.

    Raises `DatabaseProblem` if the copy fails.
    """
    draft = f"{target}.{os.urandom(8).hex()}.part"
    try:
        os.close(os.open(draft, WRITE_NEW, 0o644))
        try:
            with closing(sqlite3.connect(draft)) as copy:
                connection.backup(copy)
            os.replace(draft, target)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise unwritable(target, error) from error
    except ERRORS as error:
        raise DatabaseProblem(path=target, reason=str(error)) from error


def translate(error: Exception, path: str) -> RegistryError:
    """Turn an error of the driver or of SQLAlchemy into an error of this project."""
    origin = getattr(error, "orig", None) or error
    name = getattr(origin, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return DatabaseBusy(path=path, seconds=BUSY_SECONDS)
    if isinstance(origin, UnicodeDecodeError):
        return DatabaseCorrupt(path=path, reason="it holds text that is not valid UTF-8")
    if name.startswith("SQLITE_TOOBIG"):
        reason = f"a row has a value of more than {MAX_VALUE} bytes, which is never stored"
        return DatabaseProblem(path=path, reason=reason)
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return DatabaseCorrupt(path=path, reason=str(origin))
    return DatabaseProblem(path=path, reason=str(origin))


_UNWRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def is_shared(database: str) -> bool:
    """Tell whether the database file belongs to another user, who may also own the lock files."""
    try:
        return os.stat(database).st_uid != os.geteuid()
    except OSError:
        return False


class WriterLock(FileLock):
    """The lock that a process holds while it writes the database file ``database``."""

    def __init__(self, database: str) -> None:
        super().__init__(f"{database}.lock", shared=is_shared(database))
        self._database = database

    def acquire(self, wait: float) -> bool:
        """Try for ``wait`` seconds to take the lock; return False if another process holds it.

        Raises `DatabaseProblem` if the lock file can't be opened.
        """
        try:
            return super().acquire(wait)
        except OSError as error:
            reason = f"its lock file can't be opened: {error.strerror or error} ({self.path})"
            raise DatabaseProblem(path=self._database, reason=reason) from error


class SyncLockFile(FileLock):
    """The lock of a sync of the file ``database``.

    The lock file has the name of the process that holds it.
    """

    def __init__(self, database: str) -> None:
        super().__init__(f"{database}.sync.lock", shared=is_shared(database))
        self._database = database
        self._refused: OSError | None = None

    def acquire(self, wait: float) -> bool:
        """Try for ``wait`` seconds to take the lock; return False if another process holds it.

        If the folder isn't writable, return True without a lock, because a sync that changes
        nothing needs no lock.
        """
        try:
            taken = super().acquire(wait)
            if taken:
                self.sign("sync")
        except OSError as error:
            self.release()
            self._refused = error
            if error.errno not in _UNWRITABLE or isinstance(error, NotALock):
                self.now_ns()
            return True
        return taken

    def now_ns(self) -> int:
        if self._refused is not None:
            reason = f"the lock of a sync can't be taken: {self._refused.strerror} ({self.path})"
            raise DatabaseProblem(path=self._database, reason=reason)
        return super().now_ns()

    def assert_held(self, _writing: "Connection") -> None:
        """Do nothing: the system holds the lock until this process exits, so it can't be lost."""
