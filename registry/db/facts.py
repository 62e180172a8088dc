"""Facts about a database."""

from dataclasses import dataclass

from registry.model import Value


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseInfo(Value):
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
    journal_mode: str | None = None
    sqlite_version: str | None = None
    wal_reset_bug: bool = False
    file_system: str | None = None
    sources: int
    skills: int
    server_version: str | None = None
    host: str | None = None
