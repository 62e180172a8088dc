"""Add and remove tokens, and add rows to the audit log."""

import json
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from registry.db.audit_context import current_context
from registry.db.read.access import StoredToken
from registry.db.schema import audit, tokens
from registry.db.write.statements import insert_rows
from registry.text import utc_now


def record_audit(connection: Connection, what: str, subject: str | None, **detail: object) -> None:
    """Add a row to the audit log of a SQLite file.

    On a server, triggers add these rows (migration 0015).
    """
    if connection.dialect.name == "postgresql":
        return
    who = current_context()
    told = {"tool": who.tool, "client": who.client, "what": what, "subject": subject}
    row = {"at": utc_now(), **told, "detail": json.dumps(detail) if detail else None}
    insert_rows(connection, audit, [row])


def record_event(connection: Connection, what: str, subject: str, **detail: object) -> None:
    """Add a row to the audit log about an event that the server itself can't record.

    ``what`` is "skill published" or "skill downloaded". The server refuses all other values.
    """
    if connection.dialect.name == "postgresql":
        noted = select(func.registry_note_use(what, subject, json.dumps(detail)))
        connection.execute(noted)
        return
    record_audit(connection, what, subject, **detail)


def add_token(connection: Connection, token: StoredToken) -> None:
    """Add the row of a new token."""
    facts: dict[str, Any] = token._asdict()
    connection.execute(insert(tokens).values(**facts))
    rights = {"write": token.write, "publish": token.publish, "approve": token.approve}
    record_audit(connection, "token added", token.name, number=token.number, **rights)


def remove_token(connection: Connection, number: str) -> None:
    """Remove the token with this id."""
    known = tokens.c.number == number
    for name in connection.scalars(select(tokens.c.name).where(known)):
        record_audit(connection, "token removed", name, number=number)
    connection.execute(delete(tokens).where(known))


def record_use(connection: Connection, number: str, now: str) -> None:
    """Record in a token's row that it was used at ``now``."""
    connection.execute(update(tokens).where(tokens.c.number == number).values(used_at=now))
