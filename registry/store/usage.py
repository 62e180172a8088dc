"""Write down usage counts, by the bare driver.

A tool call in a process of its own has counted something, and must not pay for SQLAlchemy's import
to say so (DESIGN.md, "Two lanes"). The rules of the writing lane hold: the file lock comes first.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from registry.locks import FileLock
from registry.sqlite import translate

Place: TypeAlias = tuple[str, str]
"""Where a skill is: (source's name, folder)."""

_SQL: Final = """
INSERT INTO usage (uid, listed, found, read, last_listed_at, last_found_at, last_read_at)
SELECT s.uid, ?, ?, ?, ?, ?, ? FROM skills s JOIN sources src ON src.id = s.source_id
WHERE src.name = ? AND s.folder = ? AND s.live = 1
ON CONFLICT (uid) DO UPDATE SET
  listed = usage.listed + excluded.listed,
  found = usage.found + excluded.found,
  read = usage.read + excluded.read,
  last_listed_at = coalesce(excluded.last_listed_at, usage.last_listed_at),
  last_found_at = coalesce(excluded.last_found_at, usage.last_found_at),
  last_read_at = coalesce(excluded.last_read_at, usage.last_read_at)
"""

Counts: TypeAlias = tuple[Sequence[int], Sequence[str | None]]
"""How often a skill was (listed, found, read), and when last; None: not this time."""


def add_usage(path: str, counted: Mapping[Place, Counts], wait: float) -> bool:
    """Add counts to the database at ``path``; False: it was busy for ``wait`` seconds.

    What is no skill any more is left out. Raises `DatabaseProblem` and its subclasses.
    """
    lock = FileLock(f"{path}.lock")
    if not lock.acquire(wait):
        return False
    with lock:
        try:
            connection = sqlite3.connect(path, timeout=wait, isolation_level=None)
            try:
                connection.execute("BEGIN IMMEDIATE")
                rows = [(*often, *when, *place) for place, (often, when) in counted.items()]
                connection.executemany(_SQL, rows)
                connection.execute("COMMIT")
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise translate(error, path) from error
    return True
