"""Skills that bring files of some kind along."""

from collections.abc import Sequence

from registry.db.interface import Reader
from registry.db.queries.filters import FROM, Filters, order, where


def skills_with_files(reader: Reader, filters: Filters, patterns: Sequence[str]) -> list[int]:
    """Return the ids of skills that pass the filters and have a file like one of these, by name.

    ``patterns`` of LIKE, in small letters.
    """
    condition, values = where(reader, filters, reader.sight)
    like = " OR ".join(["lower(f.path) LIKE ?"] * len(patterns))
    rows = reader.rows(
        f"SELECT s.id FROM {FROM} WHERE {condition} AND s.id IN "
        f"(SELECT f.skill_id FROM skill_files f WHERE {like}) "
        f"ORDER BY {order('name', reverse=False)}",
        [*values, *patterns],
    )
    return [row[0] for row in rows]
