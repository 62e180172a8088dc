"""Estimate the similarity of texts by one-permutation hashing.

The pieces of a text are hashed, and each hash belongs to a bucket. A sketch stores the lowest hash
of each bucket. The share of buckets with equal hashes estimates how many pieces two texts have in
common (Li, Owen, Zhang 2012, One Permutation Hashing). The pieces are the words of a description
and the sentences of a body. Skills from the same template share sentences, but have different
descriptions. Two texts are compared only if they agree in a whole band of buckets. So not every
pair of texts is compared.
"""

import struct
from collections.abc import Iterable
from operator import eq
from typing import Final, TypeAlias
from zlib import crc32

SENTENCES: Final = 12
BAND: Final = 3
"""Number of buckets in a band.

If two texts share 90 % of their sentences, they agree in at least one band with a probability of 99
%. If they share 50 % of their sentences, the probability is 40 %.
"""

WORDS: Final = 8

ALIKE, DESCRIBED_ALIKE = 0.5, 0.5
"""Minimum shares of common sentences and of common description words of near-duplicates."""

MIN_SENTENCES, MIN_WORDS = 4, 3
"""Minimum numbers of filled buckets, for sentences and for words.

Texts with fewer filled buckets are not compared.
"""

MIN_DESCRIPTION: Final = 40
"""Minimum length of a description that is compared, in characters.

Shorter descriptions may be equal by chance.
"""

Sketch: TypeAlias = tuple[int, ...]
"""The numbers of a sketch.

The first is the hash of the description (0 if the description is too short). Then follows the
lowest hash of each bucket (0 for an empty bucket): first the buckets of sentences, then the buckets
of words.
"""

_FORMAT: Final = struct.Struct(f"<{1 + SENTENCES + WORDS}I")
_KEYS: Final = struct.Struct("<4s" + f"{4 * BAND}s" * (SENTENCES // BAND))
NOTHING: Final[Sketch] = (0,) * (1 + SENTENCES + WORDS)


def sketch(description: str, body: str) -> bytes:
    """Return the sketch of a text as bytes."""
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
    """Return ``data`` if it has the size of a sketch, otherwise an empty sketch."""
    return data if data is not None and len(data) == _FORMAT.size else _FORMAT.pack(*NOTHING)


def unpacked(data: bytes) -> Sketch:
    """Return the numbers of a sketch; ``data`` is a result of `fit`."""
    return _FORMAT.unpack(data)


def keys(data: bytes) -> tuple[bytes, ...]:
    """Return the keys of a sketch: its description and its bands.

    Near-duplicates share at least one key.
    """
    return _KEYS.unpack_from(data)


Part: TypeAlias = tuple[int, bytes]
"""A part of a sketch: its offset in the bytes of the sketch, and its bytes."""


def probes(data: bytes) -> list[list[list[Part]]]:
    """Return a condition that the sketch of each near-duplicate of a text meets.

    The condition is a list of items; it is met if at least one item is met. An item is a list of
    groups of parts; it is met if the other sketch has at least one part of each group.
    Near-duplicates share the description, or at least half of the filled buckets of sentences and
    of words. So they share at least one bucket of any selection of more than half of these buckets.
    """
    size = len(data) // (1 + SENTENCES + WORDS)
    parts = [(place, data[place : place + size]) for place in range(0, len(data), size)]
    description, *buckets = parts
    found = [[[description]]] if any(description[1]) else []
    sentences, words = (
        [one for one in some if any(one[1])] for some in (buckets[:SENTENCES], buckets[SENTENCES:])
    )
    if len(sentences) >= MIN_SENTENCES and len(words) >= MIN_WORDS:
        # Words come first, because the database then looks at fewer parts.
        found.append([some[: len(some) // 2 + 1] for some in (words, sentences)])
    return found


def are_alike(one: Sketch, other: Sketch) -> bool:
    """Tell whether two texts are nearly the same, or have nearly the same description."""
    if one[0] and one[0] == other[0]:
        return True
    end = 1 + SENTENCES
    return (
        _share(one[1:end], other[1:end], MIN_SENTENCES) >= ALIKE
        and _share(one[end:], other[end:], MIN_WORDS) >= DESCRIBED_ALIKE
    )


def _share(one: Sketch, other: Sketch, least: int) -> float:
    """Return the share of equal buckets among the filled buckets.

    Returns 0 if fewer than ``least`` buckets are filled in both sketches.
    """
    equal, buckets = list(map(eq, one, other)).count(True), len(one)
    if 0 not in one and 0 not in other:
        return equal / buckets
    neither = list(zip(one, other, strict=True)).count((0, 0))
    both = buckets - one.count(0) - other.count(0) + neither
    return (equal - neither) / (buckets - neither) if both >= least else 0.0


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
