"""Writing to a SQLite file, one transaction at a time under a lock file; and upgrading the file."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from registry.db.forks import activity
from registry.db.interface import State, Writer
from registry.db.migrate import UPGRADE_SECONDS, run_migrations
from registry.db.sqlite.dialect import (
    BUSY_SECONDS,
    ERRORS,
    WriterLock,
    check_version,
    connect,
    copy_file,
    schema_state,
    translate,
    unwritable,
)
from registry.disk.atomic import OWN, make_path
from registry.disk.paths import is_below
from registry.errors import DatabaseBusy, DatabaseProblem, RegistryError
from registry.settings import data_folder


def make_engine(path: str) -> Engine:
    """Return an SQLAlchemy engine that writes the SQLite file at ``path``.

    An event begins each transaction with BEGIN IMMEDIATE. The driver's own handling of transactions
    would leave schema changes half applied. Connections are not pooled: a change opens a
    connection, and an idle process holds none.
    """
    engine = create_engine("sqlite://", creator=partial(connect, path), poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


class SqliteWriter(Writer):
    """Writes to the SQLite file at ``path``.

    All writes and checkpoints happen under one file lock, which is taken before the transaction
    begins.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, "", make_engine(path))

    @contextmanager
    def _begun(self, wait: float, *, quiet: bool) -> Iterator[Connection]:  # noqa: ARG002
        with WriterLock(self.path) as lock:
            if not lock.acquire(wait):
                raise DatabaseBusy(path=self.path, seconds=wait)
            with activity, self._engine.begin() as connection:
                # Each transaction opens the file again. If the path doesn't exist now, another
                # process has just removed the file, and what is written would be lost.
                if not os.path.exists(self.path):
                    raise DatabaseProblem(path=self.path, reason="the file was removed meanwhile")
                yield connection

    def _translate(self, error: DBAPIError, _wait: float) -> RegistryError:
        return translate(error, self.path)


SCRIPT: Final = Path(__file__).with_name("newest.sql")

NOT_FOR_OTHERS: Final = 0o755
"""Mode of new folders outside our data folder; other users may read them."""


def ensure_current(path: str) -> None:
    """Create the database at ``path``, or upgrade it if its schema isn't current.

    Any number of processes may call this at once. Raises `DatabaseTooNew`, `DatabaseCorrupt`,
    `DatabaseBusy` or `DatabaseProblem`.
    """
    check_version(path)
    own = is_below(path, str(data_folder()))
    try:
        make_path(os.path.dirname(path), OWN if own else NOT_FOR_OTHERS)
    except OSError as error:
        raise unwritable(path, error) from error
    with WriterLock(path) as lock:
        if not lock.acquire(UPGRADE_SECONDS):
            raise DatabaseBusy(path=path, seconds=UPGRADE_SECONDS)
        try:
            with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection:
                state = schema_state(connection, path)
                if state is State.CURRENT:
                    return
                if state is State.BEHIND:
                    _keep_copy(connection, path)
            if state is State.EMPTY:
                _create(path)
            else:
                migrate(path)
        except ERRORS as error:
            raise translate(error, path) from error


def _keep_copy(connection: sqlite3.Connection, path: str) -> None:
    (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    copy_file(connection, f"{path}.{revision}.bak")


def _create(path: str) -> None:
    """Create all tables in an empty file, in one transaction and without importing Alembic."""
    with closing(connect(path)) as connection:
        connection.executescript(f"BEGIN IMMEDIATE; {read_schema()} COMMIT;")


def migrate(path: str) -> None:
    """Run the missing migrations on the file at ``path``, in one transaction."""
    from sqlalchemy import event
    from sqlalchemy.exc import DBAPIError

    engine = make_engine(path)

    # A migration that changes many tables drops and creates them, which would also delete the rows
    # that refer to them.
    @event.listens_for(engine, "connect")
    def suspend_foreign_keys(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA foreign_keys = OFF")

    try:
        with engine.begin() as connection:
            run_migrations(connection)
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
            if broken:
                reason = f"the upgrade would break a reference in table {broken[0]}"
                raise DatabaseProblem(path=path, reason=reason)
    except DBAPIError as error:
        raise translate(error, path) from error
    finally:
        engine.dispose()


def read_schema() -> str:
    """Return the SQL that creates all tables.

    The caller must begin the transaction.
    """
    return SCRIPT.read_text(encoding="utf-8")
