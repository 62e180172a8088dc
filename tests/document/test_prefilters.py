"""What is passed over sooner than by its own rule has no finding by that rule."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from registry.document import threats
from registry.document.behaviours import BEHAVIOURS
from registry.document.security import is_about_defence
from tests.document.attacks.agentic import TRIED
from tests.document.attacks.samples import HARMLESS, SAMPLES

SURE = [one for one in BEHAVIOURS if one.certain]
TEXTS = [text for some in (*SAMPLES.values(), *TRIED.values()) for text in some] + HARMLESS
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


def test_each_match_in_a_sample_holds_what_was_said_to_be_certain():
    for sample in TEXTS:
        holds_what_is_certain(sample)


@given(rewritten())
@settings(max_examples=200, deadline=None)
def test_each_match_holds_what_was_said_to_be_certain(text):
    holds_what_is_certain(text)


def holds_what_is_certain(text):
    lower = text.encode("ascii", "replace").lower()
    for behaviour in SURE:
        for match in behaviour.pattern.compiled.finditer(lower):
            for pieces in behaviour.certain:
                assert any(piece in match[0] for piece in pieces), (behaviour.code, match[0])


def test_what_is_certain_is_told_of_behaviours_that_samples_show():
    shown = [
        one for one in SURE if any(one.pattern.compiled.search(t.lower().encode()) for t in TEXTS)
    ]
    assert len(shown) >= len(SURE) // 2 > 0


@given(st.lists(DEFENDING, max_size=20).map("".join))
def test_a_skill_is_about_defence_by_its_words_alone(said):
    words = {word.encode() for word in re.findall("[a-z]+", said.lower())}
    elsewhere = any(word in said for word in threats.ABOUT_DEFENCE_ELSEWHERE)
    expected = not words.isdisjoint(threats.ABOUT_DEFENCE) or elsewhere
    assert is_about_defence(said, "") == expected
