"""The stretch of a skill's text that shows why it was found."""

import re
from collections.abc import Sequence
from typing import Final

from registry.catalog.plain import plain
from registry.catalog.search.query import Term, between, pattern, stem
from registry.text import has_unspaced

SNIPPET: Final = 160
"""Length of a snippet in characters."""

_SMALL_K: Final = "\N{KELVIN SIGN}"
_SMALL_I: Final = "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}"
"""The capitals without ASCII of which small letters of ASCII are made."""


def make_snippet(body: str, description: str, terms: Sequence[Term]) -> str:
    """Return the stretch of the body, else of the description, around the first match.

    Without Markdown's markup, on one line.
    """
    for text in (body, description):
        place = _first_match(text, terms)
        if place is not None:
            return _cut(text, place)
    return _cut(description, 0)


def _first_match(text: str, terms: Sequence[Term]) -> int | None:
    lowered = _lowered(text, all(word.isascii() for term in terms for word in term))
    for term in terms:
        place = _place(lowered, term)
        if place < 0 and len(term) == 1 and stem(term[0]) != term[0]:
            place = _place(lowered, (stem(term[0]),))
        if place >= 0:
            return place
    return None


def _lowered(text: str, for_ascii: bool) -> str:
    """Return a text in small letters, each in its place; ``for_ascii``: only those matter."""
    if for_ascii and not text.isascii() and _SMALL_K not in text and _SMALL_I not in text:
        # A tenth of the time that looking each letter up takes.
        return text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text  # few capitals become two small ones


def _place(text: str, term: Term) -> int:
    """Return where a term stands, -1 where it does not; many times as fast as a pattern is."""
    if has_unspaced(term[0]):
        found = re.search(pattern(term), text)
        return found.start() if found else -1
    start = text.find(term[0])
    rest = re.compile(between(term)) if len(term) > 1 else None
    while start >= 0:
        is_begun = start == 0 or not text[start - 1].isalnum()
        if is_begun and (rest is None or rest.match(text, start)):
            return start
        start = text.find(term[0], start + 1)
    return -1


def _cut(text: str, place: int) -> str:
    begin = max(0, place - SNIPPET // 3)
    end = min(len(text), begin + SNIPPET)
    begin = max(0, min(begin, end - SNIPPET))
    if begin > 0 and (space := text.find(" ", begin, place)) >= 0:
        begin = space + 1
    if end < len(text) and (space := text.rfind(" ", place + 1, end)) > place:
        end = space
    piece = plain(text[begin:end])
    return ("\u2026" if begin > 0 else "") + piece + ("\u2026" if end < len(text) else "")
