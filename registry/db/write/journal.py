"""The journal: a planned change is recorded before it changes files on disk."""

from dataclasses import asdict

from sqlalchemy import Connection, delete, insert, select

from registry.db.read.journal import JournalEntry
from registry.db.schema import journal


def add_entry(connection: Connection, entry: JournalEntry) -> None:
    """Add an entry to the journal."""
    # The column ``exchange`` isn't used: the files in an update's folder show how it swaps.
    connection.execute(insert(journal).values(**asdict(entry), exchange=1))


def drop_entry(connection: Connection, entry: JournalEntry) -> None:
    """Remove an entry whose change is finished or undone."""
    connection.execute(delete(journal).where(journal.c.id == entry.id))


def has_entry(connection: Connection, entry_id: str) -> bool:
    """Tell whether the journal has an entry with this id."""
    return connection.execute(select(1).where(journal.c.id == entry_id)).first() is not None
