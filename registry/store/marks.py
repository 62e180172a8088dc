"""The one write that needs no SQLAlchemy: when a source was last found unchanged.

A sync that finds nothing to do must start fast, and still say that it has looked.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import closing

from registry.errors import DatabaseBusy
from registry.locks import FileLock
from registry.sqlite import BUSY_SECONDS, translate


def mark_unchanged(path: str, source_ids: Sequence[int], now: str) -> None:
    """Write ``now`` as the last sync of the sources into the database at ``path``."""
    with FileLock(f"{path}.lock") as lock:
        if not lock.acquire(BUSY_SECONDS):
            raise DatabaseBusy(path=path, seconds=BUSY_SECONDS)
        try:
            with closing(sqlite3.connect(path, BUSY_SECONDS, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(
                    "UPDATE sources SET last_sync_at = ?, last_result = 'ok' WHERE id = ?",
                    [(now, source_id) for source_id in source_ids],
                )
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise translate(error, path) from error
