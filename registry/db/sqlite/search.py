"""Asking SQLite's full-text indexes, which rank by BM25."""

import json
from collections.abc import Sequence
from typing import Final

from registry.db.asked import PARTS, Condition, Part, Pattern, Place, Question
from registry.db.interface import Reader, TextIndex
from registry.db.queries.filters import FROM

RANKS: Final = {"heads": "bm25(search_heads, 4.0, 2.0, 1.0)", "bodies": "bm25(search_bodies)"}
"""The best is the lowest. In a head, how much a word in name, tags and description counts."""


class Fts5Index(TextIndex):
    """FTS5 ranks by itself, and what passes the filters is looked up for the best only.

    Joining and sorting all matches of a common word takes twice as long.
    """

    def counts(
        self, reader: Reader, patterns: Sequence[Pattern], most: int
    ) -> list[tuple[int, int]]:
        """Return in how many heads and bodies each pattern stands, counted up to ``most``."""

        def count(place: Place, pattern: Pattern) -> int:
            sql = f"SELECT count(*) FROM (SELECT 1 FROM {_matching(place)} LIMIT ?)"
            rows = reader.rows(sql, [expression([pattern]), most])
            return rows[0][0] if rows else 0

        return [(count("heads", one), count("bodies", one)) for one in patterns]

    def best(
        self, reader: Reader, asked: Sequence[Question], condition: Condition, most: int
    ) -> list[list[int]]:
        """Return for each question ids of skills that the condition holds for, the best first."""
        found: list[list[int]] = [[] for _ in asked]
        left = list(range(len(asked)))
        # A few more, since nearly always some are shadowed or invalid.
        looked_at = most + most // 4
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
            looked_at *= 16
        return found

    def parts(
        self, reader: Reader, skill_id: int, patterns: Sequence[Pattern]
    ) -> list[tuple[Part, ...]]:
        """Return for each pattern the parts of one skill in which it stands."""

        def holds(part: Part, pattern: Pattern) -> bool:
            place: Place = "bodies" if part == "body" else "heads"
            sql = f"SELECT 1 FROM {_matching(place)} AND rowid = ?"
            return bool(reader.rows(sql, [f"{part} : {expression([pattern])}", skill_id]))

        return [tuple(part for part in PARTS if holds(part, one)) for one in patterns]

    def vocabulary(self, reader: Reader, beginning: str) -> list[str]:
        """Return the words of heads, as the index holds them, that begin so."""
        rows = reader.rows(
            "SELECT term FROM search_words WHERE term >= ? AND term < ?",
            [beginning, f"{beginning}\U0010ffff"],
        )
        return [row[0] for row in rows]


def _ranked(reader: Reader, place: Place, patterns: Sequence[Pattern], most: int) -> list[int]:
    if not patterns:
        return []
    rows = reader.rows(
        f"SELECT rowid FROM {_matching(place)} ORDER BY {RANKS[place]}, rowid LIMIT ?",
        [expression(patterns), most],
    )
    return [row[0] for row in rows]


def _matching(place: Place) -> str:
    return f"search_{place} WHERE search_{place} MATCH ?"


def expression(patterns: Sequence[Pattern]) -> str:
    """Return the FTS5 expression of the patterns; words are quoted, so none is an operator."""
    return " OR ".join(
        f'"{" ".join(pattern.words)}"' + ("*" if pattern.prefix else "") for pattern in patterns
    )
