"""The journal: what a change is about to do, written down before it touches the disk."""

from dataclasses import asdict, dataclass
from typing import Literal

from sqlalchemy import Connection, delete, insert, select

from registry.db.schema import journal

Kind = Literal["create", "update", "delete"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One unfinished change of ``target`` (a path below the root of the source).

    ``staged`` is where the new content waits or the displaced one lies: for a delete and a restore
    a place in the trash, else one in ops. ``base`` and ``new`` are digests (`files.digest_path`)
    of what was there and of what is to be there; None for nothing. ``exchange``: whether an update
    swaps in one step, or goes by two renames over ``staged + ".old"``. ``folder`` is the skill's;
    ``uid`` and ``created_at`` are what a restored skill gets back.
    """

    id: str
    host: str
    source_id: int
    root: str
    kind: Kind
    folder: str
    target: str
    staged: str
    base: str | None
    new: str | None
    exchange: int = 1
    uid: str | None = None
    created_at: str | None = None
    started_at: str = ""


def add_entry(connection: Connection, entry: Entry) -> None:
    """Write an entry down."""
    connection.execute(insert(journal).values(**asdict(entry)))


def drop_entry(connection: Connection, entry_id: str) -> None:
    """Strike an entry out: its change is finished, or undone."""
    connection.execute(delete(journal).where(journal.c.id == entry_id))


def find_entry(connection: Connection, entry_id: str) -> Entry | None:
    """Return an entry as it was last written down."""
    row = connection.execute(select(journal).where(journal.c.id == entry_id)).mappings().first()
    return None if row is None else Entry(**row)


def entries(connection: Connection, source_id: int, host: str) -> list[Entry]:
    """Return what is unfinished in a source, the oldest first; other hosts' is theirs."""
    rows = connection.execute(
        select(journal)
        .where(journal.c.source_id == source_id, journal.c.host == host)
        .order_by(journal.c.started_at, journal.c.id)
    )
    return [Entry(**row) for row in rows.mappings()]
