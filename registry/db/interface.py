"""The interface of a database, which SQLite and PostgreSQL implement.

Most SQL is written once for both databases, with ``?`` for values. If the databases need different
SQL, it is an attribute or a method of a class here. The packages ``db/sqlite`` and ``db/postgres``
implement these classes. Files with the same name in both (such as ``reader.py``) correspond to each
other.
"""

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
    "0015 0016 0019 0020 0021 0022 0023 0024 0025 0026 0027 0028 0029 0030".split()
)
"""All migrations, the oldest first; a test compares them with the migrations folder.

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
    """Replace parameters that the database can't store, so that the query finds nothing.

    Otherwise the query would fail. Such parameters are surrogates and NUL in text, and integers of
    more than 64 bits.
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
    """Adjacent words to search for; if ``prefix``, the last word may be the beginning of a word."""

    words: tuple[str, ...]
    prefix: bool = False


IndexPart: TypeAlias = Literal["heads", "bodies"]
"""The two full-text indexes of skills.

"heads" indexes name, tags and description; "bodies" indexes the Markdown body.
"""

Part: TypeAlias = Literal["name", "tags", "description", "body"]
"""A part of a skill; name, tags and description together are its "head"."""

PARTS: Final[tuple[Part, ...]] = ("name", "tags", "description", "body")

IndexQuery: TypeAlias = tuple[IndexPart, Sequence[Pattern]]
"""A query for one full-text index: find the skills that contain at least one of the patterns."""

Condition: TypeAlias = tuple[str, Sequence[object]]
"""An SQL condition on skills ``s`` and sources ``src``, and its values.

`read.listing.where` creates such conditions.
"""


class SearchTerms(NamedTuple):
    """The words of a query; `catalog.search.rank` decides which of them count.

    ``typed`` holds the words that the user typed, each with a prefix to try if no skill has the
    word. A word in ``compounds`` counts only if a name, tag or description contains it. ``lay``
    holds synonyms of everyday words, ``foreign`` holds translations.
    """

    typed: Sequence[tuple[Pattern, Pattern | None]]
    compounds: Sequence[Pattern]
    lay: Sequence[Pattern]
    foreign: Sequence[Pattern]


class SearchLimits(NamedTuple):
    """Limits of a search.

    ``counted`` is the number of skills at which counting a word stops. ``words`` is the maximum
    number of words to look for in bodies, and ``texts`` the maximum number of bodies to look in.

    If more than ``counted`` bodies have a word, the bodies are searched for it only if fewer than
    ``heads`` heads (name, tags, description) have it. ``half`` is the constant k of reciprocal rank
    fusion, k / (k + rank).
    """

    counted: int
    words: int
    texts: int
    heads: int
    half: int


class HitMetadata(NamedTuple):
    """Data that a search returns with a hit: its source's precedence, its sketch and its head.

    The sketch is a MinHash of the skill's text. The head is name, tags and description as one text.
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
    """New file times and sizes of versions whose files are unchanged.

    A row of ``versions`` is fingerprint, racy, version id. A row of ``files`` is mode, size,
    mtime_ns, ctime_ns, inode, version id, path.
    """

    versions: list[tuple[str, int, int]]
    files: list[tuple[int | str, ...]]

    def statements(self, reader: "Reader") -> "list[Select]":
        """Return the SQL statements that store the updates, each with its value."""
        items = [reader.json_item.format(number) for number in range(7)]
        each = reader.json_each.format("?")
        work = ((_UPDATE_VERSIONS, self.versions), (_UPDATE_FILES, self.files))
        return [(sql.format(*items, each=each), [json.dumps(rows)]) for sql, rows in work if rows]


NO_UPDATES: Final = StatUpdates([], [])


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseInfo(Value):
    """Facts about a database.

    ``bytes`` includes the write-ahead log of a file. ``host`` is the name of this machine on a
    server. ``server_version`` is None for a file; the facts about a file are None for a server.

    ``staged`` is the number of versions that no reader sees, and ``staged_bytes`` the size of their
    files. A running sync adds such versions. Those of an interrupted sync stay until the next sync
    on the same machine.

    If ``wal_reset_bug``, this SQLite can lose a commit when a checkpoint meets a write of another
    program. The registry's own writes are safe, because they happen one at a time under a lock.
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
    """The lock that a sync holds; another sync of the same file or host waits or gives up."""

    def acquire(self, wait: float) -> bool:
        """Try for ``wait`` seconds to take the lock; return False if another process holds it."""

    def owner(self) -> str:
        """Describe the process that holds the lock."""

    def now_ns(self) -> int:
        """Return the current time, by the clock that sets file times if possible."""

    def assert_held(self, writing: "Connection", /) -> None:
        """Raise `DatabaseProblem` if the lock was lost.

        Call it in a transaction that writes; ``writing`` is its connection.
        """

    def __enter__(self) -> Self:
        """Return the lock without taking it; call `acquire` to take it."""

    def __exit__(self, *_: object) -> None:
        """Release the lock."""


WRITE_SECONDS = 30.0
"""Seconds that a writer waits for other writers.

A sync has many short transactions, so the wait for one of them is short.
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
        """Run a ``with`` block as one transaction: commit at its end, roll back if it raises.

        ``wait`` is the number of seconds to wait for other writers; by default `WRITE_SECONDS`. If
        ``quiet``, a transaction on a server doesn't take the lock of writers and doesn't change the
        data version. Use ``quiet`` only for rows that no reader looks at.

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

        Returns None if this database stores new versions only under the lock of writers.
        """
        return None

    def lock(self, connection: "Connection") -> None:  # noqa: B027  # a file is locked already
        """Take the lock of writers in a ``quiet`` transaction, which then also publishes.

        Raises `DatabaseBusy` soon if another writer waits for rows that this transaction changed.
        """

    def update_statistics(self) -> None:  # noqa: B027  # a file needs no update
        """Update the query planner's statistics after large changes."""

    def close(self) -> None:
        """Close the writer's connections."""
        self._engine.dispose()

    @abstractmethod
    def _begun(self, wait: float, *, quiet: bool) -> "AbstractContextManager[Connection]":
        """Take the lock of writers and begin a transaction."""

    @abstractmethod
    def _translate(self, error: "DBAPIError", wait: float) -> RegistryError:
        """Return this project's error for an error of the database driver."""


T = TypeVar("T")

MAX_REMEMBERED: Final = 100
"""Maximum number of results that one thread caches (see `Reader.remembered`)."""

UsageRow: TypeAlias = tuple[int | str | None, ...]
"""One skill's new counts of use: listed, found, read; the time of each; its source and folder.

If a time didn't change, it is None.
"""

Select: TypeAlias = tuple[str, Sequence[object]]
"""A SELECT and the values of its placeholders."""


class TextIndex(ABC):
    """Queries the full-text index, which matches inflected English words by their stems.

    ``among`` holds the versions that a narrowed view shows; None means all versions. If ``among``
    is given, counts and weights come only from these versions. So results reveal nothing about
    other skills.
    """

    def expect(  # noqa: B027  # a file sends no SELECT ahead
        self,
        reader: "Reader",
        asked: Sequence[SearchTerms],
        condition: Condition,
        most: int,
        to: SearchLimits,
    ) -> None:
        """Send all SELECTs that a search will need together, if the database supports that."""

    def metadata(self, _ids: Sequence[int]) -> dict[int, HitMetadata]:
        """Return the metadata that the search returned with these hits.

        Hits without metadata are left out.
        """
        return {}

    def forget(self) -> None:  # noqa: B027
        """Forget the SELECTs that `expect` sent ahead, and their rows."""

    @abstractmethod
    def size(self, reader: "Reader") -> int:
        """Return the approximate number of indexed skills; the rarity of a word depends on it."""

    @abstractmethod
    def counts(
        self,
        reader: "Reader",
        patterns: Sequence[Pattern],
        most: int,
        among: Collection[int] | None = None,
    ) -> list[tuple[int, int]]:
        """Return for each pattern the number of heads and the number of bodies that contain it.

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
        """Return for each query the ids of matching skills that meet the condition, best first."""

    @abstractmethod
    def parts(
        self, reader: "Reader", skill_id: int, patterns: Sequence[Pattern]
    ) -> list[tuple[Part, ...]]:
        """Return for each pattern the parts of the skill, such as its name, that contain it."""

    @abstractmethod
    def vocabulary(self, reader: "Reader", beginning: str) -> list[str]:
        """Return the words in names, tags and descriptions that begin with ``beginning``.

        The words have the form in which the index stores them.
        """

    def known(self, reader: "Reader", words: Sequence[str]) -> list[str]:
        """Return which of these words, in stored form, are in names, tags and descriptions."""
        beginnings = {word[:1] for word in words}
        stored = {one for start in beginnings for one in self.vocabulary(reader, start)}
        return [word for word in words if word in stored]


class Reader(ABC):
    """Runs SELECTs; it can't write.

    Threads can share a reader, and it can be used after a fork. ``path`` names the database in
    messages. While ``empty`` is True, the database doesn't exist yet, and every SELECT returns no
    rows.
    """

    in_json_array: str
    """SQL condition to put after a number: the JSON array in the parameter contains the number.
    """

    index: TextIndex
    """The full-text index of this database."""

    own: str = "1"
    """SQL expression: 1 if the current role owns the source ``src``, else 0.

    In a file it is always 1.
    """

    own_yanked: str = "1"
    """SQL expression: 1 if this reader shows yanked skills of the source ``src``, else 0.

    Only the owner of the source sees its yanked skills. A process that answers other users sets
    this expression to 0.
    """

    listed: str | None = None
    """SELECT for the number of skills that a listing shows without filters, from stored totals.

    The SELECT ends with a condition on the source ``src``. It ignores that skills of projects
    shadow other skills. ``listed`` is None if the database stores no totals.
    """

    json_each: str
    """SQL: the elements of the JSON array ``{}`` as a table; give the table the alias ``e``."""

    json_item: str
    """SQL expression: element number ``{}``, as text, of the array in the current row of ``e``."""

    digest: str | None = None
    """SQL aggregate for a digest of the texts ``{}``.

    It is None if the database has no digest function. In that case, read and compare the texts.
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
        """Compare the schema with this program; a missing database is `State.EMPTY`.

        Raises `DatabaseProblem` and its subclasses.
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
        """Queue a SELECT; if the database supports it, it is sent with the snapshot's next SELECT.

        Returns a function that returns the rows.
        """
        return lambda: self.rows(*question)

    def finish(self) -> None:  # noqa: B027  # a file sends no SELECT ahead
        """Announce that the next SELECT is the snapshot's last.

        The end of the snapshot's transaction is then sent together with this SELECT.
        """

    def query_visible(self, question: "Callable[[Visibility], Select]") -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT that ``question`` builds from the `visibility`."""
        return self.rows(*question(self.visibility))

    def stream_visible(
        self, question: "Callable[[Visibility], Select]"
    ) -> Iterable[tuple[Any, ...]]:
        """Yield the rows of `query_visible`, if possible without holding all of them in memory."""
        return self.stream(*question(self.visibility))

    def last_visibility(self) -> Visibility:
        """Return the `visibility` that was read last, without asking the server."""
        return self.visibility

    def last_roots(self) -> list[str] | None:
        """Return the folders of this host's sources, or None.

        They are known only if `query_visible` has just read them.
        """
        return None

    def paged(
        self, question: "Callable[[Visibility], tuple[Select, Select]]"
    ) -> tuple[list[tuple[Any, ...]], int]:
        """Run two SELECTs built from the `visibility`; return the page's rows and the total."""
        with self.snapshot():
            return self.page(*question(self.visibility))[:2]

    def page(
        self, page: Select, count: Select, along: Select | None = None
    ) -> tuple[list[tuple[Any, ...]], int, list[tuple[Any, ...]]]:
        """Return the rows of ``page``, the number of ``count``, and the rows of ``along``.

        ``count`` selects one number. ``along`` is any other SELECT; None gives no rows.
        """
        with self.snapshot():
            found = self.remembered(f"count {count}", lambda _: self.rows(*count))
            told = self.rows(*along) if along else []
            return self.rows(*page), found[0][0] if found else 0, told

    @property
    def keeps_writers_out(self) -> bool:
        """Whether a read in progress keeps other processes from writing."""
        return False

    @abstractmethod
    def version(self) -> int | None:
        """Return a number that changes when the database changes; None if there is no database.

        Compare it only with numbers that the same thread got.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[object]:
        """Return a context in which all reads of this thread see one state of the database.

        A nested snapshot joins the outer one.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connections of all threads."""

    def remembered(self, name: str, load: "Callable[[Reader], T]") -> T:
        """Return the result of ``load``; it is cached under ``name`` until the database changes.

        Each thread has its own cache, because on SQLite a thread notices a change only through its
        own connection.
        """
        if self.empty:
            return load(self)
        version = self.version()
        memory: dict[str, tuple[object, T]] = self._local.__dict__.setdefault("memory", {})
        if name not in memory or memory[name][0] != version:
            if len(memory) >= MAX_REMEMBERED:
                memory.clear()
            memory[name] = version, load(self)
        return memory[name][1]

    def recalls(self, name: str) -> bool:
        """Tell whether a result, which may be outdated, is cached under this name."""
        return name in self._local.__dict__.get("memory", ())


class Backend(ABC):
    """A database, in which this machine has the name ``host``.

    This machine syncs and changes only the sources with this host. In a SQLite file, ``host`` is
    empty, because the machine that opens the file has the folders.

    ``identity`` names the database in this user's own records. It contains the location of the
    database, and no data from inside it.
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
        """Whether this process may write the database."""
        return True

    @abstractmethod
    def make_current(self) -> None:
        """Create the schema of the database, or upgrade it. Raises `DatabaseProblem`."""

    @abstractmethod
    def open_writer(self) -> Writer:
        """Return the writer of this database."""

    @abstractmethod
    def sync_lock(self) -> "SyncLock":
        """Return the lock for a sync on this machine, not taken yet."""

    @abstractmethod
    def mark_unchanged(
        self, source_ids: Sequence[int], now: str, updates: StatUpdates = NO_UPDATES
    ) -> None:
        """Record that these sources were synced at ``now`` without changes.

        ``updates`` holds the new file times and sizes to store.
        """

    @abstractmethod
    def add_usage(self, rows: Sequence[UsageRow], wait: float) -> bool:
        """Add counts of use; return False if the database was busy for ``wait`` seconds."""

    @abstractmethod
    def info(self) -> "DatabaseInfo":
        """Return facts about the database; see `SkillRegistry.database_info`."""

    @abstractmethod
    def check(self) -> Sequence[str]:
        """Look for damage in the database and describe it; see `SkillRegistry.check_database`."""

    @abstractmethod
    def backup(self, target: str, *, overwrite: bool) -> None:
        """Copy the database while it is in use; see `SkillRegistry.backup`."""

    def close(self) -> None:
        """Close the connections for reading."""
        self.reader.close()
        if self.on_close is not None:
            self.on_close()
