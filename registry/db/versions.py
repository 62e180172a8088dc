"""A new version of a skill as plain values, for code that doesn't import SQLAlchemy."""

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from registry.document.minhash import sketch
from registry.model import Diagnostic
from registry.text import has_unspaced

LEVEL = 1
"""The zlib compression level: the fastest level.

Compared with the default level, it needs a third of the time, and the result is a tenth larger.
"""


class Packed(NamedTuple):
    """The stored bytes of a file; ``packed`` is True if they are compressed."""

    hash: str
    size: int
    packed: bool
    data: bytes


def pack(content_hash: str, data: bytes) -> Packed:
    """Return the bytes of a file in their stored format."""
    packed = zlib.compress(data, LEVEL)
    is_smaller = len(packed) < len(data)
    return Packed(content_hash, len(data), is_smaller, packed if is_smaller else data)


@dataclass(slots=True)
class NewVersion:
    """A new version: the ``columns`` of its row in skills, and its rows in other tables.

    ``text`` is None if SKILL.md can't be read. ``contents`` holds the bytes of files to store.
    """

    columns: dict[str, Any]
    tags: Sequence[str] = ()
    files: Sequence[dict[str, Any]] = ()
    findings: Sequence[Diagnostic] = ()
    text: str | None = None
    contents: Sequence[Packed] = ()
    body_start: int = 0
    front_matter: str = "{}"


_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def dump(value: object) -> str:
    """Return ``value`` as JSON text for the database."""
    return _ENCODE(value)


UNINDEXED, PLAIN, SEGMENTED = 0, 1, 2
"""How the full-text index stores a text: not, unchanged, or in segments (`schema.documents`)."""

_USABLE: Final = frozenset({"ok", "warning"})


class Indexed(NamedTuple):
    """The texts of a version for the full-text index."""

    id: int
    name: str
    tags: str
    description: str
    body: str

    @property
    def sketch(self) -> bytes:
        """The MinHash sketch of the texts, with which near-duplicates are found."""
        return sketch(self.description, self.body)


def how_indexed(status: str, texts: Sequence[str]) -> int:
    """Return how the full-text index must store these texts of a version with this status."""
    if status not in _USABLE:
        return UNINDEXED
    return SEGMENTED if any(map(has_unspaced, texts)) else PLAIN
