"""Tokens as they are stored; whoever may write to the database may write here."""

from typing import Final, NamedTuple

from registry.db.interface import Reader


class StoredToken(NamedTuple):
    """A row that claims to be a token: a hint until its signature is checked."""

    number: str
    hash: str
    name: str
    personality: str | None
    source: str | None
    write: int
    created_at: str
    expires_at: str | None
    used_at: str | None
    signature: str


SIGNED: Final = "hash name personality source write created_at expires_at".split()
"""What is signed of a token."""


def all_tokens(reader: Reader) -> list[StoredToken]:
    """Return all rows, the oldest first."""
    return _select(reader, "ORDER BY created_at, number")


def by_hash(reader: Reader, hashed: str) -> StoredToken | None:
    """Return the row of what has this hash."""
    return next(iter(_select(reader, "WHERE hash = ?", hashed)), None)


def _select(reader: Reader, rest: str, *values: object) -> list[StoredToken]:
    sql = f"SELECT {', '.join(StoredToken._fields)} FROM tokens {rest}"
    return list(map(StoredToken._make, reader.rows(sql, values)))
