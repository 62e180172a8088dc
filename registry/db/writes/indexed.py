"""What of a version is found by its words, and how the full-text index holds it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from registry.document.likeness import sketch
from registry.text import has_unspaced

UNINDEXED, PLAIN, SEGMENTED = 0, 1, 2
"""How FTS5 holds a document; see `schema.documents`."""

_USABLE: Final = frozenset({"ok", "warning"})


class Indexed(NamedTuple):
    """What of a version is found by its words; ``how``: see `PLAIN`, `SEGMENTED`."""

    id: int
    name: str
    tags: str
    description: str
    body: str
    how: int

    @property
    def sketch(self) -> bytes:
        """What is kept of it so that near copies are known."""
        return sketch(self.description, self.body)


def how_indexed(status: str, texts: Sequence[str]) -> int:
    """Say how the index holds a version of this status with these texts."""
    if status not in _USABLE:
        return UNINDEXED
    return SEGMENTED if any(map(has_unspaced, texts)) else PLAIN
