"""Which texts match a question, the best first, where all words that it has are known."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from registry.db.asked import Condition, Pattern
from registry.db.interface import Select
from registry.db.remote.words import QUERY, RANK, RANKED, Column, text_query, worth
from registry.db.storable import MAX_INTEGER

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
    SELECT p, CAST(1e6 * ln(1 + greatest(? - {texts}, 0.5) / ({texts} + 0.5)) AS bigint) AS weight
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
WITH {{among}}m AS (SELECT x AS skill_id FROM registry_find('{{column}}', {QUERY}, ?) x{{seen}}),
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


class Find:
    """A question on its way to ids, the best first.

    What has one common word and no other is left out at first: it costs most, and nearly always as
    many as are wanted say more. Where that turns out to be otherwise, the whole is asked.
    """

    def __init__(
        self, column: Column, patterns: Sequence[Pattern], known: Mapping[tuple[str, str], int]
    ) -> None:
        self.ids: list[int] = []
        self.asked = 0
        self._column = column
        self._queries = list(dict.fromkeys(filter(None, map(text_query, patterns))))
        self.done = not self._queries
        self.key = column.name, frozenset(self._queries)
        about = {one: known.get((column.name, one), 0) for one in self._queries}
        self._common = {one: texts for one, texts in about.items() if texts > COMMON}

    @property
    def is_whole(self) -> bool:
        """Whether what was asked at once leaves nothing out: of bodies, where words are rare."""
        return self._column.name == "body" and len(self._queries) > 1

    def question(
        self,
        texts: int,
        condition: Condition,
        most: int,
        *,
        whole: bool,
        among: Collection[int] | None = None,
    ) -> Select:
        """Return what asks for ids, of so many texts; ``whole``: with nothing left out.

        ``among``: only these versions count, also for how rare a word is.
        """
        column, queries = self._column.name, self._queries
        seen = "" if among is None else " JOIN v ON v.id = x"
        within = "" if among is None else f"{AMONG}, "
        ids = [] if among is None else [json.dumps([*among])]
        if len(queries) == 1:
            rank = self._rank(["1"])
            sql = _FIND_ONE.format(
                among=within, seen=seen, column=column, condition=condition[0], rank=rank
            )
            enough = COMMON if self._common and not whole else MAX_INTEGER
            return sql, [*ids, queries[0], enough, queries[0], *condition[1], most]
        common = {} if whole else self._common
        # To read a vector costs a hundred times as much as to ask the index alone; which the server
        # does by itself for who may see all, and for others in a function (migration 0015).
        matches = " UNION ALL ".join(
            f"SELECT {number} AS p, x AS skill_id "
            f"FROM registry_find('{column}', {QUERY}, NULL) x{seen}"
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
        sql = _FIND.format(
            among=within, matches=matches, texts=counted, condition=condition[0], rank=rank
        )
        return sql, [*ids, *asked, texts, json.dumps(queries), *queries, *condition[1], most]

    def take(self, rows: Sequence[tuple[Any, ...]], most: int, *, whole: bool) -> None:
        """Take what was answered; it is done where nothing that was left out can be better."""
        self.asked += 1
        first = sorted(rows[:RANKED], key=lambda row: (-round(row[3] or 0.0, 6), row[0]))
        self.ids = [row[0] for row in (*first, *rows[RANKED:])]
        weights = rows[0][2] if rows else {}
        common = (weights.get(one, 0) for one in self._common)
        left_out = max(common, default=0) if len(self._queries) > 1 else 0
        enough = len(rows) >= most and rows[-1][1] >= left_out
        self.done = whole or enough or not self._common

    def _rank(self, weights: Sequence[str]) -> str:
        """Return the SQL of how much a text says, of words that weigh so much."""
        says = worth(self._column, QUERY)
        ranks = " + ".join(f"{weight} * {says}" for weight in weights)
        return RANK.format(ranks=ranks, column=self._column.name)
