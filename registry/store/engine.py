"""Engines: how a writing connection to SQLite is opened."""

import sqlite3
from typing import Final

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from registry.mounts import file_system
from registry.sqlite import BUSY_SECONDS

NETWORK_FILE_SYSTEMS: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "afs", "ceph", "glusterfs"}
)


def make_engine(path: str) -> Engine:
    """Return an engine that writes the SQLite file at ``path``.

    Transactions begin with BEGIN IMMEDIATE, issued by an event, since the driver's own handling
    leaves half-applied DDL behind (RELIABILITY.md). Connections are not pooled: a change opens
    one, and an idle process holds none.
    """
    journal = "TRUNCATE" if file_system(path) in NETWORK_FILE_SYSTEMS else "WAL"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA journal_size_limit = 16777216")
        connection.execute("PRAGMA cache_size = -65536")
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
