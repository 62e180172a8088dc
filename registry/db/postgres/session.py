"""A connection that sends statements without results together with later statements.

Waiting for a result takes a round trip to the server. While a transaction waits, all other writers
wait as well. So a `Session` queues the statements of a transaction that return no rows. It sends
them with the next statement that returns rows, or at the end of the transaction.

A `Session` sends the whole queue at once. The server's timeouts don't apply in the middle of the
queue. But the server doesn't wait for the client there, even if the client is suspended.

Each transaction sends the connection's settings again, and they end with the transaction. Behind a
pooler, the next transaction may use another connection, and this connection may go to another
program.
"""

import select
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self, TypeAlias

import psycopg
from psycopg.pq import TransactionStatus

from registry.db.postgres.dialect import Address

_ALONE: Final = "VACUUM"
"""First word of a statement that can't run in a transaction."""

_RETURNING: Final = ("SELECT", "FETCH", "SHOW")

_SETTINGS: Final = {
    # PostgreSQL stores long texts outside the rows of a table, and the planner ignores the cost of
    # reading them. So the planner would prefer a table scan to a suitable index.
    "enable_seqscan": "off",
    "jit": "off",
}

READING: Final = {"transaction_read_only": "on"}

IDLE_SECONDS: Final = 10
"""Maximum idle time of a transaction that holds the lock of writers, in seconds.

All other writers wait until the transaction ends.
"""

WRITING: Final = {"idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s"}

MAX_VALUES: Final = 50_000
"""Maximum number of values in queued statements.

With more values, the queue is sent immediately.
"""

_KEEPALIVES: Final = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}

Question: TypeAlias = tuple[str, Sequence[object] | None]
"""A statement with psycopg's placeholders, and its values.

The values are None if it has no placeholders.
"""


Kept: TypeAlias = tuple[psycopg.Cursor[Any], Any, Any]
"""A queued statement: the cursor for its rows, its text, its values."""


class Session(psycopg.Connection[Any]):
    """A connection that sends all statements through a pipeline; `begin` starts a transaction.

    The pipeline is never closed. To close it, the driver would send a message after which some
    versions of the server don't end an idle transaction.
    """

    _kept: list[Kept] | None = None
    _required: tuple[tuple[psycopg.Cursor[Any], Exception], ...] = ()
    _values = 0
    _settings: Question

    @classmethod
    def open(cls, address: Address, settings: dict[str, str], name: str | None = None) -> Self:
        """Connect to the database; each transaction applies the ``settings``.

        Raises `psycopg.Error` if the connection fails.
        """
        found = cls.connect(**parameters(address, name), autocommit=True, cursor_factory=Patient)
        found.enter(settings_of(address, settings))
        return found

    def enter(self, settings: Question) -> None:
        """Start the pipeline.

        This method doesn't use the driver's context manager, which would close the pipeline.
        ``settings`` is the result of `settings_of`.
        """
        self._settings = settings
        self._pipeline = psycopg.Pipeline(self)
        self._pipeline.__enter__()

    @property
    def is_alive(self) -> bool:
        """Whether the connection seems open and idle.

        A server sends a message before it closes a connection, so an unread message means that the
        connection is closed.
        """
        if self.closed or self.pgconn.transaction_status != TransactionStatus.IDLE:
            return False
        said = select.poll()
        said.register(self.fileno(), select.POLLIN)
        return not said.poll(0)

    @property
    def is_keeping(self) -> bool:
        """Whether a transaction, which `begin` started, is open and queues statements."""
        return self._kept is not None

    def begin(self, statements: Iterable[str]) -> None:
        """Begin a transaction with these statements, and send them with the next query.

        If ``statements`` is empty, the next statements that are sent together form one transaction.
        """
        self._kept = []
        for one in statements:
            self.keep(one)

    def keep(
        self, query: Any, values: Any = None, cursor: psycopg.Cursor[Any] | None = None
    ) -> psycopg.Cursor[Any]:
        """Queue a statement, and return the cursor that will receive its rows."""
        if self._kept is None:
            self._kept = []
        cursor = psycopg.Cursor(self) if cursor is None else cursor
        self._kept.append((cursor, query, values))
        self._values += sum(len(one) if isinstance(one, list) else 1 for one in values or ())
        if self._values > MAX_VALUES:
            self.send()
        return cursor

    def require(self, question: Question, problem: Exception) -> None:
        """Queue a statement of a transaction; if it returns no row, raise ``problem``.

        The error is raised when the statement has been sent, and always before the commit.
        """
        self._required += ((self.keep(*question), problem),)

    def send(self) -> None:
        """Send the queued statements, and read their results."""
        kept, self._kept = self._kept or [], []
        required, self._required = self._required, ()
        self._values = 0
        if kept and self.pgconn.transaction_status == TransactionStatus.IDLE:
            self._settle(kept)
        assert self._pipeline is not None  # noqa: S101  # `enter` sets it
        first: psycopg.Error | None = None
        try:
            for cursor, query, values in kept:
                psycopg.Cursor.execute(cursor, query, values)
        except psycopg.Error as error:
            first = error
        try:
            self._pipeline.sync()
        except psycopg.Error as error:
            first = first or error
        if first is not None:
            raise first
        for cursor, problem in required:
            if not cursor.fetchone():
                raise problem

    def _settle(self, kept: list[Kept]) -> None:
        """Insert the statement for the connection's settings at the beginning of the queue."""
        first = str(kept[0][1])
        if not first.startswith(_ALONE):
            place = 1 if first.startswith("BEGIN") else 0
            kept.insert(place, (psycopg.Cursor(self), *self._settings))

    def ask(self, questions: Iterable[Question]) -> list[list[Any]]:
        """Send statements together, and return the rows of each statement."""
        cursors = [self.keep(*one) for one in questions]
        self.send()
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]

    def commit(self) -> None:
        """Commit the transaction that `begin` started; do nothing if there is none."""
        if self._kept is not None:
            if self._required:
                self.send()
            self.keep("COMMIT")
            self.send()
            self._kept = None

    def rollback(self) -> None:
        """Roll back the transaction if the server has begun it, and discard queued statements."""
        self._kept, self._required = None, ()
        if self.pgconn.transaction_status != TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                self.ask([("ROLLBACK", None)])
        self._kept = None


class Patient(psycopg.Cursor[Any]):
    """A cursor of a `Session` that queues statements in a transaction if they return no rows."""

    def execute(self, query: Any, params: Any = None, **_more: Any) -> Self:
        """Execute a statement; in a transaction, queue it if it returns no rows."""
        session = self.connection
        assert isinstance(session, Session)  # noqa: S101  # a session creates its cursors
        is_alone = not session.is_keeping
        if is_alone or query.lstrip().upper().startswith(_RETURNING) or "RETURNING" in query:
            session.keep(query, params, self)
            session.send()
            if is_alone:
                session.rollback()  # this only empties the queue, because there is no transaction
        else:  # use another cursor, because this cursor may be closed before the statement is sent
            session.keep(query, params)
        return self

    def executemany(
        self,
        query: Any,
        params_seq: Iterable[Any],
        *,
        returning: bool = False,  # noqa: ARG002
    ) -> None:
        """Queue the statement once for each row of values."""
        session = self.connection
        assert isinstance(session, Session)  # noqa: S101  # a session creates its cursors
        for params in params_seq:
            session.keep(query, params)


def connect(address: Address, name: str) -> psycopg.Connection[Any]:
    """Return a plain psycopg connection. Raises `psycopg.Error`."""
    return psycopg.connect(**parameters(address, name))


def settings_of(address: Address, settings: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the statement that begins each transaction and applies the settings."""
    # The settings in the address come last, so that they override the others.
    return setting({**_SETTINGS, **settings, **address.settings})


def setting(told: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the statement that changes settings until the end of the transaction."""
    calls = ", ".join(["set_config(%s, %s, true)"] * len(told))
    return f"SELECT {calls}", tuple(part for pair in told.items() for part in pair)


def parameters(address: Address, name: str | None) -> dict[str, Any]:
    """Return the arguments for psycopg.connect().

    ``name`` is the connection's application name, unless the address contains one.
    """
    found = _KEEPALIVES | address.parameters
    if name is not None:
        found = {"application_name": name} | found
    # Prepared statements are off: one query plan can't suit all values, and behind a pooler the
    # prepared statement may be missing. The encoding is fixed, so that settings of the environment
    # or the server don't change it.
    return found | {"prepare_threshold": None, "client_encoding": "utf8"}
