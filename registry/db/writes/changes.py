"""Write down which changes were made last."""

from typing import Final

from sqlalchemy import Connection, delete, select

from registry.db.queries.changes import MadeChange
from registry.db.schema import changes
from registry.db.writes.statements import insert_rows

KEPT: Final = 101
"""Changes of each host that are remembered: 100, and the one that takes the last of them back."""


def add_change(connection: Connection, change: MadeChange, host: str) -> None:
    """Write a change down unless it is, and forget those that are too old.

    Its ``id`` is given here.
    """
    facts = {key: value for key, value in change._asdict().items() if key != "id"}
    insert_rows(connection, changes, [{**facts, "host": host}], ignore_known=True)
    latest = select(changes.c.id).where(changes.c.host == host).order_by(changes.c.id.desc())
    too_old = latest.offset(KEPT).limit(1).scalar_subquery()
    connection.execute(delete(changes).where(changes.c.host == host, changes.c.id <= too_old))


def drop_changes(connection: Connection, first: MadeChange) -> None:
    """Forget a change, and what was done to the same skill after it."""
    connection.execute(delete(changes).where(changes.c.uid == first.uid, changes.c.id >= first.id))
