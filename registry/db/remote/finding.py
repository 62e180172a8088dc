"""What a search asks of a server at once, before it knows how many texts hold which word.

Which words stand for those that nobody has, and which are looked for in bodies, is chosen there as
`catalog.search.rank` would choose. That has the last word: what it wants otherwise it asks for.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from registry.db.asked import Condition, Limits, Sought, Told
from registry.db.interface import Select
from registry.db.queries.rows import DESCRIPTION
from registry.db.remote import matching
from registry.db.remote.words import COLUMNS, RANK, single, text_query, worth
from registry.db.sight import STRENGTH, Strength

HEADS, BODIES, LAY, FOREIGN = range(4)
"""The lists: of words that were typed in heads and in bodies, and of other words in heads."""

TYPED, COMPOUND, OF_LAY, OF_FOREIGN = range(4)
"""The kinds of words."""

TOLD: Final = 40
"""The heads of so many come along, of those whose places in the lists are the best."""

_CUT: Final = 2
"""Says of a word that not all texts were looked at that have it."""

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
    CAST(begun AS int) + CASE WHEN b = 0 AND bodies >= {counted} THEN {cut} ELSE 0 END, stem,
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
    """What the server said: of lists, by place and words, rows as `_Find.take` wants them."""

    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    stems: dict[str, str] = field(default_factory=dict)
    found: dict[tuple[str, frozenset[str]], list[tuple[Any, ...]]] = field(default_factory=dict)
    told: dict[int, Told] = field(default_factory=dict)


def question(
    query: Query,
    about: Callable[[str, str], Mapping[str, int]],
    facts: tuple[int, int],
    condition: Condition,
    most: int,
    limits: Limits,
) -> Select:
    """Return what asks for all that a search is about to need of a query.

    ``about`` says of a column and a word which stems it may have, and how many texts those;
    ``facts``: a state of the database and how many texts it had.
    """
    words = [
        {
            "n": number,
            "kind": query.kinds[text],
            "q": text,
            "p": query.begun.get(text),
            "w": query.single.get(text),
            "h": about("head", query.single.get(text, "")),
            "b": about("body", query.single.get(text, "")),
        }
        for number, text in enumerate(query.kinds)
    ]
    sql = (_WORDS + _MATCHES).format(
        lists=", ".join(f"({one})" for one in query.lists),
        condition=condition[0],
        told=TOLD,
        strength=STRENGTH,
        description=DESCRIPTION,
        cut=_CUT,
        common=matching.COMMON,
        **_RANKS,
        **limits._asdict(),
    )
    return sql, [json.dumps(words), *facts, *condition[1], most]


def understood(query: Query, rows: Iterable[Sequence[Any]], answer: Answer) -> None:
    """Add to an answer what was said to a `question`."""
    texts = list(query.kinds)
    said: dict[str, list[Sequence[Any]]] = {}
    for what, *row in rows:
        said.setdefault(what, []).append(row)
    cut = set()
    for number, heads, bodies, how, stem, _ in said.get("word", ()):
        asked, is_begun = texts[number], how % 2
        if stem:
            answer.stems[query.single[asked]] = stem
        answer.counts[asked] = (0, 0) if is_begun else (heads, bodies)
        if asked in query.begun and (is_begun or not heads + bodies):
            answer.counts[query.begun[asked]] = (heads, bodies)
        if is_begun:
            texts[number] = query.begun[asked]
        if how >= _CUT:
            cut.add(texts[number])
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
        answer.told[number] = Told(Strength(*map(int, strength)), kept, head)


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


def query_of(sought: Sought) -> Query:
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
