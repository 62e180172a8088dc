"""Queries to PostgreSQL's full-text indexes, ranked by BM25."""

import json
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, Final

from registry.db.interface import (
    PARTS,
    Condition,
    HitMetadata,
    IndexQuery,
    Part,
    Pattern,
    Reader,
    SearchLimits,
    SearchTerms,
    TextIndex,
)
from registry.db.postgres.search_sql import (
    AMONG,
    COLUMNS,
    QUERY,
    SIZE,
    Answer,
    Query,
    best,
    query_of,
    question,
    text_query,
    understood,
)

_PARTS: Final[dict[Part, str]] = {
    "name": "ts_filter(head, '{a}')",
    "tags": "ts_filter(head, '{b}')",
    "description": "ts_filter(head, '{c}')",
    "body": "body",
}

# Look words up separately in each source that the reader may see.
_VOCABULARY: Final = (
    "SELECT DISTINCT w.word FROM sources src JOIN search_words w ON w.source_id = src.id WHERE {}"
)


class VectorIndex(TextIndex):
    """Searches the two ``tsvector`` columns, each of which has its own index."""

    def __init__(self) -> None:
        self._local = threading.local()

    def expect(
        self,
        reader: Reader,
        asked: Sequence[SearchTerms],
        condition: Condition,
        most: int,
        to: SearchLimits,
    ) -> None:
        queries = [query for one in asked if (query := query_of(one)).kinds]
        rows = [reader.pipeline(question(one, condition, most, to)) for one in queries]
        self._local.expected = _Expected(queries, rows)

    def metadata(self, ids: Sequence[int]) -> dict[int, HitMetadata]:
        told = self._answer.told
        return {one: told[one] for one in ids if one in told}

    def forget(self) -> None:
        self._local.expected = None

    @property
    def _answer(self) -> Answer:
        """The parsed rows of all SELECTs that `expect` queued."""
        expected: _Expected | None = getattr(self._local, "expected", None)
        if expected is None:
            return Answer()
        if expected.answer is None:
            answer = expected.answer = Answer()
            for query, rows in zip(expected.queries, expected.rows, strict=True):
                understood(query, rows(), answer)
        return expected.answer

    def size(self, reader: Reader) -> int:
        def load(reader: Reader) -> int:
            rows = reader.rows(SIZE)
            return int(rows[0][0]) if rows else 0

        return self._answer.texts or reader.remembered("number of texts", load)

    def counts(
        self,
        reader: Reader,
        patterns: Sequence[Pattern],
        most: int,
        among: Collection[int] | None = None,
    ) -> list[tuple[int, int]]:
        queries = [text_query(one) for one in patterns]
        said: dict[str, tuple[int, int]] = {}
        if among is None and patterns:
            said = dict(self._answer.counts)
        left = [one for one in dict.fromkeys(queries) if one and one not in said]
        if left:
            values = [query for query in left for _ in COLUMNS]
            start, count = "", f"registry_count('{{}}', {QUERY}, {most})"
            if among is not None:
                start = f"WITH {AMONG} "
                values.insert(0, json.dumps([*among]))
                count = (
                    f"(SELECT count(*) FROM unnest(registry_match('{{}}', {QUERY}, 1, NULL)) x "
                    "JOIN v ON v.id = x & 4294967295)"
                )
            counts = (count.format(column) for _ in left for column in COLUMNS.values())
            for row in reader.rows(f"{start}SELECT {', '.join(counts)}", values):
                said.update(zip(left, zip(row[::2], row[1::2], strict=True), strict=True))
        held = (said.get(query, (0, 0)) for query in queries)
        return [(min(heads, most), min(bodies, most)) for heads, bodies in held]

    def best(
        self,
        reader: Reader,
        asked: Sequence[IndexQuery],
        condition: Condition,
        most: int,
        among: Collection[int] | None = None,
    ) -> list[list[int]]:
        """Return for each query the ids of the skills that match it, best first.

        The skills must also meet the condition. `expect` has already sent nearly all queries. The
        exception is a query for a word with a corrected spelling.
        """
        known = {} if among is not None else self._answer.found
        keys = [(COLUMNS[place], frozenset(map(text_query, some)) - {""}) for place, some in asked]
        found = [known.get(key, [] if not key[1] else None) for key in keys]
        if left := [at for at, ids in enumerate(found) if ids is None]:
            sql, values = best([asked[at] for at in left], condition, most, among)
            rows = reader.rows(sql, values)
            for number, at in enumerate(left):
                found[at] = [row[1] for row in rows if row[0] == number]
        return [ids or [] for ids in found]

    def parts(
        self, reader: Reader, skill_id: int, patterns: Sequence[Pattern]
    ) -> list[tuple[Part, ...]]:
        asked = [text_query(one) for one in patterns]
        tests = [
            f"{_PARTS[part]} @@ {QUERY}" if query else "false" for query in asked for part in PARTS
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
        # The result includes words that only deleted skills contained.
        sql = _VOCABULARY.format("w.word >= ? AND w.word < ? ORDER BY w.word")
        return [row[0] for row in reader.rows(sql, [beginning, f"{beginning}\U0010ffff"])]

    def known(self, reader: Reader, words: Sequence[str]) -> list[str]:
        given = "SELECT json_array_elements_text(CAST(? AS json))"
        sql = _VOCABULARY.format(f"w.word = ANY (ARRAY({given}))")
        found = {row[0] for row in reader.rows(sql, [json.dumps(list(words))])}
        return [one for one in words if one in found]


@dataclass(slots=True)
class _Expected:
    """The SELECTs that were sent early for a search, and after reading the parsed rows."""

    queries: Sequence[Query]
    rows: Sequence[Callable[[], list[tuple[Any, ...]]]]
    answer: Answer | None = None
