"""The lock of a sync: advisory, held by a connection of its own for as long as that lives."""

import time
from contextlib import suppress
from typing import Any, Final, Self

import psycopg
from sqlalchemy import Connection, text

from registry.db.postgres.dialect import translate
from registry.db.remote import session as remote
from registry.db.remote.address import Address
from registry.errors import DatabaseUnreachable

_TAKE: Final = "SELECT pg_try_advisory_lock(%s, hashtext(current_schema() || %s))"

_OWNER: Final = (
    "SELECT a.application_name, a.client_addr FROM pg_locks l "
    "JOIN pg_stat_activity a ON a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted "
    "AND l.classid = %s AND l.objsubid = 2 "
    "AND l.objid = CAST(CAST(hashtext(current_schema() || %s) AS bit(32)) AS bigint) LIMIT 1"
)


class ServerLock:
    """An exclusive advisory lock of one ``kind`` (`dialect.SYNCING`) and ``name``."""

    def __init__(self, address: Address, kind: int, name: str, doing: str) -> None:
        self.path = address.shown
        self._address = address
        self._what = (kind, name)
        self._doing = f"skill-registry: {doing}"[:63]
        self._session: psycopg.Connection[Any] | None = None
        self._process = 0

    def acquire(self, wait: float) -> bool:
        """Take the lock, trying for ``wait`` seconds; False: somebody else holds it."""
        deadline, pause = time.monotonic() + wait, 0.01
        try:
            session = self._connect()
            try:
                while not self._row(session, _TAKE)[0]:
                    if time.monotonic() >= deadline:
                        session.close()
                        return False
                    time.sleep(pause)
                    pause = min(pause * 1.5, 0.2)
            except BaseException:
                session.close()
                raise
        except psycopg.Error as error:
            raise translate(error, self.path, wait) from error
        self._session, self._process = session, session.info.backend_pid
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
        if not writing.execute(query, {"process": self._process, "kind": self._what[0]}).first():
            reason = "the connection that held the lock of this sync broke; sync again"
            raise DatabaseUnreachable(path=self.path, reason=reason)

    def owner(self) -> str:
        """Say who holds such a lock, in words."""
        with suppress(psycopg.Error), self._connect() as session:
            row = self._row(session, _OWNER)
            if row is not None:
                who = str(row[0]).removeprefix("skill-registry: ")
                return f"{who}, from {row[1]}" if row[1] else who
        return "another process"

    def release(self) -> None:
        """Give the lock back."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _connect(self) -> psycopg.Connection[Any]:
        connection = remote.connect(self._address, self._doing)
        connection.autocommit = True
        return connection

    def _row(self, session: psycopg.Connection[Any], query: str) -> Any:
        return session.execute(query, self._what).fetchone()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
