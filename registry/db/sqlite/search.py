"""Queries to SQLite's full-text indexes, ranked by BM25."""

import json
from collections.abc import Collection, Sequence
from math import log
from typing import Final

from registry.db.interface import (
    PARTS,
    Condition,
    IndexPart,
    IndexQuery,
    Part,
    Pattern,
    Reader,
    TextIndex,
)
from registry.db.read.skills import FROM

WEIGHTS: Final = (4.0, 2.0, 1.0)
"""Weights of a match in the name, the tags and the description."""

RANKS: Final = {
    "heads": f"bm25(search_heads, {', '.join(map(str, WEIGHTS))})",
    "bodies": "bm25(search_bodies)",
}
"""SQL for the rank of a match in each index; the best match has the lowest rank."""

_SATURATED, _LENGTH = 1.2, 0.75
"""The constants k1 and b of BM25; FTS5 uses the same values."""

_USUAL: Final = {"heads": 250, "bodies": 4000}
"""Usual length of a text in each index, in characters.

The score of a text depends on its length relative to this length.
"""

_LOOKED_AT: Final = 120
"""Number of matches of a narrowed search whose texts are read for the ranking.

The rank of further matches depends only on the words that they contain.
"""

_LEAST: Final = 1e-6
"""Lowest weight of a word; a word that nearly all texts contain has this weight."""

_SHORTEST, _ENDING = 4, 2
"""Two numbers that decide which part of a word is counted.

The first is the minimum length of this part. The second is the number of letters at the end of the
word that are ignored.
"""

_MOST_TEXT: Final = 1 << 13
"""Maximum number of characters of a body in which words are counted."""


class Fts5Index(TextIndex):
    """Ranks matches with FTS5, and checks the filters only for the best matches.

    Joining and sorting all matches of a common word would take twice as long.

    A narrowed search can't use ``bm25()`` of FTS5. That function computes its weights from all
    texts: their number, their average length, and how many of them contain a word. So its scores
    would reveal words of texts outside the view. Therefore FTS5 only finds the matching texts.
    `_narrowed` computes the weights from the texts of the view only, and compares each text with a
    text of usual length.
    """

    def size(self, reader: Reader) -> int:
        rows = reader.rows("SELECT max(id) FROM skills")  # to count the rows would take longer
        return (rows[0][0] or 0) if rows else 0

    def counts(
        self,
        reader: Reader,
        patterns: Sequence[Pattern],
        most: int,
        among: Collection[int] | None = None,
    ) -> list[tuple[int, int]]:
        def count(place: IndexPart, pattern: Pattern) -> int:
            if among is not None:
                return min(most, len(_matches(reader, place, pattern, among)))
            sql = f"SELECT count(*) FROM (SELECT 1 FROM {_matching(place)} LIMIT ?)"
            rows = reader.rows(sql, [expression([pattern]), most])
            return rows[0][0] if rows else 0

        return [(count("heads", one), count("bodies", one)) for one in patterns]

    def best(
        self,
        reader: Reader,
        asked: Sequence[IndexQuery],
        condition: Condition,
        most: int,
        among: Collection[int] | None = None,
    ) -> list[list[int]]:
        if among is not None:
            return [_narrowed(reader, *one, condition, most, among) for one in asked]
        found: list[list[int]] = [[] for _ in asked]
        left = list(range(len(asked)))
        # Read more matches than needed, because filters nearly always remove some of them (shadowed
        # or invalid skills), and to rank all matches a second time takes longer.
        looked_at = most * 2
        while left:
            lists = {place: _ranked(reader, *asked[place], looked_at) for place in left}
            passing = reader.rows(
                f"SELECT s.id FROM {FROM} WHERE s.id {reader.in_json_array} AND {condition[0]}",
                [json.dumps(list({one for ids in lists.values() for one in ids})), *condition[1]],
            )
            seen = {row[0] for row in passing}
            for place, ids in lists.items():
                found[place] = [one for one in ids if one in seen][:most]
            left = [
                place
                for place, ids in lists.items()
                if len(found[place]) < most and len(ids) == looked_at
            ]
            looked_at *= 8
        return found

    def parts(
        self, reader: Reader, skill_id: int, patterns: Sequence[Pattern]
    ) -> list[tuple[Part, ...]]:
        def holds(part: Part, pattern: Pattern) -> bool:
            place: IndexPart = "bodies" if part == "body" else "heads"
            sql = f"SELECT 1 FROM {_matching(place)} AND rowid = ?"
            return bool(reader.rows(sql, [f"{part} : {expression([pattern])}", skill_id]))

        return [tuple(part for part in PARTS if holds(part, one)) for one in patterns]

    def vocabulary(self, reader: Reader, beginning: str) -> list[str]:
        rows = reader.rows(
            "SELECT term FROM search_words WHERE term >= ? AND term < ?",
            [beginning, f"{beginning}\U0010ffff"],
        )
        return [row[0] for row in rows]

    def known(self, reader: Reader, words: Sequence[str]) -> list[str]:
        sql = "SELECT w.term FROM json_each(?) e CROSS JOIN search_words w ON w.term = e.value"
        return [row[0] for row in reader.rows(sql, [json.dumps(list(words))])]


def _ranked(reader: Reader, place: IndexPart, patterns: Sequence[Pattern], most: int) -> list[int]:
    if not patterns:
        return []
    rows = reader.rows(
        f"SELECT rowid FROM {_matching(place)} ORDER BY {RANKS[place]}, rowid LIMIT ?",
        [expression(patterns), most],
    )
    return [row[0] for row in rows]


def _matches(
    reader: Reader, place: IndexPart, pattern: Pattern, among: Collection[int]
) -> list[int]:
    """Return the ids of the versions in the view (``among``) that contain the pattern."""
    rows = reader.rows(f"SELECT rowid FROM {_matching(place)}", [expression([pattern])])
    return [one for (one,) in rows if one in among]


def _narrowed(
    reader: Reader,
    place: IndexPart,
    patterns: Sequence[Pattern],
    condition: Condition,
    most: int,
    among: Collection[int],
) -> list[int]:
    """Return the versions of a view that match and meet the condition, best first.

    A word has a higher weight if fewer texts of the view contain it. The first `_LOOKED_AT` matches
    are sorted by how often their texts contain the words, and by the length of the texts.
    """
    weighted: list[tuple[Pattern, float, set[int]]] = []
    first: dict[int, float] = {}
    for one in dict.fromkeys(patterns):
        found = _matches(reader, place, one, among)
        rarity = (len(among) - len(found) + 0.5) / (len(found) + 0.5)
        weight = max(log(rarity), _LEAST)
        weighted.append((one, weight, set(found)))
        for version in found:
            first[version] = first.get(version, 0.0) + weight
    ordered = sorted(first, key=lambda version: (-first[version], version))
    passing = _passing(reader, ordered, condition, max(most, _LOOKED_AT))
    near = passing[:_LOOKED_AT]
    texts = _texts(reader, place, near)

    def score(version: int) -> float:
        parts = texts.get(version, ())
        usual = sum(len(part) for _, part in parts) / _USUAL[place]
        enough = _SATURATED * (1 - _LENGTH + _LENGTH * usual)
        said = ((weight, _times(one, parts)) for one, weight, some in weighted if version in some)
        return sum(weight * times / (times + enough) for weight, times in said)

    scores = {version: score(version) for version in near}
    best = sorted(near, key=lambda version: (-scores[version], version))
    return [*best, *passing[_LOOKED_AT:]][:most]


def _passing(reader: Reader, ordered: Sequence[int], condition: Condition, most: int) -> list[int]:
    """Return the first of the ``ordered`` versions that meet a condition.

    If at least ``most`` versions meet it, return at least ``most`` versions.
    """
    found: list[int] = []
    start, size = 0, most + most // 4
    while start < len(ordered) and len(found) < most:
        some = ordered[start : start + size]
        rows = reader.rows(
            f"SELECT s.id FROM {FROM} WHERE s.id {reader.in_json_array} AND {condition[0]}",
            [json.dumps(some), *condition[1]],
        )
        seen = {row[0] for row in rows}
        found += [one for one in some if one in seen]
        start, size = start + size, size * 4
    return found


def _texts(
    reader: Reader, place: IndexPart, ids: Sequence[int]
) -> dict[int, tuple[tuple[float, str], ...]]:
    """Return the parts of each version's text in lower case, each with the weight of its words."""
    chosen = [json.dumps(list(ids))]
    if place == "heads":
        sql = f"SELECT id, name, tags, description FROM skills WHERE id {reader.in_json_array}"
        return {
            version: tuple(zip(WEIGHTS, (a.lower(), b.lower(), c.lower()), strict=True))
            for version, a, b, c in reader.rows(sql, chosen)
        }
    sql = (
        "SELECT skill_id, substr(text, body_start + 1, ?) FROM documents "
        f"WHERE skill_id {reader.in_json_array}"
    )
    rows = reader.rows(sql, [_MOST_TEXT, *chosen])
    return {version: ((1.0, (text or "").lower()),) for version, text in rows}


def _times(pattern: Pattern, parts: Sequence[tuple[float, str]]) -> float:
    """Estimate how often a matching text contains the words of a pattern; at least 1.

    FTS5 stores stems, but a text contains inflected forms. So this function counts the beginning
    that most forms of a word share.
    """
    beginnings = [word[: max(_SHORTEST, len(word) - _ENDING)] for word in pattern.words]
    counts = [sum(weight * text.count(one) for weight, text in parts) for one in beginnings]
    return max(1.0, min(counts, default=1.0))


def _matching(place: IndexPart) -> str:
    return f"search_{place} WHERE search_{place} MATCH ?"


def expression(patterns: Sequence[Pattern]) -> str:
    """Return the FTS5 expression that matches any of the patterns.

    Quotes around each word keep it from being an operator.
    """
    return " OR ".join(
        f'"{" ".join(pattern.words)}"' + ("*" if pattern.prefix else "") for pattern in patterns
    )
