"""Insert many rows at once."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, text

MOST_VARIABLES = 30_000  # SQLite and PostgreSQL allow some more than 32,000


def insert_rows(
    connection: Connection,
    into: Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    ignore_known: bool = False,
) -> None:
    """Insert rows that all have the same keys, many with one statement.

    ``ignore_known``: rows whose key is there already are passed over.

    A driver comes back to Python between two rows of an executemany; while another thread parses,
    each of these returns costs more than the row.
    """
    if not rows:
        return
    columns = list(rows[0])
    mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
    group = f"({', '.join([mark] * len(columns))})"
    most = MOST_VARIABLES // len(columns)
    ending = " ON CONFLICT DO NOTHING" if ignore_known else ""
    for start in range(0, len(rows), most):
        some = rows[start : start + most]
        values = ", ".join([group] * len(some))
        connection.exec_driver_sql(
            f"INSERT INTO {into.name} ({', '.join(columns)}) VALUES {values}{ending}",
            tuple([row[column] for row in some for column in columns]),
        )


def fill_temporary(
    connection: Connection, table: str, column: str, values: Sequence[int] | Sequence[str]
) -> None:
    """Make a temporary table of one ``column`` (name and type) hold these values.

    PostgreSQL is told how many they are, since it would plan for thousands; and as much as can be
    goes to it at once, since each answer from there is waited for.
    """
    make = f"CREATE TEMP TABLE IF NOT EXISTS {table} ({column} PRIMARY KEY)"
    empty = f"DELETE FROM {table}"
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(make)
        connection.exec_driver_sql(empty)
        _insert(connection, table, values)
        return
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) == len(values):
        filled = ", ".join(f"({number})" for number in numbers)
        fill = f"INSERT INTO {table} VALUES {filled};" if numbers else ""
        connection.exec_driver_sql(f"{make}; {empty}; {fill} ANALYZE {table}")
        return
    connection.exec_driver_sql(f"{make}; {empty}")
    _insert(connection, table, values)
    connection.exec_driver_sql(f"ANALYZE {table}")


def _insert(connection: Connection, table: str, values: Sequence[object]) -> None:
    if values:
        rows = [{"value": value} for value in values]
        connection.execute(text(f"INSERT INTO {table} VALUES (:value)"), rows)
