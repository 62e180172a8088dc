"""Read the journal, which records unfinished changes.

Any user with write access can add rows. So the program must check a row before it acts on the row.
"""

from dataclasses import dataclass
from typing import Final, Literal

from registry.db.interface import Reader, Select

Kind = Literal[
    "create", "update", "delete", "create together", "update together", "delete together"
]
"""The types of changes in the journal.

A change of one of the last three types belongs to a group, and the journal records the whole group
at once (`changes.commit`).
"""

_TEXTS: Final = tuple(
    "id host root kind folder target staged base new uid created_at started_at".split()
)

MAX_NOTED: Final = 100


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One unfinished change of ``target``, a path relative to the root of the source.

    ``staged`` is a path in the state folder: either of the new files, or of the files that they
    replaced. If a skill is deleted or restored, the path is ``trash/ID/tree``, else
    ``ops/ID/tree``. ``base`` and ``new`` are digests (`atomic.digest_of`) of the files before and
    after the change; None if there are no files.

    ``folder`` is the folder of the skill. If a skill is restored, ``uid`` and ``created_at`` are
    the values from before its deletion.
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
        """Whether the change creates its target, which must not exist before."""
        return self.kind in {"create", "create together"}

    @property
    def deletes(self) -> bool:
        """Whether the change removes its target."""
        return self.kind in {"delete", "delete together"}

    @property
    def is_rename(self) -> bool:
        """Whether the change is one half of a rename.

        It either creates the new folder or deletes the old folder.
        """
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
    """Tell whether a row of the journal equals this entry in all columns.

    The database compares the values, so this program never reads a row with other types or larger
    values.
    """
    same = " AND ".join(f"coalesce({column}, '') = ?" for column in _TEXTS)
    values = [getattr(entry, column) or "" for column in _TEXTS]
    sql = f"SELECT 1 FROM journal WHERE source_id = ? AND {same}"
    return bool(reader.rows(sql, (entry.source_id, *values)))


def unfinished_changes(reader: Reader, host: str) -> list[tuple[str, int]]:
    """Return (id, source id) of the unfinished changes of a host, at most `MAX_NOTED`."""
    sql = "SELECT substr(id, 1, 40), source_id FROM journal WHERE host = ? ORDER BY id LIMIT ?"
    return [(str(number), source) for number, source in reader.rows(sql, (host, MAX_NOTED))]
