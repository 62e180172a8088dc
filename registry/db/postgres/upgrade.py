"""Bring the schema on a PostgreSQL server to the newest revision."""

from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from registry.db.interface import State
from registry.db.migrate import UPGRADE_SECONDS, run_migrations
from registry.db.postgres.dialect import UPGRADING, redacted_url, schema_state, translate
from registry.db.postgres.writer import make_engine

if TYPE_CHECKING:
    from sqlalchemy import URL


def ensure_current(url: "URL") -> None:
    """Create or upgrade the schema at ``url`` where it is not current, as one transaction.

    Any number of processes may call this at once. Raises `DatabaseProblem` and its subclasses.
    """
    path = redacted_url(url)
    engine = make_engine(url, pooled=False)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql(
                f"SET LOCAL lock_timeout = '{UPGRADE_SECONDS:g}s'; "
                f"SELECT pg_advisory_xact_lock({UPGRADING}, hashtext(current_schema()))"
            )
            state = schema_state(lambda sql: connection.exec_driver_sql(sql).scalar(), path)
            if state is not State.CURRENT:
                run_migrations(connection)
    except DBAPIError as error:
        raise translate(error, path, UPGRADE_SECONDS) from error
    finally:
        engine.dispose()
