"""What writes say in SQLite's own words: arrays, JSON, and the full-text index FTS5."""

import json
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection

from registry.db.writes.indexed import SEGMENTED, Indexed
from registry.text import segment

IN_ARRAY: Final = "IN (SELECT value FROM json_each(?))"
"""The condition that a value is in the array of the parameter, which `array` makes."""

CONCAT: Final = "group_concat"

_EXECUTABLE: Final = "CASE WHEN (f.mode & 64) <> 0 THEN 1 ELSE 0 END"
REVISION_FILES: Final = f"json_group_array(json_array(f.path, {_EXECUTABLE}, f.size, f.hash))"
"""The files ``f`` of a version as `schema.revisions` keeps them."""

REVISION_HASHES: Final = (
    "SELECT json_extract(e.value, '$[3]') AS hash FROM revisions r, json_each(r.files) e"
)
"""The content hashes that revisions need."""

_PLAIN: Final = (
    "INSERT INTO skill_search ({special}rowid, name, tags, description, body) "
    "SELECT {delete}s.id, s.name, s.tags, s.description, substr(d.text, d.body_start + 1) "
    "FROM documents d JOIN skills s ON s.id = d.skill_id WHERE d.indexed = 1 AND d.skill_id {which}"
)
# One statement for many rows keeps the work inside SQLite, where other threads can run meanwhile.
_ADD_PLAIN: Final = _PLAIN.format(special="", delete="", which=">= ?")
_FORGET_PLAIN: Final = _PLAIN.format(special="skill_search, ", delete="'delete', ", which=IN_ARRAY)
_ADD: Final = (
    "INSERT INTO skill_search (rowid, name, tags, description, body) VALUES (?, ?, ?, ?, ?)"
)
_FORGET: Final = (
    "INSERT INTO skill_search (skill_search, rowid, name, tags, description, body) "
    "VALUES ('delete', ?, ?, ?, ?, ?)"
)
_SEGMENTED_TEXTS: Final = (
    "SELECT s.id, s.name, s.tags, s.description, d.text, d.body_start "
    "FROM documents d JOIN skills s ON s.id = d.skill_id "
    f"WHERE d.indexed = 2 AND d.skill_id {IN_ARRAY}"
)


def array(values: Sequence[int] | Sequence[str]) -> object:
    """Return the parameter that stands for these values in `IN_ARRAY`."""
    return json.dumps(list(values))


def to_driver(sql: str) -> str:
    """Return ``sql`` with its values marked as the driver wants it: ``?``, as they are."""
    return sql


def add_to_index(connection: Connection, versions: Sequence[Indexed]) -> None:
    """Let new versions be found; their rows in skills and documents are there already.

    ``versions`` are all that were stored at once, those that are not indexed left out.
    """
    connection.exec_driver_sql(_ADD_PLAIN, (versions[0].id,))
    segmented = [_segmented(one) for one in versions if one.how == SEGMENTED]
    if segmented:
        connection.exec_driver_sql(_ADD, segmented)


def remove_from_index(connection: Connection, ids: Sequence[int]) -> None:
    """Take versions out of the index, before their rows are deleted."""
    chosen = (array(ids),)
    connection.exec_driver_sql(_FORGET_PLAIN, chosen)
    segmented = [
        _segmented(Indexed(skill_id, name, tags, description, content[start:], SEGMENTED))
        for skill_id, name, tags, description, content, start in connection.exec_driver_sql(
            _SEGMENTED_TEXTS, chosen
        )
    ]
    if segmented:
        connection.exec_driver_sql(_FORGET, segmented)


def _segmented(one: Indexed) -> tuple[Any, ...]:
    """Return the full-text row of a version; giving the same again deletes it."""
    return (one.id, *map(segment, (one.name, one.tags, one.description, one.body)))
