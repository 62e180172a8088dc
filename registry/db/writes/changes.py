"""Record the last changes, for `undo`."""

from sqlalchemy import Connection, delete, func, select

from registry.db.acting import acting
from registry.db.queries.changes import GROUP_DIGITS, REMEMBERED, MadeChange
from registry.db.schema import changes
from registry.db.writes.statements import insert_rows


def add_change(connection: Connection, change: MadeChange, host: str) -> None:
    """Record a change, unless it is recorded already. The database gives it its ``id``."""
    facts = {key: value for key, value in change._asdict().items() if key != "id"}
    row = {**facts, "host": host, "client": acting().client}
    insert_rows(connection, changes, [row], ignore_known=True)


def drop_old_changes(connection: Connection, host: str) -> None:
    """Forget the changes of a host that belong to older commands than the last `REMEMBERED`."""
    command = func.coalesce(changes.c.command, func.substr(changes.c.number, 1, GROUP_DIGITS))
    latest = (
        select(func.max(changes.c.id))
        .where(changes.c.host == host)
        .group_by(command)
        .order_by(func.max(changes.c.id).desc())
    )
    too_old = latest.offset(REMEMBERED).limit(1).scalar_subquery()
    connection.execute(delete(changes).where(changes.c.host == host, changes.c.id <= too_old))


def drop_change(connection: Connection, change: MadeChange) -> None:
    """Forget a single change."""
    connection.execute(delete(changes).where(changes.c.id == change.id))


def drop_changes(connection: Connection, first: MadeChange) -> None:
    """Forget a change, and what was done to the same skill after it."""
    connection.execute(delete(changes).where(changes.c.uid == first.uid, changes.c.id >= first.id))
