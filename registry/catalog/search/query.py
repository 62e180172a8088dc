"""What was typed, as terms: words that are looked for, each with those that must stand beside it.

Quotes make phrases, any other words are terms of their own, and so are the pairs of neighbouring
characters of a script without spaces. Nothing typed is a syntax error.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Final, TypeAlias

from registry.catalog.search.function_words import FUNCTION_CHARACTERS, FUNCTION_WORDS
from registry.text import has_unspaced, letters, pairs, runs, split

Term: TypeAlias = tuple[str, ...]
"""Words, in small letters, that must stand one after the other."""

MAX_TERMS: Final = 32
"""A longer question is cut: its first distinct words say what it is about."""

_QUOTED: Final = re.compile(r'"([^"]*)"|\u201c([^\u201d]*)\u201d|\u300c([^\u300d]*)\u300d')
_OTHER_WIDTH: Final = re.compile("[\uff01-\uffee]+")
_BETWEEN: Final = re.compile(r"[\s'\u2019]+")
"""An apostrophe stands between words: what it joins is said of one of them ("the team's")."""
_ONLY_KANA: Final = re.compile("[\u3040-\u309f\u30fc]+")
_MIN_JOINED: Final = 3
_MIN_STEM: Final = 4
_LONGEST_KEPT: Final = 40
"""Characters of a word whose stem is remembered, so that nobody fills the memory with others."""


def parse(query: str) -> list[Term]:
    """Return the terms of a query, those of phrases first.

    Words that only hold a sentence together are left out, unless there are no others.
    """
    query = _of_usual_width(query)
    phrases = [group for match in _QUOTED.finditer(query) for group in match.groups() if group]
    loose = list(_loose(_QUOTED.sub(" ", query)))
    quoted = [term for phrase in phrases if (term := _phrase(phrase))]
    telling = [term for term in loose if not _is_empty(term)]
    found = [*quoted, *(telling if telling or quoted else loose)]
    unique = dict.fromkeys(tuple(word.casefold() for word in term) for term in found)
    return list(unique)[:MAX_TERMS]


def unquoted(query: str) -> str:
    """Return what of a query stands outside of quotes."""
    return _QUOTED.sub(" ", _of_usual_width(query))


def _of_usual_width(text: str) -> str:
    """Return a text with letters as all others write them that were typed for East Asian text."""
    return _OTHER_WIDTH.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)


def _phrase(text: str) -> Term:
    """Return the words of a phrase, as they stand one after the other in the index."""
    said: list[str] = []
    parts = runs(text)
    for place, part in enumerate(parts):
        if place % 2:
            found = letters(part)
            is_last = not any(map(split, parts[place + 1 :]))
            said += pairs(found) or [found]
            if not is_last and len(found) > 1:
                said.append(found[-1])
        else:
            said += split(part)
    return tuple(filter(None, said))


def _loose(text: str) -> Iterator[Term]:
    """Yield the terms of what is not quoted; the parts of a compound count beside the whole."""
    for piece in _BETWEEN.split(text):
        for place, part in enumerate(runs(piece)):
            if place % 2:
                yield from ((one,) for one in _unspaced(part))
            elif said := tuple(split(part)):
                yield said
                if len(said) > 1:
                    yield from ((word,) for word in said if not _is_empty((word,)))


def _unspaced(run: str) -> list[str]:
    """Return the pairs of a run that may tell something, else all, else its only character."""
    parts = [letters(part) for part in FUNCTION_CHARACTERS.split(run)]
    found = [pair for part in parts for pair in pairs(part)]
    whole = letters(run)
    telling = [pair for pair in found if not _ONLY_KANA.fullmatch(pair)]
    return telling or found or pairs(whole) or [whole] * bool(whole)


def _is_empty(term: Term) -> bool:
    return all(word.casefold() in FUNCTION_WORDS for word in term)


def joined(terms: list[Term]) -> list[Term]:
    """Return what neighbouring words make when they are written as one: "web socket"."""
    return [
        (one[0] + other[0],)
        for one, other in pairwise(terms)
        if len(one) == len(other) == 1
        and min(len(one[0]), len(other[0])) >= _MIN_JOINED
        and not has_unspaced(one[0] + other[0])
    ]


def pattern(term: Term) -> str:
    """Return a regular expression that finds a term in a text as it was written."""
    if has_unspaced("".join(term)):
        # Of pairs that overlap the first characters and the last pair are the text.
        text = "".join(word[0] for word in term[:-1]) + term[-1]
        return r"\s*".join(map(re.escape, text))
    return r"\b" + between(term)


def between(term: Term) -> str:
    """Return a regular expression of words with little between them."""
    return r"\W{0,3}".join(map(re.escape, term))


def stem(word: str) -> str:
    """Cut an English ending off, so that "charts" finds "chart" and "creating" "creation"."""
    return _stem(word) if len(word) <= _LONGEST_KEPT else _cut_off(word)


def stems(words: Iterable[str]) -> set[str]:
    """Return the stems of words."""
    known = set(words)
    return set(map(_stem if max(map(len, known), default=0) <= _LONGEST_KEPT else _cut_off, known))


def _cut_off(word: str) -> str:
    if not word.isascii():
        return word
    for ending in ("ing", "ies", "ed", "es", "s", "e", "y"):
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            return word[: -len(ending)]
    return word


_stem = lru_cache(maxsize=8192)(_cut_off)
"""The heads of what is found say the same words again and again."""
