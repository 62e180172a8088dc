"""Asking PostgreSQL's full-text index, ranking in the manner of BM25.

The server says where and how often a word stands in a skill (``ts_rank``). What tells more is
added here: how rare the word is among all skills, and that several words in a text outweigh one
word in a name.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from registry.catalog.connection import Reader
from registry.catalog.filters import FROM, Filters, where
from registry.catalog.patterns import Pattern
from registry.text import LONGEST_LEXEME, lexemes

WEIGHTS: Final = "{0.1, 0.4, 0.6, 1.0}"
"""Of body, description, tags and name: as PostgreSQL wants them, from D to A."""

ENOUGH: Final = 0.073
"""The rank of a word that is worth half of the most it can be: a little more than once in a body
(0.061), as with BM25's usual k1 of 1.2. It grows with the length, by BM25's usual b of 0.75."""

USUAL_LENGTH: Final = 200
"""Distinct words of a skill of the usual length."""

_ENOUGH: Final = f"{ENOUGH} * (0.25 + 0.75 * length(x.words) / {USUAL_LENGTH}.0)"
_QUERY: Final = "to_tsquery('simple', ?)"
_FULL: Final = f"(1 - {_ENOUGH} / ({_ENOUGH} + ts_rank('{WEIGHTS}', x.words, {_QUERY})))"
"""How much of what it can be worth a word is worth in a skill, from 0 to 1."""

_INDEX: Final = f"{FROM} JOIN skill_search x ON x.skill_id = s.id"


@dataclass(frozen=True, slots=True)
class TextSearch:
    """Text queries, any of which may match, and the condition of the filters with its values.

    The methods are those of `Fts5`.
    """

    queries: tuple[str, ...]
    condition: str
    values: tuple[object, ...]

    @classmethod
    def of(cls, reader: Reader, patterns: Sequence[Pattern], filters: Filters) -> Self:
        """Return the question for skills that match one of the patterns, and the filters."""
        condition, values = where(reader, filters)
        found = dict.fromkeys(query for query in map(text_query, patterns) if query)
        return cls(tuple(found), condition, tuple(values))

    def count(self, reader: Reader) -> int:
        """Return how many skills match."""
        rows = reader.rows(
            f"SELECT count(*) FROM {_INDEX} WHERE x.words @@ {_QUERY} AND {self.condition}",
            [self._any, *self.values],
        )
        return int(rows[0][0]) if rows else 0

    def page(self, reader: Reader, name: str, limit: int, offset: int) -> list[tuple[int, float]]:
        """Return a page of matches with their ranks, those whose name's key is ``name`` first."""
        weights = [self._rarity(reader, query) for query in self.queries]
        rank = " + ".join(f"{weight:.4f} * {_FULL}" for weight in weights)
        return reader.rows(
            f"SELECT s.id, -({rank or '0'}) AS rank FROM {_INDEX} "
            f"WHERE x.words @@ {_QUERY} AND {self.condition} "
            "ORDER BY CASE WHEN s.name_key = ? THEN 0 ELSE 1 END, rank, s.id LIMIT ? OFFSET ?",
            [*self.queries, self._any, *self.values, name, limit, offset],
        )

    @property
    def _any(self) -> str:
        return " | ".join(self.queries)

    def _rarity(self, reader: Reader, query: str) -> float:
        """Return the weight of a word that so many of all skills have (as BM25 reckons it)."""

        def load(reader: Reader) -> float:
            sql = (
                f"SELECT (SELECT count(*) FROM skill_search WHERE words @@ {_QUERY}), "
                "(SELECT count(*) FROM skill_search)"
            )
            ((having, every),) = reader.rows(sql, [query]) or [(0, 0)]
            return math.log(1 + (every - having + 0.5) / (having + 0.5))

        return reader.remembered(f"rarity {query}", load)


def text_query(pattern: Pattern) -> str:
    """Return the text of a ``tsquery``; words are quoted, so none is an operator. Empty: none."""
    found = lexemes(" ".join(pattern.words)).split()
    if not found or max(map(len, found)) > LONGEST_LEXEME:
        return ""
    phrase = " <-> ".join(f"'{lexeme}'" for lexeme in found)
    return f"({phrase}:*)" if pattern.prefix else f"({phrase})"
