"""Unfinished changes in the journal.

Any user with write access can add rows, so a row must be checked before it is acted on.
"""

from dataclasses import dataclass
from typing import Final, Literal

from registry.db.interface import Reader, Select

Kind = Literal[
    "create", "update", "delete", "create together", "update together", "delete together"
]
"""Kinds of changes.

The last three are parts of one change, which are journalled together (`changes.commit`).
"""

_TEXTS: Final = tuple(
    "id host root kind folder target staged base new uid created_at started_at".split()
)

MAX_NOTED: Final = 100


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One unfinished change of ``target``, a path relative to the root of the source.

    ``staged`` is the path of the new or the displaced content in the state folder:
    ``trash/ID/tree`` if a skill is deleted or restored, else ``ops/ID/tree``. ``base`` and ``new``
    are digests (`atomic.digest_of`) of the content before and after the change; None if there is no
    content. ``folder`` is the folder of the skill. A restored skill gets back its ``uid`` and
    ``created_at``.
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
    uid: str | None = None
    created_at: str | None = None
    started_at: str = ""

    @property
    def creates(self) -> bool:
        """Whether the target must not exist before the change."""
        return self.kind in {"create", "create together"}

    @property
    def deletes(self) -> bool:
        """Whether the change removes its target."""
        return self.kind in {"delete", "delete together"}

    @property
    def is_rename(self) -> bool:
        """Whether the change creates the new folder or deletes the old folder of a rename."""
        is_old = self.kind == "delete together" and self.staged.startswith("ops/")
        return is_old or self.kind == "create together"

    @property
    def is_together(self) -> bool:
        """Whether the change is part of a group of changes."""
        return self.kind.endswith(" together")


UNFINISHED: Final[Select] = ("SELECT 1 FROM journal LIMIT 1", ())


def has_entries(reader: Reader) -> bool:
    """Tell whether any host has an unfinished change."""
    return bool(reader.rows(*UNFINISHED))


def is_journalled(reader: Reader, entry: JournalEntry) -> bool:
    """Tell whether the journal has a row that equals this entry in all columns.

    The database compares the values, so that a row with values of other types or sizes is never
    read.
    """
    same = " AND ".join(f"coalesce({column}, '') = ?" for column in _TEXTS)
    values = [getattr(entry, column) or "" for column in _TEXTS]
    sql = f"SELECT 1 FROM journal WHERE source_id = ? AND {same}"
    return bool(reader.rows(sql, (entry.source_id, *values)))


def unfinished_changes(reader: Reader, host: str) -> list[tuple[str, int]]:
    """Return the id and the source id of a host's unfinished changes, at most `MAX_NOTED`."""
    sql = "SELECT substr(id, 1, 40), source_id FROM journal WHERE host = ? ORDER BY id LIMIT ?"
    return [(str(number), source) for number, source in reader.rows(sql, (host, MAX_NOTED))]
