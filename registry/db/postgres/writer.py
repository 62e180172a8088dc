"""Writing to a PostgreSQL server: transactions under an advisory lock."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from registry.db.forks import begin_anew
from registry.db.interface import Writer
from registry.db.postgres.dialect import CONNECT_ARGS, WRITING, redacted_url, translate
from registry.errors import RegistryError

if TYPE_CHECKING:
    from sqlalchemy import URL

VACUUM_TABLES: Final = (
    "sources",
    "skills",
    "documents",
    "skill_files",
    "skill_tags",
    "search_texts",
    "diagnostics",
)

_BEGIN: Final = f"""
SET LOCAL lock_timeout = {{wait}};
SELECT pg_advisory_xact_lock({WRITING}, hashtext(current_schema()));
UPDATE data_version SET number = number + 1
"""


def make_engine(url: "URL", *, pooled: bool = True) -> Engine:
    """Return an engine that writes to the database at ``url``, each statement seeing the newest."""
    doing = f"skill-registry {os.getpid()}"
    options: dict[str, Any] = {"pool_pre_ping": True} if pooled else {"poolclass": NullPool}
    engine = create_engine(url, connect_args=CONNECT_ARGS | {"application_name": doing}, **options)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        # Long texts lie beside their tables, so reading a table whole is never the cheaper way.
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET jit = off")
        connection.commit()

    return engine


class PostgresWriter(Writer):
    """Writes to the database at ``url``, one transaction at a time, as on SQLite.

    The lock is the server's and ends with the transaction, so a dead client holds up nobody. Each
    transaction counts up `data_version`, by which readers know that there is something new.
    """

    def __init__(self, url: "URL", host: str) -> None:
        super().__init__(redacted_url(url), host, make_engine(url))
        begin_anew(self)

    def forked(self, *, idle: bool) -> None:  # noqa: ARG002  # nothing of the parent's is closed
        """Leave the connections, which the parent speaks on; see `registry.db.forks`."""
        self._engine.dispose(close=False)

    def update_statistics(self) -> None:
        """Put new rows into their indexes, and count what the planner goes by.

        The server does so by itself, but minutes later.
        """
        with suppress(DBAPIError), self._engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT")
            connection.exec_driver_sql(f"VACUUM (ANALYZE) {', '.join(VACUUM_TABLES)}")

    @contextmanager
    def _exclusive(self, _wait: float) -> Iterator[None]:
        yield

    def _begin(self, connection: Connection, wait: float) -> None:
        # Zero would wait for ever.
        connection.exec_driver_sql(_BEGIN.format(wait=max(1, round(wait * 1000))))

    def _translate(self, error: DBAPIError, wait: float) -> RegistryError:
        return translate(error, self.path, wait)
