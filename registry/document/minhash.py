"""Estimate the similarity of texts from a few numbers each: the lowest hash in each bucket.

The share of buckets with equal lowest hashes estimates the share of common pieces (Li, Owen, Zhang
2012, One Permutation Hashing). Pieces are the words of a description and the sentences of a body:
skills from one template share sentences, but not their descriptions. Texts that agree in a whole
band of buckets are compared, so not every pair needs a comparison.
"""

import struct
from collections.abc import Iterable
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
_KEYS: Final = struct.Struct("<4s" + f"{4 * BAND}s" * (SENTENCES // BAND))
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


def fit(data: bytes | None) -> bytes:
    """Return the sketch to store for a text; an empty sketch for an empty text."""
    return data if data is not None and len(data) == _FORMAT.size else _FORMAT.pack(*NOTHING)


def unpacked(data: bytes) -> Sketch:
    """Return a sketch as numbers; ``data``: the result of `fit`."""
    return _FORMAT.unpack(data)


def keys(data: bytes) -> tuple[bytes, ...]:
    """Return what near copies have one of in common, in its place: the description, or a band."""
    return _KEYS.unpack_from(data)


def are_alike(one: Sketch, other: Sketch) -> bool:
    """Tell whether two texts are nearly the same, or described in the same words."""
    if one[0] and one[0] == other[0]:
        return True
    end = 1 + SENTENCES
    return (
        _share(one[1:end], other[1:end], MIN_SENTENCES) >= ALIKE
        and _share(one[end:], other[end:], MIN_WORDS) >= DESCRIBED_ALIKE
    )


def _share(one: Sketch, other: Sketch, least: int) -> float:
    """Return how many buckets of those that either fills are equal; 0 where both fill too few."""
    equal, buckets = list(map(eq, one, other)).count(True), len(one)
    if 0 not in one and 0 not in other:
        return equal / buckets
    neither = list(zip(one, other, strict=True)).count((0, 0))
    both = buckets - one.count(0) - other.count(0) + neither
    return (equal - neither) / (buckets - neither) if both >= least else 0.0


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
