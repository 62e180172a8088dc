"""Write to a PostgreSQL server: one transaction at a time, under a table lock."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, Final

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects import registry as dialects
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from registry.db.audit_context import current_context
from registry.db.forks import reopen_in_child
from registry.db.interface import WRITE_SECONDS, State, Writer
from registry.db.migrate import UPGRADE_SECONDS, run_migrations
from registry.db.postgres import index
from registry.db.postgres import session as remote
from registry.db.postgres.dialect import FACTS, REVISION, Address, schema_state, translate
from registry.db.postgres.rights import granting_again
from registry.db.postgres.session import Question, Session
from registry.db.write.statements import select_rows
from registry.errors import RegistryError

VACUUM_TABLES: Final = (
    "sources",
    "skills",
    "documents",
    "skill_files",
    "skill_tags",
    "search_texts",
    "diagnostics",
)

QUIET_SECONDS: Final = 120
"""Maximum idle time of a transaction that doesn't hold the lock of writers, in seconds."""

_LOCK: Final = "LOCK TABLE data_version IN EXCLUSIVE MODE"
"""Statement that takes the lock of all writers.

A role needs the right to update this table, and only writers have this right. An advisory lock
isn't suitable, because every role that can connect could take it. Readers don't wait for this lock.
"""

_ALONE: Final = (_LOCK, "UPDATE data_version SET number = number + 1")

_JOIN: Final = (
    # The timeout is shorter than the server's deadlock_timeout. So this transaction gives up, and
    # not the other writer.
    "SET LOCAL lock_timeout = '900ms'",
    *_ALONE,
    f"SET LOCAL lock_timeout = '{WRITE_SECONDS:g}s'",
    f"SET LOCAL idle_in_transaction_session_timeout = '{remote.IDLE_SECONDS}s'",
)
"""Statements that take the lock of writers in a transaction that has already changed rows."""


class Dialect(PGDialect_psycopg):
    """SQLAlchemy's dialect for psycopg, without queries for values that the driver has."""

    supports_statement_cache = True

    def initialize(self, connection: Connection) -> None:
        """Take the values that the driver received when it connected."""
        driver: Any = connection.connection.driver_connection
        number = driver.info.server_version
        self.server_version_info = (number // 10000, number % 10000)
        self.default_isolation_level = "READ COMMITTED"
        self._backslash_escapes = False


_DIALECT: Final = "postgresql+skill_registry://"

dialects.register("postgresql.skill_registry", __name__, Dialect.__name__)


def make_engine(address: Address) -> Engine:
    """Return an SQLAlchemy engine for the database at ``address``, without a connection pool.

    SQLAlchemy manages the transactions, and each transaction first sets the schema's search path.
    """

    def connect() -> psycopg.Connection[Any]:
        return remote.connect(address, f"skill-registry {os.getpid()}")

    engine = create_engine(_DIALECT, creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def settle(connection: Connection) -> None:
        connection.exec_driver_sql(*remote.settings_of(address, {}))

    return engine


def _patient_engine(address: Address) -> Engine:
    """Return an SQLAlchemy engine with a connection pool.

    Its connections are `Session` objects, which manage transactions themselves.
    """

    def connect() -> Session:
        return Session.open(address, remote.WRITING, f"skill-registry {os.getpid()}")

    # Two connections stay open: a sync stores two batches at once.
    engine = create_engine(_DIALECT, creator=connect, pool_size=2)

    @event.listens_for(engine, "checkout")
    def check(session: Session, record: ConnectionPoolEntry, _: object) -> None:
        # If the first statement of a new connection fails, raise the error and don't reconnect.
        is_new = "used" not in record.info
        record.info["used"] = True
        if not is_new and not session.is_alive:
            raise DisconnectionError

    return engine


class PostgresWriter(Writer):
    """Writes to the database at ``address``, one transaction at a time, as on SQLite.

    The server holds the lock and releases it at the end of the transaction. So if a client dies,
    other clients don't wait. If a client is suspended, they wait only until the server's timeout
    for idle transactions. Each transaction increments `data_version`, and so readers notice the
    changes.
    """

    def __init__(self, address: Address, host: str) -> None:
        super().__init__(address.shown, host, _patient_engine(address))
        reopen_in_child(self)

    def forked(self, *, idle: bool) -> None:  # noqa: ARG002  # the parent's connections stay open
        """Don't use or close the inherited connections, which the parent still uses.

        See `registry.db.forks`.
        """
        self._engine.dispose(close=False)

    def reserve(self, count: int) -> int:
        with self.transaction(quiet=True) as connection:
            connection.exec_driver_sql(_LOCK)
            found = index.ask_later(connection, f"SELECT {index.NEXT_IDS.format(count=count)}", ())
            connection.commit()  # together with the statements above
            return int(found()[0][0])

    def lock(self, connection: Connection) -> None:
        for one in _JOIN:
            connection.exec_driver_sql(one)

    def ask(self, question: Question, wait: float) -> list[Any]:
        """Run one statement in its own transaction, and return its rows.

        ``wait`` is the maximum time to wait for a lock, in seconds. Raises `psycopg.Error`.
        """
        timeout = remote.setting({"lock_timeout": f"{wait:g}s"})
        with closing(self._engine.raw_connection()) as connection:
            session = connection.driver_connection
            assert isinstance(session, Session)  # noqa: S101  # this engine creates sessions only
            return session.ask([timeout, question])[1]

    def update_statistics(self) -> None:
        """Add new rows to their indexes, and update the query planner's statistics.

        The server would do this by itself, but only minutes later.
        """
        with suppress(DBAPIError), self._engine.connect() as connection:
            # Name the schema, because VACUUM runs outside a transaction, where no search path is
            # set.
            schema = "SELECT quote_ident(current_schema())"
            place = connection.exec_driver_sql(schema).scalar_one()
            tables = ", ".join(f"{place}.{table}" for table in VACUUM_TABLES)
            connection.exec_driver_sql(f"VACUUM (ANALYZE) {tables}")

    @contextmanager
    def _begun(self, wait: float, *, quiet: bool) -> Iterator[Connection]:
        with self._engine.connect() as connection:
            session = connection.connection.driver_connection
            assert isinstance(session, Session)  # noqa: S101  # this engine creates sessions only
            who = current_context()
            told = {
                # The minimum is 1, because a timeout of 0 would mean no timeout.
                "lock_timeout": str(max(1, round(wait * 1000))),
                # The server records these settings with each change (migration 0015).
                "skill_registry.host": self.host,
                "skill_registry.tool": who.tool or "",
                "skill_registry.client": who.client or "",
            }
            if quiet:  # no other process waits, so this transaction may be idle for longer
                told["idle_in_transaction_session_timeout"] = f"{QUIET_SECONDS}s"
            session.begin(["BEGIN"])
            session.keep(*remote.setting(told))
            for one in () if quiet else _ALONE:
                session.keep(one)
            with connection.begin():
                yield connection

    def _translate(self, error: DBAPIError, wait: float) -> RegistryError:
        return translate(error, self.path, wait)


_AS_OWNER: Final = """
SELECT set_config('role', r.rolname, true) FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner
WHERE c.oid = to_regclass('skills') AND has_schema_privilege(r.oid, c.relnamespace, 'CREATE')
AND pg_has_role(r.oid, CASE WHEN CAST(current_setting('server_version_num') AS integer) >= 160000
    THEN 'SET' ELSE 'MEMBER' END)
"""
"""Statement that makes the owner of the tables the current role.

Otherwise other roles couldn't use a table that an admin creates.
"""

_FIRST_TABLE: Final = """
CREATE TABLE IF NOT EXISTS alembic_version (
    version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)
"""
"""Statement that creates Alembic's table, which is the first table of a registry.

If two processes run it at once, the second process waits for the first, and then gets an error.
"""

_MADE_MEANWHILE: Final = frozenset({"23505", "42P07", "42710"})
"""SQLSTATEs of the error if another process has created the table in the meantime."""

_UPGRADE_LOCK: Final = "LOCK TABLE alembic_version IN EXCLUSIVE MODE"


def ensure_current(address: Address) -> None:
    """Create the schema at ``address``, or upgrade it if it isn't current, in one transaction.

    New tables belong to the role that owns the existing tables. Several processes may call this
    function at once; they wait for each other. Only the owner of the tables can take the lock for
    an upgrade. Raises `DatabaseProblem` and its subclasses.
    """
    path = address.shown
    engine = make_engine(address)
    try:
        try:
            _upgrade(engine, path)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in _MADE_MEANWHILE:
                raise
            # Another process has created the first table, so this attempt can take the lock.
            _upgrade(engine, path)
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
        connection.exec_driver_sql(_UPGRADE_LOCK)
        if _state(connection, path) is not State.CURRENT:
            run_migrations(connection)
            for one in granting_again(partial(select_rows, connection)):
                connection.exec_driver_sql(one, execution_options={"no_parameters": True})


def _state(connection: Connection, path: str) -> State:
    facts = connection.exec_driver_sql(FACTS).one()
    is_there = facts[-2]
    revision = connection.exec_driver_sql(REVISION).scalar() if is_there else None
    return schema_state(facts, revision, path)
