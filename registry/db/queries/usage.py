"""What tools did with each skill, as it was counted."""

from dataclasses import dataclass

from registry.db.interface import Reader
from registry.db.queries.filters import FROM
from registry.db.sight import USABLE
from registry.model import Value


@dataclass(frozen=True, slots=True)
class UsageCount(Value):
    """How often tools listed, found and read a skill, and when last (UTC, ISO 8601)."""

    ref: str
    name: str
    source: str
    listed: int
    found: int
    read: int
    last_listed_at: str | None
    last_found_at: str | None
    last_read_at: str | None


def usage(reader: Reader) -> list[UsageCount]:
    """Return the counts of all usable skills that tools came upon, the most read first."""
    rows = reader.rows(
        f"SELECT {reader.sight.ref}, s.name, src.name, u.listed, u.found, u.read, "
        "u.last_listed_at, u.last_found_at, u.last_read_at "
        f"FROM {FROM} JOIN usage u ON u.uid = s.uid WHERE s.live = 1 AND {USABLE} "
        "ORDER BY u.read DESC, u.found DESC, u.listed DESC, s.name_key, s.ref"
    )
    return [UsageCount(*row) for row in rows]
