"""Read the registered sources."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from registry.db.interface import Reader, Select
from registry.db.visibility import IMPORTED
from registry.disk.paths import ROOT
from registry.model import Remote, Source

_SQL = """
SELECT src.id, src.name, src.path, src.scope, src.priority, src.enabled, src.last_sync_at,
       src.last_result, {skills}, src.host, src.kind, src.url, src.pin, src.part, src.chosen,
       src.version, src.fetched_at, {held}, src.owner, src.team, {own}, src.precedence,
       src.review
FROM sources src ORDER BY src.precedence DESC, src.strength, src.name
"""

_COUNT = f"""CASE WHEN NOT {IMPORTED} THEN 0 ELSE (SELECT count(*) FROM skills s
WHERE s.source_id = src.id AND s.live = 1 AND s.status <> 'no_document') END"""

_HELD = """CASE WHEN src.kind IS NULL THEN 0 ELSE (SELECT count(*) FROM skills s
WHERE s.source_id = src.id AND s.live = 1 AND s.held = 1) END"""


def list_sources(reader: Reader, *, counted: bool = True) -> list[Source]:
    """Return all sources by precedence; if ``counted``, each with the number of its skills."""
    counts = {"skills": _COUNT, "held": _HELD} if counted else {"skills": 0, "held": 0}
    return list(map(_source, reader.rows(_SQL.format(**counts, own=reader.own))))


def sources_and(reader: Reader, question: Select) -> tuple[list[Source], list[tuple[Any, ...]]]:
    """Return all sources without their numbers of skills, and the rows of another SELECT.

    The sources are in the same order as in `list_sources`.
    """
    sources = _SQL.format(skills=0, held=0, own=reader.own)
    rows, found = reader.many([(sources, ()), question])
    return list(map(_source, rows)), found


def _source(row: tuple[Any, ...]) -> Source:
    kind, url, ref, part, only, version, fetched_at, held, owner, team, own, first, review = row[
        10:
    ]
    remote = None
    if kind is not None and url is not None:
        names = tuple(only.split("\n")) if only else ()
        remote = Remote(kind, url, ref, part, names, version, fetched_at)
    told = *row[:5], row[5] > 0, *row[6:10], remote, held, owner, team, own == 1, first, review > 0
    return Source(*told)


DECIDED_FROM: Final = "0016"
"""First schema revision in which only an admin can rank the sources of different owners."""


class Undecided(NamedTuple):
    """A source that had precedence over another owner's source in older schema revisions.

    With this ``precedence``, which an admin can set, it has precedence over that source again.
    """

    name: str
    owner: str
    scope: str
    priority: int
    precedence: int


def undecided(reader: Reader) -> Iterator[Undecided]:
    """Yield the sources that had precedence over another owner's source in older schema revisions.

    The sources are sorted by precedence.
    """
    weaker = "o.strength > src.strength AND o.scope <> 'project'"
    rows = reader.rows(
        "SELECT src.name, src.owner, src.scope, src.priority, "
        f"(SELECT count(DISTINCT o.strength) FROM sources o WHERE {weaker}) "
        "FROM sources src WHERE src.scope <> 'project' AND EXISTS ("
        f"SELECT 1 FROM sources o WHERE o.owner <> src.owner AND {weaker}) "
        "ORDER BY src.strength, src.name"
    )
    return map(Undecided._make, rows)


def is_admin(reader: Reader) -> bool:
    """Tell whether the current role of the server's database is an admin of the registry."""
    rows = reader.rows("SELECT registry_is_admin()")
    return bool(rows and rows[0][0])


def is_under_review(reader: Reader, source_id: int) -> bool:
    """Tell whether changes of a source through tools and over HTTP need approval."""
    return bool(reader.rows("SELECT 1 FROM sources WHERE id = ? AND review > 0", (source_id,)))


def count_below(reader: Reader, source_id: int, folder: str) -> int:
    """Return the number of skills in a folder of a source and its subfolders.

    The folder ``.`` means the whole source.
    """
    sql = "SELECT count(*) FROM skills WHERE source_id = ? AND live = 1 AND status <> 'no_document'"
    values: tuple[int | str, ...] = (source_id,)
    if folder != ROOT:
        sql += " AND (folder = ? OR substr(folder, 1, ?) = ?)"
        values += (folder, len(folder) + 1, f"{folder}/")
    found = reader.rows(sql, values)
    return int(found[0][0]) if found else 0


def roots(reader: Reader, host: str) -> list[str]:
    """Return the folders of a host's sources."""
    sql = "SELECT path FROM sources WHERE host = ? ORDER BY strength, name"
    return [row[0] for row in reader.rows(sql, (host,))]
