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

from registry.db.postgres.dialect import translate
from registry.db.postgres.writer import PostgresWriter
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

LOCK_SECONDS: Final = 1
"""Maximum time that a renewal waits for the lease's row, in seconds.

A sync that publishes locks the row.
"""

_OVER: Final[set[str]] = set()
"""Ids of leases of this process that have ended, even if their rows still exist.

A row still exists if the server was unreachable when the holder released the lease.
"""


class ServerLock:
    """The lease for the syncs of one host.

    Other processes can read in ``doing`` what the holder does.
    """

    def __init__(self, writer: PostgresWriter, doing: str) -> None:
        self._writer, self._host = writer, writer.host
        self._holder = secrets.token_hex(16)
        self._doing = doing
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
                    return False
                time.sleep(pause)
                pause = min(pause * 1.5, 0.2)
        except _UNWRITABLE as error:
            self._refused = error
            return True
        except BaseException as error:
            # the server may have stored the lease
            _OVER.add(self._holder)
            if isinstance(error, psycopg.Error):
                raise translate(error, self._writer.path, wait) from error
            raise
        _OVER.discard(self._holder)
        self._ended.clear()
        self._renewing = threading.Thread(target=self._renew, name="registry-lease", daemon=True)
        self._renewing.start()
        return True

    def now_ns(self) -> int:
        if self._refused is not None:
            raise translate(self._refused, self._writer.path, 0) from self._refused
        return time.time_ns()

    def assert_held(self, writing: Connection) -> None:
        """Raise `DatabaseUnreachable` if another process holds the lease now.

        Call this method in a writing transaction. The error is raised with a later statement of
        the transaction, but before the commit. The lease's row stays locked until the transaction
        ends, so no other process can take the lease before.
        """
        reason = (
            "the lock of this sync was lost, since it stopped for too long, or its "
            "database was replaced; sync again"
        )
        session: Any = writing.connection.driver_connection
        lost = DatabaseUnreachable(path=self._writer.path, reason=reason)
        session.require((_RENEW, (self._host, self._holder)), lost)

    def owner(self) -> str:
        with suppress(psycopg.Error):
            for _, doing, _, _, address in self._ask(_HELD, (self._host,)):
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
            _OVER.add(self._holder)

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
        return self._writer.ask((query, values), LOCK_SECONDS)

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
