"""Where skills were that are no longer live, so that they can be found by name and had again."""

from collections.abc import Sequence

from sqlalchemy import Connection, update

from registry.db.schema import gone
from registry.db.writes.statements import execute
from registry.text import utc_now

_RECORD = """
INSERT INTO gone (uid, name, source, folder, created_at, since, tree_hash, owner, team)
SELECT s.uid, s.name, src.name, s.folder, s.created_at, ?, s.tree_hash, src.owner, src.team
FROM skills s JOIN sources src ON src.id = s.source_id
WHERE s.id {in_array} AND s.status <> 'no_document'
ON CONFLICT DO NOTHING
"""


def record_gone(connection: Connection, versions: Sequence[int]) -> None:
    """Write down where skills are, or were a moment ago, that are about to be retired."""
    if not versions:
        return
    which = list(versions)
    sql = "DELETE FROM gone WHERE uid IN (SELECT uid FROM skills WHERE id {in_array})"
    execute(connection, sql, which)
    execute(connection, _RECORD, utc_now(), which)


def note_trash(connection: Connection, uid: str, number: str) -> None:
    """Write down that a skill that is gone lies in the trash, under this number."""
    connection.execute(update(gone).where(gone.c.uid == uid).values(trash=number))


def end_gone(connection: Connection, numbers: Sequence[str]) -> None:
    """Forget skills that were removed from the trash for good."""
    connection.execute(gone.delete().where(gone.c.trash.in_(numbers)))
