"""A connection to a server, in which what returns nothing travels with what does.

Each answer that is waited for costs the way to the server and back; within a transaction
everybody else waits for it, too. So a transaction of a `Session` keeps the statements that return
no rows, and sends them together with the next one that does, or with its end. What is kept is sent
in one go: a client that is suspended does not leave the server amid it, where no timeout holds.

What the server is told of a connection it is told anew in each transaction, and holds until its
end: behind a pooler the next transaction is on another connection, and the next on this one may be
another program's.
"""

import select
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self, TypeAlias

import psycopg
from psycopg.pq import TransactionStatus

from registry.db.postgres.dialect import Address

_ALONE: Final = "VACUUM"
"""How a statement begins that can't be in a transaction with others."""

_RETURNING: Final = ("SELECT", "FETCH", "SHOW")

_SETTINGS: Final = {
    # Long texts lie beside their tables. That a scan of a table reads them, while an index
    # knows the answer, is beyond the planner: it takes the scan for the cheaper way.
    "enable_seqscan": "off",
    "jit": "off",
}

READING: Final = {"transaction_read_only": "on"}

IDLE_SECONDS: Final = 10
"""How long a transaction that holds the lock of all writers may do nothing; they wait longer."""

WRITING: Final = {"idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s"}

MAX_VALUES: Final = 5000
"""So many values are held in memory, of statements that are kept."""

_KEEPALIVES: Final = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}

Question: TypeAlias = tuple[str, Sequence[object] | None]
"""A statement with psycopg's placeholders, and its values; None: it has no placeholders."""


Kept: TypeAlias = tuple[psycopg.Cursor[Any], Any, Any]
"""A statement that was not sent yet: the cursor for its rows, its text, its values."""


class Session(psycopg.Connection[Any]):
    """A connection, all of whose statements go through a pipeline; each transaction `begin` begins.

    The pipeline is never left: the driver sends a message with its end, after which a server of
    some version forgets that the transaction was to end when nothing is done in it.
    """

    _kept: list[Kept] | None = None
    _values = 0
    _settings: Question

    @classmethod
    def open(cls, address: Address, settings: dict[str, str], name: str | None = None) -> Self:
        """Connect; raises `psycopg.Error`. The ``settings`` hold in each transaction."""
        found = cls.connect(**parameters(address, name), autocommit=True, cursor_factory=Patient)
        found.enter(settings_of(address, settings))
        return found

    def enter(self, settings: Question) -> None:
        """Begin the pipeline, which is not the context of the driver: that must be left.

        ``settings``: see `settings_of`.
        """
        self._settings = settings
        self._pipeline = psycopg.Pipeline(self)
        self._pipeline.__enter__()

    @property
    def is_alive(self) -> bool:
        """Whether nothing was said since it was used, as a server does that ends it."""
        if self.closed or self.pgconn.transaction_status != TransactionStatus.IDLE:
            return False
        said = select.poll()
        said.register(self.fileno(), select.POLLIN)
        return not said.poll(0)

    @property
    def is_keeping(self) -> bool:
        """Whether statements are kept, since `begin`."""
        return self._kept is not None

    def begin(self, statements: Iterable[str]) -> None:
        """Begin a transaction with these statements, which are sent with what follows.

        Without any, what is sent together is one.
        """
        self._kept = []
        for one in statements:
            self.keep(one)

    def keep(
        self, query: Any, values: Any = None, cursor: psycopg.Cursor[Any] | None = None
    ) -> psycopg.Cursor[Any]:
        """Keep a statement; return the cursor that is given what it returns."""
        if self._kept is None:
            self._kept = []
        cursor = psycopg.Cursor(self) if cursor is None else cursor
        self._kept.append((cursor, query, values))
        self._values += sum(len(one) if isinstance(one, list) else 1 for one in values or ())
        if self._values > MAX_VALUES:
            self.send()
        return cursor

    def send(self) -> None:
        """Send what was kept, and take what is answered."""
        kept, self._kept = self._kept or [], []
        self._values = 0
        if kept and self.pgconn.transaction_status == TransactionStatus.IDLE:
            self._settle(kept)
        assert self._pipeline is not None  # noqa: S101  # it is never left
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

    def _settle(self, kept: list[Kept]) -> None:
        """Put the settings in the place where a transaction begins."""
        first = str(kept[0][1])
        if not first.startswith(_ALONE):
            place = 1 if first.startswith("BEGIN") else 0
            kept.insert(place, (psycopg.Cursor(self), *self._settings))

    def ask(self, questions: Iterable[Question]) -> list[list[Any]]:
        """Return the rows of statements that are sent together."""
        cursors = [self.keep(*one) for one in questions]
        self.send()
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]

    def commit(self) -> None:
        """Commit the transaction that `begin` began, if it did."""
        if self._kept is not None:
            self.keep("COMMIT")
            self.send()
            self._kept = None

    def rollback(self) -> None:
        """Undo the transaction, if the server still knows of one; what was kept is forgotten."""
        self._kept = None
        if self.pgconn.transaction_status != TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                self.ask([("ROLLBACK", None)])
        self._kept = None


class Patient(psycopg.Cursor[Any]):
    """A cursor of a `Session`, whose statements wait in a transaction unless they return rows."""

    def execute(self, query: Any, params: Any = None, **_more: Any) -> Self:
        """Execute a statement, or keep it to be executed with a later one."""
        session = self.connection
        assert isinstance(session, Session)  # noqa: S101  # it makes these
        is_alone = not session.is_keeping
        if is_alone or query.lstrip().upper().startswith(_RETURNING) or "RETURNING" in query:
            session.keep(query, params, self)
            session.send()
            if is_alone:
                session.rollback()  # nothing is undone: there is no transaction
        else:  # by another cursor: this one may be closed by then
            session.keep(query, params)
        return self

    def executemany(
        self,
        query: Any,
        params_seq: Iterable[Any],
        *,
        returning: bool = False,  # noqa: ARG002
    ) -> None:
        """Execute a statement for each of the rows of values, or keep all that."""
        session = self.connection
        assert isinstance(session, Session)  # noqa: S101  # it makes these
        for params in params_seq:
            session.keep(query, params)


def connect(address: Address, name: str) -> psycopg.Connection[Any]:
    """Return a connection that is the driver's own; raises `psycopg.Error`."""
    return psycopg.connect(**parameters(address, name))


def settings_of(address: Address, settings: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the statement that settles a transaction, to be its first."""
    # What the address says comes last, and counts.
    return setting({**_SETTINGS, **settings, **address.settings})


def setting(told: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Return the statement by which settings hold until the end of the transaction."""
    calls = ", ".join(["set_config(%s, %s, true)"] * len(told))
    return f"SELECT {calls}", tuple(part for pair in told.items() for part in pair)


def parameters(address: Address, name: str | None) -> dict[str, Any]:
    """Return the arguments for psycopg.connect().

    ``name``: what the server calls the connection, where the address says nothing.
    """
    found = _KEEPALIVES | address.parameters
    if name is not None:
        found = {"application_name": name} | found
    # A statement that is planned once for all values is planned badly for many, and one that is
    # kept on the server would be missed behind a pooler. Texts are not to be what an environment or
    # a server's settings make of them.
    return found | {"prepare_threshold": None, "client_encoding": "utf8"}
