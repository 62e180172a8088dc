"""Connections to a server that outlast a test, as they do behind a pooler.

A connection is a process of the server, which reads anew what it must know of a database: for most
tests that takes longer than all that they ask. What a transaction depends on it says itself
(`registry.db.postgres.session`), so whose connection it was before makes no difference to it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.pq import PGconn

from registry.db.postgres import session as remote
from registry.db.postgres.dialect import Address
from registry.db.postgres.session import Patient, Session

MOST = 4
"""So many are kept of those that are alike."""

_USUAL = {"connect_timeout"}
"""What an address says whose connections are like those of others; of further options each ends."""


class Connections:
    """Keeps the connections to one server that its clients in this process close."""

    def __init__(self, host: str | None, port: int | None) -> None:
        self._place = host, port
        self._process = os.getpid()
        self._free: dict[str, list[PGconn]] = {}
        self._used = True

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let the program have connections that were kept, and keep what it closes."""
        new = Session.open

        def open_(address: Address, settings: dict[str, str], name: str | None = None) -> Session:
            fits = (address.host, address.port) == self._place and address.query.keys() <= _USUAL
            if self._used and fits and not self._is_elsewhere:
                return self._open(address, settings, name)
            return new(address, settings, name)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Session, "open", open_)
            yield

    @contextmanager
    def unused(self) -> Iterator[None]:
        """Let the program have connections that are new, and end what it closes."""
        self._used = False
        yield
        self._used = True

    def take_back(self, session: "Kept") -> bool:
        """Keep the connection of a session that ends, if it is as good as a new one."""
        if not self._used or self._is_elsewhere or not session.is_alive:
            return False
        kept = self._free.setdefault(session.key, [])
        if len(kept) >= MOST:
            return False
        kept.append(session.pgconn)
        return True

    def processes(self) -> set[int]:
        """Return the processes of the server which serve what is kept."""
        return {one.backend_pid for kept in self._free.values() for one in kept}

    def end(self, database: str | None) -> None:
        """Close what is kept to a database."""
        for kept in self._free.values():
            for one in [one for one in kept if os.fsdecode(one.db) == database]:
                kept.remove(one)
                one.finish()

    @property
    def _is_elsewhere(self) -> bool:
        """Whether this is a child, and what is kept is its parent's."""
        return os.getpid() != self._process

    def _open(self, address: Address, settings: dict[str, str], name: str | None) -> Session:
        told = remote.parameters(address, name)
        key = make_conninfo(**{part: told[part] for part in told if part != "prepare_threshold"})
        while kept := self._free.get(key):
            found = Kept(kept.pop())
            found.autocommit, found.cursor_factory = True, Patient
            found.prepare_threshold = told["prepare_threshold"]
            found.enter(remote.settings_of(address, settings))
            if found.is_alive:
                break
            psycopg.Connection.close(found)
        else:
            found = Kept.connect(**told, autocommit=True, cursor_factory=Patient)
            found.enter(remote.settings_of(address, settings))
        found.key, found.connections = key, self
        return found


class Kept(Session):
    """A session whose connection is kept when it is closed. It is closed itself all the same."""

    key = ""
    connections: Connections

    def close(self) -> None:
        if not self.closed and self.connections.take_back(self):
            self.pgconn = _NOBODY
        super().close()


_NOBODY = PGconn.connect(b"host=/nowhere")
