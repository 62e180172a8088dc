"""Operations on the database file itself: facts, health, copies."""

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from registry.errors import DatabaseProblem, UsageProblem
from registry.locks import FileLock
from registry.sqlite import BUSY_SECONDS, has_wal_reset_bug, translate

if TYPE_CHECKING:
    from registry.lifecycle import OpenRegistry


@dataclass(frozen=True, slots=True)
class DatabaseInfo:
    """Facts about a database file; ``bytes`` counts its write-ahead log too.

    ``wal_reset_bug``: this SQLite can lose a commit when a checkpoint meets a write from another
    program; the registry's own writes take turns under a lock, which closes that hole.
    """

    path: str
    exists: bool
    bytes: int
    revision: str | None
    journal_mode: str | None
    sqlite_version: str
    wal_reset_bug: bool
    file_system: str | None
    sources: int
    skills: int


def info(registry: "OpenRegistry") -> DatabaseInfo:
    """Collect the facts; see `SkillRegistry.database_info`."""
    from registry.mounts import file_system

    reader = registry.reader
    revision = reader.rows("SELECT version_num FROM alembic_version")
    journal = reader.rows("PRAGMA journal_mode")
    skills = reader.rows("SELECT count(*) FROM skills WHERE live = 1 AND status <> 'no_document'")
    return DatabaseInfo(
        path=registry.path,
        exists=os.path.exists(registry.path),
        bytes=sum(_size(registry.path + ending) for ending in ("", "-wal")),
        revision=revision[0][0] if revision else None,
        journal_mode=journal[0][0] if journal else None,
        sqlite_version=sqlite3.sqlite_version,
        wal_reset_bug=has_wal_reset_bug(),
        file_system=file_system(registry.path) or None,
        sources=len(registry.sources()),
        skills=skills[0][0] if skills else 0,
    )


def check(registry: "OpenRegistry") -> Sequence[str]:
    """Look for damage; see `SkillRegistry.check_database`."""
    if registry.reader.empty:
        return []
    problems = []
    try:
        with closing(
            sqlite3.connect(registry.path, BUSY_SECONDS, isolation_level=None)
        ) as connection:
            problems += [
                f"the file is damaged: {row[0]}"
                for row in connection.execute("PRAGMA integrity_check(20)")
                if row[0] != "ok"
            ]
            problems += [
                f"a row of {row[0]} refers to a missing row of {row[2]}"
                for row in connection.execute("PRAGMA foreign_key_check").fetchmany(20)
            ]
            with FileLock(f"{registry.path}.lock") as lock:
                if lock.acquire(BUSY_SECONDS):
                    problems += _check_search(connection)
            problems += [
                f"skill {row[0]} has no entry in the full-text index"
                for row in connection.execute(
                    "SELECT ref FROM skills WHERE live = 1 AND status IN ('ok', 'warning') AND id "
                    "NOT IN (SELECT id FROM skill_search_docsize) LIMIT 20"
                )
            ]
            problems += [
                f"two skills share the ref {row[0]}"
                for row in connection.execute(
                    "SELECT ref FROM skills WHERE live = 1 GROUP BY ref "
                    "HAVING count(*) > 1 LIMIT 20"
                )
            ]
    except sqlite3.Error as error:
        raise translate(error, registry.path) from error
    return problems


def _check_search(connection: sqlite3.Connection) -> list[str]:
    try:
        connection.execute("INSERT INTO skill_search (skill_search) VALUES ('integrity-check')")
    except sqlite3.DatabaseError as error:
        return [f"the full-text index is damaged: {error}"]
    return []


def backup(registry: "OpenRegistry", target: str, *, overwrite: bool) -> None:
    """Copy the database while it is in use; see `SkillRegistry.backup`."""
    if registry.reader.empty:
        raise UsageProblem(message=f"there is no database at {registry.path} yet")
    target = os.path.abspath(os.path.expanduser(target))
    if os.path.exists(target) and (not overwrite or os.path.samefile(target, registry.path)):
        raise UsageProblem(message=f"{target} exists already; remove it or choose another name")
    draft = f"{target}.part"
    try:
        with (
            closing(sqlite3.connect(f"file:{registry.path}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(draft)) as copy,
        ):
            source.backup(copy)
        os.replace(draft, target)
    except (sqlite3.Error, OSError) as error:
        if os.path.exists(draft):
            os.unlink(draft)
        raise DatabaseProblem(path=target, reason=str(error)) from error


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
