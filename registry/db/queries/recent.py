"""What happened to skills lately: which came, changed, or went."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import merge
from typing import Any, Literal, TypeAlias

from registry.db.asked import Condition
from registry.db.interface import Reader
from registry.db.queries.rows import DESCRIPTION
from registry.model import Value
from registry.text import is_utc_text

Happened: TypeAlias = Literal["added", "changed", "removed"]


@dataclass(frozen=True, slots=True)
class Change(Value):
    """A content that a skill was first seen with, or that it went; ``revision`` counts from 1.

    ``ref`` finds the skill, or of one that is gone its history. ``at`` is when a sync, or what
    changed it, noticed.
    """

    kind: Happened
    ref: str
    name: str
    source: str
    description: str
    revision: int | None
    at: str
    uid: str


def recent(
    reader: Reader, condition: Condition, *, limit: int, since: str | None = None, gone: bool = True
) -> list[Change]:
    """Return the last changes of the skills for which a condition holds, the latest first.

    ``since``: none from before this time. ``gone``: what was removed, too, wherever it was.
    """
    values: list[object] = list(condition[1])
    bound = ""
    if since is not None:
        bound = "AND r.seen_at >= ? "
        values.append(since)
    seen = reader.rows(
        f"SELECT r.number, {reader.sight.ref}, s.name, src.name, {DESCRIPTION}, r.seen_at, r.uid "
        # SQLite keeps to the order of a CROSS JOIN: backwards from the last revision, no further
        # than it has to.
        "FROM revisions r CROSS JOIN skills s JOIN sources src ON src.id = s.source_id "
        f"WHERE s.uid = r.uid AND {condition[0]} {bound}ORDER BY r.id DESC LIMIT ?",
        [*values, limit],
    )
    came = [
        Change("added" if number == 1 else "changed", ref, name, source, about, number, at, uid)
        for number, ref, name, source, about, at, uid in seen
    ]
    went = _gone(reader, limit, since) if gone else []
    # Who restores a database, or sets a clock, has times that are in no order.
    ordered = sorted(came, key=lambda one: one.at, reverse=True)
    return list(merge(ordered, went, key=lambda one: one.at, reverse=True))[:limit]


def _gone(reader: Reader, limit: int, since: str | None) -> list[Change]:
    rows: Sequence[tuple[Any, ...]] = reader.rows(
        "SELECT g.uid, g.name, g.source, g.folder, g.since FROM gone g "
        "WHERE g.since >= ? AND NOT EXISTS "
        "(SELECT 1 FROM skills s WHERE s.uid = g.uid AND s.live = 1) "
        "ORDER BY g.since DESC, g.uid LIMIT ?",
        [since or "", limit],
    )
    return [
        Change("removed", f"{source}/{folder}" if source else name, name, source, "", None, at, uid)
        for uid, name, source, folder, at in rows
        if is_utc_text(at)  # a stranger's words are told nobody in the place of a time
    ]
