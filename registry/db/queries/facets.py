"""How many of some skills have each value of a facet: what a person narrows a listing by."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from registry.db.asked import Condition
from registry.db.interface import Reader
from registry.db.queries.filters import FROM
from registry.db.queries.listing import Facet
from registry.model import Value

MOST: Final = 40
"""Values of one facet that are named, the most frequent; the months are all there."""


# The wide rows are gone through once; what is counted are narrow ones.
_COUNTED: Final = (
    "WITH m AS MATERIALIZED (SELECT s.id, s.kind AS kinds, s.category AS categories, s.source_id, "
    "s.status, substr(s.created_at, 1, 7) AS created, substr(s.updated_at, 1, 7) AS updated "
    "FROM {tables} WHERE {condition}) "
    "SELECT 'tags', t.tag, count(*), NULL, NULL FROM m JOIN skill_tags t ON t.skill_id = m.id "
    "GROUP BY t.tag UNION ALL SELECT 'places', p.name, m.number, p.scope, m.status FROM "
    "(SELECT source_id, status, count(*) AS number FROM m GROUP BY source_id, status) m "
    "JOIN sources p ON p.id = m.source_id"
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
    return f"s.id {reader.in_json_array}", [json.dumps(list(ids))]


def few(reader: Reader, condition: Condition, most: int) -> Sequence[int] | None:
    """Return the versions that a condition holds for; None: they are more than ``most``.

    The answer is kept until the database changes.
    """

    def load(reader: Reader) -> Sequence[int] | None:
        sql = f"SELECT s.id FROM {FROM} WHERE {condition[0]} LIMIT ?"
        rows = reader.rows(sql, [*condition[1], most + 1])
        return None if len(rows) > most else tuple(version for (version,) in rows)

    return reader.remembered(f"few {most} {condition[0]} {list(condition[1])}", load)


def _facets(reader: Reader, condition: Condition) -> Facets:
    sql = _COUNTED.format(tables=FROM, condition=condition[0]) + "".join(
        f" UNION ALL SELECT '{name}', {name}, count(*), NULL, NULL FROM m "
        f"WHERE {name} IS NOT NULL GROUP BY {name}"
        for name in ("kinds", "categories", "created", "updated")
    )
    found: dict[str, Counter[str]] = {}
    for facet, value, number, scope, status in reader.rows(sql, list(condition[1])):
        if facet == "places":
            for name, part in (("sources", value), ("scopes", scope), ("statuses", status)):
                found.setdefault(name, Counter())[part] += number
        else:
            found.setdefault(facet, Counter())[value] += number
    return Facets(**{name: _ordered(name, counts) for name, counts in found.items()})


def _ordered(name: str, counts: Mapping[str, int]) -> tuple[Facet, ...]:
    some = [Facet(value, count) for value, count in counts.items()]
    if name in {"created", "updated"}:
        return tuple(sorted(some, key=lambda one: one.value))
    return tuple(sorted(some, key=lambda one: (-one.count, one.value))[:MOST])
