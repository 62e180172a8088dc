"""Totals of the whole registry: skills, sources, sizes and problems."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

from registry.db.interface import Condition, Reader
from registry.db.read.skills import FROM
from registry.db.visibility import IMPORTED
from registry.model import Value


@dataclass(frozen=True, slots=True)
class Stats(Value):
    """Totals of the whole registry; ``bytes`` is the total size of the files of all skills.

    In ``by_status``, quarantined skills count only as ``quarantined``. ``by_origin`` counts the
    listed skills of each address, including installed copies.
    """

    skills: int
    visible: int
    shadowed: int
    hidden: int
    by_status: Mapping[str, int]
    by_scope: Mapping[str, int]
    by_origin: Mapping[str, int]
    sources: int
    tags: int
    kinds: int
    categories: int
    files: int
    bytes: int
    names: int
    oldest_sync: str | None
    newest_sync: str | None


_COUNTS: Final = (
    "SELECT count(*), count(*) FILTER (WHERE {visible}), coalesce(sum({shadowed}), 0), "
    "count(*) FILTER (WHERE s.hidden = 1 AND {visible}), "
    "(SELECT count(DISTINCT t.tag) FROM {tables} JOIN skill_tags t ON t.skill_id = s.id "
    "WHERE {visible}), count(DISTINCT CASE WHEN {visible} THEN s.kind END), "
    "count(DISTINCT CASE WHEN {visible} THEN s.category END), coalesce(sum(s.file_count), 0), "
    "CAST(coalesce(sum(s.bytes), 0) AS BIGINT), count(DISTINCT s.name) "
    f"FROM {{tables}} WHERE s.live = 1 AND s.status <> 'no_document' AND {IMPORTED}"
)
"""SELECT for the counts, in the order of the fields of `Stats`.

The SELECT doesn't include the counts by status, scope and origin.
"""


def stats(reader: Reader) -> Stats:
    """Return the counts of the whole registry."""
    with reader.snapshot():
        visibility = reader.visibility
        sql = _COUNTS.format(visible=visibility.visible, shadowed=visibility.shadowed, tables=FROM)
        counts = reader.rows(sql) or [(0,) * 10]
        status = reader.rows(
            "SELECT CASE WHEN s.held = 1 AND s.status IN ('ok', 'warning') THEN 'quarantined' "
            f"ELSE s.status END, count(*) FROM {FROM} WHERE s.live = 1 "
            f"AND s.status <> 'no_document' AND {IMPORTED} GROUP BY 1 ORDER BY 1"
        )
        scope = reader.rows(
            f"SELECT src.scope, count(*) FROM {FROM} WHERE {visibility.visible} GROUP BY src.scope"
            " ORDER BY min(src.strength)"
        )
        origin = reader.rows(
            f"SELECT src.url, count(*) FROM {FROM} "
            f"WHERE {visibility.visible} AND src.url IS NOT NULL GROUP BY src.url "
            f"UNION ALL SELECT s.installed, count(*) FROM {FROM} WHERE {visibility.visible} "
            "AND src.url IS NULL AND s.id IN (SELECT c.id FROM skills c "
            "WHERE c.installed IS NOT NULL) GROUP BY s.installed"
        )
        synced = reader.rows("SELECT count(*), min(last_sync_at), max(last_sync_at) FROM sources")
    sources, oldest, newest = synced[0] if synced else (0, None, None)
    by_origin: Counter[str] = Counter()
    for text, number in origin:
        # the origin of an installed copy has more lines
        by_origin[text.partition("\n")[0]] += number
    facets = dict(status), dict(scope), dict(sorted(by_origin.items()))
    facts: list[Any] = [*counts[0][:4], *facets, sources, *counts[0][4:], oldest, newest]
    return Stats(*facts)


class SourceCount(NamedTuple):
    """The number of skills of a source, and how many of them are in each state.

    A skill counts as ``overridden`` if it is shadowed, or belongs to a project that isn't visible
    here.
    """

    skills: int
    listed: int
    overridden: int
    invalid: int
    quarantined: int


def count_by_source(
    reader: Reader, every: Condition, listed: Condition
) -> Mapping[str, SourceCount]:
    """Count the skills of each source that meet the condition ``every``.

    A skill counts as listed if it also meets the condition ``listed``. The result is cached until
    the database changes.
    """
    is_quarantined = "s.held = 1 AND s.status IN ('ok', 'warning')"

    def load(reader: Reader) -> Mapping[str, SourceCount]:
        shown = dict(
            reader.rows(
                f"SELECT src.name, count(*) FROM {FROM} WHERE {listed[0]} GROUP BY src.name",
                list(listed[1]),
            )
        )
        rows = reader.rows(
            "SELECT src.name, count(*), count(CASE WHEN s.status = 'invalid' THEN 1 END), "
            f"count(CASE WHEN {is_quarantined} THEN 1 END) "
            f"FROM {FROM} WHERE {every[0]} GROUP BY src.name",
            list(every[1]),
        )
        found = {}
        for name, total, invalid, quarantined in rows:
            seen = shown.get(name, 0)
            rest = max(0, total - seen - invalid - quarantined)
            found[name] = SourceCount(total, seen, rest, invalid, quarantined)
        return found

    return reader.remembered(f"sources {every} {listed}", load)


def state_of_skills(reader: Reader) -> str:
    """Return a text that changes if skills or sources change, but not if usage counts change.

    Four things can change in a stored version: values that depend on other versions and sources,
    the quarantine, whether the version is yanked, and whether it counts as an installed copy.
    Readers don't see a staged version, so it counts only after it is published.
    """
    quarantined = (
        "SELECT count(*), sum(s.id) FROM sources src JOIN skills s ON s.source_id = src.id "
        "WHERE src.kind IS NOT NULL AND s.live = 1 AND s.held = 1"
    )
    notices = (
        "SELECT source_id, folder, code, message FROM diagnostics WHERE skill_id IS NULL "
        "ORDER BY source_id, folder, code, message"
    )
    sources = (
        "SELECT id, name, path, scope, strength, precedence, owner, enabled, host, project, "
        "version FROM sources ORDER BY id"
    )
    live = "SELECT count(*), sum(id), max(id) FROM skills WHERE live = 1"
    # With `+live`, SQLite doesn't choose an index of all live skills.
    copies = (
        "SELECT id, installed FROM skills WHERE installed IS NOT NULL AND +live = 1 ORDER BY id + 0"
    )
    newest = (f"SELECT max(id) FROM {table}" for table in ("diagnostics", "labels"))
    parts = (live, quarantined, copies, notices, *newest, sources)
    found = reader.many([(sql, ()) for sql in parts])
    return f"{found} {reader.visibility.sources}"


def registered(reader: Reader) -> tuple[str | None, int, int]:
    """Return the revision of the schema, the number of sources and the number of skills.

    If there is no schema, the revision is None.
    """
    rows = reader.rows(
        "SELECT (SELECT max(version_num) FROM alembic_version), (SELECT count(*) FROM sources), "
        f"(SELECT count(*) FROM {FROM} WHERE s.live = 1 AND s.status <> 'no_document' "
        f"AND {IMPORTED})"
    )
    return cast("tuple[str | None, int, int]", rows[0]) if rows else (None, 0, 0)


def is_filled(reader: Reader) -> bool:
    """Tell whether a database contains a registry: sources, revisions or usage counts."""
    tables = "sources", "revisions", "usage"
    return any(reader.rows(f"SELECT 1 FROM {table} LIMIT 1") for table in tables)


def staged(reader: Reader) -> tuple[int, int]:
    """Return the number of versions that aren't current, and the total size of their files."""
    rows = reader.rows("SELECT count(*), coalesce(sum(bytes), 0) FROM skills WHERE live = 0")
    return (int(rows[0][0]), int(rows[0][1])) if rows else (0, 0)


def problems(select: Callable[[str], Iterable[Sequence[object]]], indexed: str) -> Iterator[str]:
    """Yield a description of each problem that database constraints don't prevent.

    ``indexed`` is SQL for the ids in the full-text index.
    """
    for (ref,) in select(
        f"SELECT ref FROM skills WHERE live = 1 AND status IN ('ok', 'warning') AND id NOT IN "
        f"({indexed}) LIMIT 20"
    ):
        yield f"skill {ref} has no entry in the full-text index"
    for (ref,) in select(
        f"SELECT s.ref FROM {FROM} WHERE s.live = 1 AND {IMPORTED} "
        "GROUP BY s.ref HAVING count(*) > 1 LIMIT 20"
    ):
        yield f"two skills share the ref {ref}"


STEPS: Final = (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
"""Upper limits of the size classes of skills, in bytes; the last class has no limit."""


@dataclass(frozen=True, slots=True)
class Size(Value):
    """The number of skills in a size class: all files of a skill have less than ``below`` bytes.

    ``below`` is None for the largest size class.
    """

    below: int | None
    skills: int


def sizes(reader: Reader, condition: Condition) -> list[Size]:
    """Count the skills that meet a condition, by size class."""
    steps = " ".join(f"WHEN s.bytes < {step} THEN {step}" for step in STEPS)
    rows = reader.rows(
        f"SELECT CASE {steps} ELSE 0 END, count(*) FROM {FROM} WHERE {condition[0]} GROUP BY 1",
        list(condition[1]),
    )
    known = dict(rows)
    return [Size(step or None, known.get(step, 0)) for step in (*STEPS, 0)]
