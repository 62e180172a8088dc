"""Write to a SQLite file, one transaction at a time under a lock file; upgrade the file."""

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

    An event starts each transaction with BEGIN IMMEDIATE. The driver's own transaction handling
    could leave a schema change half done. The engine has no connection pool: each change opens a
    connection, and an idle process has no connection.
    """
    engine = create_engine("sqlite://", creator=partial(connect, path), poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


class SqliteWriter(Writer):
    """Writes to the SQLite file at ``path``.

    A file lock, which the writer takes before each transaction, allows only one write or checkpoint
    at a time.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, "", make_engine(path))

    @contextmanager
    def _begun(self, wait: float, *, quiet: bool) -> Iterator[Connection]:  # noqa: ARG002
        with WriterLock(self.path) as lock:
            if not lock.acquire(wait):
                raise DatabaseBusy(path=self.path, seconds=wait)
            with activity, self._engine.begin() as connection:
                # Each transaction opens the file again. If the file is missing, another process has
                # just removed it, and the changes would be lost.
                if not os.path.exists(self.path):
                    raise DatabaseProblem(path=self.path, reason="the file was removed meanwhile")
                yield connection

    def _translate(self, error: DBAPIError, _wait: float) -> RegistryError:
        return translate(error, self.path)


SCRIPT: Final = Path(__file__).with_name("newest.sql")

NOT_FOR_OTHERS: Final = 0o755
"""Mode of new folders outside the registry's data folder; other users may read them."""


def ensure_current(path: str) -> None:
    """Create the database at ``path``, or upgrade it if its schema isn't current.

    Several processes may call this function at once. Raises `DatabaseTooNew`, `DatabaseCorrupt`,
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

    # If a migration changes many tables, it drops and creates them. With foreign keys on, this
    # would also delete the rows that refer to them.
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
