"""What both kinds of database have in common: reading, writing, locks and looking after."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self, TypeAlias

from registry.db.reader import Reader
from registry.db.sqlite.dialect import State

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from registry.db.writer import Writer

Place: TypeAlias = tuple[str, str]
"""Where a skill is: (source's name, folder)."""

Counts: TypeAlias = tuple[Sequence[int], Sequence[str | None]]
"""How often a skill was (listed, found, read), and when last; None: not this time."""

SHARED_REFS: Final = (
    "SELECT ref FROM skills WHERE live = 1 GROUP BY ref HAVING count(*) > 1 LIMIT 20"
)
"""Refs by which nobody can tell which skill is meant; there must be none."""


@dataclass(frozen=True, slots=True)
class DatabaseInfo:
    """Facts about a database; ``bytes`` counts a file's write-ahead log too.

    ``wal_reset_bug``: this SQLite can lose a commit when a checkpoint meets a write from another
    program; the registry's own writes take turns under a lock, which closes that hole. ``host`` is
    what this machine is called on a server; ``server_version`` is None for a file, as the facts of
    a file are for a server.
    """

    path: str
    exists: bool
    bytes: int
    revision: str | None
    journal_mode: str | None
    sqlite_version: str | None
    wal_reset_bug: bool
    file_system: str | None
    sources: int
    skills: int
    server_version: str | None = None
    host: str | None = None


class SyncLock(Protocol):
    """Held for as long as a sync runs; another sync of the same sources waits or gives up."""

    def acquire(self, wait: float) -> bool:
        """Take the lock, trying for ``wait`` seconds; False: somebody else holds it."""

    def owner(self) -> str:
        """Say who holds it, in words."""

    def now_ns(self) -> int:
        """Return the present, by the clock that stamps files where that can be told."""

    def assert_held(self, writing: "Connection", /) -> None:
        """Raise `DatabaseProblem` where the lock was lost; asked in a transaction that writes."""

    def __enter__(self) -> Self:
        """Return the lock; `acquire` takes it."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        """Give the lock back."""


class Backend(ABC):
    """One database. ``host`` names this machine in it: its sources are ours to sync and change.

    In a SQLite file that name is empty: whoever opens the file has the folders.
    """

    reader: Reader
    host: str

    @property
    def path(self) -> str:
        """The database as it is shown: a file, or an address without its password."""
        return self.reader.path

    @abstractmethod
    def state(self) -> State:
        """Say how the schema relates to this program. Raises `DatabaseProblem`."""

    @property
    def writable(self) -> bool:
        """Whether what is read may also be brought up to date."""
        return True

    @abstractmethod
    def make_current(self) -> None:
        """Create the database's schema, or upgrade it. Raises `DatabaseProblem`."""

    @abstractmethod
    def open_writer(self) -> "Writer":
        """Return the writing lane."""

    @abstractmethod
    def sync_lock(self) -> SyncLock:
        """Return the lock that a sync on this machine holds."""

    @abstractmethod
    def mark_unchanged(self, source_ids: Sequence[int], now: str) -> None:
        """Write ``now`` as the last sync of sources in which nothing was to be done."""

    @abstractmethod
    def add_usage(self, counted: Mapping[Place, Counts], wait: float) -> bool:
        """Add counts of use; False: the database was busy for ``wait`` seconds."""

    @abstractmethod
    def info(self) -> DatabaseInfo:
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

    def count_skills(self) -> int:
        """Return how many skills are stored."""
        rows = self.reader.rows(
            "SELECT count(*) FROM skills WHERE live = 1 AND status <> 'no_document'"
        )
        return int(rows[0][0]) if rows else 0

    def count_sources(self) -> int:
        """Return how many sources are registered."""
        rows = self.reader.rows("SELECT count(*) FROM sources")
        return int(rows[0][0]) if rows else 0

    def revision(self) -> str | None:
        """Return the schema's revision; None: there is none yet."""
        rows = self.reader.rows("SELECT version_num FROM alembic_version")
        return str(rows[0][0]) if rows else None
