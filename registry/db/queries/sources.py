"""Registered sources, as the database knows them."""

from typing import Any

from registry.db.interface import Reader, Select
from registry.disk.paths import ROOT
from registry.model import Source

_SQL = """
SELECT src.id, src.name, src.path, src.scope, src.priority, src.enabled, src.last_sync_at,
       src.last_result, src.host, {skills}
FROM sources src ORDER BY src.strength, src.name
"""
_COUNT = """(SELECT count(*) FROM skills s
WHERE s.source_id = src.id AND s.live = 1 AND s.status <> 'no_document')"""


def list_sources(reader: Reader, *, counted: bool = True) -> list[Source]:
    """Return all sources, the strongest first; ``counted``: with how many skills they have."""
    return list(map(_source, reader.rows(_SQL.format(skills=_COUNT if counted else 0))))


def sources_and(reader: Reader, question: Select) -> tuple[list[Source], list[tuple[Any, ...]]]:
    """Return all sources as `list_sources`, not counted, and what else was asked."""
    rows, found = reader.many([(_SQL.format(skills=0), ()), question])
    return list(map(_source, rows)), found


def _source(row: tuple[Any, ...]) -> Source:
    number, name, path, scope, priority, enabled, when, result, host, skills = row
    return Source(number, name, path, scope, priority, enabled == 1, when, result, skills, host)


def count_below(reader: Reader, source_id: int, folder: str) -> int:
    """Return how many skills a source has in a folder and below it; ``.``: in all."""
    sql = "SELECT count(*) FROM skills WHERE source_id = ? AND live = 1 AND status <> 'no_document'"
    values: tuple[int | str, ...] = (source_id,)
    if folder != ROOT:
        sql += " AND (folder = ? OR substr(folder, 1, ?) = ?)"
        values += (folder, len(folder) + 1, f"{folder}/")
    found = reader.rows(sql, values)
    return int(found[0][0]) if found else 0


def roots(reader: Reader, host: str) -> list[str]:
    """Return the folders of a host's sources; counts no skills, so it suits what runs often."""
    sql = "SELECT path FROM sources WHERE host = ? ORDER BY strength, name"
    return [row[0] for row in reader.rows(sql, (host,))]
