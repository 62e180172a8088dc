"""What was done of late, by content: skills have copies, and files in common.

Bounded, so that the memory of a sync does not grow with the number of skills.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, TypeVar

from registry.model import Diagnostic

MOST: Final = 10_000
"""Contents that are remembered; what was met longest ago is forgotten first."""

_Key: TypeAlias = tuple[object, ...]
_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent:
    """Which files were looked through, and stored, since a sync or a check began."""

    def __init__(self) -> None:
        self._found: dict[_Key, Sequence[Diagnostic]] = {}
        self._stored: dict[str, None] = {}

    def found(self, key: _Key) -> Sequence[Diagnostic] | None:
        """Return the findings in a content, without their path; None: it was not met of late."""
        return self._found.get(key)

    def note_found(self, key: _Key, findings: Sequence[Diagnostic]) -> None:
        """Remember the findings in a content."""
        _put(self._found, key, findings)

    def is_stored(self, content_hash: str) -> bool:
        """Tell whether the bytes of a content are on their way to the database already."""
        return content_hash in self._stored

    def note_stored(self, hashes: Iterable[str]) -> None:
        """Remember contents that are given to the database now."""
        for content_hash in hashes:
            _put(self._stored, content_hash, None)


def _put(known: dict[_K, _V], key: _K, value: _V) -> None:
    if len(known) >= MOST:
        del known[next(iter(known))]
    known[key] = value
