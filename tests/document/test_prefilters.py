"""The fast way to look for behaviours finds what their patterns find in the whole text."""

import json
import os
import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.document import threats
from registry.document.behaviours import BEHAVIOURS, FOREIGN
from registry.document.prefilter import LONGEST, SLACK, CpuBudget, Prefilter
from registry.document.scan import find_foreign
from registry.document.security import is_about_defence
from tests.document.attacks import HARMLESS, HELD_OUT, SAMPLES, TRIED, UNSEEN
from tests.needles import FILE, derived, written

ALL = Prefilter(range(len(BEHAVIOURS)), (), bytes)
TEXTS = [
    text for kind in (SAMPLES, TRIED, HELD_OUT, UNSEEN) for some in kind.values() for text in some
] + HARMLESS
REAL = 150
"""Real texts that are compared, drawn anew each time: a whole comparison takes minutes."""
PIECES = sorted({piece for text in TEXTS for piece in re.split(r"(\W+)", text) if piece})

DEFENDING = st.sampled_from(
    [
        *"security SECURITY attack hacking ctf tea for of İ K 攻击 安全 é".split(),
        "-",
        "_",
        "4",
        "\ud800",
    ]
)


@st.composite
def rewritten(draw):
    """Return a sample with some of its words taken out, and others between them."""
    parts = re.split(r"(\W+)", draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(parts) - 1))
        parts[place] = draw(st.sampled_from(["", *PIECES]))
    return "".join(parts)


class Forever(CpuBudget):
    """All the time that it takes."""

    def __init__(self):
        super().__init__(0)
        self._until = float("inf")


def finds_the_same(text):
    """Return how many matches there are, if both ways find the same ones."""
    lower = text.encode("ascii", "replace").lower()
    sooner = {
        number: [
            match.span()
            for begin, end in stretches
            for match in Forever().find(BEHAVIOURS[number].pattern.compiled, lower, begin, end)
        ]
        for number, stretches in ALL.find(ALL.hits(lower), lower)
    }
    found = 0
    for number, behaviour in enumerate(BEHAVIOURS):
        whole = [match.span() for match in behaviour.pattern.compiled.finditer(lower)]
        assert sooner.get(number, []) == whole, (behaviour.code, behaviour.pattern.source)
        found += len(whole)
    expected = {
        (one.code, match.start()) for one in FOREIGN for match in one.pattern.finditer(text)
    }
    beyond = "".join(letter for letter in text if not letter.isascii())
    assert {(at.code, at.offset) for at in find_foreign(text, beyond, Forever())} == expected
    return found + len(expected)


def test_the_needles_are_those_of_the_patterns():
    assert FILE.read_text("utf-8") == written(derived()), "run: make needles"


def test_every_pattern_is_bounded_and_has_needles():
    told = json.loads(FILE.read_text("utf-8"))
    for width, _, ways in told["patterns"] + told["foreign"]:
        assert width + SLACK <= LONGEST
        assert all(ways)


def test_the_same_is_found_in_all_samples():
    assert sum(map(finds_the_same, TEXTS)) > len(TEXTS) // 2


def test_the_same_is_found_in_one_text_of_all_samples():
    whole = "\n\n".join(TEXTS)
    assert len(whole) > 2 * LONGEST
    assert finds_the_same(whole) > len(TEXTS) // 2


@given(rewritten())
@settings(max_examples=100, deadline=None)
def test_the_same_is_found_in_rewritten_samples(text):
    finds_the_same(text)


@pytest.mark.parametrize("number", range(len(BEHAVIOURS)))
@given(data=st.data())
@settings(max_examples=5, deadline=None)
def test_what_a_pattern_matches_is_found_wherever_it_stands(number, data):
    pattern = BEHAVIOURS[number].pattern.compiled
    match = data.draw(st.from_regex(pattern)).lower().decode("latin-1")
    place = data.draw(st.integers(0, 5000))
    finds_the_same("x " * (place // 2) + " " * (place % 2) + match + " x" * 100)


def test_the_same_is_found_in_real_texts(corpus):
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(corpus) for name in names]
    for path in random.sample(sorted(paths), min(REAL, len(paths))):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                finds_the_same(file.read(1 << 16).decode("utf-8", "replace"))


@given(st.lists(DEFENDING, max_size=20).map("".join))
def test_a_skill_is_about_defence_by_its_words_alone(said):
    words = {word.encode() for word in re.findall("[a-z]+", said.lower())}
    elsewhere = any(word in said for word in threats.ABOUT_DEFENCE_ELSEWHERE)
    expected = not words.isdisjoint(threats.ABOUT_DEFENCE) or elsewhere
    assert is_about_defence(said, "") == expected
