"""The interface of a database, which SQLite and PostgreSQL implement.

Reads and writes are written once for both databases, with ``?`` for values. SQL that differs
between them is an attribute or a method here; ``db/sqlite`` and ``db/postgres`` implement it in
files of the same names.
"""

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

KNOWN_REVISIONS: Final = tuple("0015 0016 0019 0020 0021 0022 0023".split())
"""All migrations, the oldest first; a test compares them with the migrations folder.

Databases of earlier revisions exist on machines of developers only.
"""

SCHEMA_REVISION: Final = KNOWN_REVISIONS[-1]


class State(Enum):
    """How the schema of a database relates to this program."""

    EMPTY = "empty"
    BEHIND = "behind"
    CURRENT = "current"

    @classmethod
    def of(cls, revision: str | None, path: str) -> Self:
        """Return the state of a schema at ``revision`` (None: there is none).

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
"""The largest integer that a database stores."""


def storable(parameters: Sequence[object]) -> list[object]:
    """Replace values that can't be stored, so that they find nothing.

    These values are surrogates and NUL in text, and integers of more than 64 bits.
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
    """Adjacent words; ``prefix``: the last word may be longer."""

    words: tuple[str, ...]
    prefix: bool = False


IndexPart: TypeAlias = Literal["heads", "bodies"]
"""The two indexes: name, tags and description of skills; and their bodies."""

Part: TypeAlias = Literal["name", "tags", "description", "body"]
"""A part of a skill: name, tags and description are its head, the body is the text below."""

PARTS: Final[tuple[Part, ...]] = ("name", "tags", "description", "body")

IndexQuery: TypeAlias = tuple[IndexPart, Sequence[Pattern]]
"""A question: which texts match any of the patterns."""

Condition: TypeAlias = tuple[str, Sequence[object]]
"""SQL on skills ``s`` and sources ``src`` with its values; `read.listing.where` returns such."""


class SearchTerms(NamedTuple):
    """The words of a query, from which `catalog.search.rank` chooses by their counts.

    ``typed``: words, each with a prefix to try if no skill has the word. ``compounds`` count only
    if heads contain them. ``lay`` and ``foreign`` are synonyms and translations of the typed words.
    """

    typed: Sequence[tuple[Pattern, Pattern | None]]
    compounds: Sequence[Pattern]
    lay: Sequence[Pattern]
    foreign: Sequence[Pattern]


class SearchLimits(NamedTuple):
    """Limits of a search.

    ``counted``: maximum number of texts that are counted for a word. ``words``: maximum number of
    words to look for in bodies, in at most ``texts`` texts. ``heads``: if more than ``counted``
    bodies have a word, search bodies for it only if fewer than ``heads`` heads have it. ``half``:
    the constant k of reciprocal rank fusion, k / (k + rank).
    """

    counted: int
    words: int
    texts: int
    heads: int
    half: int


class HitMetadata(NamedTuple):
    """Facts returned with a hit: precedence of its source, sketch, head."""

    precedence: Precedence
    sketch: bytes | None
    head: str | None


_UPDATE_VERSION: Final = "UPDATE skills SET fingerprint = ?, racy = ? WHERE id = ? AND live = 1"

_UPDATE_FILE: Final = (
    "UPDATE skill_files SET mode = ?, size = ?, mtime_ns = ?, ctime_ns = ?, inode = ? "
    "WHERE skill_id = ? AND path = ?"
)


class StatUpdates(NamedTuple):
    """New stat facts of versions whose content is unchanged.

    ``versions``: fingerprint, racy, the version's id; ``files``: mode, size, mtime_ns, ctime_ns,
    inode, the version's id, path.
    """

    versions: list[tuple[str, int, int]]
    files: list[tuple[int | str, ...]]

    @property
    def statements(self) -> list[tuple[str, Sequence[tuple[int | str, ...]]]]:
        """Return the statements that store them, each with the rows of its values."""
        return (
            [(_UPDATE_VERSION, self.versions), (_UPDATE_FILE, self.files)] if self.versions else []
        )


NO_UPDATES: Final = StatUpdates([], [])


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseInfo(Value):
    """Facts about a database; ``bytes`` includes a file's write-ahead log.

    ``wal_reset_bug``: this SQLite can lose a commit when a checkpoint meets a write from another
    program; the registry is safe, because its own writes happen one at a time under a lock.
    ``host`` is the name of this machine on a server. ``server_version`` is None for a file; the
    facts about a file are None for a server.
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


class SyncLock(Protocol):
    """The lock that a sync holds; another sync of the same sources waits or gives up."""

    def acquire(self, wait: float) -> bool:
        """Take the lock, trying for ``wait`` seconds; False: another process holds it."""

    def owner(self) -> str:
        """Describe the holder."""

    def now_ns(self) -> int:
        """Return the current time, if possible by the clock that stamps files."""

    def assert_held(self, writing: "Connection", /) -> None:
        """Raise `DatabaseProblem` if the lock was lost; call it in a transaction that writes."""

    def __enter__(self) -> Self:
        """Return the lock; `acquire` takes it."""

    def __exit__(self, *_: object) -> None:
        """Release the lock."""


WRITE_SECONDS = 30.0
"""Seconds that a writer waits for other writers; a sync has many short transactions."""


class Writer(ABC):
    """Writes to the database at ``path``; the sources of the machine ``host`` are ours.

    A transaction holds a lock until its end, SQLite's file lock or a table lock of PostgreSQL, so
    it sees all earlier transactions.
    """

    def __init__(self, path: str, host: str, engine: "Engine") -> None:
        self.path = path
        self.host = host
        self._engine = engine

    @contextmanager
    def transaction(
        self, wait: float | None = None, *, quiet: bool = False
    ) -> "Iterator[Connection]":
        """Run a block as one transaction: committed at its end, rolled back if it raises.

        ``wait``: seconds to wait for other writers, `WRITE_SECONDS` by default. ``quiet``: on a
        server, don't take the lock of writers and don't change the data version; only for rows that
        no reader looks at.

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
        """Reserve ``count`` ids of versions and return the first; None: stage under the lock."""
        return None

    def update_statistics(self) -> None:  # noqa: B027  # a file has nothing to do
        """Update the planner's statistics after large changes."""

    def close(self) -> None:
        """Close the engine's connections."""
        self._engine.dispose()

    @abstractmethod
    def _begun(self, wait: float, *, quiet: bool) -> "AbstractContextManager[Connection]":
        """Take the lock and begin a transaction."""

    @abstractmethod
    def _translate(self, error: "DBAPIError", wait: float) -> RegistryError:
        """Translate an error of the driver into ours."""


T = TypeVar("T")

MAX_REMEMBERED: Final = 100
"""Number of results that a thread caches (`Reader.remembered`)."""

UsageRow: TypeAlias = tuple[int | str | None, ...]
"""Counts of listed, found, read; the time of each (None: no change); the skill's place."""

Select: TypeAlias = tuple[str, Sequence[object]]
"""A SELECT and its values."""


class TextIndex(ABC):
    """Asks the full-text index, which matches inflected English words by their stems.

    ``among``: the versions that a narrowed view shows. Counts and weights then come from these
    only, so a result reveals nothing about other skills. None: all versions.
    """

    def expect(  # noqa: B027  # a file has nothing to wait for
        self,
        reader: "Reader",
        asked: Sequence[SearchTerms],
        condition: Condition,
        most: int,
        to: SearchLimits,
    ) -> None:
        """Send all SELECTs that a search will need at once, if the backend pipelines."""

    def metadata(self, _ids: Sequence[int]) -> dict[int, HitMetadata]:
        """Return the facts that came with hits, perhaps for only some of them."""
        return {}

    def forget(self) -> None:  # noqa: B027
        """Forget the queued SELECTs."""

    @abstractmethod
    def counts(
        self,
        reader: "Reader",
        patterns: Sequence[Pattern],
        most: int,
        among: Collection[int] | None = None,
    ) -> list[tuple[int, int]]:
        """Return for each pattern how many heads and bodies contain it, at most ``most`` each."""

    @abstractmethod
    def best(
        self,
        reader: "Reader",
        asked: Sequence[IndexQuery],
        condition: Condition,
        most: int,
        among: Collection[int] | None = None,
    ) -> list[list[int]]:
        """Return for each query the ids of skills that meet the condition, the best first."""

    @abstractmethod
    def parts(
        self, reader: "Reader", skill_id: int, patterns: Sequence[Pattern]
    ) -> list[tuple[Part, ...]]:
        """Return for each pattern the parts of one skill that contain it."""

    @abstractmethod
    def vocabulary(self, reader: "Reader", beginning: str) -> list[str]:
        """Return the words of heads that begin with ``beginning``, as the index stores them."""


class Reader(ABC):
    """Runs SELECTs; safe for many threads and across a fork, and unable to write.

    ``path`` names the database in messages. While ``empty``, the database doesn't exist yet, and
    every SELECT finds nothing.
    """

    in_json_array: str
    """SQL after a number: the number is in the JSON array of the parameter."""

    index: TextIndex
    """Asks the full-text index of this database."""

    own: str = "1"
    """SQL: 1 if the source ``src`` belongs to the current role, else 0. In a file always 1."""

    json_each: str
    """SQL: the table of the elements of the JSON array ``{}``; give it the alias ``e``."""

    json_item: str
    """SQL: element number ``{}``, as text, of the array in row ``e``."""

    digest: str | None = None
    """SQL: the aggregate that is a digest of the texts ``{}``; None: read and compare the texts."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._empty = False
        self._local = threading.local()

    @property
    def empty(self) -> bool:
        """Whether the database doesn't exist yet. Raises the errors of `state`."""
        if self._empty:
            self._empty = self.state() is not State.CURRENT
        return self._empty

    @empty.setter
    def empty(self, value: bool) -> None:
        self._empty = value

    @property
    def visibility(self) -> Visibility:
        """The visible projects: here all; see `db.scoped_reader`."""
        return EVERYTHING

    @abstractmethod
    def state(self) -> State:
        """Compare the schema with this program; a missing database is empty.

        Raises `DatabaseProblem` and its subclasses.
        """

    @abstractmethod
    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""

    @abstractmethod
    def stream(self, sql: str, parameters: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """Yield the rows of a SELECT, without holding all rows if possible."""

    def many(self, questions: "Sequence[Select]") -> list[list[tuple[Any, ...]]]:
        """Return the rows of each of several SELECTs, which all see one state of the database."""
        with self.snapshot():
            return [self.rows(*question) for question in questions]

    def pipeline(self, question: Select) -> "Callable[[], list[tuple[Any, ...]]]":
        """Queue this SELECT with the snapshot's next one, if the backend pipelines."""
        return lambda: self.rows(*question)

    def finish(self) -> None:  # noqa: B027  # a file has nothing to wait for
        """End the snapshot with its next SELECT."""

    def query_visible(self, question: "Callable[[Visibility], Select]") -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT that depends on the `visibility`."""
        return self.rows(*question(self.visibility))

    def stream_visible(
        self, question: "Callable[[Visibility], Select]"
    ) -> Iterable[tuple[Any, ...]]:
        """Yield what `query_visible` returns, without holding all rows if possible."""
        return self.stream(*question(self.visibility))

    def last_visibility(self) -> Visibility:
        """Return the last known `visibility`, to save a round trip."""
        return self.visibility

    def last_roots(self) -> list[str] | None:
        """Return the folders of this host's sources, if `query_visible` read them."""
        return None

    def paged(
        self, question: "Callable[[Visibility], tuple[Select, Select]]"
    ) -> tuple[list[tuple[Any, ...]], int]:
        """Return the rows of a page, and the result of a count, both depending on `visibility`."""
        with self.snapshot():
            return self.page(*question(self.visibility))[:2]

    def page(
        self, page: Select, count: Select, along: Select | None = None
    ) -> tuple[list[tuple[Any, ...]], int, list[tuple[Any, ...]]]:
        """Return the rows of a page, the result of ``count``, and the rows of ``along``."""
        with self.snapshot():
            found = self.remembered(f"count {count}", lambda _: self.rows(*count))
            told = self.rows(*along) if along else []
            return self.rows(*page), found[0][0] if found else 0, told

    @property
    def keeps_writers_out(self) -> bool:
        """True if readers block writers."""
        return False

    @abstractmethod
    def version(self) -> int | None:
        """Return a number that changes with the database.

        Compare it only with numbers that the same thread got. None: the database doesn't exist.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[object]:
        """Return a context in which this thread's reads all see one state of the database.

        A nested snapshot joins the outer one.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connections of all threads."""

    def remembered(self, name: str, load: "Callable[[Reader], T]") -> T:
        """Return the result of ``load``, cached until the database changes.

        Each thread has its own cache: on SQLite only a thread's own connection notices a change.
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
        """Tell whether a result of this name is cached, perhaps an outdated result."""
        return name in self._local.__dict__.get("memory", ())


class Backend(ABC):
    """One database; ``host`` names this machine in it. We sync and change only its sources.

    In a SQLite file that name is empty: the machine that opens the file has the folders.
    ``identity`` names the database in this user's own records: its location, and no data from
    inside it.
    """

    reader: Reader
    host: str
    identity: str
    on_close: Callable[[], object] | None = None

    @property
    def path(self) -> str:
        """The database for messages: a file, or an address without its password."""
        return self.reader.path

    @property
    def shared(self) -> bool:
        """Whether other machines use it; if so, only `db upgrade` upgrades its schema."""
        return False

    @property
    def writable(self) -> bool:
        """Whether this process may write the database."""
        return True

    @abstractmethod
    def make_current(self) -> None:
        """Create the database's schema, or upgrade it. Raises `DatabaseProblem`."""

    @abstractmethod
    def open_writer(self) -> Writer:
        """Return the writer."""

    @abstractmethod
    def sync_lock(self) -> "SyncLock":
        """Return the lock that a sync on this machine holds."""

    @abstractmethod
    def mark_unchanged(
        self, source_ids: Sequence[int], now: str, updates: StatUpdates = NO_UPDATES
    ) -> None:
        """Record ``now`` as the last sync of sources that have no changes, and the stat updates."""

    @abstractmethod
    def add_usage(self, rows: Sequence[UsageRow], wait: float) -> bool:
        """Add counts of use; False: the database was busy for ``wait`` seconds."""

    @abstractmethod
    def info(self) -> "DatabaseInfo":
        """Collect the facts; see `SkillRegistry.database_info`."""

    @abstractmethod
    def check(self) -> Sequence[str]:
        """Look for damage; see `SkillRegistry.check_database`."""

    @abstractmethod
    def backup(self, target: str, *, overwrite: bool) -> None:
        """Copy the database while it is in use; see `SkillRegistry.backup`."""

    def close(self) -> None:
        """Close the reading connections."""
        self.reader.close()
        if self.on_close is not None:
            self.on_close()
