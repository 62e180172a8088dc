"""Read how often tools used each skill."""

from dataclasses import dataclass, replace

from registry.db.interface import Condition, Reader
from registry.db.read.skills import FROM
from registry.db.visibility import USABLE
from registry.model import Value


@dataclass(frozen=True, slots=True)
class UsageCount(Value):
    """How often tools listed, found and read a skill, and the last time of each (UTC, ISO 8601)."""

    ref: str
    name: str
    source: str
    listed: int
    found: int
    read: int
    last_listed_at: str | None
    last_found_at: str | None
    last_read_at: str | None


def _select(reader: Reader, rest: str, *values: object) -> list[UsageCount]:
    # SQLite doesn't reorder a CROSS JOIN, so it reads only the skills with counts.
    rows = reader.rows(
        f"SELECT {reader.visibility.ref}, s.name, src.name, u.listed, u.found, u.read, "
        "u.last_listed_at, u.last_found_at, u.last_read_at "
        "FROM usage u CROSS JOIN skills s JOIN sources src ON src.id = s.source_id "
        f"WHERE s.uid = u.uid AND {rest}",
        values,
    )
    return [UsageCount(*row) for row in rows]


def usage(reader: Reader) -> list[UsageCount]:
    """Return the counts of all usable skills that tools have used, the most read skill first."""
    order = "u.read DESC, u.found DESC, u.listed DESC, s.name_key, s.ref"
    return _select(reader, f"s.live = 1 AND {USABLE} ORDER BY {order}")


def most_read(reader: Reader, condition: Condition, limit: int) -> list[UsageCount]:
    """Return the counts of the skills that meet a condition, sorted by reads, the highest first."""
    order = "u.read DESC, u.found DESC, s.name_key, s.ref"
    rest = f"u.read > 0 AND {condition[0]} ORDER BY {order} LIMIT ?"
    return _select(reader, rest, *condition[1], limit)


def usage_of(reader: Reader, ref: str, uid: str) -> UsageCount | None:
    """Return the counts of one skill; None if no tool has used the skill."""
    found = _select(reader, "u.uid = ? AND s.live = 1", uid)
    return replace(found[0], ref=ref) if found else None


def count_unread(reader: Reader, condition: Condition) -> int:
    """Count the skills that meet a condition and that no tool has read."""
    rows = reader.rows(
        f"SELECT count(*) FROM {FROM} WHERE {condition[0]} "
        "AND s.uid NOT IN (SELECT uid FROM usage WHERE read > 0)",
        list(condition[1]),
    )
    return int(rows[0][0]) if rows else 0
