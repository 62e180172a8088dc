"""The journal, in which a change is recorded before it changes files on disk."""

from dataclasses import asdict

from sqlalchemy import Connection, delete, insert, select

from registry.db.read.journal import JournalEntry
from registry.db.schema import journal


def add_entry(connection: Connection, entry: JournalEntry) -> None:
    """Record a planned change in the journal."""
    # No code reads the column ``exchange``: the files in an update's folder show how the update
    # swaps them.
    connection.execute(insert(journal).values(**asdict(entry), exchange=1))


def drop_entry(connection: Connection, entry: JournalEntry) -> None:
    """Remove a change from the journal, after it is finished or undone."""
    connection.execute(delete(journal).where(journal.c.id == entry.id))


def has_entry(connection: Connection, entry_id: str) -> bool:
    """Tell whether the journal has a change with this id."""
    return connection.execute(select(1).where(journal.c.id == entry_id)).first() is not None
