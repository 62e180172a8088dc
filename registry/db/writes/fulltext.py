"""Keep the full-text index in step with versions: SQLite's FTS5, or PostgreSQL's ``tsvector``."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, text

from registry.text import LONGEST_LEXEME, has_unspaced, lexemes, segment

UNINDEXED, PLAIN, SEGMENTED = 0, 1, 2
"""How FTS5 holds a document; see `schema.documents`."""

MOST_BYTES: Final = 400_000
"""Of a body in PostgreSQL's index, whose vectors end at 1 MiB; what comes later is not found."""

_PLAIN = """
SELECT {action} s.id, s.name, s.tags, s.description, substr(d.text, d.body_start + 1)
FROM {first} documents d JOIN skills s ON s.id = d.skill_id WHERE d.indexed = 1 AND {which}
"""
# CROSS JOIN: SQLite's planner would go through all documents to find those of a small table.
_DYING = "dying x CROSS JOIN"
# One statement for many rows keeps the work inside SQLite, where other threads can run meanwhile.
_FIND_PLAIN = text(
    "INSERT INTO skill_search (rowid, name, tags, description, body) "
    + _PLAIN.format(action="", first="", which="d.skill_id >= :first")
)
_FORGET_PLAIN = text(
    "INSERT INTO skill_search (skill_search, rowid, name, tags, description, body) "
    + _PLAIN.format(action="'delete',", first=_DYING, which="d.skill_id = x.id")
)
_FIND = text(
    "INSERT INTO skill_search (rowid, name, tags, description, body) "
    "VALUES (:id, :name, :tags, :description, :body)"
)
_FORGET = text(
    "INSERT INTO skill_search (skill_search, rowid, name, tags, description, body) "
    "VALUES ('delete', :id, :name, :tags, :description, :body)"
)
_SEGMENTED = text(
    "SELECT s.id, s.name, s.tags, s.description, d.text, d.body_start "
    f"FROM {_DYING} documents d JOIN skills s ON s.id = d.skill_id "
    "WHERE d.indexed = 2 AND d.skill_id = x.id"
)
_VECTOR = text(
    "INSERT INTO skill_search (skill_id, head, words) "
    "SELECT :id, h.head, h.head || setweight(to_tsvector('simple', :body), 'D') FROM (SELECT "
    "setweight(to_tsvector('simple', :name), 'A') || "
    "setweight(to_tsvector('simple', :tags), 'B') || "
    "setweight(to_tsvector('simple', :description), 'C') AS head) h"
)


class Indexed(NamedTuple):
    """What of a version is found by its words; ``how``: see `PLAIN`, `SEGMENTED`."""

    id: int
    name: str
    tags: str
    description: str
    body: str
    how: int


def how_indexed(status: str, texts: Sequence[str]) -> int:
    """Say how the index holds a version of this status with these texts."""
    if status not in {"ok", "warning"}:
        return UNINDEXED
    return SEGMENTED if any(map(has_unspaced, texts)) else PLAIN


def add_to_index(connection: Connection, versions: Sequence[Indexed]) -> None:
    """Let new versions be found; their rows in skills and documents are there already.

    ``versions`` are all that were stored at once, those that are not indexed left out.
    """
    if not versions:
        return
    if connection.dialect.name != "sqlite":
        connection.execute(_VECTOR, [_vector(one) for one in versions])
        return
    connection.execute(_FIND_PLAIN, {"first": versions[0].id})
    segmented = [_segmented(one) for one in versions if one.how == SEGMENTED]
    if segmented:
        connection.execute(_FIND, segmented)


def forget_dying(connection: Connection) -> None:
    """Take the versions in the table ``dying`` out of the index, before they are deleted."""
    if connection.dialect.name != "sqlite":
        return  # its rows go with theirs
    connection.execute(_FORGET_PLAIN)
    segmented = [
        _segmented(Indexed(skill_id, name, tags, description, content[start:], SEGMENTED))
        for skill_id, name, tags, description, content, start in connection.execute(_SEGMENTED)
    ]
    if segmented:
        connection.execute(_FORGET, segmented)


def _segmented(one: Indexed) -> dict[str, Any]:
    """Return the full-text row of a version; giving the same again deletes it."""
    return {
        "id": one.id,
        "name": segment(one.name),
        "tags": segment(one.tags),
        "description": segment(one.description),
        "body": segment(one.body),
    }


def _vector(one: Indexed) -> dict[str, Any]:
    return {
        "id": one.id,
        "name": _words(one.name),
        "tags": _words(one.tags),
        "description": _words(one.description),
        "body": _words(one.body),
    }


def _words(content: str) -> str:
    found = lexemes(content)
    if len(found) > MOST_BYTES // 4:
        found = found.encode()[:MOST_BYTES].decode(errors="ignore")
    # Longer words would be passed over with a warning each.
    return " ".join(word for word in found.split(" ") if len(word) <= LONGEST_LEXEME)
