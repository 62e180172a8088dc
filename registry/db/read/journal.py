"""Unfinished changes in the journal.

Any writer of the database can write here: a row is a hint about a change, never an order.
"""

from dataclasses import dataclass
from typing import Final, Literal

from registry.db.interface import Reader, Select

Kind = Literal[
    "create", "update", "delete", "create together", "update together", "delete together"
]
"""The last three are parts of one change, journalled at once (`changes.commit`)."""

_TEXTS: Final = tuple(
    "id host root kind folder target staged base new uid created_at started_at".split()
)

MAX_NOTED: Final = 100


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One unfinished change of ``target`` (a path below the root of the source).

    ``staged`` is where the new content waits, or the displaced content is, below the state folder:
    ``trash/ID/tree`` for a deletion or restore of a skill, else ``ops/ID/tree``. ``base`` and
    ``new`` are digests (`atomic.digest_of`) of the content before and after the change; None: no
    content. ``folder`` is the skill's; ``uid`` and ``created_at`` are given back to a restored
    skill.
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
        """Whether its target must not exist before the change."""
        return self.kind in {"create", "create together"}

    @property
    def deletes(self) -> bool:
        """Whether it removes its target."""
        return self.kind in {"delete", "delete together"}

    @property
    def is_rename(self) -> bool:
        """Whether it is one half of renaming a skill: the new folder, or the old one."""
        is_old = self.kind == "delete together" and self.staged.startswith("ops/")
        return is_old or self.kind == "create together"

    @property
    def is_together(self) -> bool:
        """Whether it is part of a group of changes."""
        return self.kind.endswith(" together")


UNFINISHED: Final[Select] = ("SELECT 1 FROM journal LIMIT 1", ())


def has_entries(reader: Reader) -> bool:
    """Tell whether any change, of any host, is unfinished."""
    return bool(reader.rows(*UNFINISHED))


def is_journalled(reader: Reader, entry: JournalEntry) -> bool:
    """Tell whether the journal has a row that equals this entry in all columns.

    The database compares, so that a row with values of other types or sizes is never read.
    """
    same = " AND ".join(f"coalesce({column}, '') = ?" for column in _TEXTS)
    values = [getattr(entry, column) or "" for column in _TEXTS]
    sql = f"SELECT 1 FROM journal WHERE source_id = ? AND {same}"
    return bool(reader.rows(sql, (entry.source_id, *values)))


def unfinished_changes(reader: Reader, host: str) -> list[tuple[str, int]]:
    """Return the number and the source of unfinished changes of a host, at most `MAX_NOTED`."""
    sql = "SELECT substr(id, 1, 40), source_id FROM journal WHERE host = ? ORDER BY id LIMIT ?"
    return [(str(number), source) for number, source in reader.rows(sql, (host, MAX_NOTED))]
