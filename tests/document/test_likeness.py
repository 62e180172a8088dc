"""Which texts are nearly the same."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from registry.document.minhash import (
    ALIKE,
    DESCRIBED_ALIKE,
    MIN_SENTENCES,
    MIN_WORDS,
    NOTHING,
    SENTENCES,
    WORDS,
    are_alike,
    fit,
    probes,
)

BUCKET = st.integers(0, 2)
SKETCH = st.tuples(*[BUCKET] * (1 + SENTENCES + WORDS))


def share(one, other, least):
    pairs = list(zip(one, other, strict=True))
    some = sum(a > 0 or b > 0 for a, b in pairs)
    both = sum(a > 0 and b > 0 for a, b in pairs)
    same = sum(a == b > 0 for a, b in pairs)
    return same / some if both >= least else 0


@given(SKETCH, SKETCH, st.lists(st.booleans(), min_size=len(NOTHING), max_size=len(NOTHING)))
def test_texts_are_alike_by_their_description_or_by_sentences_and_words(one, different, kept):
    other = tuple(a if keep else b for a, b, keep in zip(one, different, kept, strict=True))
    end = 1 + SENTENCES
    expected = one[0] == other[0] > 0 or (
        share(one[1:end], other[1:end], MIN_SENTENCES) >= ALIKE
        and share(one[end:], other[end:], MIN_WORDS) >= DESCRIBED_ALIKE
    )
    assert are_alike(one, other) == expected


@given(SKETCH, SKETCH, st.lists(st.booleans(), min_size=len(NOTHING), max_size=len(NOTHING)))
def test_each_near_duplicate_meets_the_condition_by_which_it_is_looked_up(one, different, kept):
    other = tuple(a if keep else b for a, b, keep in zip(one, different, kept, strict=True))
    mine, theirs = (struct.pack(f"<{len(NOTHING)}I", *some) for some in (one, other))
    is_found = any(
        all(any(theirs[at : at + 4] == part for at, part in group) for group in groups)
        for groups in probes(mine)
    )
    assert is_found or not are_alike(one, other)


def test_a_text_without_a_sketch_has_no_near_duplicates():
    assert probes(fit(None)) == []
