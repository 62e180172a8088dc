"""Write tokens down, and when they were used; take them away."""

from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from registry.db.queries.tokens import StoredToken
from registry.db.schema import tokens
from registry.db.writes.audit import note


def add_token(connection: Connection, token: StoredToken) -> None:
    """Write a token down."""
    facts: dict[str, Any] = token._asdict()
    connection.execute(insert(tokens).values(**facts))
    note(connection, "token added", token.name, number=token.number, write=token.write)


def remove_token(connection: Connection, number: str) -> None:
    """Take a token away."""
    known = tokens.c.number == number
    for name in connection.scalars(select(tokens.c.name).where(known)):
        note(connection, "token removed", name, number=number)
    connection.execute(delete(tokens).where(known))


def note_use(connection: Connection, number: str, now: str) -> None:
    """Write down that a token was used."""
    connection.execute(update(tokens).where(tokens.c.number == number).values(used_at=now))
