"""Asking SQLite's full-text index, which ranks by BM25."""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from registry.db.interface import Matches, Pattern, Reader
from registry.db.queries.filters import FROM

WEIGHTS: Final = (10.0, 6.0, 4.0, 1.0)
"""Of name, tags, description and body."""

_RANK: Final = f"bm25(skill_search, {', '.join(map(str, WEIGHTS))})"


class Fts5Matches(Matches):
    """What FTS5 finds.

    The index ranks by itself, and what passes the filters is looked up for the best only: joining
    and sorting all matches of a common word takes twice as long. A rank is a number, the best the
    lowest.
    """

    @cached_property
    def expression(self) -> str:
        """The patterns in the words of FTS5."""
        return expression(self.patterns)

    def count(self, reader: Reader) -> int:
        """Return how many skills match."""
        rows = reader.rows(
            "SELECT count(*) FROM skill_search x JOIN skills s ON s.id = x.rowid "
            "JOIN sources src ON src.id = s.source_id "
            f"WHERE skill_search MATCH ? AND {self.condition}",
            [self.expression, *self.values],
        )
        return int(rows[0][0]) if rows else 0

    def page(self, reader: Reader, limit: int, offset: int) -> list[tuple[int, float]]:
        """Return a page of matches with their ranks, those whose name's key is `name` first."""
        first = self._named(reader)
        page = [*first, *self._best(reader, offset + limit, {row[0] for row in first})]
        return page[offset : offset + limit]

    def _named(self, reader: Reader) -> list[tuple[int, float]]:
        return reader.rows(
            f"SELECT s.id, {_RANK} AS rank FROM {FROM} CROSS JOIN skill_search x "
            f"WHERE s.name_key = ? AND {self.condition} "
            "AND x.rowid = s.id AND skill_search MATCH ? ORDER BY rank, s.id",
            [self.name, *self.values, self.expression],
        )

    def _best(self, reader: Reader, wanted: int, others: set[int]) -> list[tuple[int, float]]:
        looked_at = 2 * wanted + 50
        while True:
            top = reader.rows(
                f"SELECT rowid, {_RANK} AS rank FROM skill_search WHERE skill_search MATCH ? "
                "ORDER BY rank, rowid LIMIT ?",
                [self.expression, looked_at],
            )
            chosen = json.dumps([row[0] for row in top])
            passing = reader.rows(
                f"SELECT s.id FROM {FROM} "
                f"WHERE s.id IN {reader.in_json_array} AND {self.condition}",
                [chosen, *self.values],
            )
            seen = {row[0] for row in passing} - others
            found = [(skill_id, rank) for skill_id, rank in top if skill_id in seen]
            if len(found) >= wanted or len(top) < looked_at:
                return found[:wanted]
            looked_at *= 8


def expression(patterns: Sequence[Pattern]) -> str:
    """Return the FTS5 expression of the patterns; words are quoted, so none is an operator."""
    return " OR ".join(
        f'"{" ".join(pattern.words)}"' + ("*" if pattern.prefix else "") for pattern in patterns
    )
