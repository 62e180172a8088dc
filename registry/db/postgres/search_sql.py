"""The SQL of a search on a server."""

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
    """Where words are; ``weights`` of what stands in its parts, as PostgreSQL has them from D to A.

    ``enough``: the rank of a word that is worth half of the most it can be, in a text of ``usual``
    distinct words: a little more than once, as with BM25's usual k1 of 1.2.
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
"""So many matches are ranked exactly; all others by how many words they have, and how rare ones."""

QUERY: Final = "to_tsquery('stems', ?)"

# Of those that have the most, how much their texts say of what was asked. To put two vectors
# together makes one that is in memory, and is read once for all words.
RANK: Final = f"""CASE WHEN f.place <= {RANKED} THEN (SELECT {{ranks}} FROM (
    SELECT {{column}} || CAST('' AS tsvector) AS words FROM search_texts WHERE skill_id = f.id
    OFFSET 0
) x) END"""


def worth(column: Column, query: str) -> str:
    """Return the SQL of how much a text ``x`` says of a query, from 0 to 1."""
    enough = f"{column.enough} * (0.25 + 0.75 * length(x.words) / {column.usual}.0)"
    rank = f"ts_rank('{column.weights}', x.words, {query})"
    return f"(1 - {enough} / ({enough} + {rank}))"


def single(patterns: Sequence[Pattern]) -> set[str]:
    """Return the patterns that are single words."""
    single = (one.words[0] for one in patterns if len(one.words) == 1 and not one.prefix)
    return {fold(word) for word in single if split(fold(word)) == [fold(word)]}


def text_query(pattern: Pattern) -> str:
    """Return the text of a ``tsquery``; words are quoted, so none is an operator. Empty: none."""
    found = [part for word in pattern.words for part in split(fold(word))]
    if not found or max(map(len, found)) > MAX_LEXEME:
        return ""
    phrase = " <-> ".join(f"'{lexeme}'" for lexeme in found)
    return f"({phrase}:*)" if pattern.prefix else f"({phrase})"


COMMON: Final = 1000
"""Texts with a word that is so common that what has no other word is looked at last."""

AMONG: Final = (
    "v AS MATERIALIZED (SELECT CAST(value AS bigint) AS id "
    "FROM json_array_elements_text(CAST(? AS json)))"
)
"""The versions that a narrowed view shows, as a table for a SELECT."""

# Whole numbers have one sum in whichever order, and cost a tenth of decimals. What is in order
# already is looked up one after the other, until enough pass the condition.
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

# All that have the only word are worth the same so far.
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


# What the server knows of the commonest words since it analyzed the table last (migration 0015);
# what it estimates of the number of texts may be long ago. Nothing, where it says what it said.
FACTS: Final = """
SELECT '', '', (SELECT count(*) FROM search_texts) WHERE (SELECT number FROM data_version) <> ?
UNION ALL
SELECT place, word, texts FROM registry_common_words()
WHERE (SELECT number FROM data_version) <> ?
"""

NO_VERSION: Final = -1

_SAME: Final = 3
"""So many letters of a word, at least, its stem begins with, but for few."""


@dataclass(frozen=True)
class Facts:
    """What holds for all texts: about how many have a common word, by column and word; how many.

    ``version``: the state of the database in which that was so.
    """

    version: int
    common: Mapping[tuple[str, str], int]
    texts: int

    @classmethod
    def of(cls, version: int | None, rows: Iterable[tuple[str, str, int]]) -> Self:
        """Return what was said to `FACTS`."""
        said = {(column, word): texts for column, word, texts in rows}
        texts = said.pop(("", ""), 0)
        return cls(NO_VERSION if version is None else version, said, texts)

    def beginning(self, column: str, word: str) -> Mapping[str, int]:
        """Return the stems that a word may have, by its first letters; those of common words."""
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
    """A question on its way to ids, the best first."""

    def __init__(self, column: Column, patterns: Sequence[Pattern]) -> None:
        self.ids: list[int] = []
        self.queries = list(dict.fromkeys(filter(None, map(text_query, patterns))))
        self._column = column

    def understand(self, answer: "Answer", most: int) -> bool:
        """Take what a search was told at once; False if something may be missing that is better.

        At first texts are left out that have one common word and no other: they cost most, and
        nearly always enough others say more. In bodies that is so only of a single word.
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
        """Return what asks for ids, of so many texts.

        ``among``: only these versions count, also for how rare a word is.
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
        # To read a vector costs a hundred times as much as to ask the index alone; which the server
        # does by itself for who may see all, and for others in a function (migration 0015).
        matches = " UNION ALL ".join(
            f"SELECT {number} AS p, x AS skill_id "
            f"FROM registry_find('{column}', {QUERY}, NULL) x{seen}"
            for number in range(len(queries))
        )
        rank = self._rank([_WEIGHT.format(number) for number in range(len(queries))])
        sql = _FIND.format(among=within, matches=matches, condition=condition[0], rank=rank)
        return sql, [*ids, *queries, texts, json.dumps(queries), *queries, *condition[1], most]

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Take what was answered."""
        first = sorted(rows[:RANKED], key=lambda row: (-round(row[3] or 0.0, 6), row[0]))
        self.ids = [row[0] for row in (*first, *rows[RANKED:])]

    def _rank(self, weights: Sequence[str]) -> str:
        """Return the SQL of how much a text says, of words that weigh so much."""
        says = worth(self._column, QUERY)
        ranks = " + ".join(f"{weight} * {says}" for weight in weights)
        return RANK.format(ranks=ranks, column=self._column.name)


HEADS, BODIES, LAY, FOREIGN = range(4)
"""The lists: of words that were typed in heads and in bodies, and of other words in heads."""

TYPED, COMPOUND, OF_LAY, OF_FOREIGN = range(4)
"""The kinds of words."""

TOLD: Final = 40
"""The heads of so many come along, of those whose places in the lists are the best."""

_BEGUN, _CUT, _COMMON_HEAD, _COMMON_BODY = 1, 2, 4, 8
"""Flags of a word: stands for those it begins, not all its texts were looked at, it is common."""

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

# A common word is looked for beside the others of its list; where there is none, in some. What
# is in order already is looked up one after the other, until enough pass the condition.
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
    """Words of a query as ``tsquery``, of each kind; ``begun``: what may stand for one."""

    kinds: Mapping[str, int]
    begun: Mapping[str, str]
    single: Mapping[str, str]

    @property
    def lists(self) -> list[int]:
        """The lists that there are of it."""
        kinds = set(self.kinds.values())
        other = [one for one, kind in ((LAY, OF_LAY), (FOREIGN, OF_FOREIGN)) if kind in kinds]
        return [HEADS, BODIES, *other]


@dataclass(slots=True)
class Answer:
    """What the server said: of lists, by place and words, rows as `Find.take` wants them."""

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    common: dict[str, set[str]] = field(default_factory=dict)
    found: dict[tuple[str, frozenset[str]], list[tuple[Any, ...]]] = field(default_factory=dict)
    told: dict[int, HitMetadata] = field(default_factory=dict)


def question(
    query: Query, facts: Facts, condition: Condition, most: int, limits: SearchLimits
) -> Select:
    """Return the statement that asks for all that a search will need of a query."""
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
    """Add to an answer what was said to a `question`."""
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
            continue  # not all texts that have the word were looked at
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
    """Add counts of words to an answer; return those of which not all texts were looked at.

    In ``texts`` a word that no skill has is replaced by what it begins.
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
    """Return the words of a list, those that nobody has among them where they are other words."""
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
    """Return what is looked for as the server understands it; what is nothing to it is left out."""
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
