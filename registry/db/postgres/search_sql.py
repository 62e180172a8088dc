"""The SQL of a full-text search on a PostgreSQL server.

It computes BM25 with the same formula as SQLite's FTS5.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from registry.db.interface import (
    Condition,
    HitMetadata,
    IndexPart,
    IndexQuery,
    Pattern,
    SearchLimits,
    SearchTerms,
    Select,
)
from registry.db.read.skills import DESCRIPTION
from registry.db.visibility import PRECEDENCE, Precedence
from registry.text import MAX_LEXEME, fold, split

COLUMNS: Final[dict[IndexPart, str]] = {"heads": "head", "bodies": "body"}

LOOKED_AT: Final = 400
"""Number of bodies in which the words of a query are counted.

Counting the words of a body takes ten times as long as finding the body. So the bodies are first
sorted by an estimate. The estimate assumes that each word occurs as often as is usual in bodies of
that size, and adds the score of the head. Words are counted only in the best bodies.
"""

_USUAL_HEAD, _USUAL_BODY = 45, 1000
"""Usual numbers of words of a head and a body.

A narrowed search uses them instead of the average numbers.
"""

QUERY: Final = "to_tsquery('stems', ?)"

AMONG: Final = (
    "v AS MATERIALIZED (SELECT CAST(value AS bigint) AS id "
    "FROM json_array_elements_text(CAST(? AS json)))"
)
"""SQL for a SELECT: a table ``v`` of the versions that a narrowed view shows."""


def text_query(pattern: Pattern) -> str:
    """Return the text of a ``tsquery``; empty if the pattern has no words.

    Quotes around each word keep it from being an operator.
    """
    found = [part for word in pattern.words for part in split(fold(word))]
    if not found or max(map(len, found)) > MAX_LEXEME:
        return ""
    phrase = " <-> ".join(f"'{lexeme}'" for lexeme in found)
    return f"({phrase}:*)" if pattern.prefix else f"({phrase})"


# Unless the search is narrowed, the usual size of a text is the average size.
_TOTAL: Final = (
    "SELECT CAST(sum(texts) AS float8) AS texts, "
    "CAST(greatest(sum(head_size), 1) / greatest(sum(texts), 1) AS float8) AS head, "
    "CAST(greatest(sum(body_size), 1) / greatest(sum(texts), 1) AS float8) AS body FROM totals"
)

SIZE: Final = "SELECT coalesce(sum(texts), 0) FROM totals"

# The SELECT sorts the rows first and then looks them up one by one until enough of them meet the
# condition. Then it counts the words in bodies, with the formula of `registry_match`. It adds
# integers, because their sum doesn't depend on their order.
_RANKED: Final = """
r AS MATERIALIZED (
    SELECT m.*, to_tsquery('stems', q) AS query, in_bodies,
        greatest(ln(greatest(texts - cardinality(ids) + 0.5, 0.5) / (cardinality(ids) + 0.5)), 1e-6)
            AS weight
    FROM member m JOIN (VALUES {lists}) AS v (l, in_bodies) ON v.l = m.l, total
    WHERE ids IS NOT NULL
),
c AS MATERIALIZED (
    SELECT l, id & 4294967295 AS id, sum(CAST(weight * (id >> 32) AS int)) AS score
    FROM r, unnest(ids) AS id GROUP BY 1, 2
),
first AS MATERIALIZED (
    SELECT v.*, f.id, f.score FROM (VALUES {lists}) AS v (l, in_bodies), LATERAL (
        SELECT s.id, o.score
        FROM (
            SELECT id, sum(CAST(score AS float8)) AS score
            FROM c WHERE c.l = v.l OR in_bodies AND c.l = 0
            GROUP BY id HAVING bool_or(c.l = v.l) ORDER BY 2 DESC, 1
        ) o
            JOIN skills s ON s.id = o.id JOIN sources src ON src.id = s.source_id
        WHERE {condition} ORDER BY o.score DESC, s.id
        LIMIT CASE WHEN in_bodies THEN {looked_at} ELSE {most} END
    ) f
),
found AS MATERIALIZED (
    SELECT l, id, row_number() OVER (PARTITION BY l ORDER BY score DESC, id) AS place FROM (
        SELECT f.l, f.id, CASE WHEN in_bodies THEN (
            SELECT sum(CAST(1e8 * weight * (1 - long / (long + ts_rank_cd(
                '{{1, 1, 1, 1}}', words, query
            ))) AS int))
            FROM r, (
                SELECT x.body AS words, 0.3 + 0.9 * body_size / total.body AS long
                FROM search_texts x, total WHERE skill_id = f.id OFFSET 0
            ) x WHERE r.l = f.l
        ) ELSE f.score END AS score FROM first f
    ) b
)
"""

_BEST: Final = """
WITH {among}total AS MATERIALIZED ({total}),
member AS MATERIALIZED (
    SELECT l, n, q, {seen} AS ids
    FROM json_to_recordset(CAST(? AS json)) AS g (l int, n int, place text, q text), total,
        registry_match(place, to_tsquery('stems', q),
            CASE place WHEN 'head' THEN head ELSE body END, NULL) AS ids
),
{ranked}
SELECT l, id FROM found WHERE place <= {most} ORDER BY l, place
"""

_SEEN: Final = "(SELECT array_agg(x) FROM unnest(ids) x JOIN v ON v.id = x & 4294967295)"


def best(
    asked: Sequence[IndexQuery],
    condition: Condition,
    most: int,
    among: Collection[int] | None = None,
) -> Select:
    """Return one SELECT for the ids that match each query, best first, with the query's number.

    If ``among`` is given, the search considers only these versions, also to decide how rare a word
    is.
    """
    members = [
        {"l": which, "n": n, "place": COLUMNS[place], "q": text}
        for which, (place, patterns) in enumerate(asked)
        for n, text in enumerate(dict.fromkeys(filter(None, map(text_query, patterns))))
    ]
    total, seen = _TOTAL, "ids"
    if among is not None:
        total = (
            f"SELECT count(*) AS texts, CAST({_USUAL_HEAD} AS float8) AS head, "
            f"CAST({_USUAL_BODY} AS float8) AS body FROM v"
        )
        seen = _SEEN
    sql = _BEST.format(
        among="" if among is None else f"{AMONG}, ",
        seen=seen,
        total=total,
        most=most,
        ranked=_ranked([place == "bodies" for place, _ in asked], condition, most),
    )
    ids = [] if among is None else [json.dumps([*among])]
    return sql, [*ids, json.dumps(members), *condition[1]]


def _ranked(in_bodies: Sequence[bool], condition: Condition, most: int) -> str:
    return _RANKED.format(
        lists=", ".join(f"({which}, {is_body})" for which, is_body in enumerate(in_bodies)),
        condition=condition[0],
        looked_at=max(most, LOOKED_AT),
        most=most,
    )


HEADS, BODIES, LAY, FOREIGN = range(4)
"""The lists of results that a search combines.

The search looks for typed words in heads (name, tags, description) and in bodies. The search looks
for synonyms and translations only in heads.
"""

TYPED, COMPOUND, OF_LAY, OF_FOREIGN = range(4)
"""The types of words in the rows of a search: typed words, compounds, synonyms, translations."""

TOLD: Final = 40
"""Number of best skills for which the search also returns metadata."""

# If no skill contains a word, search for words that begin with it. In bodies, search only for the
# rarest words.
_SEARCH: Final = """
WITH total AS MATERIALIZED ({total}),
given AS MATERIALIZED (
    SELECT g.*, registry_match('head', to_tsquery('stems', q), head, NULL) AS h,
        CASE WHEN kind <= 1 THEN registry_count('body', to_tsquery('stems', q), {counted})
            ELSE 0 END AS bodies
    FROM json_to_recordset(CAST(? AS json)) AS g (n int, kind int, q text, p text), total
),
words AS MATERIALIZED (
    SELECT w.*, least(coalesce(cardinality(h), 0), {counted}) AS heads FROM (
        SELECT n, kind, q, h, bodies, false AS begun FROM given
        WHERE p IS NULL OR h IS NOT NULL OR bodies > 0
        UNION ALL
        SELECT n, kind, p, registry_match('head', to_tsquery('stems', p), head, NULL),
            registry_count('body', to_tsquery('stems', p), {counted}), true
        FROM given, total WHERE p IS NOT NULL AND h IS NULL AND bodies = 0
    ) w
),
member AS MATERIALIZED (
    SELECT l, n, q, h AS ids FROM words, (VALUES {lists}) AS v (l) WHERE CASE l
        WHEN 0 THEN kind <= 1 AND heads > 0
        WHEN 1 THEN false
        WHEN 2 THEN kind <= 1 AND heads > 0 OR kind = 2
        ELSE kind = 3 END
    UNION ALL
    SELECT 1, n, q, registry_match('body', to_tsquery('stems', q), body, NULL) FROM (
        SELECT n, q, row_number() OVER rarest AS place,
            sum(bodies) OVER (rarest ROWS UNBOUNDED PRECEDING) AS texts
        FROM words WHERE bodies > 0 AND (kind = 0 OR kind = 1 AND heads > 0)
            AND (bodies < {counted} OR heads < {heads})
        WINDOW rarest AS (ORDER BY bodies, heads, n)
    ) w, total WHERE place = 1 OR place <= {words} AND w.texts <= {texts}
),
{ranked}
SELECT 'size' AS what, CAST(texts AS bigint) AS a, CAST(NULL AS bigint) AS b,
    CAST(NULL AS bigint) AS c, CAST(NULL AS bigint) AS d, CAST(NULL AS text) AS head,
    CAST(NULL AS bytea) AS sketch FROM total
UNION ALL SELECT 'word', n, heads, bodies, CAST(begun AS int), NULL, NULL FROM words
UNION ALL SELECT 'member', l, n, NULL, NULL, NULL, NULL FROM member
UNION ALL SELECT 'found', l, id, place, NULL, NULL, NULL FROM found WHERE place <= {most}
UNION ALL SELECT 'skill', s.id, {strength},
    CASE WHEN f.place <= {told} THEN s.name || ' ' || s.tags || ' ' || {description} END, k.data
FROM (
    SELECT id, row_number() OVER (ORDER BY sum(CAST(1 AS float) / ({half} + place)) DESC) AS place
    FROM found WHERE place <= {most} GROUP BY id
) f JOIN skills s ON s.id = f.id
    JOIN sources src ON src.id = s.source_id LEFT JOIN sketches k ON k.skill_id = s.id
"""


class Query(NamedTuple):
    """A parsed query. ``kinds`` maps each word, as ``tsquery`` text, to its type, such as `OF_LAY`.

    ``begun`` maps a word to the prefix to search for if no skill contains the word.
    """

    kinds: Mapping[str, int]
    begun: Mapping[str, str]

    @property
    def lists(self) -> list[int]:
        """The lists of results (such as `HEADS`) for which the query has words."""
        kinds = set(self.kinds.values())
        other = [one for one, kind in ((LAY, OF_LAY), (FOREIGN, OF_FOREIGN)) if kind in kinds]
        return [HEADS, BODIES, *other]


@dataclass(slots=True)
class Answer:
    """The parsed rows of a search.

    ``found`` maps a column and a set of words to the ids of the matching skills, best first.
    ``texts`` is the number of all texts.
    """

    texts: int = 0
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    found: dict[tuple[str, frozenset[str]], list[int]] = field(default_factory=dict)
    told: dict[int, HitMetadata] = field(default_factory=dict)


def question(query: Query, condition: Condition, most: int, limits: SearchLimits) -> Select:
    """Return one SELECT for all data that a search for a query needs."""
    words = [
        {"n": number, "kind": query.kinds[text], "q": text, "p": query.begun.get(text)}
        for number, text in enumerate(query.kinds)
    ]
    sql = _SEARCH.format(
        lists=", ".join(f"({one})" for one in query.lists),
        total=_TOTAL,
        ranked=_ranked([one == BODIES for one in range(max(query.lists) + 1)], condition, most),
        most=most,
        told=TOLD,
        strength=PRECEDENCE,
        description=DESCRIPTION,
        **limits._asdict(),
    )
    return sql, [json.dumps(words), *condition[1]]


def understood(query: Query, rows: Iterable[Sequence[Any]], answer: Answer) -> None:
    """Add the rows that the SELECT of `question` returned to an answer."""
    texts = list(query.kinds)
    said: dict[str, list[Sequence[Any]]] = {}
    for what, *row in rows:
        said.setdefault(what, []).append(row)
    answer.texts = said["size"][0][0]
    for number, heads, bodies, is_begun, *_ in said.get("word", ()):
        asked = texts[number]
        answer.counts[asked] = (0, 0) if is_begun else (heads, bodies)
        if asked in query.begun and (is_begun or not heads + bodies):
            answer.counts[query.begun[asked]] = (heads, bodies)
        if is_begun:
            texts[number] = query.begun[asked]
    found = sorted(said.get("found", ()), key=lambda row: row[2])
    for which in query.lists:
        members = frozenset(texts[row[1]] for row in said.get("member", ()) if row[0] == which)
        column = COLUMNS["bodies" if which == BODIES else "heads"]
        answer.found[column, members] = [row[1] for row in found if row[0] == which]
    for number, *strength, head, sketch in said.get("skill", ()):
        kept = None if sketch is None else bytes(sketch)
        answer.told[number] = HitMetadata(Precedence(*map(int, strength)), kept, head)


def query_of(sought: SearchTerms) -> Query:
    """Turn search terms into a query for the server; leave out terms without words."""
    kinds: dict[str, int] = {}
    begun: dict[str, str] = {}
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
            if other is not None:
                begun[text] = text_query(other)
    return Query(kinds, begun)
