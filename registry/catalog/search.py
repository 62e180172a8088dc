"""Full-text search: what people and agents type in, ranked skills with a snippet out.

Words are OR-ed and ranked, where name and tags weigh most; quotes make phrases; every word also
matches as a prefix; nothing typed is a syntax error. Which index answers is the database's matter.
"""

import re
from typing import Final

from registry.catalog.plain import plain
from registry.db.interface import Pattern, Reader
from registry.db.queries.filters import Filters, where
from registry.db.queries.rows import hit_of
from registry.db.queries.skills import hits
from registry.model import SearchHit
from registry.text import has_unspaced, name_key, words

MAX_TERMS: Final = 32
"""A longer question is cut: its first distinct words say what it is about."""

SNIPPET: Final = 160
"""Length of a snippet in characters."""

_QUOTED: Final = re.compile(r'"([^"]*)"|\u201c([^\u201d]*)\u201d|\u300c([^\u300d]*)\u300d')
_MIN_PREFIX: Final = 2
_MIN_STEM: Final = 4

# Words that a question is built of and that say nothing about what is looked for.
_EMPTY_WORDS: Final = frozenset(
    """a about am an and any are as at be been by can could d did do does doing find for from get
    give had has have help how i if in into is it its let ll m may me might my need not of on or
    please re s shall should show skill skills so some t that the their them then there these they
    this to us use using ve want was we were what when where which who why will with would you
    your""".split()
)


def search(
    reader: Reader, query: str, filters: Filters, *, limit: int = 20, offset: int = 0
) -> tuple[list[SearchHit], int]:
    """Return one page of hits, the best first, and how many skills match in all."""
    terms = parse(query)
    if not terms:
        return [], 0
    # A name that is exactly what was typed comes first whatever else says it more often.
    exact = name_key(" ".join(query.split()))
    sight = reader.sight
    condition, values = where(reader, filters, sight)
    asked = reader.matches(tuple(patterns(terms)), condition, tuple(values), exact)
    with reader.snapshot():
        # Several agents of one team ask the same; until the database changes, so is the answer.
        total = reader.remembered(f"hits {asked}", asked.count)
        page = reader.remembered(
            f"page {offset} {limit} {asked}",
            lambda reader: asked.page(reader, limit, offset),
        )
        found = hits(reader, [skill_id for skill_id, _ in page], sight)
    return [
        hit_of(skill, round(-rank, 4), make_snippet(body, skill.description, terms))
        for (body, skill), rank in ((found[skill_id], rank) for skill_id, rank in page)
    ], total


def parse(query: str) -> list[list[str]]:
    """Split a query into terms; a term is a list of words that must stand one after the other."""
    phrases = [group for match in _QUOTED.finditer(query) for group in match.groups() if group]
    terms = [words(phrase) for phrase in phrases]
    rest = _QUOTED.sub(" ", query)
    loose = [words(piece) for piece in rest.split()]
    telling = [term for term in loose if term and not _is_empty(term)]
    terms += telling if telling or any(terms) else loose
    unique: dict[tuple[str, ...], None] = {}
    for term in terms:
        if term:
            unique.setdefault(tuple(word.casefold() for word in term))
            # The parts of a compound count too, though less than the whole.
            if (
                len(term) > 1
                and not has_unspaced("".join(term))
                and term not in map(words, phrases)
            ):
                for word in term:
                    if not _is_empty([word]):
                        unique.setdefault((word.casefold(),))
    return [list(term) for term in unique][:MAX_TERMS]


def _is_empty(term: list[str]) -> bool:
    return len(term) == 1 and term[0].casefold() in _EMPTY_WORDS


def patterns(terms: list[list[str]]) -> list[Pattern]:
    """Return what matches: each term as it is or longer, and a word without its ending, too."""
    found = []
    for term in terms:
        last = term[-1]
        is_prefix = len(last) >= _MIN_PREFIX and not has_unspaced(last)
        found.append(Pattern(tuple(term), is_prefix))
        if len(term) == 1 and is_prefix and _stem(last) != last:
            found.append(Pattern((_stem(last),), prefix=True))
    return found


def _stem(word: str) -> str:
    """Cut an English ending off, so that "charts" finds "chart" and "creating" "creation"."""
    if not word.isascii():
        return word
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word[: -len(ending)]
    return word


def make_snippet(body: str, description: str, terms: list[list[str]]) -> str:
    """Return the stretch of the body, else of the description, around the first match.

    Without Markdown's markup, on one line.
    """
    for text in (body, description):
        place = _first_match(text, terms)
        if place is not None:
            return _cut(text, place)
    return _cut(description, 0)


def _first_match(text: str, terms: list[list[str]]) -> int | None:
    for term in terms:
        separator = r"\W{0,3}" if not has_unspaced("".join(term)) else r"\s*"
        pattern = separator.join(map(re.escape, term))
        start = "" if has_unspaced(term[0]) else r"\b"
        found = re.search(start + pattern, text, re.IGNORECASE)
        if found is None and len(term) == 1 and _stem(term[0]) != term[0]:
            found = re.search(start + re.escape(_stem(term[0])), text, re.IGNORECASE)
        if found:
            return found.start()
    return None


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
