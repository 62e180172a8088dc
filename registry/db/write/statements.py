"""Helpers that run statements in both databases, with ``?`` for values."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Final

from sqlalchemy import Connection, CursorResult, Table

from registry.db.postgres import index as postgres
from registry.db.sqlite import index as sqlite

MAX_VARIABLES: Final = 30_000  # the limit of both databases is slightly above 32,000


def dialect_of(connection: Connection) -> ModuleType:
    """Return the module ``db.*.index`` with the SQL for the database of this connection."""
    return sqlite if connection.dialect.name == "sqlite" else postgres


def execute(connection: Connection, sql: str, *values: object) -> CursorResult[Any]:
    """Run a statement; the condition for a value that is a list replaces {in_array} in ``sql``.

    The aggregate that joins texts with a separator replaces ``{concat}``.
    """
    words = dialect_of(connection)
    given = tuple(words.array(value) if isinstance(value, list) else value for value in values)
    return connection.exec_driver_sql(
        words.to_driver(sql.format(in_array=words.IN_ARRAY, concat=words.CONCAT)), given or None
    )


def select_rows(
    connection: Connection, sql: str, parameters: Sequence[object] = ()
) -> list[tuple[Any, ...]]:
    """Return the rows of a SELECT from ``db.read``, inside a writing transaction."""
    text = dialect_of(connection).to_driver(sql)
    found = connection.exec_driver_sql(text, tuple(parameters) or None)
    return [tuple(row) for row in found]


def execute_many(connection: Connection, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement once for each row of values."""
    if rows:
        connection.exec_driver_sql(dialect_of(connection).to_driver(sql), list(rows))


def insert_rows(
    connection: Connection,
    into: Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    ignore_known: bool = False,
) -> None:
    """Insert rows with the same keys; each statement inserts many rows.

    If ``ignore_known``, skip rows with an existing key. ``executemany`` isn't used, because it
    returns to Python after each row. While another thread parses, that takes longer than the
    insertion of the row.
    """
    if not rows:
        return
    columns = list(rows[0])
    words = dialect_of(connection)
    most = MAX_VARIABLES // len(columns)
    ending = " ON CONFLICT DO NOTHING" if ignore_known else ""
    for start in range(0, len(rows), most):
        some = [[row[column] for column in columns] for row in rows[start : start + most]]
        sql = words.insert_statement(into, columns, len(some))
        connection.exec_driver_sql(f"{sql}{ending}", words.insert_values(some))
