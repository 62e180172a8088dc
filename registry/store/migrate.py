"""Bring a database to the newest schema, with a copy kept of what was there."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from registry.errors import DatabaseBusy, DatabaseProblem
from registry.locks import FileLock
from registry.sqlite import BUSY_SECONDS, State, check_version, schema_state, translate

UPGRADE_SECONDS: Final = 60.0
"""How long to wait for another process that is upgrading the same file."""


def migrations_folder() -> Path:
    """Return the folder of the migration scripts: the packaged one, else the checkout's."""
    package = Path(__file__).resolve().parent.parent
    packaged = package / "_migrations"
    return packaged if packaged.is_dir() else package.parent / "migrations"


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
        reason = f"{error.strerror or error} ({error.filename})"
        raise DatabaseProblem(path=path, reason=reason) from error
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
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import event
    from sqlalchemy.exc import DBAPIError

    from registry.store.engine import make_engine

    config = Config()
    # The ini parser behind Config reads a bare % as the start of a reference.
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    engine = make_engine(path)

    # A batch rebuild drops and re-creates tables, which would cascade deletes.
    @event.listens_for(engine, "connect")
    def suspend_foreign_keys(connection: sqlite3.Connection, _record: object) -> None:
        connection.execute("PRAGMA foreign_keys = OFF")

    try:
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
            if broken:
                reason = f"the upgrade would break a reference in table {broken[0]}"
                raise DatabaseProblem(path=path, reason=reason)
    except DBAPIError as error:
        raise translate(error, path) from error
    finally:
        engine.dispose()
