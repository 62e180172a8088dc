"""SQL that only writes to PostgreSQL need: arrays, JSON and the full-text index."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table

from registry.db.postgres.dialect import to_pyformat
from registry.db.versions import Indexed
from registry.text import MAX_LEXEME, lexemes

IN_ARRAY: Final = "= ANY(?)"
"""SQL condition: the array parameter, which the function `array` creates, contains a value."""

CONCAT: Final = "string_agg"

IS_LABEL: Final = "{0} ~ '^[A-Za-z0-9][A-Za-z0-9._+-]{{{{0,63}}}}$'"
"""SQL condition: the text is a valid label of a version; see `document.labels`."""

_EXECUTABLE: Final = "CASE WHEN (f.mode & 64) <> 0 THEN 1 ELSE 0 END"
REVISION_FILES: Final = (
    "CAST(coalesce(json_agg(json_build_array("
    f"f.path, {_EXECUTABLE}, f.size, f.hash)), '[]') AS text)"
)
"""SQL: the files ``f`` of a version as JSON, in the format of `schema.revisions`."""

REVISION_HASHES: Final = (
    "SELECT e.value ->> 3 AS hash FROM revisions r, json_array_elements(CAST(r.files AS json)) e"
)
"""SELECT for the hashes of the file contents that revisions refer to."""

MAX_BYTES: Final = 400_000
"""Maximum size of an indexed body, in bytes; searches don't find words after it.

PostgreSQL limits the ``tsvector`` of a text to 1 MiB.
"""

_ADD: Final = (
    "WITH given AS (SELECT * FROM unnest(%b::bigint[], %b::bytea[], %b::text[], %b::text[], "
    "%b::text[], %b::text[], %b::bigint[], %b::bigint[]) "
    "AS g (id, sketch, body, name, tags, description, head_size, body_size)), "
    "kept AS (INSERT INTO sketches (skill_id, data) SELECT id, sketch FROM given) "
    "INSERT INTO search_texts (skill_id, head_size, body_size, body, head) "
    "SELECT id, head_size, body_size, to_tsvector('stems', body), "
    "setweight(to_tsvector('stems', name), 'A') || setweight(to_tsvector('stems', tags), 'B') || "
    "setweight(to_tsvector('stems', description), 'C') FROM given"
)

_ADD_WORDS: Final = (
    'WITH said AS MATERIALIZED (SELECT DISTINCT s.source_id, w COLLATE "C" AS word '
    "FROM search_texts t JOIN skills s ON s.id = t.skill_id, unnest(tsvector_to_array(t.head)) w "
    "WHERE t.skill_id = ANY(%b::bigint[])) "
    "INSERT INTO search_words SELECT * FROM said WHERE (SELECT true FROM search_words k "
    "WHERE k.source_id = said.source_id AND k.word = said.word LIMIT 1) IS NULL"
)

NEXT_IDS: Final = (
    "setval(pg_get_serial_sequence('skills', 'id'), greatest((SELECT max(id) FROM skills), "
    "(SELECT last_value FROM skills_id_seq)) + {count}) - {count} + 1"
)
"""SQL that reserves ``count`` version ids, and returns the first id.

Run it only while you hold the lock of writers.
"""

RETIRED_AT_ONCE: Final = 2000
"""Maximum number of retired versions that one transaction deletes.

With this limit, other clients don't wait for it noticeably.
"""

_TYPES: Final = {int: "bigint[]", str: "text[]", bytes: "bytea[]"}

to_driver = to_pyformat


def array(values: Sequence[int] | Sequence[str]) -> object:
    """Return these values as one parameter for `IN_ARRAY`."""
    return list(values)


def ask_later(
    connection: Connection, sql: str, values: Sequence[object]
) -> Callable[[], list[Any]]:
    """Queue a SELECT; it is sent with the next statement that waits for rows.

    Returns a function that returns the rows.
    """
    session: Any = connection.connection.driver_connection
    cursor = session.keep(to_pyformat(sql), values)
    return lambda: list(cursor.fetchall())


def insert_statement(table: Table, columns: Sequence[str], _rows: int) -> str:
    """Return the INSERT statement for rows; its parameters are one binary array for each column.

    The arrays are binary, because the text format corrupts bytes if standard_conforming_strings is
    off.
    """
    arrays = ", ".join(f"%b::{_TYPES[table.c[one].type.python_type]}" for one in columns)
    return f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT * FROM unnest({arrays})"


def insert_values(rows: Sequence[Sequence[object]]) -> tuple[object, ...]:
    """Return the values for `insert_statement`."""
    return tuple(map(list, zip(*rows, strict=True)))


def add_to_index(connection: Connection, versions: Sequence[Indexed]) -> None:
    """Add new versions to the full-text index.

    Their rows in the tables ``skills`` and ``documents`` must exist already.
    """
    rows = []
    for one in versions:
        body, *head = map(_words, (one.body, one.name, one.tags, one.description))
        sizes = sum(len(text.split()) for text in head), len(body.split())
        rows.append((one.id, one.sketch, body, *head, *sizes))
    connection.exec_driver_sql(_ADD, insert_values(rows))
    connection.exec_driver_sql(_ADD_WORDS, ([one.id for one in versions],))


def remove_from_index(_connection: Connection, _ids: Sequence[int]) -> None:
    """Do nothing: when a version is deleted, the server also deletes its rows in the index."""


def _words(content: str) -> str:
    found = lexemes(content)
    if len(found) > MAX_BYTES // 4:
        found = found.encode()[:MAX_BYTES].decode(errors="ignore")
    words = found.split(" ")
    if max(map(len, words)) <= MAX_LEXEME:
        return found
    # Skip longer words, because the server would skip each of them with a warning.
    return " ".join(word for word in words if len(word) <= MAX_LEXEME)
