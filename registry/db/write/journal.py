"""The journal: what a change is about to do, written down before it touches the disk."""

from dataclasses import asdict

from sqlalchemy import Connection, delete, insert, select

from registry.db.read.journal import JournalEntry
from registry.db.schema import journal


def add_entry(connection: Connection, entry: JournalEntry) -> None:
    """Add an entry."""
    # How an update swaps is told by what lies in its folder, whatever this says.
    connection.execute(insert(journal).values(**asdict(entry), exchange=1))


def drop_entry(connection: Connection, entry: JournalEntry) -> None:
    """Remove an entry: its change is finished, or undone."""
    connection.execute(delete(journal).where(journal.c.id == entry.id))


def has_entry(connection: Connection, entry_id: str) -> bool:
    """Tell whether the journal holds a change, whatever it says of it."""
    return connection.execute(select(1).where(journal.c.id == entry_id)).first() is not None
