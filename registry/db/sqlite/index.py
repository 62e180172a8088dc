"""SQL that SQLite needs for writes: arrays, JSON and the full-text indexes."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table

from registry.db.versions import SEGMENTED, UNINDEXED, Indexed

IN_ARRAY: Final = "IN (SELECT value FROM json_each(?))"
"""SQL condition: a value is in an array parameter, which the function `array` creates."""

CONCAT: Final = "group_concat"

IS_LABEL: Final = (
    "length({0}) <= 64 AND {0} GLOB '[A-Za-z0-9]*' AND {0} NOT GLOB '*[^A-Za-z0-9._+-]*'"
)
"""SQL condition: a text can be the label of a version; see `document.labels`."""

_EXECUTABLE: Final = "CASE WHEN (f.mode & 64) <> 0 THEN 1 ELSE 0 END"
REVISION_FILES: Final = f"json_group_array(json_array(f.path, {_EXECUTABLE}, f.size, f.hash))"
"""SQL: the files ``f`` of a version as JSON, in the format of `schema.revisions`."""

REVISION_HASHES: Final = (
    "SELECT json_extract(e.value, '$[3]') AS hash FROM revisions r, json_each(r.files) e"
)
"""SELECT for the hashes of the contents that revisions need."""

_TEXTS: Final = {
    "search_heads": ("name, tags, description", ("s.name", "s.tags", "s.description")),
    "search_bodies": ("body", ("substr(d.text, d.body_start + 1)",)),
}
"""The columns of each index, and the SQL for their texts."""


def array(values: Sequence[int] | Sequence[str]) -> object:
    """Return these values as one parameter for `IN_ARRAY`."""
    return json.dumps(list(values))


def to_driver(sql: str) -> str:
    """Return ``sql`` unchanged, because ``?`` is the driver's own placeholder."""
    return sql


NEXT_IDS: Final = "(SELECT coalesce(max(id), 0) + 1 FROM skills)"
"""SQL for the first free version id.

Run it under the lock of writers.
"""


RETIRED_AT_ONCE: Final = 500
"""Number of retired versions that one transaction deletes, because other writers wait for it."""


def insert_statement(table: Table, columns: Sequence[str], rows: int) -> str:
    """Return the INSERT statement for as many rows as ``rows`` has."""
    group = f"({', '.join(['?'] * len(columns))})"
    values = ", ".join([group] * rows)
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {values}"


def insert_values(rows: Sequence[Sequence[object]]) -> tuple[object, ...]:
    """Return the values for `insert_statement`."""
    return tuple([value for row in rows for value in row])


def ask_later(
    connection: Connection, sql: str, values: Sequence[object]
) -> Callable[[], list[Any]]:
    """Run a SELECT at once, because queueing saves nothing on SQLite.

    Returns a function that returns the rows.
    """
    rows = [tuple(row) for row in connection.exec_driver_sql(sql, tuple(values))]
    return lambda: rows


def add_to_index(connection: Connection, versions: Sequence[Indexed]) -> None:
    """Add new versions to the full-text indexes.

    Their rows in skills and documents must already exist.
    """
    sketches = [(one.id, one.sketch) for one in versions]
    connection.exec_driver_sql("INSERT INTO sketches (skill_id, data) VALUES (?, ?)", sketches)
    _change_index(connection, [one.id for one in versions], delete=False)


def remove_from_index(connection: Connection, ids: Sequence[int]) -> None:
    """Remove versions from the full-text indexes.

    Their rows in skills and documents must still exist.
    """
    _change_index(connection, ids, delete=True)


def _change_index(connection: Connection, ids: Sequence[int], *, delete: bool) -> None:
    """Add the texts of versions to the full-text indexes; if ``delete``, remove these texts.

    One statement for many rows keeps the work inside SQLite, so that other threads can run in the
    meantime.
    """
    for table, (columns, texts) in _TEXTS.items():
        command, value = (f"{table}, ", "'delete', ") if delete else ("", "")
        given = ", ".join(
            f"CASE d.indexed WHEN {SEGMENTED} THEN segment({text}) ELSE {text} END"
            for text in texts
        )
        connection.exec_driver_sql(
            f"INSERT INTO {table} ({command}rowid, {columns}) SELECT {value}s.id, {given} "
            "FROM documents d JOIN skills s ON s.id = d.skill_id "
            f"WHERE d.indexed <> {UNINDEXED} AND d.skill_id {IN_ARRAY}",
            (array(ids),),
        )
