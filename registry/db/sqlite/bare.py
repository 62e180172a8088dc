"""The writes that need no SQLAlchemy: usage counts, and when a source was last found unchanged.

A tool call in a process of its own has counted something, and a sync that finds nothing to do has
looked: neither may pay for an import to say so (DESIGN.md, "Two lanes"). The rules of the writing
lane hold: the file lock comes first.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing

from registry.db.sqlite.dialect import BUSY_SECONDS, translate
from registry.db.writes.usage import ADD
from registry.disk.locks import FileLock
from registry.errors import DatabaseBusy


def mark_unchanged(path: str, source_ids: Sequence[int], now: str) -> None:
    """Write ``now`` as the last sync of the sources into the file at ``path``."""
    sql = "UPDATE sources SET last_sync_at = ?, last_result = 'ok' WHERE id = ?"
    if not _write(path, sql, [(now, source_id) for source_id in source_ids], BUSY_SECONDS):
        raise DatabaseBusy(path=path, seconds=BUSY_SECONDS)


def add_usage(
    path: str,
    counted: Mapping[tuple[str, str], tuple[Sequence[int], Sequence[str | None]]],
    wait: float,
) -> bool:
    """Add counts to the file at ``path``; False: it was busy for ``wait`` seconds.

    What is no skill any more is left out. Raises `DatabaseProblem` and its subclasses.
    """
    rows = [(*often, *when, *place) for place, (often, when) in counted.items()]
    return _write(path, ADD, rows, wait)


def _write(path: str, sql: str, rows: Sequence[Sequence[object]], wait: float) -> bool:
    with FileLock(f"{path}.lock") as lock:
        if not lock.acquire(wait):
            return False
        try:
            with closing(sqlite3.connect(path, wait, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(sql, rows)
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise translate(error, path) from error
    return True
