"""The database behind a registry: a SQLite file, or a PostgreSQL server."""

from registry.backend.base import Backend, DatabaseInfo, SyncLock
from registry.backend.choice import open_backend

__all__ = ["Backend", "DatabaseInfo", "SyncLock", "open_backend"]
