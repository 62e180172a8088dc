"""Write down which changes were made last."""

from dataclasses import asdict

from sqlalchemy import Connection, delete, select

from registry.db.acting import acting
from registry.db.queries.changes import REMEMBERED, MadeChange
from registry.db.schema import changes
from registry.db.writes.statements import insert_rows


def add_change(connection: Connection, change: MadeChange, host: str) -> None:
    """Write a change down, unless it is; its ``id`` is given here."""
    facts = {key: value for key, value in change._asdict().items() if key != "id"}
    insert_rows(
        connection, changes, [{**facts, "host": host, **asdict(acting())}], ignore_known=True
    )


def drop_old_changes(connection: Connection, host: str) -> None:
    """Forget the changes of a host that are beyond those that are remembered."""
    latest = select(changes.c.id).where(changes.c.host == host).order_by(changes.c.id.desc())
    too_old = latest.offset(REMEMBERED).limit(1).scalar_subquery()
    connection.execute(delete(changes).where(changes.c.host == host, changes.c.id <= too_old))


def drop_change(connection: Connection, change: MadeChange) -> None:
    """Forget a single change."""
    connection.execute(delete(changes).where(changes.c.id == change.id))


def drop_changes(connection: Connection, first: MadeChange) -> None:
    """Forget a change, and what was done to the same skill after it."""
    connection.execute(delete(changes).where(changes.c.uid == first.uid, changes.c.id >= first.id))
