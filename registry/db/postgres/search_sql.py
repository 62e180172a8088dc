"""The SQL of a full-text search on a PostgreSQL server."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, Self

from registry.db.interface import (
    Condition,
    HitMetadata,
    IndexPart,
    Pattern,
    SearchLimits,
    SearchTerms,
    Select,
)
from registry.db.read.skills import DESCRIPTION
from registry.db.visibility import PRECEDENCE, Precedence
from registry.text import MAX_LEXEME, fold, split


class Column(NamedTuple):
    """An indexed column, and the ``weights`` of its parts in PostgreSQL's order from D to A.

    ``enough`` is the rank at which a word gets half of its maximum score, in a text of ``usual``
    distinct words. A word gets this rank if it occurs a little more than once, as with BM25's usual
    k1 of 1.2.
    """

    name: str
    weights: str
    enough: float
    usual: int


COLUMNS: Final[dict[IndexPart, Column]] = {
    "heads": Column("head", "{0.1, 0.25, 0.5, 1.0}", 0.1, 30),
    "bodies": Column("body", "{0.1, 0.4, 0.6, 1.0}", 0.073, 200),
}

RANKED: Final = 200
"""Number of matches whose scores are calculated exactly.

All further matches are ranked by how many words of the query they contain and how rare these words
are.
"""

QUERY: Final = "to_tsquery('stems', ?)"

# SQL for the exact score of the first texts. The vector is concatenated with an empty vector: this
# puts it in memory, so that it is read only once for all words.
RANK: Final = f"""CASE WHEN f.place <= {RANKED} THEN (SELECT {{ranks}} FROM (
    SELECT {{column}} || CAST('' AS tsvector) AS words FROM search_texts WHERE skill_id = f.id
    OFFSET 0
) x) END"""


def worth(column: Column, query: str) -> str:
    """Return the SQL for the score, from 0 to 1, that a text ``x`` gets for a query."""
    enough = f"{column.enough} * (0.25 + 0.75 * length(x.words) / {column.usual}.0)"
    rank = f"ts_rank('{column.weights}', x.words, {query})"
    return f"(1 - {enough} / ({enough} + {rank}))"


def single(patterns: Sequence[Pattern]) -> set[str]:
    """Return the patterns that consist of a single word, as words."""
    single = (one.words[0] for one in patterns if len(one.words) == 1 and not one.prefix)
    return {fold(word) for word in single if split(fold(word)) == [fold(word)]}


def text_query(pattern: Pattern) -> str:
    """Return the text of a ``tsquery``; empty if the pattern has no words.

    Words are quoted, so none of them is an operator.
    """
    found = [part for word in pattern.words for part in split(fold(word))]
    if not found or max(map(len, found)) > MAX_LEXEME:
        return ""
    phrase = " <-> ".join(f"'{lexeme}'" for lexeme in found)
    return f"({phrase}:*)" if pattern.prefix else f"({phrase})"


COMMON: Final = 1000
"""A word that more texts contain is common.

Texts that contain no other word of the query are read last.
"""

AMONG: Final = (
    "v AS MATERIALIZED (SELECT CAST(value AS bigint) AS id "
    "FROM json_array_elements_text(CAST(? AS json)))"
)
"""SQL for a SELECT: a table ``v`` of the versions that a narrowed view shows."""

# Weights are integers: their sum doesn't depend on the order, and is ten times as fast as a sum of
# decimals. Rows are sorted first and then looked up one by one, until enough of them meet the
# condition.
_FIND: Final = """
WITH {among}m AS MATERIALIZED ({matches}),
r AS MATERIALIZED (
    SELECT p, CAST(1e6 * ln(1 + greatest(? - count(*), 0.5) / (count(*) + 0.5)) AS bigint) AS weight
    FROM m GROUP BY p
),
c AS (
    SELECT m.skill_id, sum(r.weight) AS weight FROM m JOIN r ON r.p = m.p GROUP BY m.skill_id
    ORDER BY 2 DESC, 1
)
SELECT f.id, f.weight, (SELECT json_object_agg(CAST(? AS json) ->> p, weight) FROM r), {rank}
FROM (
    SELECT s.id, c.weight, row_number() OVER (ORDER BY c.weight DESC, s.id) AS place
    FROM c JOIN skills s ON s.id = c.skill_id JOIN sources src ON src.id = s.source_id
    WHERE {condition}
    ORDER BY c.weight DESC, s.id LIMIT ?
) f
ORDER BY f.place
"""

# If the query is a single word, all texts have the same weight before the exact ranking.
_FIND_ONE: Final = f"""
WITH {{among}}m AS (SELECT x AS skill_id FROM registry_find('{{column}}', {QUERY}, NULL) x{{seen}}),
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

_WEIGHT: Final = (
    "CAST(round(coalesce((SELECT weight FROM r WHERE p = {}), 0) / 1e6, 4) AS double precision)"
)


# Statistics about the most common words, from the server's last analysis of the table (migration
# 0015). The number of all texts is counted exactly, because the server's estimate may be old.
# Returns no rows if the data version is unchanged.
FACTS: Final = """
SELECT '', '', (SELECT count(*) FROM search_texts) WHERE (SELECT number FROM data_version) <> ?
UNION ALL
SELECT place, word, texts FROM registry_common_words()
WHERE (SELECT number FROM data_version) <> ?
"""

NO_VERSION: Final = -1

_SAME: Final = 3
"""Number of first letters that a word and its stem nearly always share."""


@dataclass(frozen=True)
class Facts:
    """Estimated number of texts with each common word, by column and word, and number of all texts.

    ``version`` is the version of the database that the numbers describe.
    """

    version: int
    common: Mapping[tuple[str, str], int]
    texts: int

    @classmethod
    def of(cls, version: int | None, rows: Iterable[tuple[str, str, int]]) -> Self:
        """Return the facts from the rows of `FACTS`."""
        said = {(column, word): texts for column, word, texts in rows}
        texts = said.pop(("", ""), 0)
        return cls(NO_VERSION if version is None else version, said, texts)

    def beginning(self, column: str, word: str) -> Mapping[str, int]:
        """Return the common stems that ``word`` may have, each with its number of texts.

        These are the stems of common words (see `COMMON`) that begin with the same
        letters as ``word`` and aren't longer than ``word``.
        """
        known = self._begun.get((column, word[:_SAME]), ())
        return {stem: texts for stem, texts in known if len(stem) <= len(word)}

    @cached_property
    def _begun(self) -> dict[tuple[str, str], list[tuple[str, int]]]:
        found: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for (column, stem), texts in self.common.items():
            if texts > COMMON:
                found.setdefault((column, stem[:_SAME]), []).append((stem, texts))
        return found


class Find:
    """A query of one index, and the ids of the skills that it found, best first."""

    def __init__(self, column: Column, patterns: Sequence[Pattern]) -> None:
        self.ids: list[int] = []
        self.queries = list(dict.fromkeys(filter(None, map(text_query, patterns))))
        self._column = column

    def understand(self, answer: "Answer", most: int) -> bool:
        """Read the rows of the first SELECT; return False if better matches may be missing.

        The first SELECT omits texts that contain one common word of the query and no other. Reading
        these texts costs most, and enough other texts nearly always match better. In bodies, it
        omits such texts only if the query is a single word.
        """
        rows = answer.found.get((self._column.name, frozenset(self.queries)))
        if rows is None:
            return False
        self.take(rows)
        is_single = len(self.queries) == 1
        common = answer.common.get(self._column.name, set()).intersection(self.queries)
        if not common or (self._column.name == "body" and not is_single):
            return True
        weights = rows[0][2] if rows else {}
        left_out = 0 if is_single else max(weights.get(one, 0) for one in common)
        return len(rows) >= most and rows[-1][1] >= left_out

    def question(
        self, texts: int, condition: Condition, most: int, among: Collection[int] | None = None
    ) -> Select:
        """Return the SELECT for the ids of matching skills, given the total number of ``texts``.

        If ``among`` is given, only these versions are found, and only they decide how rare a word
        is.
        """
        column, queries = self._column.name, self.queries
        seen = "" if among is None else " JOIN v ON v.id = x"
        within = "" if among is None else f"{AMONG}, "
        ids = [] if among is None else [json.dumps([*among])]
        if len(queries) == 1:
            sql = _FIND_ONE.format(
                among=within,
                seen=seen,
                column=column,
                condition=condition[0],
                rank=self._rank(["1"]),
            )
            return sql, [*ids, queries[0], queries[0], *condition[1], most]
        # Reading a vector costs a hundred times as much as using only the index. For roles that see
        # all rows, the server uses only the index by itself. For other roles, it needs a function
        # (migration 0015).
        matches = " UNION ALL ".join(
            f"SELECT {number} AS p, x AS skill_id "
            f"FROM registry_find('{column}', {QUERY}, NULL) x{seen}"
            for number in range(len(queries))
        )
        rank = self._rank([_WEIGHT.format(number) for number in range(len(queries))])
        sql = _FIND.format(among=within, matches=matches, condition=condition[0], rank=rank)
        return sql, [*ids, *queries, texts, json.dumps(queries), *queries, *condition[1], most]

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Read the ids from the rows of `question`."""
        first = sorted(rows[:RANKED], key=lambda row: (-round(row[3] or 0.0, 6), row[0]))
        self.ids = [row[0] for row in (*first, *rows[RANKED:])]

    def _rank(self, weights: Sequence[str]) -> str:
        """Return the SQL for the score of a text.

        ``weights`` holds the SQL for the weight of each word.
        """
        says = worth(self._column, QUERY)
        ranks = " + ".join(f"{weight} * {says}" for weight in weights)
        return RANK.format(ranks=ranks, column=self._column.name)


HEADS, BODIES, LAY, FOREIGN = range(4)
"""The lists of results that a search combines.

Typed words are searched in heads (name, tags, description) and in bodies. Synonyms and translations
are searched only in heads.
"""

TYPED, COMPOUND, OF_LAY, OF_FOREIGN = range(4)
"""The kinds of words in the rows of a search: typed words, compounds, synonyms, translations."""

TOLD: Final = 40
"""Number of best skills whose metadata is returned together with the search results."""

_BEGUN, _CUT, _COMMON_HEAD, _COMMON_BODY = 1, 2, 4, 8
"""Flags of a word in the rows of a search.

_BEGUN: no skill has the word, so words that begin with it were searched instead. _CUT: not all
texts with the word were read. _COMMON_HEAD: the word is common in heads (name, tags, description).
_COMMON_BODY: the word is common in bodies.
"""

_WORDS: Final = """
WITH given AS MATERIALIZED (
    SELECT n, kind, q, p, stem, coalesce(CAST(h ->> stem AS bigint), 0) AS h,
        coalesce(CAST(b ->> stem AS bigint), 0) AS b
    FROM (
        SELECT g.*, CASE WHEN w IS NOT NULL THEN (ts_lexize('stems', w))[1] END AS stem
        FROM json_to_recordset(CAST(? AS json))
            AS g (n int, kind int, q text, p text, w text, h json, b json)
        OFFSET 0
    ) g
),
h0 AS MATERIALIZED (
    SELECT n, x FROM given, registry_find('head', to_tsquery('stems', q), NULL) x WHERE h = 0
),
b0 AS MATERIALIZED (
    SELECT n, x FROM given, registry_find('body', to_tsquery('stems', q), {counted}) x
    WHERE b = 0 AND kind <= 1
),
counted AS MATERIALIZED (
    SELECT g.*, CASE WHEN h > 0 THEN h ELSE coalesce(i.texts, 0) END AS heads,
        CASE WHEN b > 0 THEN b ELSE coalesce(j.texts, 0) END AS bodies
    FROM given g LEFT JOIN (SELECT n, count(*) AS texts FROM h0 GROUP BY n) i ON i.n = g.n
        LEFT JOIN (SELECT n, count(*) AS texts FROM b0 GROUP BY n) j ON j.n = g.n
),
begun AS MATERIALIZED (SELECT n, p FROM counted WHERE p IS NOT NULL AND heads + bodies = 0),
h1 AS MATERIALIZED (
    SELECT n, x FROM begun, registry_find('head', to_tsquery('stems', p), NULL) x
),
b1 AS MATERIALIZED (
    SELECT n, x FROM begun, registry_find('body', to_tsquery('stems', p), {counted}) x
),
words AS MATERIALIZED (
    SELECT c.n, kind, stem, h, b, p IS NOT NULL AND coalesce(i.texts, j.texts) IS NOT NULL AS begun,
        CASE WHEN coalesce(i.texts, j.texts) IS NULL THEN q ELSE p END AS q,
        least(coalesce(i.texts, heads), {counted}) AS heads,
        least(coalesce(j.texts, bodies), {counted}) AS bodies
    FROM counted c LEFT JOIN (SELECT n, count(*) AS texts FROM h1 GROUP BY n) i ON i.n = c.n
        LEFT JOIN (SELECT n, count(*) AS texts FROM b1 GROUP BY n) j ON j.n = c.n
),
"""

# A text with a common word must also contain another word of the query. If the query has only
# common words, only some texts are read. Rows are sorted first and then looked up one by one, until
# enough of them meet the condition.
_MATCHES: Final = """
member AS MATERIALIZED (
    SELECT l, n, q, h FROM words JOIN (VALUES {lists}) AS v (l) ON CASE l
        WHEN 0 THEN kind <= 1 AND heads > 0
        WHEN 1 THEN false
        WHEN 2 THEN kind <= 1 AND heads > 0 OR kind = 2
        ELSE kind = 3 END
),
chosen AS MATERIALIZED (
    SELECT n, q, b, count(*) OVER () = 1 AS alone FROM (
        SELECT n, q, b, row_number() OVER rarest AS place,
            sum(bodies) OVER (rarest ROWS UNBOUNDED PRECEDING) AS texts
        FROM words WHERE bodies > 0 AND (kind = 0 OR kind = 1 AND heads > 0)
            AND (bodies < {counted} OR heads < {heads})
        WINDOW rarest AS (ORDER BY bodies, heads, n)
    ) w WHERE place = 1 OR place <= {words} AND texts <= {texts}
),
m AS MATERIALIZED (
    SELECT l, n, x FROM member JOIN (SELECT * FROM h0 UNION ALL SELECT * FROM h1) f USING (n)
    UNION ALL
    SELECT l, n, x FROM (
        SELECT a.l, a.n, a.q, string_agg(o.q, ' | ') AS others
        FROM member a LEFT JOIN member o ON o.l = a.l AND o.n <> a.n WHERE a.h > 0 GROUP BY 1, 2, 3
    ) a, registry_find('head', to_tsquery('stems', q || coalesce(' & (' || others || ')', '')),
        CASE WHEN others IS NULL THEN {common} END) x
    UNION ALL
    SELECT 1, n, x FROM chosen JOIN (SELECT * FROM b0 UNION ALL SELECT * FROM b1) f USING (n)
    UNION ALL
    SELECT 1, n, x FROM chosen, registry_find(
        'body', to_tsquery('stems', q), CASE WHEN alone THEN {common} END) x WHERE b > 0
),
r AS MATERIALIZED (
    SELECT l, n, q, weight, CAST(round(weight / 1e6, 4) AS double precision) AS worth FROM (
        SELECT e.l, e.n, to_tsquery('stems', e.q) AS q,
            CASE WHEN count(*) OVER (PARTITION BY e.l) = 1 THEN 1000000 ELSE CAST(
                1e6 * ln(1 + greatest(number - held, 0.5) / (held + 0.5)) AS int
            ) END AS weight
        FROM (
            SELECT a.l, a.n, a.q, CASE WHEN a.about > 0 THEN a.about ELSE f.texts END AS held
            FROM (
                SELECT l, n, q, h AS about FROM member UNION ALL SELECT 1, n, q, b FROM chosen
            ) a LEFT JOIN (SELECT l, n, count(*) AS texts FROM m GROUP BY 1, 2) f USING (l, n)
        ) e, (
            SELECT CASE WHEN (SELECT number FROM data_version) = ? THEN CAST(? AS bigint)
                ELSE (SELECT count(*) FROM search_texts) END AS number
        ) d
    ) w WHERE weight IS NOT NULL
),
c AS MATERIALIZED (
    SELECT m.l, x, sum(weight) AS weight FROM m JOIN r USING (l, n) GROUP BY 1, 2
),
found AS MATERIALIZED (
    SELECT v.l, f.id, f.weight, CASE v.l WHEN 1 THEN {in_body} ELSE {in_head} END AS rank
    FROM (VALUES {lists}) AS v (l), LATERAL (
        SELECT s.id, o.weight, row_number() OVER (ORDER BY o.weight DESC, s.id) AS place
        FROM (SELECT x, weight FROM c WHERE c.l = v.l ORDER BY weight DESC, x) o
            JOIN skills s ON s.id = o.x JOIN sources src ON src.id = s.source_id
        WHERE {condition} ORDER BY o.weight DESC, s.id LIMIT ?
    ) f
)
SELECT 'word' AS what, n, heads, bodies,
    CAST(begun AS int) + CASE WHEN b = 0 AND bodies >= {counted} THEN {cut} ELSE 0 END
        + CASE WHEN h > 0 THEN {common_head} ELSE 0 END
        + CASE WHEN b > 0 THEN {common_body} ELSE 0 END, NULL,
    CAST(NULL AS bytea) FROM words
UNION ALL SELECT 'weight', l, n, weight, NULL, NULL, NULL FROM r
UNION ALL SELECT 'found', l, id, weight, rank, NULL, NULL FROM found
UNION ALL SELECT 'skill', s.id, {strength},
    CASE WHEN f.place <= {told} THEN s.name || ' ' || s.tags || ' ' || {description} END, k.data
FROM (
    SELECT id, row_number() OVER (ORDER BY sum(CAST(1 AS float) / ({half} + place)) DESC) AS place
    FROM (
        SELECT id, row_number() OVER (PARTITION BY l ORDER BY rank DESC NULLS LAST, id) AS place
        FROM found
    ) p GROUP BY id
) f JOIN skills s ON s.id = f.id
    JOIN sources src ON src.id = s.source_id LEFT JOIN sketches k ON k.skill_id = s.id
"""

_COLUMN_OF: Final = {one: COLUMNS["bodies" if one == BODIES else "heads"] for one in range(4)}

_RANKS: Final = {
    f"in_{column.name}": RANK.format(
        ranks=f"(SELECT sum(r.worth * {worth(column, 'r.q')}) FROM r WHERE r.l = v.l)",
        column=column.name,
    )
    for column in COLUMNS.values()
}


class Query(NamedTuple):
    """The words of a query as ``tsquery`` text, by kind of word.

    ``begun`` maps a word to the prefix to try if no skill has the word.
    """

    kinds: Mapping[str, int]
    begun: Mapping[str, str]
    single: Mapping[str, str]

    @property
    def lists(self) -> list[int]:
        """The lists of results (such as `HEADS`) for which the query has words."""
        kinds = set(self.kinds.values())
        other = [one for one, kind in ((LAY, OF_LAY), (FOREIGN, OF_FOREIGN)) if kind in kinds]
        return [HEADS, BODIES, *other]


@dataclass(slots=True)
class Answer:
    """The parsed rows of a search.

    ``found`` maps a column and a set of words to the rows for `Find.take`.
    """

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    common: dict[str, set[str]] = field(default_factory=dict)
    found: dict[tuple[str, frozenset[str]], list[tuple[Any, ...]]] = field(default_factory=dict)
    told: dict[int, HitMetadata] = field(default_factory=dict)


def question(
    query: Query, facts: Facts, condition: Condition, most: int, limits: SearchLimits
) -> Select:
    """Return one SELECT for all the data that a search needs for a query."""
    words = [
        {
            "n": number,
            "kind": query.kinds[text],
            "q": text,
            "p": query.begun.get(text),
            "w": query.single.get(text),
            "h": facts.beginning("head", query.single.get(text, "")),
            "b": facts.beginning("body", query.single.get(text, "")),
        }
        for number, text in enumerate(query.kinds)
    ]
    sql = (_WORDS + _MATCHES).format(
        lists=", ".join(f"({one})" for one in query.lists),
        condition=condition[0],
        told=TOLD,
        strength=PRECEDENCE,
        description=DESCRIPTION,
        cut=_CUT,
        common_head=_COMMON_HEAD,
        common_body=_COMMON_BODY,
        common=COMMON,
        **_RANKS,
        **limits._asdict(),
    )
    return sql, [json.dumps(words), facts.version, facts.texts, *condition[1], most]


def understood(query: Query, rows: Iterable[Sequence[Any]], answer: Answer) -> None:
    """Add the rows that the SELECT of `question` returned to an answer."""
    texts = list(query.kinds)
    said: dict[str, list[Sequence[Any]]] = {}
    for what, *row in rows:
        said.setdefault(what, []).append(row)
    cut = _understood_words(query, said.get("word", ()), texts, answer)
    for one in query.lists:
        weights = {
            texts[n]: weight for which, n, weight, *_ in said.get("weight", ()) if which == one
        }
        if one == BODIES and not cut.isdisjoint(weights):
            continue  # not all texts with the word were read
        found = [row[1:4] for row in said.get("found", ()) if row[0] == one]
        answer.found[_COLUMN_OF[one].name, _members(query, one, weights, answer)] = [
            (number, weight, weights, rank)
            for number, weight, rank in sorted(found, key=lambda row: (-row[1], row[0]))
        ]
    for number, *strength, head, sketch in said.get("skill", ()):
        kept = None if sketch is None else bytes(sketch)
        answer.told[number] = HitMetadata(Precedence(*map(int, strength)), kept, head)


def _understood_words(
    query: Query, rows: Iterable[Sequence[Any]], texts: list[str], answer: Answer
) -> set[str]:
    """Add the counts of words to an answer.

    Returns the words of which not all texts were read. If no skill has a word, ``texts`` holds the
    words that begin with it instead.
    """
    cut: set[str] = set()
    for number, heads, bodies, how, *_ in rows:
        asked, flags = texts[number], int(how)
        is_begun = flags & _BEGUN
        answer.counts[asked] = (0, 0) if is_begun else (heads, bodies)
        if asked in query.begun and (is_begun or not heads + bodies):
            answer.counts[query.begun[asked]] = (heads, bodies)
        if is_begun:
            texts[number] = query.begun[asked]
        if flags & _CUT:
            cut.add(texts[number])
        for column, flag in (("head", _COMMON_HEAD), ("body", _COMMON_BODY)):
            if flags & flag:
                answer.common.setdefault(column, set()).add(texts[number])
    return cut


def _members(
    query: Query, which: int, weights: Mapping[str, int], answer: Answer
) -> frozenset[str]:
    """Return the words that were searched for a list of results.

    For synonyms and translations, this includes words without matches.
    """
    if which == BODIES:
        return frozenset(weights)
    counts = answer.counts
    typed = {
        text if counts.get(text, (0, 0)) != (0, 0) else query.begun.get(text, text)
        for text, kind in query.kinds.items()
        if kind <= COMPOUND
    }
    in_heads = {text for text in typed if counts.get(text, (0, 0))[0]}
    lay = {text for text, kind in query.kinds.items() if kind == OF_LAY}
    foreign = {text for text, kind in query.kinds.items() if kind == OF_FOREIGN}
    return frozenset({HEADS: in_heads, LAY: in_heads | lay, FOREIGN: foreign}[which])


def query_of(sought: SearchTerms) -> Query:
    """Turn search terms into a query for the server; terms without words are left out."""
    kinds: dict[str, int] = {}
    begun: dict[str, str] = {}
    plain: dict[str, str] = {}
    mine = sorted(
        [(pattern, TYPED, other) for pattern, other in sought.typed]
        + [(pattern, COMPOUND, None) for pattern in sought.compounds],
        key=lambda one: one[0],
    )
    others = [(one, OF_LAY, None) for one in sought.lay]
    others += [(one, OF_FOREIGN, None) for one in sought.foreign]
    for pattern, kind, other in (*mine, *others):
        text = text_query(pattern)
        if text and text not in kinds:
            kinds[text] = kind
            plain.update((text, word) for word in single([pattern]))
            if other is not None:
                begun[text] = text_query(other)
    return Query(kinds, begun, plain)
