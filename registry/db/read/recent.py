"""Read the latest changes of skills: one by one, or grouped by day, type and source.

Any user with write access can add rows, so times and authors may be forged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from heapq import merge
from typing import Any, ClassVar, Final, Literal, TypeAlias, get_args

from registry.db.interface import Condition, Reader
from registry.db.read.skills import DESCRIPTION
from registry.model import Value
from registry.text import is_utc_text

Happened: TypeAlias = Literal["added", "changed", "removed"]
HAPPENED: Final[tuple[Happened, ...]] = get_args(Happened)


@dataclass(frozen=True, slots=True)
class RecentChange(Value):
    """A skill that was added, changed or removed; ``revision`` is the revision's number, from 1.

    ``ref`` finds the skill, or the history of a removed skill. ``at`` is the time at which a sync
    or command recorded the change. ``role``, ``tool`` and ``client`` describe the author. The
    server itself records only the role.
    """

    kind: Happened
    ref: str
    name: str
    source: str
    description: str
    revision: int | None
    at: str
    uid: str
    role: str | None = None
    tool: str | None = None
    client: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFilters:
    """Which changes to read: from the day ``since`` until the end of the day ``until``.

    ``ids`` are the lowest and the highest id of the revisions to read, if the caller knows them.
    """

    since: str | None = None
    until: str | None = None
    kind: Happened | None = None
    source: str | None = None
    ids: tuple[int, int] | None = None

    @property
    def bounds(self) -> tuple[str, str]:
        """The first time that is included, and the first time after the end."""
        if self.until is None:
            return self.since or "", "~"
        return self.since or "", (date.fromisoformat(self.until) + timedelta(days=1)).isoformat()


EVERY: Final = ChangeFilters()


@dataclass(frozen=True, slots=True)
class ChangeGroup(Value):
    """The changes of one type in one source on one day.

    ``at`` is the time of the last change. ``role`` and ``tool`` are None if the changes have
    different ones. ``ids`` are the lowest and the highest id of the revisions; both are 0 for
    removals.
    """

    KEYS: ClassVar = ("day", "kind", "source", "count", "at", "role", "tool")

    day: str
    kind: Happened
    source: str
    count: int
    at: str
    role: str | None = None
    tool: str | None = None
    ids: tuple[int, int] = (0, 0)

    @property
    def filters(self) -> ChangeFilters:
        """The filters that select the changes of this group."""
        ids = self.ids if self.kind != "removed" else None
        return ChangeFilters(
            since=self.day, until=self.day, kind=self.kind, source=self.source, ids=ids
        )


def recent(
    reader: Reader,
    condition: Condition,
    filters: ChangeFilters = EVERY,
    *,
    limit: int,
    offset: int = 0,
    gone: bool = True,
) -> list[RecentChange]:
    """Return the latest changes of the skills that meet a condition, the latest first.

    If ``gone``, the result includes removed skills of all sources.
    """
    most = limit + offset
    came: list[RecentChange] = []
    if filters.kind != "removed":
        where, values = _revisions(condition, filters)
        rows = reader.rows(
            f"SELECT r.number, {reader.visibility.ref}, s.name, src.name, {DESCRIPTION}, "
            "r.seen_at, r.uid, r.role, r.tool, r.client "
            # SQLite doesn't reorder a CROSS JOIN, so it reads the revisions backwards and stops at
            # the limit.
            "FROM revisions r CROSS JOIN skills s JOIN sources src ON src.id = s.source_id "
            f"WHERE {where} ORDER BY r.id DESC LIMIT ?",
            [*values, most],
        )
        came = [
            RecentChange(
                "added" if number == 1 else "changed", ref, name, source, about, number, *rest
            )
            for number, ref, name, source, about, *rest in rows
        ]
    went = _removals(reader, filters, most) if gone and filters.kind in {None, "removed"} else []
    # After a restore or a change of the clock, a newer row may have an older time.
    ordered = sorted(came, key=lambda one: one.at, reverse=True)
    return list(merge(ordered, went, key=lambda one: one.at, reverse=True))[offset:most]


def change_groups(
    reader: Reader, condition: Condition, filters: ChangeFilters = EVERY, *, gone: bool = True
) -> Sequence[ChangeGroup]:
    """Group the changes of the skills that meet a condition, the latest first.

    The result is cached until the database changes.
    """

    def load(reader: Reader) -> Sequence[ChangeGroup]:
        found: list[ChangeGroup] = []
        if filters.kind != "removed":
            where, values = _revisions(condition, filters)
            rows = reader.rows(
                "SELECT substr(r.seen_at, 1, 10), "
                "CASE WHEN r.number = 1 THEN 'added' ELSE 'changed' END, src.name, count(*), "
                "max(r.seen_at), "
                "CASE WHEN min(coalesce(r.role, '')) = max(r.role) THEN max(r.role) END, "
                "CASE WHEN min(coalesce(r.tool, '')) = max(r.tool) THEN max(r.tool) END, "
                "min(r.id), max(r.id) "
                "FROM revisions r JOIN skills s ON s.uid = r.uid "
                f"JOIN sources src ON src.id = s.source_id WHERE {where} GROUP BY 1, 2, 3",
                values,
            )
            found += [
                ChangeGroup(day, kind, source, count, at, role, tool, (low, high))
                for day, kind, source, count, at, role, tool, low, high in rows
                if is_utc_text(at)
            ]
        if gone and filters.kind in {None, "removed"}:
            where, values = _tombstones(filters)
            rows = reader.rows(
                "SELECT substr(g.since, 1, 10), 'removed', g.source, count(*), max(g.since) "
                f"FROM gone g WHERE {where} GROUP BY 1, 3",
                values,
            )
            found += [ChangeGroup(*row) for row in rows if is_utc_text(row[4])]
        return tuple(sorted(found, key=lambda one: (one.at, one.kind, one.source), reverse=True))

    return reader.remembered(f"changes {condition} {filters} {gone}", load)


def _revisions(condition: Condition, filters: ChangeFilters) -> tuple[str, list[Any]]:
    """Return the SQL condition on ``r`` (revisions), ``s`` and ``src``, and its values."""
    where = [f"s.uid = r.uid AND {condition[0]}"]
    values: list[Any] = list(condition[1])
    since, until = filters.bounds
    if filters != EVERY:
        where.append("r.seen_at >= ? AND r.seen_at < ?")
        values += [since, until]
    if filters.ids is not None:
        where.append("r.id BETWEEN ? AND ?")
        values += filters.ids
    if filters.kind is not None:
        where.append("r.number = 1" if filters.kind == "added" else "r.number > 1")
    if filters.source is not None:
        where.append("src.name = ?")
        values.append(filters.source)
    return " AND ".join(where), values


def _tombstones(filters: ChangeFilters) -> tuple[str, list[Any]]:
    """Return the SQL condition on ``g`` (gone), and its values."""
    where = (
        "g.since >= ? AND g.since < ? AND NOT EXISTS "
        "(SELECT 1 FROM skills s WHERE s.uid = g.uid AND s.live = 1)"
    )
    values: list[Any] = list(filters.bounds)
    if filters.source is not None:
        where += " AND g.source = ?"
        values.append(filters.source)
    return where, values


def _removals(reader: Reader, filters: ChangeFilters, limit: int) -> list[RecentChange]:
    where, values = _tombstones(filters)
    rows: Sequence[tuple[Any, ...]] = reader.rows(
        "SELECT g.uid, g.name, g.source, g.folder, g.since FROM gone g "
        f"WHERE {where} ORDER BY g.since DESC, g.uid LIMIT ?",
        [*values, limit],
    )
    return [
        RecentChange(
            "removed", f"{source}/{folder}" if source else name, name, source, "", None, at, uid
        )
        for uid, name, source, folder, at in rows
        if is_utc_text(at)  # the row may be forged, so skip invalid times
    ]
