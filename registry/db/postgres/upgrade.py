"""Bring the schema on a PostgreSQL server to the newest revision."""

from sqlalchemy.exc import DBAPIError

from registry.db.migrate import UPGRADE_SECONDS, run_migrations
from registry.db.postgres.dialect import FACTS, REVISION, UPGRADING, schema_state, translate
from registry.db.postgres.writer import make_engine
from registry.db.remote.address import Address
from registry.db.remote.rights import granting_again
from registry.db.state import State
from registry.db.writes.statements import InTransaction


def ensure_current(address: Address) -> None:
    """Create or upgrade the schema at ``address`` where it is not current, as one transaction.

    Any number of processes may call this at once. Raises `DatabaseProblem` and its subclasses.
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
                run_migrations(connection)
                for one in granting_again(InTransaction(connection)):
                    connection.exec_driver_sql(one, execution_options={"no_parameters": True})
    except DBAPIError as error:
        raise translate(error, path, UPGRADE_SECONDS) from error
    finally:
        engine.dispose()
