"""Writing to a SQLite file: how a connection is opened, and the lock that comes first."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from registry.db.forks import busy
from registry.db.sqlite.dialect import connect, translate
from registry.db.sqlite.lock import WriterLock
from registry.db.writer import Writer
from registry.errors import DatabaseBusy, DatabaseProblem, RegistryError


def make_engine(path: str) -> Engine:
    """Return an engine that writes the SQLite file at ``path``.

    Transactions begin with BEGIN IMMEDIATE, issued by an event, since the driver's own handling
    leaves half-applied DDL behind (RELIABILITY.md). Connections are not pooled: a change opens
    one, and an idle process holds none.
    """
    engine = create_engine("sqlite://", creator=partial(connect, path), poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


class SqliteWriter(Writer):
    """Writes to the SQLite file at ``path``.

    All writes and checkpoints happen under one file lock, taken before the transaction begins:
    the order is always lock, then database (RELIABILITY.md).
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, "", make_engine(path))

    @contextmanager
    def _begun(self, wait: float, *, quiet: bool) -> Iterator[Connection]:  # noqa: ARG002
        with WriterLock(self.path) as lock:
            if not lock.acquire(wait):
                raise DatabaseBusy(path=self.path, seconds=wait)
            with busy, self._engine.begin() as connection:
                # Each transaction opens the file anew, so a path that leads nowhere now means
                # that the file was removed in this very moment; what is written would be lost.
                if not os.path.exists(self.path):
                    raise DatabaseProblem(path=self.path, reason="the file was removed meanwhile")
                yield connection

    def _translate(self, error: DBAPIError, _wait: float) -> RegistryError:
        return translate(error, self.path)
