"""Writing to a PostgreSQL server: transactions under an advisory lock, and the lock of a sync."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from registry.db.postgres.dialect import UNPREPARED, label, translate
from registry.db.writer import Writer
from registry.errors import DatabaseUnreachable, RegistryError

if TYPE_CHECKING:
    from sqlalchemy import URL

# The first of the two numbers of an advisory lock; the second tells schemas (and hosts) apart.
WRITING: Final = 0x736B7731
SYNCING: Final = 0x736B7332
UPGRADING: Final = 0x736B7533

TIDIED: Final = (
    "sources",
    "skills",
    "documents",
    "skill_files",
    "skill_tags",
    "skill_search",
    "diagnostics",
)

_BEGIN: Final = f"""
SET LOCAL lock_timeout = {{wait}};
SELECT pg_advisory_xact_lock({WRITING}, hashtext(current_schema()));
UPDATE data_version SET number = number + 1
"""


def make_engine(url: "URL", *, pooled: bool = True) -> Engine:
    """Return an engine that writes to the database at ``url``, each statement seeing the newest."""
    doing = f"skill-registry {os.getpid()}"
    options: dict[str, Any] = {"pool_pre_ping": True} if pooled else {"poolclass": NullPool}
    engine = create_engine(url, connect_args=UNPREPARED | {"application_name": doing}, **options)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        # That a temporary table is there already is no news.
        connection.execute("SET client_min_messages = warning")
        # The planner takes a temporary table, of which it knows nothing, for one of thousands of
        # rows, and would read all skills to find the few that it names.
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET jit = off")
        connection.commit()

    return engine


class PostgresWriter(Writer):
    """Writes to the database at ``url``, one transaction at a time, as on SQLite.

    The lock is the server's and ends with the transaction, so a dead client holds up nobody. Each
    transaction counts up `data_version`, by which readers know that there is something new.
    """

    def __init__(self, url: "URL", host: str) -> None:
        super().__init__(label(url), host, make_engine(url))
        self._process = os.getpid()

    def tidy(self) -> None:
        """Put new rows into their indexes, and count what the planner goes by.

        The server does so by itself, but minutes later.
        """
        with suppress(DBAPIError), self._engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql(f"VACUUM (ANALYZE) {', '.join(TIDIED)}")

    @contextmanager
    def _turn(self, _wait: float) -> Iterator[None]:
        if self._process != os.getpid():
            # A forked child must not speak on its parent's connections.
            self._engine.dispose(close=False)
            self._process = os.getpid()
        yield

    def _begin(self, connection: Connection, wait: float) -> None:
        connection.exec_driver_sql(_BEGIN.format(wait=round(wait * 1000)))

    def _translate(self, error: DBAPIError, wait: float) -> RegistryError:
        return translate(error, self.path, wait)


class ServerLock:
    """An exclusive advisory lock, held by a connection of its own for as long as that lives."""

    def __init__(self, url: "URL", kind: int, name: str, doing: str) -> None:
        self.path = label(url)
        self._kind = kind
        self._name = name
        self._engine = make_engine(url, pooled=False)
        self._doing = doing
        self._connection: Connection | None = None
        self._process = 0

    def acquire(self, wait: float) -> bool:
        """Take the lock, trying for ``wait`` seconds; False: somebody else holds it."""
        try:
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        except DBAPIError as error:
            raise translate(error, self.path, wait) from error
        deadline, pause = time.monotonic() + wait, 0.01
        try:
            connection.execute(
                text("SELECT set_config('application_name', :doing, false)"),
                {"doing": f"skill-registry: {self._doing}"[:63]},
            )
            query = text("SELECT pg_try_advisory_lock(:kind, hashtext(current_schema() || :name))")
            while not connection.execute(query, {"kind": self._kind, "name": self._name}).scalar():
                if time.monotonic() >= deadline:
                    connection.close()
                    return False
                time.sleep(pause)
                pause = min(pause * 1.5, 0.2)
            self._process = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
        except DBAPIError as error:
            connection.close()
            raise translate(error, self.path, wait) from error
        self._connection = connection
        return True

    def now_ns(self) -> int:
        """Return the present, by this machine's clock."""
        return time.time_ns()

    def assert_held(self, writing: Connection) -> None:
        """Raise `DatabaseUnreachable` where the connection that holds the lock is gone.

        Asked in a transaction that writes: whoever takes the lock later writes after it.
        """
        query = text(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted AND pid = :process "
            "AND classid = :kind AND objsubid = 2 LIMIT 1"
        )
        if not writing.execute(query, {"process": self._process, "kind": self._kind}).first():
            reason = "the connection that held the lock of this sync broke; sync again"
            raise DatabaseUnreachable(path=self.path, reason=reason)

    def owner(self) -> str:
        """Say who holds such a lock, in words."""
        query = text(
            "SELECT a.application_name, a.client_addr FROM pg_locks l "
            "JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted "
            "AND l.classid = :kind AND l.objsubid = 2 "
            "AND l.objid = CAST(CAST(hashtext(current_schema() || :name) AS bit(32)) AS bigint) "
            "LIMIT 1"
        )
        with suppress(DBAPIError), self._engine.connect() as connection:
            row = connection.execute(query, {"kind": self._kind, "name": self._name}).first()
            if row is not None:
                who = str(row[0]).removeprefix("skill-registry: ")
                return f"{who}, from {row[1]}" if row[1] else who
        return "another process"

    def release(self) -> None:
        """Give the lock back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(DBAPIError):
                connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()
        self._engine.dispose()
