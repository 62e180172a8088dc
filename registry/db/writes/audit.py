"""Note who changed what of sources, trust, tokens and the past."""

import json

from sqlalchemy import Connection

from registry.db.acting import acting
from registry.db.schema import audit
from registry.db.writes.statements import insert_rows
from registry.text import utc_now


def note(connection: Connection, what: str, subject: str | None, **detail: object) -> None:
    """Note something in a file; a server does so by itself, whoever asks (migration 0015)."""
    if connection.dialect.name == "postgresql":
        return
    who = acting()
    told = {"tool": who.tool, "client": who.client, "what": what, "subject": subject}
    row = {"at": utc_now(), **told, "detail": json.dumps(detail) if detail else None}
    insert_rows(connection, audit, [row])
