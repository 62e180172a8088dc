"""Bring a SQLite file to the newest schema, with a copy kept of what was there."""

import sqlite3
from contextlib import closing
from pathlib import Path

from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from registry.db.interface import State
from registry.db.migrate import UPGRADE_SECONDS, run_migrations
from registry.db.sqlite.dialect import BUSY_SECONDS, check_version, schema_state, translate
from registry.db.sqlite.writer import make_engine
from registry.db.target import unwritable
from registry.disk.locks import FileLock
from registry.errors import DatabaseBusy, DatabaseProblem


def ensure_current(path: str) -> None:
    """Create the database at ``path``, or upgrade it, where it is not current.

    Any number of processes may call this at once. Raises `DatabaseTooNew`, `DatabaseCorrupt`,
    `DatabaseBusy` or `DatabaseProblem`.
    """
    check_version(path)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{path}.lock")
        if not lock.acquire(UPGRADE_SECONDS):
            raise DatabaseBusy(path=path, seconds=UPGRADE_SECONDS)
    except OSError as error:
        raise unwritable(path, error) from error
    with lock:
        try:
            with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as connection:
                state = schema_state(connection, path)
                if state is State.CURRENT:
                    return
                if state is State.BEHIND:
                    _keep_copy(connection, path)
            _upgrade(path)
        except sqlite3.Error as error:
            raise translate(error, path) from error


def _keep_copy(connection: sqlite3.Connection, path: str) -> None:
    (revision,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    with closing(sqlite3.connect(f"{path}.{revision}.bak")) as copy:
        connection.backup(copy)


def _upgrade(path: str) -> None:
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
