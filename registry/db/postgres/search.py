"""Asking PostgreSQL's full-text indexes, ranking in the manner of BM25.

The server says where and how often a word stands in a text (``ts_rank``). What tells more is added
here: how rare the word is among all texts, and that a word says less in a longer text.
"""

import json
from collections.abc import Sequence
from itertools import compress
from typing import Final, NamedTuple

from registry.db.asked import PARTS, Condition, Part, Pattern, Place, Question
from registry.db.interface import Reader, TextIndex
from registry.text import MAX_LEXEME, fold, split


class _Column(NamedTuple):
    """Where words are; ``weights`` of what stands in its parts, as PostgreSQL has them from D to A.

    ``enough``: the rank of a word that is worth half of the most it can be, in a text of ``usual``
    distinct words: a little more than once, as with BM25's usual k1 of 1.2.
    """

    name: str
    weights: str
    enough: float
    usual: int


_COLUMNS: Final[dict[Place, _Column]] = {
    "heads": _Column("head", "{0.1, 0.25, 0.5, 1.0}", 0.1, 30),
    "bodies": _Column("body", "{0.1, 0.4, 0.6, 1.0}", 0.073, 200),
}

RANKED: Final = 200
"""So many matches are ranked exactly; all others by how many words they have, and how rare ones."""

_PARTS: Final[dict[Part, str]] = {
    "name": "ts_filter(head, '{a}')",
    "tags": "ts_filter(head, '{b}')",
    "description": "ts_filter(head, '{c}')",
    "body": "body",
}

_QUERY: Final = "to_tsquery('stems', ?)"

_FIND: Final = """
WITH m AS MATERIALIZED ({matches}),
r AS MATERIALIZED (
    SELECT p, ln(1 + greatest(? - count(*), 0.5) / (count(*) + 0.5)) AS weight FROM m GROUP BY p
),
c AS (
    SELECT m.skill_id, sum(r.weight) AS weight FROM m JOIN r ON r.p = m.p GROUP BY m.skill_id
)
SELECT s.id, (SELECT json_object_agg(p, weight) FROM r)
FROM c JOIN skills s ON s.id = c.skill_id JOIN sources src ON src.id = s.source_id
WHERE {condition}
ORDER BY c.weight DESC, s.id LIMIT ?
"""


class VectorIndex(TextIndex):
    """Vectors of words, each column in an index of its own."""

    def counts(
        self, reader: Reader, place: Place, patterns: Sequence[Pattern], most: int
    ) -> list[int]:
        """Return in how many skills each pattern stands, counted up to ``most``."""
        asked = [text_query(one) for one in patterns]
        column = _COLUMNS[place].name
        one = f"(SELECT count(*) FROM registry_find('{column}', {_QUERY}, ?))"
        known = [query for query in asked if query]
        if not known:
            return [0] * len(asked)
        values = [value for query in known for value in (query, most)]
        rows = reader.rows(f"SELECT {', '.join([one] * len(known))}", values)
        found = dict(zip(known, rows[0], strict=True)) if rows else {}
        return [found.get(query, 0) for query in asked]

    def best(
        self, reader: Reader, asked: Sequence[Question], condition: Condition, most: int
    ) -> list[list[int]]:
        """Return for each question ids of skills that the condition holds for, the best first."""
        return [_best(reader, *one, condition, most) for one in asked]

    def parts(
        self, reader: Reader, skill_id: int, patterns: Sequence[Pattern]
    ) -> list[tuple[Part, ...]]:
        """Return for each pattern the parts of one skill in which it stands."""
        asked = [text_query(one) for one in patterns]
        tests = [
            f"{_PARTS[part]} @@ {_QUERY}" if query else "false" for query in asked for part in PARTS
        ]
        values = [query for query in asked if query for _ in PARTS]
        sql = f"SELECT {', '.join(tests)} FROM search_texts WHERE skill_id = ?"
        rows = reader.rows(sql, [*values, skill_id]) if tests else []
        held = rows[0] if rows else [False] * len(tests)
        width = len(PARTS)
        return [
            tuple(compress(PARTS, held[start : start + width]))
            for start in range(0, len(tests), width)
        ]

    def vocabulary(self, reader: Reader, beginning: str) -> list[str]:
        """Return the words of heads, as the index holds them, that begin so."""

        def load(reader: Reader) -> list[str]:
            rows = reader.rows("SELECT word FROM ts_stat('SELECT head FROM search_texts')")
            return [row[0] for row in rows]

        return [word for word in reader.remembered("words", load) if word.startswith(beginning)]


def _best(
    reader: Reader,
    place: Place,
    patterns: Sequence[Pattern],
    condition: Condition,
    most: int,
) -> list[int]:
    queries = list(dict.fromkeys(filter(None, map(text_query, patterns))))
    if not queries:
        return []
    column = _COLUMNS[place]
    # To read a vector costs a hundred times as much as to ask the index alone; which the server
    # does by itself for who may see all of it, and for others in a function (migration 0013).
    matches = " UNION ALL ".join(
        f"SELECT {number} AS p, x AS skill_id FROM registry_find('{column.name}', {_QUERY}, NULL) x"
        for number in range(len(queries))
    )
    rows = reader.rows(
        _FIND.format(matches=matches, condition=condition[0]),
        [*queries, _texts(reader), *condition[1], most],
    )
    ids = [row[0] for row in rows]
    rarity = {int(number): weight for number, weight in rows[0][1].items()} if rows else {}
    return [*_ranked(reader, column, queries, rarity, ids[:RANKED]), *ids[RANKED:]]


def _texts(reader: Reader) -> int:
    """Return how many texts there are; what the server itself estimates may be long ago."""
    sql = "SELECT count(*) FROM search_texts"
    return int(reader.remembered("texts", lambda reader: reader.rows(sql)[0][0]))


def _ranked(
    reader: Reader,
    column: _Column,
    queries: Sequence[str],
    rarity: dict[int, float],
    ids: Sequence[int],
) -> list[int]:
    """Return these ids, those whose texts say most of what was asked first."""
    if not ids:
        return []
    enough = f"{column.enough} * (0.25 + 0.75 * length(x.words) / {column.usual}.0)"
    worth = f"(1 - {enough} / ({enough} + ts_rank('{column.weights}', x.words, {_QUERY})))"
    used = sorted(rarity)
    rank = " + ".join(f"{rarity[number]:.4f} * {worth}" for number in used)
    # To put two vectors together makes one that is in memory, and is read once for all words.
    whole = f"SELECT skill_id, {column.name} || CAST('' AS tsvector) AS words FROM search_texts"
    rows = reader.rows(
        f"SELECT x.skill_id, {rank} FROM "
        f"({whole} WHERE skill_id {reader.in_json_array} OFFSET 0) x",
        [*(queries[number] for number in used), json.dumps(list(ids))],
    )
    ranks = dict(rows)
    return sorted(ids, key=lambda one: (-round(ranks.get(one, 0.0), 6), one))


def text_query(pattern: Pattern) -> str:
    """Return the text of a ``tsquery``; words are quoted, so none is an operator. Empty: none."""
    found = [part for word in pattern.words for part in split(fold(word))]
    if not found or max(map(len, found)) > MAX_LEXEME:
        return ""
    phrase = " <-> ".join(f"'{lexeme}'" for lexeme in found)
    return f"({phrase}:*)" if pattern.prefix else f"({phrase})"
