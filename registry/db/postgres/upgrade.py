"""Bring the schema on a PostgreSQL server to the newest revision."""

from typing import Final

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from registry.db.migrate import UPGRADE_SECONDS, run_migrations
from registry.db.postgres.dialect import FACTS, REVISION, schema_state, translate
from registry.db.postgres.writer import make_engine
from registry.db.remote.address import Address
from registry.db.remote.rights import granting_again
from registry.db.state import State
from registry.db.writes.statements import InTransaction

_AS_OWNER: Final = """
SELECT set_config('role', r.rolname, true) FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
WHERE c.oid = to_regclass('skills') AND has_schema_privilege(r.oid, c.relnamespace, 'CREATE')
AND pg_has_role(r.oid, CASE WHEN CAST(current_setting('server_version_num') AS integer) >= 160000
    THEN 'SET' ELSE 'MEMBER' END)
"""
"""Goes on as whose the tables are: an admin's own new table would be closed to all others."""

_FIRST_TABLE: Final = """
CREATE TABLE IF NOT EXISTS alembic_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)
"""
"""The table that Alembic makes. A second process waits for the first, and then gets an error."""

_MADE_MEANWHILE: Final = frozenset({"23505", "42P07", "42710"})
"""SQLSTATEs of a table that another process made at the same time."""

_LOCK: Final = "LOCK TABLE alembic_version IN EXCLUSIVE MODE"


def ensure_current(address: Address) -> None:
    """Create or upgrade the schema at ``address`` where it is not current, as one transaction.

    What is new belongs to the role that the rest belongs to. Any number of processes may call this
    at once: they wait for each other. Only the owner of the tables may take this lock. Raises
    `DatabaseProblem` and its subclasses.
    """
    path = address.shown
    engine = make_engine(address)
    try:
        try:
            _upgrade(engine, path)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in _MADE_MEANWHILE:
                raise
            _upgrade(engine, path)  # Another process made the first table: now there is a lock.
    except DBAPIError as error:
        raise translate(error, path, UPGRADE_SECONDS) from error
    finally:
        engine.dispose()


def _upgrade(engine: Engine, path: str) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{UPGRADE_SECONDS:g}s'")
        if (state := _state(connection, path)) is State.CURRENT:
            return
        connection.exec_driver_sql(_AS_OWNER)
        if state is State.EMPTY:
            connection.exec_driver_sql(_FIRST_TABLE)
        connection.exec_driver_sql(_LOCK)
        if _state(connection, path) is not State.CURRENT:
            run_migrations(connection)
            for one in granting_again(InTransaction(connection)):
                connection.exec_driver_sql(one, execution_options={"no_parameters": True})


def _state(connection: Connection, path: str) -> State:
    facts = connection.exec_driver_sql(FACTS).one()
    is_there = facts[-2]
    revision = connection.exec_driver_sql(REVISION).scalar() if is_there else None
    return schema_state(facts, revision, path)
