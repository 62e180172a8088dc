"""Which schemas this program knows, and how that of a database relates to it."""

from enum import Enum
from typing import Final, Self

from registry.errors import DatabaseTooNew, DatabaseTooOld

KNOWN_REVISIONS: Final = tuple("0015 0016 0019 0020 0021 0022".split())
"""All migrations, the oldest first; a test holds them against the migrations folder.

Databases of earlier revisions exist on machines of developers only.
"""

SCHEMA_REVISION: Final = KNOWN_REVISIONS[-1]


class State(Enum):
    """How the schema of a database relates to this program."""

    EMPTY = "empty"
    BEHIND = "behind"
    CURRENT = "current"

    @classmethod
    def of(cls, revision: str | None, path: str) -> Self:
        """Return the state of a schema at ``revision`` (None: there is none).

        Raises `DatabaseTooNew` or `DatabaseTooOld` for a revision that this program doesn't know.
        """
        if revision is None:
            return cls("empty")
        if revision not in KNOWN_REVISIONS:
            is_newer = revision.isdecimal() and revision > SCHEMA_REVISION
            problem = DatabaseTooNew if is_newer else DatabaseTooOld
            raise problem(path=path, revision=revision)
        return cls("current" if revision == SCHEMA_REVISION else "behind")
