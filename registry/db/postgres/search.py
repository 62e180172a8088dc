"""Asking PostgreSQL's full-text indexes, ranking in the manner of BM25.

The server says where and how often a word stands in a text (``ts_rank``). What tells more is added
here: how rare the word is among all texts, and that a word says less in a longer text.
"""

import json
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, Final, NamedTuple

from registry.db.asked import PARTS, Condition, Part, Pattern, Place, Question
from registry.db.interface import Reader, Select, TextIndex
from registry.db.storable import MAX_INTEGER
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

COMMON: Final = 1000
"""Texts with a word that is so common that what has no other word is looked at last."""

SURELY: Final = 1.2
"""How much more than ``most`` the server must estimate, from a sample, to be believed."""

_PARTS: Final[dict[Part, str]] = {
    "name": "ts_filter(head, '{a}')",
    "tags": "ts_filter(head, '{b}')",
    "description": "ts_filter(head, '{c}')",
    "body": "body",
}

_QUERY: Final = "to_tsquery('stems', ?)"

# Whole numbers have one sum in whichever order, and cost a tenth of decimals. What is in order
# already is looked up one after the other, until enough pass the condition.
_FIND: Final = """
WITH m AS MATERIALIZED ({matches}),
r AS MATERIALIZED (
    SELECT p, CAST(1e6 * ln(1 + greatest(? - {texts}, 0.5) / ({texts} + 0.5)) AS bigint) AS weight
    FROM m GROUP BY p
),
c AS (
    SELECT m.skill_id, sum(r.weight) AS weight FROM m JOIN r ON r.p = m.p GROUP BY m.skill_id
    ORDER BY 2 DESC, 1
)
SELECT f.id, f.weight, (SELECT json_object_agg(p, weight) FROM r), {rank}
FROM (
    SELECT s.id, c.weight, row_number() OVER (ORDER BY c.weight DESC, s.id) AS place
    FROM c JOIN skills s ON s.id = c.skill_id JOIN sources src ON src.id = s.source_id
    WHERE {condition}
    ORDER BY c.weight DESC, s.id LIMIT ?
) f
ORDER BY f.place
"""

# All that have the only word are worth the same so far.
_FIND_ONE: Final = f"""
WITH m AS (SELECT x AS skill_id FROM registry_find('{{column}}', {_QUERY}, ?) x),
c AS (SELECT skill_id FROM m ORDER BY 1)
SELECT f.id, 0, CAST('{{{{"0": 1000000}}}}' AS json), {{rank}}
FROM (
    SELECT s.id, row_number() OVER (ORDER BY s.id) AS place
    FROM c JOIN skills s ON s.id = c.skill_id JOIN sources src ON src.id = s.source_id
    WHERE {{condition}}
    ORDER BY s.id LIMIT ?
) f
ORDER BY f.place
"""

# Of those that have the most, how much their texts say of what was asked. To put two vectors
# together makes one that is in memory, and is read once for all words.
_RANK: Final = f"""CASE WHEN f.place <= {RANKED} THEN (SELECT {{ranks}} FROM (
    SELECT {{column}} || CAST('' AS tsvector) AS words FROM search_texts WHERE skill_id = f.id
    OFFSET 0
) x) END"""
_WEIGHT: Final = (
    "CAST(round(coalesce((SELECT weight FROM r WHERE p = {}), 0) / 1e6, 4) AS double precision)"
)

# What the server knows of the commonest words since it analyzed the table last (migration 0014).
_ESTIMATES: Final = "SELECT place, word, texts FROM registry_common_words()"

_STEMS: Final = (
    "SELECT value, (ts_lexize('stems', value))[1] "
    "FROM json_array_elements_text(CAST(? AS json)) AS given (value)"
)

MAX_STEMS: Final = 10_000
"""That are remembered."""


class VectorIndex(TextIndex):
    """Vectors of words, each column in an index of its own."""

    def __init__(self) -> None:
        self._stems: dict[str, str] = {}
        self._expected = threading.local()

    def expect(self, reader: Reader, said: Callable[[], Iterable[str]]) -> None:
        """Ask along for the stems of words that nobody looked for yet."""
        words = {word for text in said() for word in split(fold(text))}
        unknown = json.dumps(sorted(words - self._stems.keys()))
        # Of an earlier snapshot, which failed, none is left.
        self._expected.rows = reader.ahead((_STEMS, [unknown])) if unknown != "[]" else None

    def counts(
        self, reader: Reader, patterns: Sequence[Pattern], most: int
    ) -> list[tuple[int, int]]:
        """Return in how many heads and bodies each pattern stands, counted up to ``most``."""
        queries = [text_query(one) for one in patterns]
        places = [
            (column.name, query) for query in filter(None, queries) for column in _COLUMNS.values()
        ]
        stems = self._unknown(reader, patterns)
        known = self._estimates(reader, patterns)
        found = {one: most for one in places if known.get(one, 0) > most * SURELY}
        asked = [one for one in dict.fromkeys(places) if one not in found]
        if asked:
            found_in = f"(SELECT count(*) FROM registry_find('{{}}', {_QUERY}, ?))"
            counts = (found_in.format(column) for column, _ in asked)
            values = [value for _, query in asked for value in (query, most)]
            # Of a word that nobody asked for yet the stem comes along, for `best`.
            rows, *learnt = reader.many([(f"SELECT {', '.join(counts)}", values), *stems])
            found |= dict(zip(asked, rows[0], strict=True)) if rows else {}
            self._learn(learnt)
        return [(found.get(("head", one), 0), found.get(("body", one), 0)) for one in queries]

    def best(
        self, reader: Reader, asked: Sequence[Question], condition: Condition, most: int
    ) -> list[list[int]]:
        """Return for each question ids of skills that the condition holds for, the best first."""
        patterns = [one for _, some in asked for one in some]
        if not patterns:
            return [[] for _ in asked]
        for question in self._unknown(reader, patterns):
            self._learn([reader.rows(*question)])
        known, texts = self._estimates(reader, patterns), _facts(reader).texts
        finds = [_Find(_COLUMNS[place], some, known) for place, some in asked]
        for whole in (False, True):
            left = [find for find in finds if not find.done]
            questions = [find.question(texts, condition, most, whole=whole) for find in left]
            for find, rows in zip(left, reader.many(questions) if left else (), strict=True):
                find.take(rows, most, whole=whole)
        return [find.ids for find in finds]

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
            return sorted(row[0] for row in rows)

        words = reader.remembered("words", load)
        ends = (bisect_left(words, one) for one in (beginning, f"{beginning}\U0010ffff"))
        return words[slice(*ends)]

    def _estimates(self, reader: Reader, patterns: Sequence[Pattern]) -> dict[tuple[str, str], int]:
        """Return by column and query in about how many texts those are that are single words.

        What the server does not know to be common is left out, and words whose stem is unknown.
        """
        common = _facts(reader).common
        words = _single(patterns) if common else ()
        return {
            (column.name, text_query(Pattern((word,)))): texts
            for word in words
            for column in _COLUMNS.values()
            if (texts := common.get((column.name, self._stems.get(word, ""))))
        }

    def _unknown(self, reader: Reader, patterns: Sequence[Pattern]) -> list[Select]:
        """Return what asks for the stems of words that are unknown, if there are any."""
        expected: Callable[[], list[Any]] | None = self._expected.__dict__.pop("rows", None)
        if expected is not None:
            self._learn([expected()])
        unknown = _single(patterns) - self._stems.keys() if _facts(reader).common else ()
        return [(_STEMS, [json.dumps(sorted(unknown))])] if unknown else []

    def _learn(self, answers: Sequence[Sequence[tuple[Any, ...]]]) -> None:
        """Take the answers to what `_unknown` returned."""
        for rows in answers:
            if len(self._stems) > MAX_STEMS:
                self._stems = {}
            self._stems |= dict(rows)


class _Find:
    """A question on its way to ids, the best first.

    What has one common word and no other is left out at first: it costs most, and nearly always as
    many as are wanted say more. Where that turns out to be otherwise, the whole is asked.
    """

    def __init__(
        self, column: _Column, patterns: Sequence[Pattern], known: Mapping[tuple[str, str], int]
    ) -> None:
        self.ids: list[int] = []
        self._column = column
        self._queries = list(dict.fromkeys(filter(None, map(text_query, patterns))))
        self.done = not self._queries
        about = {one: known.get((column.name, one), 0) for one in self._queries}
        self._common = {one: texts for one, texts in about.items() if texts > COMMON}

    def question(self, texts: int, condition: Condition, most: int, *, whole: bool) -> Select:
        """Return what asks for ids, of so many texts; ``whole``: with nothing left out."""
        column, queries = self._column.name, self._queries
        if len(queries) == 1:
            rank = self._rank(["1"])
            sql = _FIND_ONE.format(column=column, condition=condition[0], rank=rank)
            enough = COMMON if self._common and not whole else MAX_INTEGER
            return sql, [queries[0], enough, queries[0], *condition[1], most]
        common = {} if whole else self._common
        # To read a vector costs a hundred times as much as to ask the index alone; which the server
        # does by itself for who may see all, and for others in a function (migration 0013).
        matches = " UNION ALL ".join(
            f"SELECT {number} AS p, x AS skill_id FROM registry_find('{column}', {_QUERY}, NULL) x"
            for number in range(len(queries))
        )
        asked = [
            f"{one} & ({' | '.join(other for other in queries if other != one)})"
            if one in common
            else one
            for one in queries
        ]
        cases = [f"WHEN {queries.index(one)} THEN {about}" for one, about in common.items()]
        counted = f"CASE p {' '.join(cases)} ELSE count(*) END" if cases else "count(*)"
        rank = self._rank([_WEIGHT.format(number) for number in range(len(queries))])
        sql = _FIND.format(matches=matches, texts=counted, condition=condition[0], rank=rank)
        return sql, [*asked, texts, *queries, *condition[1], most]

    def take(self, rows: Sequence[tuple[Any, ...]], most: int, *, whole: bool) -> None:
        """Take what was answered; it is done where nothing that was left out can be better."""
        first = sorted(rows[:RANKED], key=lambda row: (-round(row[3] or 0.0, 6), row[0]))
        self.ids = [row[0] for row in (*first, *rows[RANKED:])]
        weights = {int(number): weight for number, weight in rows[0][2].items()} if rows else {}
        common = (weights.get(self._queries.index(one), 0) for one in self._common)
        left_out = max(common, default=0) if len(self._queries) > 1 else 0
        enough = len(rows) >= most and rows[-1][1] >= left_out
        self.done = whole or enough or not self._common

    def _rank(self, weights: Sequence[str]) -> str:
        """Return the SQL of how much a text says, of words that weigh so much."""
        enough = f"{self._column.enough} * (0.25 + 0.75 * length(x.words) / {self._column.usual}.0)"
        rank = f"ts_rank('{self._column.weights}', x.words, {_QUERY})"
        worth = f"(1 - {enough} / ({enough} + {rank}))"
        ranks = " + ".join(f"{weight} * {worth}" for weight in weights)
        return _RANK.format(ranks=ranks, column=self._column.name)


def _single(patterns: Sequence[Pattern]) -> set[str]:
    """Return the patterns that are single words."""
    single = (one.words[0] for one in patterns if len(one.words) == 1 and not one.prefix)
    return {fold(word) for word in single if split(fold(word)) == [fold(word)]}


class _Facts(NamedTuple):
    """What holds for all texts: about how many have a common word, by column and word; how many."""

    common: Mapping[tuple[str, str], int]
    texts: int


def _facts(reader: Reader) -> _Facts:
    def load(reader: Reader) -> _Facts:
        # What the server itself estimates of the number of texts may be long ago.
        found = reader.many([(_ESTIMATES, ()), ("SELECT count(*) FROM search_texts", ())])
        common = {(column, word): texts for column, word, texts in found[0]}
        return _Facts(common, found[1][0][0] if found[1] else 0)

    return reader.remembered("texts", load)


def text_query(pattern: Pattern) -> str:
    """Return the text of a ``tsquery``; words are quoted, so none is an operator. Empty: none."""
    found = [part for word in pattern.words for part in split(fold(word))]
    if not found or max(map(len, found)) > MAX_LEXEME:
        return ""
    phrase = " <-> ".join(f"'{lexeme}'" for lexeme in found)
    return f"({phrase}:*)" if pattern.prefix else f"({phrase})"
