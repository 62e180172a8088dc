"""The interface of a database, which SQLite and PostgreSQL implement.

Both databases share most SQL statements, which have ``?`` for values. If the databases need
different SQL, a class in this file has an attribute or method for it. The packages ``db/sqlite``
and ``db/postgres`` implement the classes. Both use the same file names: for example, each has a
``reader.py``.
"""

import copy
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
)

from registry.db.visibility import EVERYTHING, Precedence, Visibility
from registry.errors import DatabaseTooNew, DatabaseTooOld, RegistryError
from registry.model import Value

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError

KNOWN_REVISIONS: Final = tuple(
    "0015 0016 0019 0020 0021 0022 0023 0024 0025 0026 0027 0028 0029 0030 0031 0032 0033".split()
)
"""All migrations, the oldest first; a test compares this list with the migrations folder.

Databases of earlier revisions exist only on developers' machines.
"""

SCHEMA_REVISION: Final = KNOWN_REVISIONS[-1]


class State(Enum):
    """The state of a database's schema: missing, older than this program, or current."""

    EMPTY = "empty"
    BEHIND = "behind"
    CURRENT = "current"

    @classmethod
    def of(cls, revision: str | None, path: str) -> Self:
        """Return the state of a schema at ``revision``, which is None if there is no schema.

        Raises `DatabaseTooNew` or `DatabaseTooOld` for a revision that this program doesn't know.
        """
        if revision is None:
            return cls("empty")
        if revision not in KNOWN_REVISIONS:
            is_newer = revision.isdecimal() and revision > SCHEMA_REVISION
            problem = DatabaseTooNew if is_newer else DatabaseTooOld
            raise problem(path=path, revision=revision)
        return cls("current" if revision == SCHEMA_REVISION else "behind")


MAX_INTEGER: Final = (1 << 63) - 1
"""Largest integer that a database can store."""


def storable(parameters: Sequence[object]) -> list[object]:
    """Replace parameter values that the database can't store, so that the query finds nothing.

    Without this, the query would fail. The database can't store surrogates or NUL in text, or
    integers of more than 64 bits.
    """
    return [
        value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
        if isinstance(value, str)
        else min(max(value, -MAX_INTEGER - 1), MAX_INTEGER)
        if isinstance(value, int)
        else value
        for value in parameters
    ]


class Pattern(NamedTuple):
    """A phrase to search for; if ``prefix``, its last word matches any word that begins with it."""

    words: tuple[str, ...]
    prefix: bool = False


IndexPart: TypeAlias = Literal["heads", "bodies"]
"""The two full-text indexes of skills.

"heads" indexes name, tags and description; "bodies" indexes the Markdown body.
"""

Part: TypeAlias = Literal["name", "tags", "description", "body"]
"""A part of a skill; the search calls name, tags and description together the "head"."""

PARTS: Final[tuple[Part, ...]] = ("name", "tags", "description", "body")

IndexQuery: TypeAlias = tuple[IndexPart, Sequence[Pattern]]
"""A query for one full-text index; a skill matches if it contains at least one of the patterns."""

Condition: TypeAlias = tuple[str, Sequence[object]]
"""An SQL condition on skills ``s`` and sources ``src``, and its values.

See `read.listing.where`.
"""


class SearchTerms(NamedTuple):
    """The words of a query; `catalog.search.rank` decides which of them to search for.

    ``typed`` holds the words that the user typed, each with a prefix to search for if no skill
    contains the word. ``compounds`` holds words to use only if a name, tag or description has them.
    ``lay`` holds synonyms of everyday words. ``foreign`` holds translations.
    """

    typed: Sequence[tuple[Pattern, Pattern | None]]
    compounds: Sequence[Pattern]
    lay: Sequence[Pattern]
    foreign: Sequence[Pattern]


class SearchLimits(NamedTuple):
    """The limits of a search.

    Counting the skills that contain a word stops at ``counted``. ``words`` is the maximum number of
    words to search for in bodies, and ``texts`` is the maximum number of bodies to search.

    If more than ``counted`` bodies contain a word, the search looks for it in bodies only if fewer
    than ``heads`` heads (name, tags, description) contain it. ``half`` is the constant k of
    reciprocal rank fusion, k / (k + rank).
    """

    counted: int
    words: int
    texts: int
    heads: int
    half: int


class HitMetadata(NamedTuple):
    """The data that a search returns with each hit.

    The data are the precedence of the hit's source, its sketch (a MinHash of the skill's text) and
    its head (name, tags and description as one text).
    """

    precedence: Precedence
    sketch: bytes | None
    head: str | None


_UPDATE_VERSIONS: Final = (
    "UPDATE skills SET fingerprint = {0}, racy = CAST({1} AS INTEGER) FROM {each} e "
    "WHERE skills.id = CAST({2} AS INTEGER) AND skills.live = 1"
)

_UPDATE_FILES: Final = (
    "UPDATE skill_files SET mode = CAST({0} AS INTEGER), size = CAST({1} AS BIGINT), "
    "mtime_ns = CAST({2} AS BIGINT), ctime_ns = CAST({3} AS BIGINT), inode = CAST({4} AS BIGINT) "
    "FROM {each} e "
    "WHERE skill_files.skill_id = CAST({5} AS INTEGER) AND skill_files.path = {6}"
)


class StatUpdates(NamedTuple):
    """New file times and sizes of versions whose files have not changed.

    A row of ``versions`` has the values fingerprint, racy, version id. A row of ``files`` has the
    values mode, size, mtime_ns, ctime_ns, inode, version id, path.
    """

    versions: list[tuple[str, int, int]]
    files: list[tuple[int | str, ...]]

    def statements(self, reader: "Reader") -> "list[Select]":
        """Return the SQL statements that store the updates, with their parameters."""
        items = [reader.json_item.format(number) for number in range(7)]
        each = reader.json_each.format("?")
        work = ((_UPDATE_VERSIONS, self.versions), (_UPDATE_FILES, self.files))
        return [(sql.format(*items, each=each), [json.dumps(rows)]) for sql, rows in work if rows]


NO_UPDATES: Final = StatUpdates([], [])


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseInfo(Value):
    """Facts about a database.

    For a file, ``bytes`` includes the write-ahead log. On a server, ``host`` is the name of this
    machine. ``server_version`` is None for a file. The facts about a file are None for a server.

    ``staged`` is the number of versions that readers don't see yet, and ``staged_bytes`` is the
    size of their files. A running sync adds such versions. If a sync is interrupted, its versions
    stay until the next sync on the same machine.

    If ``wal_reset_bug``, this version of SQLite can lose a commit when a checkpoint and a write of
    another program happen at the same time. The registry's own writes are safe, because a lock
    allows only one at a time.
    """

    path: str
    exists: bool
    bytes: int
    revision: str | None
    journal_mode: str | None = None
    sqlite_version: str | None = None
    wal_reset_bug: bool = False
    file_system: str | None = None
    sources: int
    skills: int
    server_version: str | None = None
    host: str | None = None
    staged: int = 0
    staged_bytes: int = 0


class SyncLock(Protocol):
    """The lock that a sync holds.

    Another sync of the same file or host waits for it or gives up.
    """

    def acquire(self, wait: float) -> bool:
        """Try for ``wait`` seconds to take the lock; return False if another process holds it."""

    def owner(self) -> str:
        """Describe the process that holds the lock."""

    def now_ns(self) -> int:
        """Return the current time in nanoseconds, if possible by the clock that sets file times."""

    def assert_held(self, writing: "Connection", /) -> None:
        """Raise `DatabaseProblem` if this process no longer holds the lock.

        Call this method in a writing transaction; ``writing`` is the connection of the transaction.
        """

    def __enter__(self) -> Self:
        """Return this object; the lock is not taken until `acquire` is called."""

    def __exit__(self, *_: object) -> None:
        """Release the lock."""


WRITE_SECONDS = 30.0
"""Maximum time that a writer waits for other writers, in seconds.

A sync uses many short transactions, so other writers wait only for a short time.
"""


class Writer(ABC):
    """Writes to the database at ``path``; ``host`` is the name of this machine.

    A transaction holds a lock until its end, so it sees all earlier transactions. The lock is a
    file lock for SQLite and a table lock on PostgreSQL.
    """

    def __init__(self, path: str, host: str, engine: "Engine") -> None:
        self.path = path
        self.host = host
        self._engine = engine

    @contextmanager
    def transaction(
        self, wait: float | None = None, *, quiet: bool = False
    ) -> "Iterator[Connection]":
        """Run a ``with`` block as one transaction: commit at its end, or roll back if it raises.

        ``wait`` is the maximum time to wait for other writers, in seconds (default
        `WRITE_SECONDS`). If ``quiet``, a transaction on a server neither takes the lock of writers
        nor changes the data version. Use ``quiet`` only for rows that readers ignore.

        Raises `DatabaseProblem` and its subclasses.
        """
        from sqlalchemy.exc import DBAPIError

        wait = WRITE_SECONDS if wait is None else wait
        try:
            with self._begun(wait, quiet=quiet) as connection:
                yield connection
        except DBAPIError as error:
            raise self._translate(error, wait) from error

    def reserve(self, count: int) -> int | None:  # noqa: ARG002
        """Reserve ``count`` ids for new versions, and return the first id.

        Returns None if this database can store new versions only while it holds the lock of
        writers.
        """
        return None

    def lock(self, connection: "Connection") -> None:  # noqa: B027  # a file is locked already
        """Take the lock of writers in a ``quiet`` transaction, so that readers see its changes.

        Raises `DatabaseBusy` after a short wait if another writer waits for rows that this
        transaction changed.
        """

    def update_statistics(self) -> None:  # noqa: B027  # a file needs no update
        """Update the query planner's statistics after large changes."""

    def close(self) -> None:
        """Close the writer's connections."""
        self._engine.dispose()

    @abstractmethod
    def _begun(self, wait: float, *, quiet: bool) -> "AbstractContextManager[Connection]":
        """Take the lock of writers, and begin a transaction."""

    @abstractmethod
    def _translate(self, error: "DBAPIError", wait: float) -> RegistryError:
        """Turn an error of the database driver into an error of this project."""


T = TypeVar("T")

MAX_CACHED_RESULTS: Final = 50
"""Maximum number of results in the cache of one thread (see `Reader.remembered`)."""

UsageRow: TypeAlias = tuple[int | str | None, ...]
"""One skill's new usage counts.

The values are the counts (listed, found, read), the time of each, the source and the folder. A time
is None if it didn't change.
"""

Select: TypeAlias = tuple[str, Sequence[object]]
"""A SELECT and the values of its placeholders."""


class TextIndex(ABC):
    """Queries the full-text index, which finds inflected English words by their stems.

    Some methods take ``among``, the versions that a narrowed view shows; None means all versions.
    If ``among`` is given, counts and weights are computed only from these versions. So results
    reveal nothing about other skills.
    """

    def expect(  # noqa: B027  # a file sends no SELECT ahead
        self,
        reader: "Reader",
        asked: Sequence[SearchTerms],
        condition: Condition,
        most: int,
        to: SearchLimits,
    ) -> None:
        """Send together all SELECTs that a search will need, if the database supports that."""

    def metadata(self, _ids: Sequence[int]) -> dict[int, HitMetadata]:
        """Return the metadata that the search returned with these hits.

        Leave out hits without metadata.
        """
        return {}

    def forget(self) -> None:  # noqa: B027
        """Discard the SELECTs that `expect` sent, and their rows."""

    @abstractmethod
    def size(self, reader: "Reader") -> int:
        """Return the approximate number of indexed skills.

        From this number, the search computes how rare words are.
        """

    @abstractmethod
    def counts(
        self,
        reader: "Reader",
        patterns: Sequence[Pattern],
        most: int,
        among: Collection[int] | None = None,
    ) -> list[tuple[int, int]]:
        """Return for each pattern how many heads and how many bodies contain it.

        Counting stops at ``most``. A head is the name, tags and description of a skill.
        """

    @abstractmethod
    def best(
        self,
        reader: "Reader",
        asked: Sequence[IndexQuery],
        condition: Condition,
        most: int,
        among: Collection[int] | None = None,
    ) -> list[list[int]]:
        """Return for each query the ids of the skills that match it, best first.

        The skills must also meet the condition.
        """

    @abstractmethod
    def parts(
        self, reader: "Reader", skill_id: int, patterns: Sequence[Pattern]
    ) -> list[tuple[Part, ...]]:
        """Return for each pattern the parts of the skill that contain it, such as the name."""

    @abstractmethod
    def vocabulary(self, reader: "Reader", beginning: str) -> list[str]:
        """Return the words in names, tags and descriptions that begin with ``beginning``.

        The words are stems, as the index stores them.
        """

    def known(self, reader: "Reader", words: Sequence[str]) -> list[str]:
        """Return which of these stems occur in names, tags and descriptions."""
        beginnings = {word[:1] for word in words}
        stored = {one for start in beginnings for one in self.vocabulary(reader, start)}
        return [word for word in words if word in stored]


class Reader(ABC):
    """Runs SELECTs; a reader can't write.

    Threads can share a reader, and a forked child can use it. ``path`` is the name of the database
    in messages. While ``empty`` is True, the database doesn't exist yet, and every SELECT returns
    no rows.
    """

    in_json_array: str
    """SQL condition to append to a number: the JSON array in the parameter contains the number."""

    index: TextIndex
    """The full-text index of this database."""

    own: str = "1"
    """SQL expression: 1 if the current role owns the source ``src``, else 0.

    In a file it is always 1.
    """

    own_yanked: str = "1"
    """SQL expression: 1 if this reader shows yanked skills of the source ``src``, else 0.

    Only the owner of a source sees its yanked skills. If a process answers requests of other users,
    it sets this expression to 0.
    """

    def with_yanked(self) -> Self:
        """Return a copy of this reader that shows the yanked skills of all sources."""
        other = copy.copy(self)
        other.own_yanked = "1"
        return other

    listed: str | None = None
    """SELECT that returns how many skills an unfiltered listing shows, from stored totals.

    The caller appends a condition on the source ``src``. The totals don't consider that skills of
    projects shadow other skills. ``listed`` is None if the database stores no totals.
    """

    json_each: str
    """SQL: the elements of the JSON array ``{}`` as a table; the caller adds the alias ``e``."""

    json_item: str
    """SQL expression: element ``{}`` of the array in the current row of ``e``, as text."""

    counted: str = "{}"
    """SQL: the column ``{}`` in the condition of a statement that counts many skills.

    In a file, this keeps the statement from using the column's own index: the index of all counted
    columns (`schema.COUNTED`) takes less time.
    """

    semantic: str | None = None
    """The folder of the model for sentence vectors; None if searches don't use a model."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._empty = False
        self._local = threading.local()

    @property
    def empty(self) -> bool:
        """Whether the database doesn't exist yet.

        Raises the errors of `state`.
        """
        if self._empty:
            self._empty = self.state() is not State.CURRENT
        return self._empty

    @empty.setter
    def empty(self, value: bool) -> None:
        self._empty = value

    @property
    def visibility(self) -> Visibility:
        """The projects whose skills are visible.

        This class shows all projects. For a reader that shows some projects, see
        `db.scoped_reader`.
        """
        return EVERYTHING

    @abstractmethod
    def state(self) -> State:
        """Compare the revision of the schema with the revisions that this program knows.

        For a missing database, return `State.EMPTY`. Raises `DatabaseProblem` and its subclasses.
        """

    @abstractmethod
    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""

    @abstractmethod
    def stream(self, sql: str, parameters: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """Yield the rows of a SELECT, if possible without holding all of them in memory."""

    def many(self, questions: "Sequence[Select]") -> list[list[tuple[Any, ...]]]:
        """Return the rows of each SELECT; all of them see one state of the database."""
        with self.snapshot():
            return [self.rows(*question) for question in questions]

    def pipeline(self, question: Select) -> "Callable[[], list[tuple[Any, ...]]]":
        """Queue a SELECT, so that it is sent together with the snapshot's next SELECT.

        If the database doesn't support this, the SELECT is sent separately. Returns a function that
        returns the rows.
        """
        return lambda: self.rows(*question)

    def finish(self) -> None:  # noqa: B027  # a file sends no SELECT ahead
        """Announce that the next SELECT is the last one of the snapshot.

        The reader then sends the end of the transaction together with this SELECT.
        """

    def query_visible(self, question: "Callable[[Visibility], Select]") -> list[tuple[Any, ...]]:
        """Run the SELECT that ``question`` builds from the `visibility`, and return its rows."""
        return self.rows(*question(self.visibility))

    def stream_visible(
        self, question: "Callable[[Visibility], Select]"
    ) -> Iterable[tuple[Any, ...]]:
        """Yield the rows of `query_visible`, if possible without holding all of them in memory."""
        return self.stream(*question(self.visibility))

    def last_visibility(self) -> Visibility:
        """Return the `visibility` from its last reading, without a query to the server."""
        return self.visibility

    def last_roots(self) -> list[str] | None:
        """Return the folders of this host's sources.

        Returns None unless `query_visible` has just read them.
        """
        return None

    def paged(
        self, question: "Callable[[Visibility], tuple[Select, Select]]"
    ) -> tuple[list[tuple[Any, ...]], int]:
        """Run the two SELECTs that ``question`` builds from the `visibility`.

        The first returns the rows of a page, the second the total number of rows.
        """
        with self.snapshot():
            return self.page(*question(self.visibility))[:2]

    def page(
        self, page: Select, count: Select, along: Select | None = None
    ) -> tuple[list[tuple[Any, ...]], int, list[tuple[Any, ...]]]:
        """Return the rows of ``page``, the number of ``count``, and the rows of ``along``.

        ``count`` is a SELECT of one number. ``along`` is any other SELECT; None gives no rows.
        """
        with self.snapshot():
            found = self.remembered(f"count {count}", lambda _: self.rows(*count))
            told = self.rows(*along) if along else []
            return self.rows(*page), found[0][0] if found else 0, told

    @property
    def keeps_writers_out(self) -> bool:
        """Whether other processes can't write while this process reads."""
        return False

    @abstractmethod
    def version(self) -> int | None:
        """Return a number that changes whenever the database changes; None if there is no database.

        Only numbers that the same thread got can be compared.
        """

    def changes_since(
        self,
        place: object,  # noqa: ARG002  # only a server records changes
    ) -> tuple[object, list[int] | None]:
        """Return the place of this snapshot among all changes, and the changes since ``place``.

        ``place`` is the result of an earlier call, or None. The changes are ids of versions: each
        of them may have become current or hidden, may have another ref, or is gone. They are None
        if every skill may have changed. A SQLite file doesn't record changes, so they are None.
        """
        return None, None

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[object]:
        """Return a context in which all reads of this thread see one state of the database.

        A nested snapshot joins the outer one.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connections of all threads."""

    def remembered(self, name: str, load: "Callable[[Reader], T]") -> T:
        """Return the result of ``load``, and cache it under ``name`` until the database changes.

        Each thread has its own cache, because on SQLite a thread notices changes only through its
        own connection.
        """
        if self.empty:
            return load(self)
        version = self.version()
        memory: dict[str, tuple[object, T]] = self._local.__dict__.setdefault("memory", {})
        found = memory.pop(name, None)
        if found is None or found[0] != version:
            found = version, load(self)
        memory[name] = found
        while len(memory) > MAX_CACHED_RESULTS:  # the first has been unused for the longest time
            del memory[next(iter(memory))]
        return found[1]

    def recalls(self, name: str) -> bool:
        """Tell whether the cache has a result under this name; the result may be outdated."""
        return name in self._local.__dict__.get("memory", ())


class Backend(ABC):
    """A database, in which this machine has the name ``host``.

    This machine syncs and changes only the sources with this host name. In a SQLite file, ``host``
    is empty, because the folders are on the machine that opens the file.

    ``identity`` identifies the database in this user's own records. The identity is made from the
    location of the database and not from data in the database.
    """

    reader: Reader
    host: str
    identity: str
    on_close: Callable[[], object] | None = None

    @property
    def path(self) -> str:
        """The name of the database in messages: a file path, or an address without its password."""
        return self.reader.path

    @property
    def shared(self) -> bool:
        """Whether other machines use the database.

        If so, only `db upgrade` upgrades its schema.
        """
        return False

    @property
    def writable(self) -> bool:
        """Whether this process may write to the database."""
        return True

    @abstractmethod
    def make_current(self) -> None:
        """Create the schema of the database, or upgrade it if it is older.

        Raises `DatabaseProblem`.
        """

    @abstractmethod
    def open_writer(self) -> Writer:
        """Return the writer of this database."""

    @abstractmethod
    def sync_lock(self) -> "SyncLock":
        """Return a lock for syncs on this machine; call its `acquire` to take it."""

    @abstractmethod
    def mark_unchanged(
        self, source_ids: Sequence[int], now: str, updates: StatUpdates = NO_UPDATES
    ) -> None:
        """Record that the syncs of these sources at ``now`` found no changes.

        ``updates`` holds new file times and sizes to store.
        """

    @abstractmethod
    def add_usage(self, rows: Sequence[UsageRow], wait: float) -> bool:
        """Add usage counts; return False if the database was busy for ``wait`` seconds."""

    @abstractmethod
    def info(self) -> "DatabaseInfo":
        """Return facts about the database; see `SkillRegistry.database_info`."""

    @abstractmethod
    def check(self) -> Sequence[str]:
        """Look for damage in the database and return descriptions.

        See `SkillRegistry.check_database`.
        """

    @abstractmethod
    def backup(self, target: str, *, overwrite: bool) -> None:
        """Copy the database while it is in use; see `SkillRegistry.backup`."""

    def close(self) -> None:
        """Close the connections for reading."""
        self.reader.close()
        if self.on_close is not None:
            self.on_close()
