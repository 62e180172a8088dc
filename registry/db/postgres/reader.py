"""Read from a PostgreSQL server; all threads of a process share a few connections."""

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from registry.db.forks import reopen_in_child
from registry.db.interface import MAX_CACHED_RESULTS, Reader, Select, State, storable
from registry.db.postgres.dialect import (
    FACTS,
    REVISION,
    Address,
    schema_state,
    to_pyformat,
    translate,
)
from registry.db.postgres.search import VectorIndex
from registry.db.read.journal import UNFINISHED
from registry.errors import DatabaseUnreachable

if TYPE_CHECKING:
    from registry.db.postgres.session import Question, Session

MAX_CONNECTIONS: Final = 20
"""Maximum number of connections for reading in one process."""

KEPT_CONNECTIONS: Final = 5
"""Number of idle connections that stay open."""

IDLE_SECONDS: Final = 60
"""Maximum idle time of a connection, in seconds, if more than `KEPT_CONNECTIONS` are open."""

WAIT_SECONDS: Final = 30
"""Maximum time that a thread waits for a free connection, in seconds."""

MAX_CHANGES: Final = 5000
"""Maximum number of changes that a reader gets; to read everything is faster than more of them."""

T = TypeVar("T")

_AT_ONCE: Final = 1000
"""Number of rows that a stream fetches in one round trip."""

_NUMBERS: Final = count()
"""Numbers for unique cursor names; several threads can call ``next`` safely."""

_PLACE: Final = (
    "SELECT token, CAST(pg_current_snapshot() AS text), registry_sees_all(), registry_teams(), "
    "EXISTS (SELECT 1 FROM commits c WHERE c.token = ?) "
    "AND forgotten < pg_snapshot_xmin(CAST(? AS pg_snapshot)) FROM data_version"
)
"""SELECT for a `_Place`, and whether `commits` has all transactions since an earlier place.

If the token of the earlier place isn't there, the server was restored without that transaction.
"""

_LATER: Final = (
    "xid >= pg_snapshot_xmin(CAST(? AS pg_snapshot)) "
    "AND NOT pg_visible_in_snapshot(xid, CAST(? AS pg_snapshot))"
)

_CHANGED: Final = (
    f"SELECT CAST(NULL AS bigint[]) FROM commits WHERE everything AND {_LATER} "
    f"UNION ALL SELECT skills FROM commit_skills WHERE {_LATER}"
)
"""SELECT for the changes that an earlier snapshot didn't see; NULL if everything may have changed.

A number for each transaction wouldn't do: transactions don't end in the order of their numbers.
"""

_VERSION: Final[Select] = ("SELECT token FROM data_version", ())

NO_VERSION: Final = -1

_COUNTING: Final = "SELECT d.token, CASE WHEN d.token <> ? THEN ({}) END FROM data_version d"

_BEGIN: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class _Place(NamedTuple):
    """The state of the registry in a snapshot, and what this role may see.

    ``token`` is the server's random number for the state. ``sees_all`` and ``teams`` are the
    role's rights.
    """

    token: int
    snapshot: str
    sees_all: bool
    teams: list[str]

    @property
    def rights(self) -> tuple[bool, list[str]]:
        return self.sees_all, self.teams


class PostgresReader(Reader):
    """Reads the database at ``address``.

    If the server closed an idle connection, opens a new one.
    """

    # The condition uses an array parameter. With a list of values, a server with row policies would
    # check every row.
    in_json_array = (
        "= ANY (ARRAY(SELECT CAST(value AS BIGINT) FROM json_array_elements_text(CAST(? AS json))))"
    )
    json_each = "json_array_elements(CAST({} AS json))"
    json_item = "(e.value ->> {})"
    listed = (
        "SELECT coalesce(sum(t.listed), 0) FROM totals t JOIN sources src ON src.id = t.source_id "
        "WHERE src.enabled = 1"
    )
    own = own_yanked = "CASE WHEN src.owner = (SELECT CAST(session_user AS text)) THEN 1 ELSE 0 END"

    def __init__(self, address: Address) -> None:
        super().__init__(address.shown)
        self._address = address
        self.index = VectorIndex()
        self.forked(idle=True)
        reopen_in_child(self)

    def forked(self, *, idle: bool) -> None:  # noqa: ARG002  # the parent's connections stay open
        """Don't use or close the inherited connections, which the parent still uses.

        See `registry.db.forks`.
        """
        # Keep references to the inherited connections, because the driver prints a warning for each
        # connection that is dropped without being closed.
        self._inherited = [*getattr(self, "_inherited", ()), *getattr(self, "_open", ())]
        self._open: set[Session] = set()
        # each connection with the time of its last use
        self._free: list[tuple[Session, float]] = []
        self._ahead: list[tuple[Any, ...]] | None = None
        self._turns = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._local = threading.local()

    def state(self) -> State:
        import psycopg

        def ask(session: "Session") -> tuple[Any, Any]:
            with suppress(psycopg.errors.UndefinedTable):
                along = _question(*UNFINISHED)
                facts, revision, found = session.ask([(FACTS, None), (REVISION, None), along])
                self._ahead = found
                return facts[0], revision[0][0]
            return session.ask([(FACTS, None)])[0][0], None

        return schema_state(*self._asked(ask), self.path)

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        if self.empty:
            return []
        ahead, self._ahead = self._ahead, None
        if ahead is not None and sql == UNFINISHED[0]:
            return ahead  # `state` has already read these rows
        return self._ask([_question(sql, parameters)])[0]

    def many(self, questions: Sequence[Select]) -> list[list[Any]]:
        if self.empty:
            return [[] for _ in questions]
        asked = [_question(*one) for one in questions]
        if self._pinned is not None or len(asked) == 1:
            return self._ask(asked)
        whole: list[Question] = [(_BEGIN, None), *asked, ("COMMIT", None)]
        return self._asked(lambda session: session.ask(whole))[1:-1]

    def pipeline(self, question: Select) -> "Callable[[], list[tuple[Any, ...]]]":
        pinned = self._pinned
        if pinned is None or self.empty:
            return super().pipeline(question)
        return pinned.add(_question(*question), self._ask)

    def finish(self) -> None:
        if self._pinned is not None:
            self._pinned.is_leaving = True

    def _ask(self, questions: "Sequence[Question]") -> list[list[Any]]:
        """Send statements together with the snapshot's queued statements, and return their rows."""
        pinned = self._pinned
        if pinned is None:
            return self._asked(lambda session: session.ask(questions))
        waiting, pinned.waiting = pinned.waiting, []
        whole = [*questions, *(question for question, _ in waiting)]
        end: list[Question] = [("COMMIT", None)] if pinned.is_leaving else []
        found = self._asked(lambda session: session.ask([*whole, *end]))
        for (_, answer), rows in zip(waiting, found[len(questions) :], strict=False):
            answer.append(rows)
        if end and pinned.session is not None:
            session, pinned.session, pinned.is_leaving = pinned.session, None, False
            self._give(session)
        return found[: len(questions)]

    def page(
        self, page: Select, count: Select, along: Select | None = None
    ) -> tuple[list[tuple[Any, ...]], int, list[tuple[Any, ...]]]:
        if self.empty or self._pinned is not None:
            return super().page(page, count, along)
        counted: dict[Hashable, tuple[int, int]] = self._local.__dict__.setdefault("counted", {})
        key = count[0], tuple(count[1])
        version, total = counted.get(key, (NO_VERSION, 0))
        # The server runs the slow count only if the version has changed.
        counting = _COUNTING.format(count[0]), [version, *count[1]]
        rows, ((now, found),), *told = self.many([page, counting, *([along] if along else [])])
        if now != version:
            if len(counted) >= MAX_CACHED_RESULTS:
                counted.clear()
            total = int(found)
            counted[key] = now, total
        return rows, total, told[0] if told else []

    def stream(self, sql: str, parameters: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """Yield the rows of a SELECT.

        Within a `snapshot`, read the rows through a cursor, because a cursor needs a transaction.
        """
        if self._pinned is None or self.empty:
            return iter(self.rows(sql, parameters))
        return self._stepwise(sql, parameters)

    def _stepwise(self, sql: str, parameters: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        # Two cursors on one connection need different names.
        name = f"rows_{next(_NUMBERS)}"
        declared, values = _question(sql, parameters)
        declared = f"DECLARE {name} NO SCROLL CURSOR FOR {declared}"
        fetch: Question = (f"FETCH {_AT_ONCE} FROM {name}", None)
        found = self._asked(lambda session: session.ask([(declared, values), fetch]))[1]
        while True:
            yield from found
            if len(found) < _AT_ONCE:
                return
            found = self._asked(lambda session: session.ask([fetch]))[0]

    def version(self) -> int | None:
        """Return the random number that the server gave to the last change of the registry.

        After a restore, or if a replica takes over, the number differs from the number before.
        """
        if self.empty:
            return None
        pinned = self._pinned
        return int((self.rows(*_VERSION) if pinned is None else pinned.version())[0][0])

    def changes_since(self, place: object) -> tuple[object, list[int] | None]:
        before = place if isinstance(place, _Place) else None
        (row,) = self.rows(_PLACE, (before and before.token, before and before.snapshot))
        now = _Place(*row[:-1])
        if before is None or not row[-1] or before.rights != now.rights:
            return now, None
        found = [ids for (ids,) in self.rows(_CHANGED, [before.snapshot] * 4)]
        if None in found or sum(map(len, found)) > MAX_CHANGES:
            return now, None
        return now, sorted({one for ids in found for one in ids})

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        if self.empty or self._pinned is not None:
            yield
            return
        pinned = self._local.pinned = _Pinned()
        # Most snapshots need the version, so send the query for it with their first SELECT.
        pinned.version = pinned.add(_question(*_VERSION), self._ask)
        try:
            yield
        finally:
            self._local.pinned = None
            if pinned.session is not None:
                self._end(pinned.session)

    def close(self) -> None:
        free, self._free, self._open = self._free, [], set()
        for session, _ in free:
            session.close()  # a connection that is in use is closed after its use
        self._local = threading.local()

    @property
    def _pinned(self) -> "_Pinned | None":
        return getattr(self._local, "pinned", None)

    def _asked(self, ask: "Callable[[Session], T]") -> T:
        """Call ``ask`` with a connection, and return its result.

        Within a snapshot, this is the connection of the snapshot.

        If the server closed an idle connection, try another connection. If even a new connection
        fails, raise the error.
        """
        pinned = self._pinned
        if pinned is not None and pinned.session is not None:
            return self._answer(pinned.session, ask)
        while True:
            session, is_new = self._take()
            try:
                session.begin([_BEGIN] if pinned is not None else [])
                found = self._answer(session, ask)
            except DatabaseUnreachable:
                self._drop(session)
                if is_new:
                    raise
            except BaseException:
                self._drop(session)
                raise
            else:
                if pinned is None:
                    self._give(session)
                else:
                    pinned.session = session
                return found

    def _answer(self, session: "Session", ask: "Callable[[Session], T]") -> T:
        import psycopg

        try:
            return ask(session)
        except psycopg.Error as error:
            raise translate(error, self.path, 0) from error

    def _end(self, session: "Session") -> None:
        import psycopg

        try:
            session.commit()
        except psycopg.Error:  # all rows were read before the error, so ignore the error
            self._drop(session)
        else:
            self._give(session)

    def _take(self) -> "tuple[Session, bool]":
        """Return a connection, which is idle or new, and whether it is new."""
        import psycopg

        from registry.db.postgres.session import READING, Session

        if not self._turns.acquire(timeout=WAIT_SECONDS):
            reason = f"all {MAX_CONNECTIONS} connections of this process are in use"
            raise DatabaseUnreachable(path=self.path, reason=reason)
        try:
            while self._free:
                with suppress(IndexError):  # another thread took the connection
                    session, _ = self._free.pop()
                    if session.is_alive:
                        return session, False
                    self._open.discard(session)
                    session.close()
            session = Session.open(self._address, READING)
            self._open.add(session)
        except psycopg.Error as error:
            self._turns.release()
            raise translate(error, self.path, 0) from error
        except BaseException:
            self._turns.release()
            raise
        return session, True

    def _give(self, session: "Session") -> None:
        session.rollback()
        if session in self._open and len(self._free) < KEPT_CONNECTIONS and not session.closed:
            self._free.append((session, time.monotonic()))
            self._turns.release()
        else:
            self._drop(session)
        with suppress(IndexError):  # another thread took the connection
            while len(self._free) > 1 and self._free[0][1] < time.monotonic() - IDLE_SECONDS:
                unused, _ = self._free.pop(0)
                self._open.discard(unused)
                unused.close()

    def _drop(self, session: "Session") -> None:
        self._open.discard(session)
        session.close()
        self._turns.release()


class _Pinned:
    """The connection of a snapshot, which the snapshot takes at its first SELECT.

    ``version`` returns the rows of the query for the data version. ``waiting`` holds the queued
    statements, each with the list that will receive its rows.
    """

    session: "Session | None" = None
    version: "Callable[[], list[Any]]"
    is_leaving = False

    def __init__(self) -> None:
        self.waiting: list[tuple[Question, list[list[Any]]]] = []

    def add(
        self, question: "Question", ask: "Callable[[Sequence[Question]], object]"
    ) -> "Callable[[], list[Any]]":
        """Queue a statement, and return a function that returns its rows.

        If the statement is still queued, that function sends it.
        """
        answer: list[list[Any]] = []
        self.waiting.append((question, answer))

        def rows() -> list[Any]:
            if not answer:
                ask([])
            return answer[0]

        return rows


def _question(sql: str, parameters: Sequence[object]) -> "Question":
    return (to_pyformat(sql), storable(parameters)) if parameters else (sql, None)
