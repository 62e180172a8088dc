"""The journal, as far as it is read: whether a change is unfinished, and where."""

from registry.db.interface import Reader


def has_entries(reader: Reader) -> bool:
    """Tell whether any change, of whatever host, is unfinished."""
    return bool(reader.rows("SELECT 1 FROM journal LIMIT 1"))


def waiting_sources(reader: Reader, host: str) -> set[int]:
    """Return the sources in which a change of this host is unfinished."""
    return {
        row[0]
        for row in reader.rows("SELECT DISTINCT source_id FROM journal WHERE host = ?", (host,))
    }
