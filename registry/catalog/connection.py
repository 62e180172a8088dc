"""Reading connections: one a thread, opened when first needed, unable to write."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from registry.errors import DatabaseProblem
from registry.sqlite import BUSY_SECONDS, State, schema_state, translate

T = TypeVar("T")

MOST_REMEMBERED = 100
"""Answers that a thread keeps (`Reader.remembered`)."""


class Reader:
    """Runs SELECTs on the SQLite file at ``path``; safe for many threads and across a fork.

    Readers never checkpoint: writes and checkpoints belong to whoever holds the write lock. While
    ``empty``, the database is not made yet, and every SELECT finds nothing.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.empty = False
        self._local = threading.local()
        self._open: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._lock = threading.Lock()

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

    def rows(
        self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()
    ) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""
        if self.empty:
            return []
        try:
            return self._connection().execute(sql, parameters).fetchall()
        except UnicodeEncodeError:
            return self.rows(sql, _storable(parameters))
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def stream(
        self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()
    ) -> Iterable[tuple[Any, ...]]:
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

    def remembered(self, name: str, load: "Callable[[Reader], T]") -> T:
        """Return what ``load`` made of the database, made anew when the database has changed.

        Each thread has its own, since only its own connection can tell it of a change.
        """
        if self.empty:
            return load(self)
        version = self.version()
        memory: dict[str, tuple[object, T]] = self._local.__dict__.setdefault("memory", {})
        if name not in memory or memory[name][0] != version:
            if len(memory) >= MOST_REMEMBERED:
                memory.clear()
            memory[name] = version, load(self)
        return memory[name][1]

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


def _storable(
    parameters: Sequence[object] | Mapping[str, object],
) -> Sequence[object] | Mapping[str, object]:
    """Replace lone surrogates, which no stored text holds, so that they just find nothing."""
    if isinstance(parameters, Mapping):
        return {key: _clean(value) for key, value in parameters.items()}
    return [_clean(value) for value in parameters]


def _clean(value: object) -> object:
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


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
