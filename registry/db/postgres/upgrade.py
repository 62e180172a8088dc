"""Bring the schema on a PostgreSQL server to the newest revision."""

from typing import Final

from sqlalchemy.exc import DBAPIError

from registry.db.migrate import UPGRADE_SECONDS, run_migrations
from registry.db.postgres.dialect import FACTS, REVISION, UPGRADING, schema_state, translate
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


def ensure_current(address: Address) -> None:
    """Create or upgrade the schema at ``address`` where it is not current, as one transaction.

    What is new belongs to the role that the rest belongs to. Any number of processes may call this
    at once. Raises `DatabaseProblem` and its subclasses.
    """
    path = address.shown
    engine = make_engine(address)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(
                f"SET LOCAL lock_timeout = '{UPGRADE_SECONDS:g}s'; "
                f"SELECT pg_advisory_xact_lock({UPGRADING}, hashtext(current_schema()))"
            )
            facts = connection.exec_driver_sql(FACTS).one()
            is_there = facts[-2]
            revision = connection.exec_driver_sql(REVISION).scalar() if is_there else None
            state = schema_state(facts, revision, path)
            if state is not State.CURRENT:
                connection.exec_driver_sql(_AS_OWNER)
                run_migrations(connection)
                for one in granting_again(InTransaction(connection)):
                    connection.exec_driver_sql(one, execution_options={"no_parameters": True})
    except DBAPIError as error:
        raise translate(error, path, UPGRADE_SECONDS) from error
    finally:
        engine.dispose()
