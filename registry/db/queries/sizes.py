"""How large skills are, and how many of them nobody has read."""

from dataclasses import dataclass
from typing import Final

from registry.db.asked import Condition
from registry.db.interface import Reader
from registry.db.queries.filters import FROM
from registry.db.queries.usage import UsageCount
from registry.model import Value

STEPS: Final = (1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
"""Bytes below which a skill belongs to a step; what is larger to the last."""


@dataclass(frozen=True, slots=True)
class Size(Value):
    """How many skills have fewer than ``below`` bytes in all their files (None: the largest)."""

    below: int | None
    skills: int


def sizes(reader: Reader, condition: Condition) -> list[Size]:
    """Count the skills for which a condition holds by their size."""
    steps = " ".join(f"WHEN s.bytes < {step} THEN {step}" for step in STEPS)
    rows = reader.rows(
        f"SELECT CASE {steps} ELSE 0 END, count(*) FROM {FROM} WHERE {condition[0]} GROUP BY 1",
        list(condition[1]),
    )
    known = dict(rows)
    return [Size(step or None, known.get(step, 0)) for step in (*STEPS, 0)]


def most_read(reader: Reader, condition: Condition, limit: int) -> list[UsageCount]:
    """Return the counts of the skills for which a condition holds that tools read most."""
    rows = reader.rows(
        f"SELECT {reader.sight.ref}, s.name, src.name, u.listed, u.found, u.read, "
        f"u.last_listed_at, u.last_found_at, u.last_read_at FROM {FROM} "
        f"JOIN usage u ON u.uid = s.uid WHERE u.read > 0 AND {condition[0]} "
        "ORDER BY u.read DESC, u.found DESC, s.name_key, s.ref LIMIT ?",
        [*condition[1], limit],
    )
    return [UsageCount(*row) for row in rows]


def usage_of(reader: Reader, ref: str, uid: str) -> UsageCount | None:
    """Return the counts of one skill; None: no tool came upon it."""
    rows = reader.rows(
        "SELECT u.listed, u.found, u.read, u.last_listed_at, u.last_found_at, u.last_read_at, "
        "s.name, src.name FROM usage u JOIN skills s ON s.uid = u.uid AND s.live = 1 "
        "JOIN sources src ON src.id = s.source_id WHERE u.uid = ?",
        [uid],
    )
    return UsageCount(ref, *rows[0][6:], *rows[0][:6]) if rows else None


def count_unread(reader: Reader, condition: Condition) -> int:
    """Return for how many skills a condition holds that no tool has read."""
    rows = reader.rows(
        f"SELECT count(*) FROM {FROM} WHERE {condition[0]} "
        "AND s.uid NOT IN (SELECT uid FROM usage WHERE read > 0)",
        list(condition[1]),
    )
    return int(rows[0][0]) if rows else 0
