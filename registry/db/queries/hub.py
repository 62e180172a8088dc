"""What clients of other registries ask: skills by the beginning of a name, contents in order."""

import json
from collections.abc import Sequence
from typing import NamedTuple

from registry.db.asked import Condition
from registry.db.interface import Reader
from registry.db.queries.filters import FROM
from registry.text import slug


class Turn(NamedTuple):
    """A content that a skill had: ``turn`` rises with each that became current.

    ``number`` is its revision's; ``current``: the skill has it now.
    """

    turn: int
    number: int
    seen_at: str
    current: bool


def turns(reader: Reader, uid: str) -> list[Turn]:
    """Return the contents of a skill, what was current last first."""
    rows = reader.rows(
        "SELECT coalesce(r.turn, r.number), r.number, r.seen_at, EXISTS (SELECT 1 FROM skills s "
        "WHERE s.uid = r.uid AND s.live = 1 AND s.tree_hash = r.tree_hash) "
        "FROM revisions r WHERE r.uid = ? ORDER BY 1 DESC",
        (uid,),
    )
    return [Turn(turn, number, at, current == 1) for turn, number, at, current in rows]


def last_turns(reader: Reader, ids: Sequence[int]) -> dict[int, int]:
    """Return the turn of the content that versions have."""
    rows = reader.rows(
        "SELECT s.id, coalesce(r.turn, r.number) FROM skills s "
        "JOIN revisions r ON r.uid = s.uid AND r.tree_hash = s.tree_hash "
        f"WHERE s.id {reader.in_json_array}",
        [json.dumps(list(ids))],
    )
    return dict(rows)


def first_seen(reader: Reader, ids: Sequence[int]) -> list[int]:
    """Return versions in the order in which their skills were first seen."""
    rows = reader.rows(
        "SELECT s.id FROM skills s LEFT JOIN revisions r ON r.uid = s.uid "
        f"WHERE s.id {reader.in_json_array} GROUP BY s.id ORDER BY min(r.id), s.id",
        [json.dumps(list(ids))],
    )
    return [row[0] for row in rows]


def odd_names(reader: Reader, condition: Condition) -> dict[str, list[int]]:
    """Return by slug the versions whose name is none, for which a condition holds.

    The answer is kept until the database changes.
    """

    def load(reader: Reader) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        sql = f"SELECT s.id, s.name FROM {FROM} WHERE {condition[0]}"
        for version, name in reader.stream(sql, condition[1]):
            if (made := slug(name)) != name:
                found.setdefault(made, []).append(version)
        return found

    return reader.remembered(f"odd names {condition[0]} {list(condition[1])}", load)


def beginning(
    reader: Reader, condition: Condition, prefix: str, *, limit: int, offset: int
) -> list[int]:
    """Return versions whose names begin so, by name."""
    rows = reader.rows(
        f"SELECT s.id FROM {FROM} WHERE s.name_key >= ? AND s.name_key < ? AND {condition[0]} "
        "ORDER BY s.name_key, s.name, s.source_id, s.position LIMIT ? OFFSET ?",
        [prefix, f"{prefix}\U0010ffff", *condition[1], limit, offset],
    )
    return [row[0] for row in rows]
