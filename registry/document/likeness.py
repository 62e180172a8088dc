"""What texts have in common, from a few numbers each: the lowest hash of lines in each bucket.

Two texts have the same lowest hash in as large a share of buckets as they have lines in common (Li,
Owen, Zhang 2012, One Permutation Hashing). Texts that agree in a whole band of buckets are
compared: so near copies are found without comparing each with each.
"""

import struct
from collections.abc import Sequence
from typing import Final, TypeAlias
from zlib import crc32

BUCKETS: Final = 12
BAND: Final = 3
"""Buckets in a band. Texts that share nine lines of ten agree in one of the bands 99 times in 100,
those that share half 4 times in 10."""

ALIKE: Final = 0.7
"""Texts that share so much are nearly the same: a name, a number or a few lines differ."""

MIN_BUCKETS: Final = 4
"""Texts with fewer different lines say too little to be compared."""

MIN_DESCRIPTION: Final = 40
"""Characters of a description that two texts have by accident no more."""

Sketch: TypeAlias = tuple[int, ...]
"""The hash of the description (0: it is too short), and the lowest of each bucket (0: none)."""

_FORMAT: Final = struct.Struct(f"<{1 + BUCKETS}I")
_STARTS: Final = range(1, 1 + BUCKETS, BAND)
NOTHING: Final[Sketch] = (0,) * (1 + BUCKETS)


def sketch(description: str, body: str) -> bytes:
    """Return what is kept of a text."""
    said = " ".join(description.lower().split())
    lowest = [0] * BUCKETS
    for line in set(map(crc32, _bytes(body.lower()).split(b"\n"))):
        held = lowest[line % BUCKETS]
        if line < held or not held:
            lowest[line % BUCKETS] = line
    return _FORMAT.pack(crc32(_bytes(said)) if len(said) >= MIN_DESCRIPTION else 0, *lowest)


def unpacked(data: bytes) -> Sketch:
    """Return a sketch as numbers; of what is none, that of nothing."""
    return _FORMAT.unpack(data) if len(data) == _FORMAT.size else NOTHING


def keys(one: Sketch) -> list[Sketch]:
    """Return what near copies have one of in common: the description, or a band of buckets."""
    return [one[:1], *((start, *one[start : start + BAND]) for start in _STARTS)]


def are_alike(one: Sketch, other: Sketch) -> bool:
    """Tell whether two texts are nearly the same, or described in the same words."""
    return bool(one[0] and one[0] == other[0]) or _share(one[1:], other[1:]) >= ALIKE


def _share(one: Sequence[int], other: Sequence[int]) -> float:
    said = [(a, b) for a, b in zip(one, other, strict=True) if a or b]
    if sum(1 for a, b in said if a and b) < MIN_BUCKETS:
        return 0.0
    return sum(a == b for a, b in said) / len(said)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
