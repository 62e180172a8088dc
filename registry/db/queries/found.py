"""What a search asks of the versions that it found, together where that is possible."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from registry.db.asked import Condition
from registry.db.interface import Reader, Select
from registry.db.queries.filters import FROM
from registry.db.queries.rows import DESCRIPTION
from registry.db.queries.skills import hits, refs_seen_by
from registry.db.sight import STRENGTH, Sight, Strength
from registry.model import Skill


def ids_named(reader: Reader, key: str, condition: Condition) -> Callable[[], list[int]]:
    """Ask later for the ids of skills whose name has this key and for which a condition holds."""
    sql = f"SELECT s.id FROM {FROM} WHERE s.name_key = ? AND {condition[0]} ORDER BY s.id"
    rows = _later(reader, (sql, [key, *condition[1]]))
    return lambda: [row[0] for row in rows()]


def heads_of(reader: Reader, ids: Sequence[int]) -> Callable[[], dict[int, str]]:
    """Ask later for the name, tags and description of each version as one text."""
    told = reader.index.told(ids)
    known = {one: it.head for one, it in told.items() if it.head is not None}
    left = [one for one in ids if one not in known]
    if not left:
        return lambda: known
    sql = (
        f"SELECT s.id, s.name || ' ' || s.tags || ' ' || {DESCRIPTION} FROM skills s "
        f"WHERE s.id {reader.in_json_array}"
    )
    rows = _later(reader, (sql, [json.dumps(left)]))
    return lambda: known | dict(rows())


def strengths_of(
    reader: Reader, ids: Sequence[int]
) -> Callable[[Sequence[int]], Mapping[int, Strength]]:
    """Ask later for the strength of the sources of some of these versions."""
    told = reader.index.told(ids)
    if len(told) == len(ids):
        return lambda some: {one: told[one].strength for one in some}
    sql = f"SELECT s.id, {STRENGTH} FROM {FROM} WHERE s.id {reader.in_json_array}"
    asked = reader.ahead((sql, [json.dumps(list(ids))]))

    def answer(some: Sequence[int]) -> dict[int, Strength]:
        rows = asked() if asked else reader.rows(sql, [json.dumps(list(some))])
        return {one: Strength(*told) for one, *told in rows}

    return answer


def sketches(reader: Reader, ids: Sequence[int]) -> dict[int, bytes]:
    """Return what is kept of the texts of versions, to compare them; see `document.likeness`."""
    told = reader.index.told(ids)
    if len(told) == len(ids):
        return {one: known.sketch for one, known in told.items() if known.sketch is not None}
    sql = f"SELECT skill_id, data FROM sketches WHERE skill_id {reader.in_json_array}"
    return {row[0]: bytes(row[1]) for row in reader.rows(sql, [json.dumps(list(ids))])}


def shown(
    reader: Reader, ids: Sequence[int], others: Sequence[int], sight: Sight
) -> tuple[dict[int, tuple[str, Skill]], dict[int, str]]:
    """Return body and skill of each version, and the refs of others; the snapshot ends with it."""
    refs = _later(reader, refs_seen_by(reader, others, sight)) if others else list
    reader.leave()
    return hits(reader, ids, sight), dict(refs())


def _later(reader: Reader, question: Select) -> Callable[[], list[tuple[Any, ...]]]:
    """Ask with what is asked next, where one waits for answers; else when it is called."""
    return reader.ahead(question) or (lambda: reader.rows(*question))
