"""Bring a database to the newest schema, with a copy kept of what was there."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from registry.db.sqlite.dialect import BUSY_SECONDS, State, check_version, schema_state, translate
from registry.disk.locks import FileLock
from registry.errors import DatabaseBusy, DatabaseProblem

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

UPGRADE_SECONDS: Final = 60.0
"""How long to wait for another process that is upgrading the same database."""


def migrations_folder() -> Path:
    """Return the folder of the migration scripts: the packaged one, else the checkout's."""
    package = Path(__file__).resolve().parent.parent
    packaged = package / "_migrations"
    return packaged if packaged.is_dir() else package.parent / "migrations"


def ensure_file_current(path: str) -> None:
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
            _run(connection)
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
            if broken:
                reason = f"the upgrade would break a reference in table {broken[0]}"
                raise DatabaseProblem(path=path, reason=reason)
    except DBAPIError as error:
        raise translate(error, path) from error
    finally:
        engine.dispose()


def ensure_server_current(url: "URL") -> None:
    """Create or upgrade the schema at ``url`` where it is not current, as one transaction.

    Any number of processes may call this at once. Raises `DatabaseProblem` and its subclasses.
    """
    from sqlalchemy.exc import DBAPIError

    from registry.db.postgres import dialect as postgres
    from registry.db.postgres.writer import UPGRADING, make_engine

    path = postgres.label(url)
    engine = make_engine(url, pooled=False)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(
                f"SET LOCAL lock_timeout = '{UPGRADE_SECONDS:g}s'; "
                f"SELECT pg_advisory_xact_lock({UPGRADING}, hashtext(current_schema()))"
            )
            state = postgres.schema_state(
                lambda sql: connection.exec_driver_sql(sql).scalar(), path
            )
            if state is not State.CURRENT:
                _run(connection)
    except DBAPIError as error:
        raise postgres.translate(error, path, UPGRADE_SECONDS) from error
    finally:
        engine.dispose()


def engine_at(url: str) -> "Engine":
    """Return an engine for the address in alembic.ini."""
    from registry.db.postgres import writer as postgres
    from registry.db.postgres.dialect import parse_url
    from registry.db.sqlite import writer as sqlite

    if url.startswith("sqlite:///"):
        return sqlite.make_engine(url.removeprefix("sqlite:///"))
    return postgres.make_engine(parse_url(url), pooled=False)


def _run(connection: "Connection") -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    # The ini parser behind Config reads a bare % as the start of a reference.
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
