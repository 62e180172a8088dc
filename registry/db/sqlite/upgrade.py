"""Bring a SQLite file to the newest schema, with a copy kept of what was there.

A new file is made by one script, which is what the migrations make of it (`make schema` writes it):
to run them takes Alembic, a quarter of a second; a first command has better things to do.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from registry.db.migrate import UPGRADE_SECONDS, run_migrations
from registry.db.sqlite.dialect import (
    BUSY_SECONDS,
    ERRORS,
    check_version,
    connect,
    copy_file,
    schema_state,
    translate,
)
from registry.db.sqlite.lock import WriterLock
from registry.db.state import State
from registry.db.target import unwritable
from registry.disk.atomic import OWN, make_path
from registry.disk.paths import is_below
from registry.errors import DatabaseBusy, DatabaseProblem
from registry.settings import data_folder

SCRIPT: Final = Path(__file__).with_name("newest.sql")

NOT_FOR_OTHERS: Final = 0o755
"""Mode of the folders made for a database elsewhere: other users may read, and not write."""


def ensure_current(path: str) -> None:
    """Create the database at ``path``, or upgrade it, where it is not current.

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
    """Give an empty file all tables, in one transaction and without importing Alembic."""
    with closing(connect(path)) as connection:
        connection.executescript(f"BEGIN IMMEDIATE; {read_schema()} COMMIT;")


def migrate(path: str) -> None:
    """Run the migrations that the file at ``path`` lacks, in one transaction."""
    from sqlalchemy import event
    from sqlalchemy.exc import DBAPIError

    from registry.db.sqlite.writer import make_engine

    engine = make_engine(path)

    # A batch rebuild drops and re-creates tables, which would cascade deletes.
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
    """Return the SQL that makes all tables, in a transaction that the caller begins."""
    return SCRIPT.read_text(encoding="utf-8")
