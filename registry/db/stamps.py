"""What is stored of a skill's files beside their content: when it is renewed, and how in SQL.

In SQL alone, since a sync that finds nothing new is not to wait for SQLAlchemy's import.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

_VERSION: Final = "UPDATE skills SET fingerprint = ?, racy = ? WHERE id = ? AND live = 1"

_FILE: Final = (
    "UPDATE skill_files SET mode = ?, size = ?, mtime_ns = ?, ctime_ns = ?, inode = ? "
    "WHERE skill_id = ? AND path = ?"
)


class Stamps(NamedTuple):
    """New stat facts of versions whose content is unchanged.

    ``versions``: fingerprint, racy, the version's id; ``files``: mode, size, mtime_ns, ctime_ns,
    inode, the version's id, path.
    """

    versions: list[tuple[str, int, int]]
    files: list[tuple[int | str, ...]]

    @property
    def statements(self) -> list[tuple[str, Sequence[tuple[int | str, ...]]]]:
        """Return the statements that store them, each with the rows of its values."""
        return [(_VERSION, self.versions), (_FILE, self.files)] if self.versions else []


NONE: Final = Stamps([], [])
