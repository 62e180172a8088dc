"""SQL of writes that only SQLite understands: arrays, JSON, and the full-text indexes."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table

from registry.db.versions import SEGMENTED, Indexed
from registry.text import segment

IN_ARRAY: Final = "IN (SELECT value FROM json_each(?))"
"""The condition that a value is in the array parameter, which `array` returns."""

CONCAT: Final = "group_concat"

_EXECUTABLE: Final = "CASE WHEN (f.mode & 64) <> 0 THEN 1 ELSE 0 END"
REVISION_FILES: Final = f"json_group_array(json_array(f.path, {_EXECUTABLE}, f.size, f.hash))"
"""The files ``f`` of a version in the format of `schema.revisions`."""

REVISION_HASHES: Final = (
    "SELECT json_extract(e.value, '$[3]') AS hash FROM revisions r, json_each(r.files) e"
)
"""The content hashes that revisions need."""

_PLAIN: Final = (
    (
        "INSERT INTO search_heads ({heads}rowid, name, tags, description) "
        "SELECT {delete}s.id, s.name, s.tags, s.description FROM documents d "
        "JOIN skills s ON s.id = d.skill_id WHERE d.indexed = 1 AND d.skill_id {which}"
    ),
    (
        "INSERT INTO search_bodies ({bodies}rowid, body) "
        "SELECT {delete}d.skill_id, substr(d.text, d.body_start + 1) FROM documents d "
        "WHERE d.indexed = 1 AND d.skill_id {which}"
    ),
)
_KEEP: Final = "INSERT INTO sketches (skill_id, data) VALUES (?, ?)"
_NEW: Final = {"heads": "", "bodies": "", "delete": ""}
_OLD: Final = {"heads": "search_heads, ", "bodies": "search_bodies, ", "delete": "'delete', "}
# One statement for many rows keeps the work inside SQLite, where other threads can run meanwhile.
_ADD_PLAIN: Final = [sql.format(**_NEW, which=">= ?") for sql in _PLAIN]
_FORGET_PLAIN: Final = [sql.format(**_OLD, which=IN_ARRAY) for sql in _PLAIN]
_SEGMENTED: Final = (
    "INSERT INTO search_heads ({heads}rowid, name, tags, description) VALUES ({delete}?, ?, ?, ?)",
    "INSERT INTO search_bodies ({bodies}rowid, body) VALUES ({delete}?, ?)",
)
_ADD: Final = [sql.format(**_NEW) for sql in _SEGMENTED]
_FORGET: Final = [sql.format(**_OLD) for sql in _SEGMENTED]
_SEGMENTED_TEXTS: Final = (
    "SELECT s.id, s.name, s.tags, s.description, d.text, d.body_start "
    "FROM documents d JOIN skills s ON s.id = d.skill_id "
    f"WHERE d.indexed = 2 AND d.skill_id {IN_ARRAY}"
)


def array(values: Sequence[int] | Sequence[str]) -> object:
    """Return the parameter for these values in `IN_ARRAY`."""
    return json.dumps(list(values))


def to_driver(sql: str) -> str:
    """Return ``sql`` unchanged: ``?`` is the driver's own placeholder."""
    return sql


NEXT_IDS: Final = "(SELECT coalesce(max(id), 0) + 1 FROM skills)"
"""The first free id for versions; run under the lock of writers."""


def insert_statement(table: Table, columns: Sequence[str], rows: int) -> str:
    """Return the INSERT for this number of rows."""
    group = f"({', '.join(['?'] * len(columns))})"
    values = ", ".join([group] * rows)
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {values}"


def insert_values(rows: Sequence[Sequence[object]]) -> tuple[object, ...]:
    """Return the values of `insert_statement`."""
    return tuple([value for row in rows for value in row])


def ask_later(
    connection: Connection, sql: str, values: Sequence[object]
) -> Callable[[], list[Any]]:
    """Run the SELECT now: SQLite gains nothing by waiting."""
    rows = [tuple(row) for row in connection.exec_driver_sql(sql, tuple(values))]
    return lambda: rows


def add_to_index(connection: Connection, versions: Sequence[Indexed]) -> None:
    """Add new versions to the index, after their rows in skills and documents.

    ``versions`` are all versions stored at once, except those that are not indexed.
    """
    connection.exec_driver_sql(_KEEP, [(one.id, one.sketch) for one in versions])
    for sql in _ADD_PLAIN:
        connection.exec_driver_sql(sql, (versions[0].id,))
    _give(connection, _ADD, [one for one in versions if one.how == SEGMENTED])


def remove_from_index(connection: Connection, ids: Sequence[int]) -> None:
    """Remove versions from the index, before their rows are deleted."""
    chosen = (array(ids),)
    for sql in _FORGET_PLAIN:
        connection.exec_driver_sql(sql, chosen)
    segmented = [
        Indexed(skill_id, name, tags, description, content[start:], SEGMENTED)
        for skill_id, name, tags, description, content, start in connection.exec_driver_sql(
            _SEGMENTED_TEXTS, chosen
        )
    ]
    _give(connection, _FORGET, segmented)


def _give(connection: Connection, statements: Sequence[str], versions: Sequence[Indexed]) -> None:
    """Pass segmented texts to the indexes; passing the same texts with `_FORGET` removes them."""
    if not versions:
        return
    heads = [(one.id, *map(segment, (one.name, one.tags, one.description))) for one in versions]
    bodies = [(one.id, segment(one.body)) for one in versions]
    connection.exec_driver_sql(statements[0], heads)
    connection.exec_driver_sql(statements[1], bodies)
