"""The lock of a sync: advisory, held by a connection of its own for as long as that lives."""

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from registry.db.postgres.dialect import redacted_url, translate
from registry.db.postgres.writer import make_engine
from registry.errors import DatabaseUnreachable

if TYPE_CHECKING:
    from sqlalchemy import URL


class ServerLock:
    """An exclusive advisory lock of one ``kind`` (`dialect.SYNCING`) and ``name``."""

    def __init__(self, url: "URL", kind: int, name: str, doing: str) -> None:
        self.path = redacted_url(url)
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

    def __exit__(self, *_: object) -> None:
        self.release()
        self._engine.dispose()
