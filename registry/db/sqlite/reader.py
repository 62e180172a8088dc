"""Reading from a SQLite file: one connection a thread, opened when first needed."""

import os
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from registry.db.interface import Reader, State, storable
from registry.db.sqlite.dialect import BUSY_SECONDS, schema_state, translate
from registry.db.sqlite.search import Fts5Matches
from registry.errors import DatabaseProblem


class SqliteReader(Reader):
    """Reads the SQLite file at ``path``.

    Readers never checkpoint: writes and checkpoints belong to whoever holds the write lock.
    """

    in_json_array: ClassVar = "(SELECT value FROM json_each(?))"
    matches = staticmethod(Fts5Matches.of)

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._open: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._lock = threading.Lock()

    @staticmethod
    def json_each(column: str) -> str:
        """Return the table of the elements of a JSON array."""
        return f"json_each({column})"

    @staticmethod
    def json_item(number: int) -> str:
        """Return an element of the array that ``e`` is at."""
        return f"json_extract(e.value, '$[{number}]')"

    def state(self) -> State:
        """Say how the file's schema relates to this program; a missing file is empty.

        Raises `DatabaseTooNew`, `DatabaseCorrupt` or `DatabaseProblem`.
        """
        try:
            size = os.stat(self.path).st_size
        except FileNotFoundError:
            return State.EMPTY
        except OSError as error:
            raise DatabaseProblem(path=self.path, reason=error.strerror or str(error)) from error
        if size == 0:
            return State.EMPTY
        if not Path(self.path).is_file():
            raise DatabaseProblem(path=self.path, reason="it is no regular file")
        try:
            return schema_state(self._connection(), self.path)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""
        if self.empty:
            return []
        try:
            return self._connection().execute(sql, parameters).fetchall()
        except UnicodeEncodeError:
            return self.rows(sql, storable(parameters))
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def stream(self, sql: str, parameters: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """Yield the rows of a SELECT without holding them all."""
        if self.empty:
            return
        try:
            yield from self._connection().execute(sql, parameters)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def version(self) -> int | None:
        """Return a number that is another one when another connection has changed the database.

        It means something only beside numbers that the same thread got. None: there is no database.
        """
        return None if self.empty else int(self.rows("PRAGMA data_version")[0][0])

    def snapshot(self) -> "Snapshot":
        """Return a context in which this thread's reads all see one state of the database."""
        return Snapshot(None if self.empty else self._connection())

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            for _, connection in self._open:
                connection.close()
            self._open.clear()
        self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        known: tuple[int, sqlite3.Connection] | None = getattr(self._local, "known", None)
        if known is not None and known[0] == os.getpid():
            return known[1]
        connection = self._connect()
        with self._lock:
            # Threads come and go in a server; what they leave behind is closed by the next one.
            left = [(thread, one) for thread, one in self._open if not thread.is_alive()]
            for entry in left:
                entry[1].close()
                self._open.remove(entry)
            self._open.append((threading.current_thread(), connection))
        self._local.known = os.getpid(), connection
        return connection

    def _connect(self) -> sqlite3.Connection:
        # Mode rw: a reader may have to create the shared-memory file beside the database, but
        # never the database itself. On a read-only medium only mode ro works.
        for mode in ("rw", "ro"):
            connection = None
            try:
                connection = sqlite3.connect(
                    f"file:{quote(self.path)}?mode={mode}",
                    uri=True,
                    timeout=BUSY_SECONDS,
                    isolation_level=None,
                    check_same_thread=False,
                )
                connection.execute("PRAGMA query_only = ON")
                connection.execute("PRAGMA wal_autocheckpoint = 0")
                connection.execute("PRAGMA cache_size = -16384")
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            except sqlite3.OperationalError as error:
                if connection is not None:
                    connection.close()
                if mode == "ro":
                    raise translate(error, self.path) from error
            except sqlite3.Error as error:
                if connection is not None:
                    connection.close()
                raise translate(error, self.path) from error
            else:
                return connection
        raise AssertionError  # pragma: no cover  # the loop returns or raises


class Snapshot:
    """A read transaction; nested ones join the outer."""

    def __init__(self, connection: sqlite3.Connection | None) -> None:
        outer = connection is None or connection.in_transaction
        self._mine = None if outer else connection

    def __enter__(self) -> None:
        if self._mine is not None:
            self._mine.execute("BEGIN")

    def __exit__(self, *_: object) -> None:
        if self._mine is not None and self._mine.in_transaction:
            self._mine.execute("COMMIT")
