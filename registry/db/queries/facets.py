"""How many of some skills have each value of a facet: what a person narrows a listing by."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from registry.db.asked import Condition
from registry.db.interface import Reader
from registry.db.queries.filters import FROM
from registry.db.queries.listing import Facet
from registry.model import Value

MOST: Final = 40
"""Values of one facet that are named, the most frequent; the months are all there."""

_COLUMNS: Final = (
    ("kinds", "m.kind"),
    ("categories", "m.category"),
    ("sources", "m.source"),
    ("scopes", "m.scope"),
    ("statuses", "m.status"),
    ("created", "m.created"),
    ("updated", "m.updated"),
)
_MONTHS: Final = {"created", "updated"}

# The wide rows are gone through once; what is counted are narrow ones.
_MATCHED: Final = (
    "WITH m AS MATERIALIZED (SELECT s.id, s.kind, s.category, src.name AS source, "
    "src.scope AS scope, s.status, substr(s.created_at, 1, 7) AS created, "
    "substr(s.updated_at, 1, 7) AS updated FROM {tables} WHERE {condition}) "
)


@dataclass(frozen=True, slots=True)
class Facets(Value):
    """Counts by value, the most frequent first; ``created`` and ``updated`` by month, in order."""

    tags: tuple[Facet, ...] = ()
    kinds: tuple[Facet, ...] = ()
    categories: tuple[Facet, ...] = ()
    sources: tuple[Facet, ...] = ()
    scopes: tuple[Facet, ...] = ()
    statuses: tuple[Facet, ...] = ()
    created: tuple[Facet, ...] = ()
    updated: tuple[Facet, ...] = ()


def facets(reader: Reader, condition: Condition) -> Facets:
    """Count the skills that a condition holds for, by all facets at once.

    The answer is kept until the database changes.
    """

    def load(reader: Reader) -> Facets:
        return _facets(reader, condition)

    return reader.remembered(f"facets {condition[0]} {list(condition[1])}", load)


def among(reader: Reader, ids: Sequence[int]) -> Condition:
    """Return the condition that a version is one of these."""
    return f"s.id IN {reader.in_json_array}", [json.dumps(list(ids))]


def _facets(reader: Reader, condition: Condition) -> Facets:
    counts = [
        f"SELECT '{name}' AS facet, {column} AS value, count(*) AS number FROM m "
        f"WHERE {column} IS NOT NULL GROUP BY {column}"
        for name, column in _COLUMNS
    ]
    counts.append(
        "SELECT 'tags', t.tag, count(*) FROM m JOIN skill_tags t ON t.skill_id = m.id "
        "GROUP BY t.tag"
    )
    rows = reader.rows(
        _MATCHED.format(tables=FROM, condition=condition[0]) + " UNION ALL ".join(counts),
        list(condition[1]),
    )
    found: dict[str, list[Facet]] = {}
    for facet, value, number in rows:
        found.setdefault(facet, []).append(Facet(value, number))
    return Facets(
        **{
            name: tuple(
                sorted(some, key=lambda one: one.value)
                if name in _MONTHS
                else sorted(some, key=lambda one: (-one.count, one.value))[:MOST]
            )
            for name, some in found.items()
        }
    )
