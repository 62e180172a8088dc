"""The stretch of a skill's text that shows why it was found."""

import re
from collections.abc import Sequence
from typing import Final

from registry.catalog.plain import plain
from registry.catalog.search.query import Term, between, pattern, stem
from registry.text import has_unspaced

SNIPPET: Final = 160
"""Length of a snippet in characters."""


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
    lowered = text.lower()
    if len(lowered) != len(text):  # a few capital letters become two small ones
        lowered = text
    for term in terms:
        place = _place(lowered, term)
        if place < 0 and len(term) == 1 and stem(term[0]) != term[0]:
            place = _place(lowered, (stem(term[0]),))
        if place >= 0:
            return place
    return None


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
