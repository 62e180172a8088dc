"""The lock of a sync: a lease that its holder renews while the sync runs.

The lease is a row in a table. An advisory lock would belong to a connection, and a connection
pooler may give the connection to another client.

If a process pauses until its lease expires, another process may take the lease. The first process
then publishes nothing more. If a process on this machine dies while it holds the lease, the next
process takes the lease immediately.
"""

import os
import secrets
import threading
import time
from contextlib import suppress
from typing import Any, Final, Self

import psycopg
from sqlalchemy import Connection

from registry.db.postgres.dialect import Address, translate
from registry.db.postgres.session import Session
from registry.disk.mounts import this_boot
from registry.errors import DatabaseUnreachable

LEASE_SECONDS: Final = 30

RENEWALS: Final = 3
"""How many times the holder renews the lease in the time after which it would expire."""

_UNTIL: Final = f"clock_timestamp() + interval '{LEASE_SECONDS} seconds'"

_TAKE: Final = f"""
INSERT INTO leases (host, holder, doing, machine, process, address, until)
VALUES (%s, %s, %s, %s, %s, host(inet_client_addr()), {_UNTIL})
ON CONFLICT (host, role) DO UPDATE SET holder = excluded.holder, doing = excluded.doing,
    machine = excluded.machine, process = excluded.process, address = excluded.address,
    until = excluded.until
WHERE leases.until < clock_timestamp() OR leases.holder = %s
RETURNING 1
"""

_HELD: Final = (
    "SELECT holder, doing, machine, process, address FROM leases "
    "WHERE host = %s AND role = session_user"
)
_RENEW: Final = f"UPDATE leases SET until = {_UNTIL} WHERE host = %s AND holder = %s RETURNING 1"
_END: Final = "DELETE FROM leases WHERE host = %s AND holder = %s"

_UNWRITABLE: Final = (
    psycopg.errors.InsufficientPrivilege,
    psycopg.errors.ReadOnlySqlTransaction,
)

_SETTINGS: Final = {"lock_timeout": "1s"}
"""Settings for renewals.

A sync that publishes locks the lease's row. A renewal waits at most this long for the row.
"""

_OVER: Final[set[str]] = set()
"""Ids of leases of this process that have ended, even if their rows still exist.

A row still exists if the server was unreachable when the holder released the lease.
"""


class ServerLock:
    """The lease for the syncs of one host.

    Other processes can read in ``doing`` what the holder does.
    """

    def __init__(self, address: Address, host: str, doing: str) -> None:
        self.path = address.shown
        self._address = address
        self._host = host
        self._holder = secrets.token_hex(16)
        self._doing = doing
        self._session: Session | None = None
        self._refused: psycopg.Error | None = None
        self._ended = threading.Event()
        self._renewing: threading.Thread | None = None

    def acquire(self, wait: float) -> bool:
        """Try for ``wait`` seconds to take the lease; return False if another process holds it.

        If this role can't write, return True without a lease, because a sync that changes nothing
        needs no lock.
        """
        deadline, pause = time.monotonic() + wait, 0.01
        try:
            while not self._take():
                if time.monotonic() >= deadline:
                    self._close()
                    return False
                time.sleep(pause)
                pause = min(pause * 1.5, 0.2)
        except _UNWRITABLE as error:
            self._close()
            self._refused = error
            return True
        except psycopg.Error as error:
            self._give_up()
            raise translate(error, self.path, wait) from error
        except BaseException:
            self._give_up()
            raise
        _OVER.discard(self._holder)
        self._ended.clear()
        self._renewing = threading.Thread(target=self._renew, name="registry-lease", daemon=True)
        self._renewing.start()
        return True

    def now_ns(self) -> int:
        if self._refused is not None:
            raise translate(self._refused, self.path, 0) from self._refused
        return time.time_ns()

    def assert_held(self, writing: Connection) -> None:
        """Raise `DatabaseUnreachable` if another process holds the lease now.

        Call this method in a writing transaction. The call keeps the lease's row locked until the
        transaction ends, so no other process can take the lease before.
        """
        if not writing.exec_driver_sql(_RENEW, (self._host, self._holder)).first():
            reason = (
                "the lock of this sync was lost, since it stopped for too long, or its "
                "database was replaced; sync again"
            )
            raise DatabaseUnreachable(path=self.path, reason=reason)

    def owner(self) -> str:
        with suppress(psycopg.Error):
            try:
                rows = self._ask(_HELD, (self._host,))
            finally:
                self._close()
            if rows:
                _, doing, _, _, address = rows[0]
                return f"{doing}, from {address}" if address else str(doing)
        return "another process"

    def release(self) -> None:
        """Release the lease."""
        renewing, self._renewing = self._renewing, None
        if renewing is None:
            return
        self._ended.set()
        renewing.join()
        try:
            self._ask(_END, (self._host, self._holder))
        except psycopg.Error:  # the lease will expire by itself
            self._give_up()
        else:
            self._close()

    def _take(self) -> bool:
        dead = ""
        for _ in range(2):
            mine = (self._host, self._holder, self._doing, _machine(), os.getpid(), dead)
            try:
                if self._ask(_TAKE, mine):
                    return True
                held = self._ask(_HELD, (self._host,))
            except psycopg.errors.LockNotAvailable:
                return False
            if not held or not (held[0][0] in _OVER or _is_dead(held[0][2], held[0][3])):
                return False
            dead = held[0][0]
        return False

    def _renew(self) -> None:
        while not self._ended.wait(LEASE_SECONDS / RENEWALS):
            # If a renewal fails, the next renewal may succeed. A sync checks its lease before it
            # publishes.
            with suppress(psycopg.Error):
                self._ask(_RENEW, (self._host, self._holder))

    def _ask(self, query: str, values: tuple[object, ...]) -> list[Any]:
        """Run a statement on the lease's connection; if it is closed, reconnect first.

        This is not thread-safe.
        """
        session = self._session
        if session is None or not session.is_alive:
            self._close()
            session = self._session = Session.open(self._address, _SETTINGS)
        return session.ask([(query, values)])[0]

    def _give_up(self) -> None:
        """Mark this lease as ended, so that the next sync of this process can take it."""
        _OVER.add(self._holder)
        self._close()

    def _close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _machine() -> str:
    """Return an id for this machine's current boot and process namespace; empty if unknown.

    Together with a process id, it identifies one process.
    """
    run = this_boot()
    with suppress(OSError):
        return f"{run} {os.readlink('/proc/self/ns/pid')}" if run else ""
    return ""


def _is_dead(machine: object, process: object) -> bool:
    """Tell whether the process that held a lease ran on this machine and has ended.

    ``machine`` and ``process`` come from a database row and may be wrong. Another process may also
    have reused the process id. If the result is wrong, two syncs may run at once, but only one of
    them can publish.
    """
    if not machine or machine != _machine() or not isinstance(process, int) or process <= 0:
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:  # the process runs but belongs to another user
        return False
    return False
