"""Other words for what was asked: those that the authors of skills, who mostly write English, use.

`lexicon.tsv` has a line a concept: how authors call it, how other people call it in English, and
its words in nine languages, alternatives with a bar between them; words as `registry.text.fold`
makes them alike, Chinese, Japanese and Korean as they are written.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from registry.catalog.search.function_words import ENGLISH, FUNCTION_WORDS, OTHERS
from registry.catalog.search.query import Term, stem
from registry.text import fold, has_unspaced, letters, runs, split

MAX_WORDS: Final = 16
"""Of one question, terms of a kind that are added to it."""

MAX_KEY: Final = 12
"""Characters of a word of a script without spaces."""

_ELSEWHERE: Final = OTHERS - ENGLISH
_BEGINNING: Final = 4
_OF_Y: Final = ("y", "ies")
_ENDING: Final = 2

_Words: TypeAlias = dict[str, list[tuple[str, str]]]
"""What is said and what it means, by how it begins."""


class OtherWords(NamedTuple):
    """What a query says in lay words of English, and what in other languages."""

    lay: tuple[Term, ...]
    foreign: tuple[Term, ...]


def other_words(query: str) -> OtherWords:
    """Return terms of authors for what a query says otherwise, each once."""
    text = f" {' '.join(split(fold(query)))} "
    return OtherWords(
        *(
            tuple(tuple(one.split()) for one in meant if f" {one} " not in text)[:MAX_WORDS]
            for meant in _meant(query)
        )
    )


def said_for(query: str) -> dict[Term, str]:
    """Return for the terms of `other_words` what the query says instead of each."""
    lay, foreign = _meant(query)
    return {tuple(meant.split()): said for meant, said in {**foreign, **lay}.items()}


def _meant(query: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return what lay words and words of other languages mean, each with what says it first."""
    lay: dict[str, str] = {}
    foreign: dict[str, str] = {}
    if has_unspaced(query):
        for part in runs(query.casefold())[1::2]:
            for meant, said in _in_text(letters(part)):
                foreign.setdefault(meant, said)
    told, english = _english()
    said_words = split(fold(query))
    is_english = query.isascii() and _is_english_sentence(said_words)
    for start, word in enumerate(said_words):
        rest = said_words[start:]
        for meant, said in _in_words(told, rest, _is_same_in_english):
            lay.setdefault(meant, said)
        # What is an English word, too, is taken for that.
        if not (is_english or word in english or word in FUNCTION_WORDS):
            for meant, said in _in_words(_foreign(), rest, _is_same):
                foreign.setdefault(meant, said)
    return lay, foreign


def _is_english_sentence(words: Sequence[str]) -> bool:
    """Tell whether function words of English, and of no other language, hold words together."""
    return not ENGLISH.isdisjoint(words) and _ELSEWHERE.isdisjoint(words)


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    """Yield what the longest known words of a text without spaces mean, and the words."""
    known = _unspaced()
    start = 0
    while start < len(text):
        for end in range(min(len(text), start + MAX_KEY), start + 1, -1):
            if text[start:end] in known:
                yield from ((meant, text[start:end]) for meant in known[text[start:end]])
                start = end - 1
                break
        start += 1


def _in_words(
    table: _Words, words: Sequence[str], is_same: Callable[[str, str], bool]
) -> Iterator[tuple[str, str]]:
    """Yield what the words mean that these begin with, and those words."""
    for text, meant in table.get(words[0][:_BEGINNING], ()):
        known = text.split()
        if len(known) <= len(words) and all(map(is_same, known, words)):
            yield meant, " ".join(words[: len(known)])


def _is_same_in_english(known: str, word: str) -> bool:
    # "unity" is no form of "unit", though the stems are the same.
    is_form = stem(known) == stem(word) and known.endswith(_OF_Y) == word.endswith(_OF_Y)
    return known == word or is_form


def _is_same(known: str, word: str) -> bool:
    """Tell whether a word is a known one but for an ending of two letters."""
    if known == word:
        return True
    beginning = max(len(known), len(word)) - _ENDING
    return beginning >= _BEGINNING and known[:beginning] == word[:beginning]


@lru_cache(maxsize=1)
def _english() -> tuple[_Words, set[str]]:
    """Return lay words of English, and all words that mean themselves first."""
    table: _Words = {}
    known: set[str] = set()
    for author, others, *_ in _concepts():
        known.update(author.split())
        for one in filter(None, others.split("|")):
            table.setdefault(one[:_BEGINNING], []).append((one, author))
            known.update(one.split())
    return table, known


@lru_cache(maxsize=1)
def _foreign() -> _Words:
    """Return words of languages that set spaces between them."""
    table: _Words = {}
    for author, _, _, _, _, *languages in _concepts():
        for one in filter(None, "|".join(languages).split("|")):
            table.setdefault(one[:_BEGINNING], []).append((one, author))
    return table


@lru_cache(maxsize=1)
def _unspaced() -> dict[str, list[str]]:
    """Return words of scripts without spaces."""
    table: dict[str, list[str]] = {}
    for author, _, *languages in _concepts():
        for one in filter(None, "|".join(languages[:3]).split("|")):
            table.setdefault(one, []).append(author)
    return table


@lru_cache(maxsize=1)
def _concepts() -> list[list[str]]:
    text = Path(__file__).with_name("lexicon.tsv").read_text("utf-8")
    return [line.split("\t") for line in text.splitlines()[1:]]
