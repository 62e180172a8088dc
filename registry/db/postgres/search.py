"""Queries to PostgreSQL's full-text indexes, with a ranking similar to BM25."""

import json
import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Final, NamedTuple

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
    Select,
    TextIndex,
)
from registry.db.postgres.search_sql import (
    AMONG,
    COLUMNS,
    FACTS,
    NO_VERSION,
    QUERY,
    Answer,
    Facts,
    Find,
    Query,
    query_of,
    question,
    text_query,
    understood,
)

_XIDS: Final = 1 << 32

# Returns the number of the oldest running transaction, and the words written since the last call.
# The next call reads the words written since that transaction. Reading the words of all skills
# takes long, and other writers often change only a few.
_WORDS: Final = """
SELECT CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text), NULL
UNION ALL
SELECT NULL, word FROM ts_stat('SELECT head FROM search_texts{since}')
"""

_SINCE: Final = " WHERE age(xmin) <= age(CAST(''{}'' AS xid))"


class _Words(NamedTuple):
    """Sorted words of all texts that were written before the transaction number ``since``."""

    words: Sequence[str]
    since: int
    version: int | None


def _read_words(reader: Reader, known: _Words | None, version: int | None) -> _Words:
    since = _SINCE.format(known.since % _XIDS) if known else ""
    rows = reader.rows(_WORDS.format(since=since))
    number = next((int(number) for number, _ in rows if number is not None), 0)
    words = {word for _, word in rows if word is not None}
    return _Words(sorted(words.union(known.words if known else ())), number, version)


_PARTS: Final[dict[Part, str]] = {
    "name": "ts_filter(head, '{a}')",
    "tags": "ts_filter(head, '{b}')",
    "description": "ts_filter(head, '{c}')",
    "body": "body",
}


class VectorIndex(TextIndex):
    """Searches the two ``tsvector`` columns, each of which has its own index."""

    def __init__(self) -> None:
        self._words: _Words | None = None  # a single value, because threads share it
        self._known: Facts | None = None  # the latest facts that any thread has read
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
        expected = self._local.expected = _Expected(queries, condition, most, to)
        known = self._known
        version = known.version if known else NO_VERSION
        expected.facts = reader.pipeline((FACTS, [version, version]))
        if known is not None:
            expected.common = known.common
            expected.rows = [reader.pipeline(one) for one in expected.questions(known)]

    def metadata(self, ids: Sequence[int]) -> dict[int, HitMetadata]:
        expected = self._expected
        told = expected.answer.told if expected and expected.answer else {}
        return {one: told[one] for one in ids if one in told}

    def forget(self) -> None:
        self._local.expected = None

    @property
    def _expected(self) -> "_Expected | None":
        return getattr(self._local, "expected", None)

    def _answer(self, reader: Reader) -> Answer:
        """Return the rows of the queued SELECTs as an answer.

        If the common words have changed since the SELECTs were built, they are built and sent
        again.
        """
        expected = self._expected
        if expected is None:
            return Answer()
        if expected.answer is None:
            facts = self._facts(reader)
            if len(expected.rows) == len(expected.queries) and facts.common == expected.common:
                said = [rows() for rows in expected.rows]
            else:
                said = reader.many(expected.questions(facts)) if expected.queries else []
            answer = expected.answer = Answer()
            for query, rows in zip(expected.queries, said, strict=True):
                understood(query, rows, answer)
        return expected.answer

    def size(self, reader: Reader) -> int:
        return self._facts(reader).texts

    def counts(
        self,
        reader: Reader,
        patterns: Sequence[Pattern],
        most: int,
        among: Collection[int] | None = None,
    ) -> list[tuple[int, int]]:
        """Return for each pattern how many heads and how many bodies contain it.

        Counting stops at ``most``. Counts of common words are estimates. In a narrowed view they
        are exact, because estimates would include texts outside the view.
        """
        queries = [text_query(one) for one in patterns]
        said: dict[str, tuple[int, int]] = {}
        if among is None and patterns:
            said = dict(self._answer(reader).counts)
        left = [one for one in dict.fromkeys(queries) if one and one not in said]
        if left:
            start, joined, limit = "", "", str(most)
            values = [query for query in left for _ in COLUMNS]
            if among is not None:
                start, joined, limit = f"WITH {AMONG} ", " JOIN v ON v.id = x", "NULL"
                values.insert(0, json.dumps([*among]))
            counts = (
                f"(SELECT count(*) FROM registry_find('{column.name}', {QUERY}, {limit}) x{joined})"
                for _ in left
                for column in COLUMNS.values()
            )
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
        finds = [Find(COLUMNS[place], some) for place, some in asked]
        left = [find for find in finds if find.queries]
        texts = 0
        if among is not None:
            texts = len(among)
        elif left:
            answer, texts = self._answer(reader), self._facts(reader).texts
            left = [find for find in left if not find.understand(answer, most)]
        questions = [find.question(texts, condition, most, among) for find in left]
        for find, rows in zip(left, reader.many(questions) if left else (), strict=True):
            find.take(rows)
        return [find.ids for find in finds]

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
        # Words that only deleted skills contained are also returned.
        version, known = reader.version(), self._words
        if known is None or known.version != version:
            known = self._words = _read_words(reader, known, version)
        start, end = (
            bisect_left(known.words, one) for one in (beginning, f"{beginning}\U0010ffff")
        )
        return list(known.words[start:end])

    def _facts(self, reader: Reader) -> Facts:
        """Return the estimated numbers of texts (`Facts`) for the current state of the database."""
        version = reader.version()
        known = self._known
        if known is None or known.version != version:
            expected = self._expected
            rows = expected.facts() if expected and expected.facts else []
            # `FACTS` returns no rows if nothing has changed. But another thread may have replaced
            # the facts that were known then, so read them again.
            rows = rows or reader.rows(FACTS, [NO_VERSION, NO_VERSION])
            known = self._known = Facts.of(version, rows)
        return known


@dataclass(slots=True)
class _Expected:
    """The SELECTs that were sent ahead for a search, and its answer once the rows are read.

    ``common`` holds the common words that the SELECTs assume. ``facts`` returns the rows of newer
    facts, if there are any.
    """

    queries: Sequence[Query]
    condition: Condition
    most: int
    limits: SearchLimits
    common: Mapping[tuple[str, str], int] | None = None
    facts: Callable[[], list[tuple[Any, ...]]] | None = None
    rows: list[Callable[[], list[tuple[Any, ...]]]] = field(default_factory=list)
    answer: Answer | None = None

    def questions(self, facts: Facts) -> list[Select]:
        """Return one SELECT for each query; it reads everything that the search must know."""
        rest = facts, self.condition, self.most, self.limits
        return [question(query, *rest) for query in self.queries]
