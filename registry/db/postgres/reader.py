"""Reading from a PostgreSQL server, through SQLAlchemy's pool of connections."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from registry.db.forks import begin_anew
from registry.db.interface import Reader, State
from registry.db.postgres.dialect import (
    CONNECT_ARGS,
    redacted_url,
    schema_state,
    to_pyformat,
    translate,
)
from registry.db.postgres.search import VectorIndex
from registry.db.storable import storable
from registry.errors import DatabaseProblem, DatabaseUnreachable

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine, PoolProxiedConnection

MAX_CONNECTIONS: Final = 20
"""Of one process, for reading; more threads wait for one another."""

KEPT_CONNECTIONS: Final = 5
"""Of these stay open while nobody uses them."""

_AT_ONCE: Final = 1000
"""Rows of a stream that are fetched in one round trip."""

_NUMBERS: Final = count()
"""Of cursors on a server; its next one is taken by one thread alone."""

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class PostgresReader(Reader):
    """Reads the database at ``url``. What a dropped connection did not answer is asked again."""

    in_json_array = "(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(? AS json)))"
    json_each = "json_array_elements(CAST({} AS json))"
    json_item = "(e.value ->> {})"
    index = VectorIndex()

    def __init__(self, url: "URL") -> None:
        super().__init__(redacted_url(url))
        self._url = url
        self._lock = threading.Lock()
        self._made: Engine | None = None
        begin_anew(self)

    def forked(self, *, idle: bool) -> None:  # noqa: ARG002  # nothing of the parent's is closed
        """Leave the connections, which the parent speaks on; see `registry.db.forks`."""
        if self._made is not None:
            self._made.dispose(close=False)
        self._made = None
        self._lock = threading.Lock()
        self._local = threading.local()

    def state(self) -> State:
        """Say how the schema relates to this program.

        Raises `DatabaseTooNew`, `DatabaseUnreachable` or `DatabaseProblem`.
        """
        return schema_state(lambda sql: self._run(sql, ())[0][0], self.path)

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""
        return [] if self.empty else self._run(sql, parameters)

    def stream(self, sql: str, parameters: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """Yield the rows of a SELECT: in a `snapshot` by a cursor, which needs a transaction."""
        pinned: PoolProxiedConnection | None = getattr(self._local, "pinned", None)
        if pinned is None:
            return iter(self.rows(sql, parameters))
        return self._stepwise(pinned, sql, parameters)

    def _stepwise(
        self, connection: "PoolProxiedConnection", sql: str, parameters: Sequence[object]
    ) -> Iterator[tuple[Any, ...]]:
        import psycopg

        try:
            # Two at once on one connection go by two names.
            rows: Any = connection.cursor(f"rows_{next(_NUMBERS)}")
            with closing(rows) as cursor:
                cursor.itersize = _AT_ONCE
                if parameters:
                    cursor.execute(to_pyformat(sql), storable(parameters))
                else:
                    cursor.execute(sql)
                yield from cursor
        except psycopg.Error as error:
            raise translate(error, self.path, 0) from error

    def version(self) -> int | None:
        """Return how many transactions have changed the database."""
        return None if self.empty else int(self.rows("SELECT number FROM data_version")[0][0])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Give this thread a transaction that sees one state of the database."""
        if self.empty or getattr(self._local, "pinned", None) is not None:
            yield
            return
        connection, _ = self._answered(_BEGIN, ())
        self._local.pinned = connection
        try:
            yield
        finally:
            self._local.pinned = None
            self._end(connection)

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            if self._made is not None:
                self._made.dispose()
            self._made = None
        self._local = threading.local()

    def _run(self, sql: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
        pinned: PoolProxiedConnection | None = getattr(self._local, "pinned", None)
        if pinned is not None:
            return self._execute(pinned, sql, parameters)
        connection, rows = self._answered(sql, parameters)
        connection.close()
        return rows

    def _answered(
        self, sql: str, parameters: Sequence[object]
    ) -> "tuple[PoolProxiedConnection, list[tuple[Any, ...]]]":
        """Return what the server says, and the connection on which it said so.

        Each connection of the pool may have ended since it was used; a new one that ends at once
        is the server's fault.
        """
        for left in range(KEPT_CONNECTIONS, -1, -1):
            connection = self._connect()
            try:
                return connection, self._execute(connection, sql, parameters)
            except DatabaseUnreachable as error:
                connection.invalidate(error)
                connection.close()
                if not left:
                    raise
            except BaseException:
                connection.close()
                raise
        raise AssertionError  # pragma: no cover  # the loop returns or raises

    def _end(self, connection: "PoolProxiedConnection") -> None:
        try:
            self._execute(connection, "COMMIT", ())
        except DatabaseProblem as error:  # what was read was read
            connection.invalidate(error)
        finally:
            connection.close()

    def _execute(
        self, connection: "PoolProxiedConnection", sql: str, parameters: Sequence[object]
    ) -> list[tuple[Any, ...]]:
        import psycopg

        try:
            with closing(connection.cursor()) as cursor:  # refused where the connection ended
                if parameters:
                    cursor.execute(to_pyformat(sql), storable(parameters))
                else:
                    cursor.execute(sql)
                return list(cursor.fetchall()) if cursor.description else []
        except psycopg.Error as error:
            raise translate(error, self.path, 0) from error

    def _connect(self) -> "PoolProxiedConnection":
        import psycopg
        from sqlalchemy.exc import DBAPIError
        from sqlalchemy.exc import TimeoutError as PoolTimeout

        try:
            return self._engine().raw_connection()
        except (psycopg.Error, DBAPIError) as error:
            raise translate(error, self.path, 0) from error
        except PoolTimeout as error:
            reason = f"all {MAX_CONNECTIONS} connections of this process are in use"
            raise DatabaseUnreachable(path=self.path, reason=reason) from error

    def _engine(self) -> "Engine":
        with self._lock:
            if self._made is None:
                self._made = _make_engine(self._url)
            return self._made


def _make_engine(url: "URL") -> "Engine":
    from sqlalchemy import create_engine, event

    engine = create_engine(
        url,
        isolation_level="AUTOCOMMIT",
        pool_size=KEPT_CONNECTIONS,
        max_overflow=MAX_CONNECTIONS - KEPT_CONNECTIONS,
        connect_args=CONNECT_ARGS,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.execute("SET default_transaction_read_only = on")
        # Long texts lie beside their tables. That a scan of a table reads them, while an index
        # knows the answer, is beyond the planner: it takes the scan for the cheaper way.
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET jit = off")

    return engine
