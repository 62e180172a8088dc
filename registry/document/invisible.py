"""Find characters that people don't see and models read; never those a script or emoji needs.

Joiners belong in emoji and in Persian, Arabic and Indic text, the zero-width space in Thai and its
neighbours, tag characters in the flags of regions; all of these occur in real skills and are left
alone (CONVENTIONS.md, "What real SKILL.md files look like").
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from registry.document.findings import Place
from registry.text import beyond_ascii

# Bidirectional controls, zero-width characters and invisible operators, variation selectors beyond
# the two that emoji and CJK text use singly, and tag characters.
_SUSPECT: Final = re.compile(
    "[\u180e\u200b-\u200d\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]+"
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"
)
# The same by one set, for a quick look: all of them but the two common selectors.
_CANDIDATE: Final = re.compile(
    "[\u180e\u200b-\u200d\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0d\ufeff"
    "\U000e0000-\U000e01ef]"
)
_LONG: Final = 16
"""Zero-width characters in a row that can encode hidden text."""

_PAIRS: Final = ("\ufe0f\ufe0f", "\ufe0f\ufe0e", "\ufe0e\ufe0f", "\ufe0e\ufe0e")
_BIDI: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_BLACK_FLAG: Final = "\U0001f3f4"
_REGION_FLAG = re.compile("[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
_EMOJI = re.compile(
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f"
    "\U0001f000-\U0001faff]"
)
# Scripts whose letters change shape with a joiner: Hebrew to Arabic Extended, the Indic scripts
# to Tibetan, Myanmar, Khmer, Mongolian, and the Arabic presentation forms.
_JOINING = re.compile(
    "[\u0590-\u08ff\u0900-\u0fff\u1000-\u109f\u1780-\u18af\u1900-\u1cff\ua840-\uabff"
    "\ufb1d-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e900-\U0001eeff]"
)
# Scripts without spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, New Tai Lue, Tai Tham.
_UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u1aaf\ua9e0-\uaa7f]")


def find_hidden(text: str, beyond: str | None = None) -> Iterator[Place]:
    """Yield the invisible characters of ``text`` that nothing legitimate explains.

    ``beyond`` is the text without ASCII (`text.beyond_ascii`), for who has it already. Codes:
    ``hidden-text`` (tag characters and selectors, which can spell out instructions),
    ``bidi-control`` and ``zero-width-character``.
    """
    if beyond is None:
        beyond = beyond_ascii(text)
    if not (_CANDIDATE.search(beyond) or any(pair in beyond for pair in _PAIRS)):
        return
    for match in _SUSPECT.finditer(text):
        yield from _judge(text, match)


def _judge(text: str, match: re.Match[str]) -> Iterator[Place]:
    run = match[0]
    start, end = match.span()
    before, after = text[start - 1 : start], text[end : end + 1]
    tags = [char for char in run if "\U000e0000" <= char <= "\U000e007f"]
    if tags:
        if not (before == _BLACK_FLAG and _REGION_FLAG.match(run)):
            said = "".join(chr(ord(char) - 0xE0000) for char in tags)
            what = f"{len(tags)} tag characters that spell `{said}`"
            yield Place("hidden-text", start, what)
    elif unicodedata.category(run[0]) == "Mn":
        yield Place("hidden-text", start, f"{len(run)} variation selectors in a row")
    elif bidi := _BIDI.search(run):
        yield Place("bidi-control", start, _named(bidi[0]))
    elif not (len(run) == 1 and _belongs(run, before, after)):
        what = _named(run[0])
        if len(run) > 1:
            what = f"{len(run)} invisible characters in a row, the first {what}"
        yield Place("hidden-text" if len(run) >= _LONG else "zero-width-character", start, what)


def _belongs(char: str, before: str, after: str) -> bool:
    """Tell whether a single zero-width ``char`` does what it is made for between its neighbours."""
    if char == "\u200b":
        return bool(_UNSPACED.match(before) or _UNSPACED.match(after))
    joining = _JOINING.match(before) or _JOINING.match(after)
    emoji = char == "\u200d" and _EMOJI.match(before) and _EMOJI.match(after)
    return char in "\u200c\u200d" and bool(joining or emoji)


def _named(char: str) -> str:
    return f"U+{ord(char):04X} {unicodedata.name(char, 'an unnamed character')}"
