"""What writes say in PostgreSQL's own words: arrays, JSON, and the full-text index of vectors."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from registry.db.postgres.dialect import to_pyformat
from registry.db.writes.indexed import Indexed
from registry.text import MAX_LEXEME, lexemes

IN_ARRAY: Final = "= ANY(?)"
"""The condition that a value is in the array of the parameter, which `array` makes."""

CONCAT: Final = "string_agg"

_EXECUTABLE: Final = "CASE WHEN (f.mode & 64) <> 0 THEN 1 ELSE 0 END"
REVISION_FILES: Final = (
    "CAST(coalesce(json_agg(json_build_array("
    f"f.path, {_EXECUTABLE}, f.size, f.hash)), '[]') AS text)"
)
"""The files ``f`` of a version as `schema.revisions` keeps them."""

REVISION_HASHES: Final = (
    "SELECT e.value ->> 3 AS hash FROM revisions r, json_array_elements(CAST(r.files AS json)) e"
)
"""The content hashes that revisions need."""

MAX_BYTES: Final = 400_000
"""Of a body in the index, whose vectors end at 1 MiB; what comes later is not found."""

_ADD: Final = (
    "WITH kept AS (INSERT INTO sketches (skill_id, data) VALUES (%s, %s)) "
    "INSERT INTO search_texts (skill_id, body, head) VALUES (%s, to_tsvector('stems', %s), "
    "setweight(to_tsvector('stems', %s), 'A') || setweight(to_tsvector('stems', %s), 'B') || "
    "setweight(to_tsvector('stems', %s), 'C'))"
)


to_driver = to_pyformat


def array(values: Sequence[int] | Sequence[str]) -> object:
    """Return the parameter that stands for these values in `IN_ARRAY`."""
    return list(values)


def ask_later(
    connection: Connection, sql: str, values: Sequence[object]
) -> Callable[[], list[Any]]:
    """Ask with the next statement that is waited for; the rows are there when it is answered."""
    session: Any = connection.connection.driver_connection
    cursor = session.keep(to_pyformat(sql), values)
    return lambda: list(cursor.fetchall())


def add_to_index(connection: Connection, versions: Sequence[Indexed]) -> None:
    """Let new versions be found; their rows in skills and documents are there already."""
    rows = [
        (one.id, one.sketch, one.id, *map(_words, (one.body, one.name, one.tags, one.description)))
        for one in versions
    ]
    connection.exec_driver_sql(_ADD, rows)


def remove_from_index(_connection: Connection, _ids: Sequence[int]) -> None:
    """Nothing to do: the index's rows go with their versions'."""


def _words(content: str) -> str:
    found = lexemes(content)
    if len(found) > MAX_BYTES // 4:
        found = found.encode()[:MAX_BYTES].decode(errors="ignore")
    # Longer words would be passed over with a warning each.
    return " ".join(word for word in found.split(" ") if len(word) <= MAX_LEXEME)
