"""What texts have in common, from a few numbers each: the lowest hash of pieces in each bucket.

Two texts have the same lowest hash in as large a share of buckets as they have pieces in common
(Li, Owen, Zhang 2012, One Permutation Hashing). Pieces are the words of a description and the
sentences of what stands below: a template that many skills fill in makes the second alike, and not
the first. Texts that agree in a whole band of buckets are compared: so near copies are found
without comparing each with each.
"""

import struct
from collections.abc import Iterable, Sequence
from operator import eq
from typing import Final, TypeAlias
from zlib import crc32

SENTENCES: Final = 12
BAND: Final = 3
"""Buckets in a band. Texts that share nine sentences of ten agree in one of the bands 99 times in
100, those that share half 4 times in 10."""

WORDS: Final = 8

ALIKE, DESCRIBED_ALIKE = 0.5, 0.5
"""Texts that share so many sentences, and words of their descriptions, are nearly the same: a name,
a number or a few sentences differ."""

MIN_SENTENCES, MIN_WORDS = 4, 3
"""Buckets: texts with fewer different sentences or words say too little to be compared."""

MIN_DESCRIPTION: Final = 40
"""Characters of a description that two texts have by accident no more."""

Sketch: TypeAlias = tuple[int, ...]
"""The hash of the description (0: it is too short), and the lowest of each bucket (0: none): first
of sentences, then of words."""

_FORMAT: Final = struct.Struct(f"<{1 + SENTENCES + WORDS}I")
_STARTS: Final = range(1, 1 + SENTENCES, BAND)
NOTHING: Final[Sketch] = (0,) * (1 + SENTENCES + WORDS)


def sketch(description: str, body: str) -> bytes:
    """Return what is kept of a text."""
    words = _bytes(description.lower()).split()
    said = b" ".join(words)
    sentences = _bytes(body.lower()).replace(b". ", b"\n").split(b"\n")
    return _FORMAT.pack(
        crc32(said) if len(said) >= MIN_DESCRIPTION else 0,
        *_lowest(sentences, SENTENCES),
        *_lowest(words, WORDS),
    )


def _lowest(pieces: Iterable[bytes], buckets: int) -> list[int]:
    lowest = [0] * buckets
    for number in set(map(crc32, pieces)):
        held = lowest[number % buckets]
        if number < held or not held:
            lowest[number % buckets] = number
    return lowest


def unpacked(data: bytes) -> Sketch:
    """Return a sketch as numbers; of what is none, that of nothing."""
    return _FORMAT.unpack(data) if len(data) == _FORMAT.size else NOTHING


def keys(one: Sketch) -> list[Sketch]:
    """Return what near copies have one of in common: the description, or a band of buckets."""
    return [one[:1], *[(start, *one[start : start + BAND]) for start in _STARTS]]


def are_alike(one: Sketch, other: Sketch) -> bool:
    """Tell whether two texts are nearly the same, or described in the same words."""
    if one[0] and one[0] == other[0]:
        return True
    end = 1 + SENTENCES
    # Of most pairs this tells, in a quarter of the time: equal buckets without a number count too.
    if sum(map(eq, one[1:end], other[1:end])) < ALIKE * SENTENCES:
        return False
    return (
        _share(one[1:end], other[1:end], MIN_SENTENCES) >= ALIKE
        and _share(one[end:], other[end:], MIN_WORDS) >= DESCRIBED_ALIKE
    )


def _share(one: Sequence[int], other: Sequence[int], least: int) -> float:
    some = both = same = 0
    for a, b in zip(one, other, strict=True):
        if a or b:
            some += 1
            if a and b:
                both += 1
                same += a == b
    return same / some if both >= least else 0.0


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
