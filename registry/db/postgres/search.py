"""Asking PostgreSQL's full-text index, ranking in the manner of BM25.

The server says where and how often a word stands in a skill (``ts_rank``). What tells more is
added here: how rare the word is among all skills, and that several words in a text outweigh one
word in a name.
"""

import json
from functools import cached_property
from typing import Final, NamedTuple

from registry.db.interface import Matches, Pattern, Reader
from registry.text import MAX_LEXEME, lexemes

WEIGHTS: Final = "{0.1, 0.4, 0.6, 1.0}"
"""Of body, description, tags and name: as PostgreSQL wants them, from D to A."""

ENOUGH: Final = 0.073
"""The rank of a word that is worth half of the most it can be: a little more than once in a body
(0.061), as with BM25's usual k1 of 1.2. It grows with the length, by BM25's usual b of 0.75."""

USUAL_LENGTH: Final = 200
"""Distinct words of a skill of the usual length."""

RANKED: Final = 200
"""So many matches are ranked exactly."""

ANYWHERE, ABOVE = 0.45, 0.35
"""What a word is worth before that is known: once in the body, and more in name or description."""

_ENOUGH: Final = f"{ENOUGH} * (0.25 + 0.75 * length(x.words) / {USUAL_LENGTH}.0)"
_QUERY: Final = "to_tsquery('simple', ?)"
_FULL: Final = f"(1 - {_ENOUGH} / ({_ENOUGH} + ts_rank('{WEIGHTS}', x.words, {_QUERY})))"
"""How much of what it can be worth a word is worth in a skill, from 0 to 1."""

_FIND: Final = """
WITH m AS MATERIALIZED ({matches}),
r AS (
    SELECT p, ln(1 + (n.every - count(*) + 0.5) / (count(*) + 0.5)) AS weight
    FROM m CROSS JOIN (SELECT count(*) AS every FROM skill_search) n
    WHERE share = {anywhere} GROUP BY p, n.every
),
c AS (
    SELECT m.skill_id, sum(m.share * r.weight) AS weight
    FROM m JOIN r ON r.p = m.p GROUP BY m.skill_id
)
SELECT s.id, s.name_key = ?, count(*) OVER (), (SELECT json_object_agg(p, weight) FROM r)
FROM c JOIN skills s ON s.id = c.skill_id JOIN sources src ON src.id = s.source_id
WHERE {condition}
ORDER BY CASE WHEN s.name_key = ? THEN 0 ELSE 1 END, c.weight DESC, s.id LIMIT ?
"""


class _Found(NamedTuple):
    """Matches that seem best (id, whether it has the name), how many there are, what is rare."""

    best: list[tuple[int, bool]]
    total: int
    rarity: dict[int, float]


class TextMatches(Matches):
    """What text queries find, any of which may match."""

    @cached_property
    def queries(self) -> tuple[str, ...]:
        """The patterns as text queries, each once, without those that match nothing."""
        return tuple(dict.fromkeys(filter(None, map(text_query, self.patterns))))

    def count(self, reader: Reader) -> int:
        """Return how many skills match."""
        return self._found(reader, RANKED).total

    def page(self, reader: Reader, limit: int, offset: int) -> list[tuple[int, float]]:
        """Return a page of matches with their ranks, those whose name's key is `name` first.

        The first `RANKED` are put in order by their exact ranks; all others keep the order in
        which the indexes find them, by how many words they have and how rare those are.
        """
        found = self._found(reader, max(RANKED, offset + limit))
        first = self._ranked(reader, found)
        worst = max((rank for _, rank in first), default=0.0)
        rest = [(skill_id, worst) for skill_id, _ in found.best[RANKED:]]
        return [*first, *rest][offset : offset + limit]

    def _found(self, reader: Reader, most: int) -> _Found:
        """Ask the indexes alone: to read a vector costs a hundred times as much."""
        parts, values = [], list[object]()
        for number, query in enumerate(self.queries):
            for column, share in (("words", ANYWHERE), ("head", ABOVE)):
                parts.append(
                    f"SELECT {number} AS p, {share} AS share, skill_id FROM skill_search "
                    f"WHERE {column} @@ {_QUERY}"
                )
                values.append(query)
        if not parts:
            return _Found([], 0, {})
        sql = _FIND.format(
            matches=" UNION ALL ".join(parts), anywhere=ANYWHERE, condition=self.condition
        )

        def load(reader: Reader) -> _Found:
            rows = reader.rows(sql, [*values, self.name, *self.values, self.name, most])
            rarity = {int(number): weight for number, weight in rows[0][3].items()} if rows else {}
            return _Found([(row[0], row[1]) for row in rows], rows[0][2] if rows else 0, rarity)

        return reader.remembered(f"found {most} {self}", load)

    def _ranked(self, reader: Reader, found: _Found) -> list[tuple[int, float]]:
        """Return the first matches with their ranks, in order."""
        chosen = found.best[:RANKED]
        if not chosen:
            return []
        used = [number for number in range(len(self.queries)) if number in found.rarity]
        rank = " + ".join(f"{found.rarity[number]:.4f} * {_FULL}" for number in used)
        # To put two vectors together makes one that is in memory, and is read once for all words.
        whole = "SELECT skill_id, words || CAST('' AS tsvector) AS words FROM skill_search"
        ranks = dict(
            reader.rows(
                f"SELECT x.skill_id, -({rank}) FROM "
                f"({whole} WHERE skill_id IN {reader.in_json_array} OFFSET 0) x",
                [
                    *(self.queries[number] for number in used),
                    json.dumps([skill_id for skill_id, _ in chosen]),
                ],
            )
        )
        order = sorted(
            chosen, key=lambda one: (not one[1], round(ranks.get(one[0], 0.0), 6), one[0])
        )
        return [(skill_id, ranks.get(skill_id, 0.0)) for skill_id, _ in order]


def text_query(pattern: Pattern) -> str:
    """Return the text of a ``tsquery``; words are quoted, so none is an operator. Empty: none."""
    found = lexemes(" ".join(pattern.words)).split()
    if not found or max(map(len, found)) > MAX_LEXEME:
        return ""
    phrase = " <-> ".join(f"'{lexeme}'" for lexeme in found)
    return f"({phrase}:*)" if pattern.prefix else f"({phrase})"
