"""Read from a SQLite file; each thread opens its connection at its first use."""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from stat import S_ISREG
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from registry.db.forks import activity, reopen_in_child
from registry.db.interface import Reader, State, storable
from registry.db.sqlite.dialect import BUSY_SECONDS, ERRORS, MAX_VALUE, schema_state, translate
from registry.db.sqlite.search import Fts5Index
from registry.errors import DatabaseProblem

_AT_ONCE: Final = 200
"""Number of rows that a stream fetches in one call."""

_ABANDONED: Final[list[sqlite3.Connection]] = []
"""Inherited connections that must stay open, because another thread used them at the fork."""

_UNFINISHED: Final = (
    "its last changes are in the %s file beside it, which can't be read in a folder that is not "
    "writable. Ask its owner to run 'skill-registry db info' once, or copy both files to your own "
    "folder and pass --db"
)


class SqliteReader(Reader):
    """Reads the SQLite file at ``path``.

    Readers never run a checkpoint: only the holder of the write lock may do this.
    """

    in_json_array = "IN (SELECT value FROM json_each(?))"
    json_each = "json_each({})"
    json_item = "json_extract(e.value, '$[{}]')"
    counted = "+{}"
    index = Fts5Index()

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._open: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._lock = threading.Lock()
        reopen_in_child(self)

    def forked(self, *, idle: bool) -> None:
        """Drop the parent's connections in a forked child; see `registry.db.forks`."""
        inherited = [connection for _, connection in self._open]
        if idle:
            for connection in inherited:
                connection.close()
        else:  # another thread may have used the connection at the fork
            _ABANDONED.extend(inherited)
        self._open = []
        self._lock = threading.Lock()
        self._local = threading.local()

    def state(self) -> State:
        try:
            facts = os.stat(self.path)
        except FileNotFoundError:
            return State.EMPTY
        except OSError as error:
            raise DatabaseProblem(path=self.path, reason=error.strerror or str(error)) from error
        if not S_ISREG(facts.st_mode):  # to open a named pipe could block forever
            raise DatabaseProblem(path=self.path, reason="it is not a regular file")
        if facts.st_size == 0:
            return State.EMPTY
        try:
            with activity:
                return schema_state(self._connection(), self.path)
        except ERRORS as error:
            raise translate(error, self.path) from error

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if self.empty:
            return []
        try:
            with activity:
                return self._connection().execute(sql, parameters).fetchall()
        except (UnicodeEncodeError, OverflowError):
            return self.rows(sql, storable(parameters))
        except ERRORS as error:
            raise translate(error, self.path) from error

    def stream(self, sql: str, parameters: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        if self.empty:
            return
        try:
            with activity:
                cursor = self._connection().execute(sql, storable(parameters))
                rows = cursor.fetchmany(_AT_ONCE)
            try:
                while rows:
                    yield from rows
                    with activity:
                        rows = cursor.fetchmany(_AT_ONCE)
            finally:
                # If the caller stops early, this ends the read. The connection may be closed
                # already.
                with activity, suppress(*ERRORS):
                    cursor.close()
        except ERRORS as error:
            raise translate(error, self.path) from error

    def version(self) -> int | None:
        if self.empty:
            return None
        with activity:
            mark = self._current().mark
        return hash((mark, self.rows("PRAGMA data_version")[0][0]))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        begun = None
        with activity:
            if not self.empty and not self._connection().in_transaction:
                begun = self._connection()
                begun.execute("BEGIN")  # BEGIN doesn't read the file, so it can't fail
        try:
            yield
        finally:
            # all rows were read before the error, so ignore the error
            with activity, suppress(*ERRORS):
                if begun is not None and begun.in_transaction:
                    begun.execute("ROLLBACK")

    def close(self) -> None:
        with activity.alone() as left:
            self.forked(idle=left)

    @property
    def journal_mode(self) -> str | None:
        """The journal mode of the database; ``delete`` if the file is read without locks."""
        if self.empty:
            return None
        mode = str(self.rows("PRAGMA journal_mode")[0][0])
        with activity:
            return "wal" if self._current().is_frozen else mode

    @property
    def keeps_writers_out(self) -> bool:
        """Whether other processes can't write while this process reads.

        This is so if the file has no WAL.
        """
        return self.journal_mode not in {None, "wal"}

    def connect(self) -> sqlite3.Connection:
        """Return a new connection for reading.

        It works even if the folder of the file is read-only.
        """
        with activity:
            return self._connect().connection

    def _connection(self) -> sqlite3.Connection:
        return self._current().connection

    def _current(self) -> "_Opened":
        known: _Opened | None = getattr(self._local, "known", None)
        if known is not None and (known.connection.in_transaction or not self._is_other(known)):
            return known
        opened = self._connect()
        if known is not None and not self._is_usable(opened):
            opened.connection.close()
            return known
        with self._lock:
            # A server starts and ends many threads. So each new thread closes the connections of
            # the threads that have ended.
            left = [(thread, one) for thread, one in self._open if not thread.is_alive()]
            for entry in left:
                entry[1].close()
                self._open.remove(entry)
            if known is not None:
                self._open.remove((threading.current_thread(), known.connection))
                known.connection.close()
            self._open.append((threading.current_thread(), opened.connection))
        self._local.known = opened
        return opened

    def _is_other(self, known: "_Opened") -> bool:
        """Tell whether the path leads to another file than when the connection was opened.

        If the file is read without locks (frozen), also tell whether it was written in the
        meantime. A removed file doesn't count as another file, because a new file may soon replace
        it.
        """
        mark = _mark(self.path, whole=known.is_frozen)
        return bool(mark) and mark != known.mark

    def _is_usable(self, opened: "_Opened") -> bool:
        """Tell whether the file that replaced the opened file is a complete database."""
        try:
            return schema_state(opened.connection, self.path) is State.CURRENT
        except BaseException:
            opened.connection.close()
            raise

    def _connect(self) -> "_Opened":
        # In mode rw, a reader can create the shared-memory file beside the database, but never the
        # database itself. Mode ro is enough if the shared-memory file exists and is read-only.
        # read the mark before connecting, so that a later file has another mark
        mark = _mark(self.path)
        for options in ("mode=rw", "mode=ro"):
            try:
                return _Opened(self._try(options), mark)
            except sqlite3.OperationalError as error:
                failed = error
        if may_write(self.path) or not _names(failed, "SQLITE_CANTOPEN", "SQLITE_READONLY"):
            raise translate(failed, self.path) from failed
        # SQLite can't create the shared-memory file. If all data is in the database file, read the
        # file without locks.
        mark = _mark(self.path, whole=True)
        for ending in ("-wal", "-journal"):
            if size_of(self.path, ending):
                raise DatabaseProblem(path=self.path, reason=_UNFINISHED % ending) from failed
        try:
            return _Opened(self._try("mode=ro&immutable=1"), mark, is_frozen=True)
        except sqlite3.OperationalError as error:
            raise translate(error, self.path) from error

    def _try(self, options: str) -> sqlite3.Connection:
        connection = None
        try:
            connection = sqlite3.connect(
                f"file:{quote(os.fsencode(self.path))}?{options}",
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE)
            connection.execute("PRAGMA query_only = ON")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except ERRORS as error:
            if connection is not None:
                connection.close()
            if isinstance(error, sqlite3.OperationalError):
                raise
            raise translate(error, self.path) from error
        return connection


class _Opened(NamedTuple):
    """The connection of a thread; ``mark`` identifies the opened file (see `_mark`).

    If ``frozen``, the file is read without locks.
    """

    connection: sqlite3.Connection
    mark: tuple[int, ...]
    is_frozen: bool = False


def may_write(path: str) -> bool:
    """Tell whether this process may write the file at ``path``, and create files beside it."""
    real = os.path.realpath(path)
    return os.access(real, os.W_OK) and os.access(os.path.dirname(real), os.W_OK | os.X_OK)


def _mark(path: str, *, whole: bool = False) -> tuple[int, ...]:
    """Return a value that changes if another file replaces this file; empty if there is no file.

    If ``whole``, the value also changes with every write to the database.
    """
    try:
        stat = os.stat(path)
    except OSError:
        return ()
    written = (stat.st_size, stat.st_mtime_ns, size_of(path, "-wal")) if whole else ()
    return stat.st_dev, stat.st_ino, *written


def size_of(path: str, ending: str = "") -> int:
    """Return the size of a database file in bytes; 0 if it doesn't exist.

    ``ending`` selects a file beside the database, for example ``-wal``.
    """
    try:
        return os.stat(os.path.realpath(path) + ending).st_size
    except OSError:
        return 0


def _names(error: sqlite3.Error, *names: str) -> bool:
    return (getattr(error, "sqlite_errorname", "") or "").startswith(names)
