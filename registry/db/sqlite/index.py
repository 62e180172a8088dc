"""SQL that only writes to SQLite need: arrays, JSON and the full-text indexes."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table

from registry.db.versions import SEGMENTED, UNINDEXED, Indexed

IN_ARRAY: Final = "IN (SELECT value FROM json_each(?))"
"""SQL condition: the array parameter, which the function `array` creates, contains a value."""

CONCAT: Final = "group_concat"

IS_LABEL: Final = (
    "length({0}) <= 64 AND {0} GLOB '[A-Za-z0-9]*' AND {0} NOT GLOB '*[^A-Za-z0-9._+-]*'"
)
"""SQL condition: the text is a valid label of a version; see `document.labels`."""

_EXECUTABLE: Final = "CASE WHEN (f.mode & 64) <> 0 THEN 1 ELSE 0 END"
REVISION_FILES: Final = f"json_group_array(json_array(f.path, {_EXECUTABLE}, f.size, f.hash))"
"""SQL: the files ``f`` of a version as JSON, in the format of `schema.revisions`."""

REVISION_HASHES: Final = (
    "SELECT json_extract(e.value, '$[3]') AS hash FROM revisions r, json_each(r.files) e"
)
"""SELECT for the hashes of the file contents that revisions refer to."""

_TEXTS: Final = {
    "search_heads": ("name, tags, description", ("s.name", "s.tags", "s.description")),
    "search_bodies": ("body", ("substr(d.text, d.body_start + 1)",)),
}
"""The columns of each index, and the SQL for their values."""


def array(values: Sequence[int] | Sequence[str]) -> object:
    """Return these values as one parameter for `IN_ARRAY`."""
    return json.dumps(list(values))


def to_driver(sql: str) -> str:
    """Return ``sql`` unchanged, because ``?`` is the driver's own placeholder."""
    return sql


NEXT_IDS: Final = "(SELECT coalesce(max(id), 0) + 1 FROM skills)"
"""SQL for the lowest free version id; run it only while you hold the lock of writers."""


RETIRED_AT_ONCE: Final = 500
"""Maximum number of retired versions that one transaction deletes.

The limit is low, because other writers wait for the transaction.
"""


def insert_statement(table: Table, columns: Sequence[str], rows: int) -> str:
    """Return an INSERT statement with placeholders for all ``rows``."""
    group = f"({', '.join(['?'] * len(columns))})"
    values = ", ".join([group] * rows)
    return f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES {values}"


def insert_values(rows: Sequence[Sequence[object]]) -> tuple[object, ...]:
    """Return the values for `insert_statement`."""
    return tuple([value for row in rows for value in row])


def ask_later(
    connection: Connection, sql: str, values: Sequence[object]
) -> Callable[[], list[Any]]:
    """Run a SELECT immediately, because a queue saves no time on SQLite.

    Returns a function that returns the rows.
    """
    rows = [tuple(row) for row in connection.exec_driver_sql(sql, tuple(values))]
    return lambda: rows


def add_to_index(connection: Connection, versions: Sequence[Indexed]) -> None:
    """Add new versions to the full-text indexes.

    Their rows in the tables ``skills`` and ``documents`` must exist already.
    """
    sketches = [(one.id, one.sketch) for one in versions]
    connection.exec_driver_sql("INSERT INTO sketches (skill_id, data) VALUES (?, ?)", sketches)
    _change_index(connection, [one.id for one in versions], delete=False)


def remove_from_index(connection: Connection, ids: Sequence[int]) -> None:
    """Remove versions from the full-text indexes.

    Their rows in the tables ``skills`` and ``documents`` must still exist.
    """
    _change_index(connection, ids, delete=True)


def _change_index(connection: Connection, ids: Sequence[int], *, delete: bool) -> None:
    """Add the texts of versions to the full-text indexes; if ``delete``, remove these texts.

    One statement changes many rows, so that other threads can run while SQLite works.
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
