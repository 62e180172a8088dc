"""Parse a typed query into search terms: words, phrases, and synonyms."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from registry.text import fold, has_unspaced, letters, pairs, runs, split

ENGLISH: Final = frozenset(
    """a about again all also always am an and another any anybody anyone anything are as ask at
    aren away back be because been before being but by can could couldn d did didn do does doesn
    doing don each either else ever every everybody everyone everything few find for forever from
    get gets getting give had hadn has hasn have haven having he her here him his how however i if
    in instead into is isn it its itself just keep kind know let like ll look looking lot m make
    makes making many may maybe me might more most much must my myself need needs never no nobody
    none nor not nothing now of off often ok okay on once one ones only or other others our out over
    own please put quite re really s said same say see shall she should shouldn show since skill
    skills so some somebody someone something sometimes somewhere still such sure t take takes tell
    than that the their them then there these they thing things think this those though through to
    too try trying under until up upon us use used uses using ve very via want wants was wasn way we
    well went were weren what whatever when where whether which while who whole whom whose why will
    with within without won would wouldn yet you your yours""".split()
)

OTHERS: Final = frozenset(
    # German
    """aber alle als am auch auf aus bei beim bekomme bin bis bitte brauche da damit dann das dass
    dein deine dem den denn der deren des dich dir doch durch ein eine einem einen einer eines er
    es etwas euch für gegen habe haben hat hier ich ihm ihn ihr ihre im immer ist jede jeder kann
    kannst kein keine können machen mein meine meinem meinen meiner mich mir mit möchte muss nach
    nicht noch nur ob oder ohne schon sehr sein seine sich sie sind soll über um und uns unser
    unsere unter vom von vor wann warum weil welche welcher wenn werden wie wieder will wir wird
    wo zu zum zur zwischen"""
    # French
    """ alors au aucun aussi aux avec avoir ce ces cet cette chez comme comment dans de depuis des
    donc du elle elles en encore entre est et être faire fait faut il ils je l la le les leur leurs
    lui ma mais mes moi mon ne nos notre nous où par pas peut plus pour pourquoi puis qu quand que
    quel quelle qui quoi sa sans ses si son sont sous suis ta te tes ton tous tout toute toutes très
    tu un une vers veux voici vos votre vous"""
    # Spanish, Portuguese
    """ al algo ante antes aquí así como con contra cual cuál cuando cuándo cómo da das de del
    desde dónde e el él ella ellas ellos en entre era es esa ese eso esta está están este esto
    estos fue hacer hacia han hasta hay la las le les lo los mas más mi mis muy necesito nos o
    otra otro para pero por porque puede puedo que qué quiero se ser si sí sin sobre son soy su
    sus también te tengo tiene todo todos tu tus un una uno y ya yo
    ao aos até com ela ele eles em essa esse estou eu fazer foi isso isto já mais mas me meu
    meus minha minhas muito na não no nos ou os para pela pelas pelo pelos pode posso preciso
    qual quais quando quem quero seu seus são só sua suas também tem tenho ter um uma umas uns
    você vocês"""
    # Italian
    """ agli alla alle anche che chi col come cosa così da dalla degli dei del della delle di dove e
    gli ho i il la le lo loro ma mi mia mie miei mio nel nella nelle noi non ogni per perché più può
    quale quando quanto quella quello questa questo se sei si sono su sulla sul sull suo tra tutti
    tutto un una uno vorrei"""
    # Russian
    """ а без бы был была было быть в вам вас ваш весь во вот все всё вы где да для до его ее её
    ей если есть ещё же за и из или им их к как какой когда который кто ли мне мой может можно мой
    моя моё мои мы на над надо нам нас наш не нет ни но ну нужно о об он она они оно от по под при
    с сделать со так такой там то тот ту ты у уже хочу чего чей чем что чтобы эта эти это этот
    я""".split()
)

FUNCTION_WORDS: Final = ENGLISH | OTHERS

FUNCTION_CHARACTERS: Final = re.compile("[的了吗呢吧啊呀嘛们我你您他她它这那哪么のをはがにでとへ]+")
"""Function characters of Chinese, and particles of Japanese, at which unspaced text is split."""


Term: TypeAlias = tuple[str, ...]
"""Lower-case words that must follow each other."""

MAX_TERMS: Final = 32
"""Maximum number of terms that are used. The first words of a long query show its topic."""

_QUOTED: Final = re.compile(r'"([^"]*)"|\u201c([^\u201d]*)\u201d|\u300c([^\u300d]*)\u300d')
_OTHER_WIDTH: Final = re.compile("[\uff01-\uffee]+")
_BETWEEN: Final = re.compile(r"[\s'\u2019]+")
"""Separators of words. An apostrophe also separates ("the team's"), as in the search index."""
_ONLY_KANA: Final = re.compile("[\u3040-\u309f\u30fc]+")
_MIN_JOINED: Final = 3
_MIN_STEM: Final = 4
_LONGEST_KEPT: Final = 40
"""Maximum length of a word whose stem is cached. Very long words would fill the memory."""


def parse(query: str) -> list[Term]:
    """Return the terms of a query; the terms of phrases come first.

    Function words are removed, unless there are no other words.
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
    """Return the parts of a query that are not in quotes."""
    return _QUOTED.sub(" ", _of_usual_width(query))


def _of_usual_width(text: str) -> str:
    """Return a text in which full-width letters and digits are replaced by the ASCII ones."""
    return _OTHER_WIDTH.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)


def _phrase(text: str) -> Term:
    """Return the words of a phrase in order, in the form in which the search index stores them."""
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
    """Yield the terms outside of quotes. For a compound, yield it and then its parts."""
    for piece in _BETWEEN.split(text):
        for place, part in enumerate(runs(piece)):
            if place % 2:
                yield from ((one,) for one in _unspaced(part))
            elif said := tuple(split(part)):
                yield said
                if len(said) > 1:
                    yield from ((word,) for word in said if not _is_empty((word,)))


def _unspaced(run: str) -> list[str]:
    """Return the pairs of adjacent characters of a text without spaces.

    Pairs of function characters are only returned if there are no other pairs. A single character
    is returned as a term by itself.
    """
    parts = [letters(part) for part in FUNCTION_CHARACTERS.split(run)]
    found = [pair for part in parts for pair in pairs(part)]
    whole = letters(run)
    telling = [pair for pair in found if not _ONLY_KANA.fullmatch(pair)]
    return telling or found or pairs(whole) or [whole] * bool(whole)


def _is_empty(term: Term) -> bool:
    return all(word.casefold() in FUNCTION_WORDS for word in term)


def joined(terms: list[Term]) -> list[Term]:
    """Return the compounds of adjacent words: "web socket" gives "websocket"."""
    return [
        (one[0] + other[0],)
        for one, other in pairwise(terms)
        if len(one) == len(other) == 1
        and min(len(one[0]), len(other[0])) >= _MIN_JOINED
        and not has_unspaced(one[0] + other[0])
    ]


def pattern(term: Term) -> str:
    """Return a regular expression that finds a term in the original text."""
    if has_unspaced("".join(term)):
        # The pairs overlap, so the first character of each pair and the last pair give the text.
        text = "".join(word[0] for word in term[:-1]) + term[-1]
        return r"\s*".join(map(re.escape, text))
    return r"\b" + between(term)


def between(term: Term) -> str:
    """Return a regular expression for these words in order, with little text between them."""
    return r"\W{0,3}".join(map(re.escape, term))


def stem(word: str) -> str:
    """Return a word without its English ending, so that "charts" finds "chart"."""
    return _stem(word) if len(word) <= _LONGEST_KEPT else _cut_off(word)


def stems(words: Iterable[str]) -> set[str]:
    """Return the stems of the words, without duplicates."""
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
"""The stems are cached, because descriptions use the same words again and again."""


MAX_WORDS: Final = 16
"""Maximum number of synonyms, and of translations, that are added to a query."""

MAX_KEY: Final = 12
"""Maximum length of a known foreign word in a script without spaces, in characters."""

_ELSEWHERE: Final = OTHERS - ENGLISH
_BEGINNING: Final = 4
_OF_Y: Final = ("y", "ies")
_ENDING: Final = 2

_Words: TypeAlias = dict[str, list[tuple[str, str]]]
"""Known phrases and their meanings, by the first word of the phrase."""


class OtherWords(NamedTuple):
    """Terms to add to a query: synonyms of everyday English words, and translations."""

    lay: tuple[Term, ...]
    foreign: tuple[Term, ...]


def other_words(query: str) -> OtherWords:
    """Return the technical terms for everyday or foreign words of a query, without duplicates."""
    text = f" {' '.join(split(fold(query)))} "
    return OtherWords(
        *(
            tuple(tuple(one.split()) for one in meant if f" {one} " not in text)[:MAX_WORDS]
            for meant in _meant(query)
        )
    )


def said_for(query: str) -> dict[Term, str]:
    """Return, for each term of `other_words`, the words of the query that it replaces."""
    lay, foreign = _meant(query)
    return {tuple(meant.split()): said for meant, said in {**foreign, **lay}.items()}


def _meant(query: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the meanings of everyday English and of foreign words, each with the typed word."""
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
        # A word that exists in English and in a foreign language is treated as English.
        if not (is_english or word in english or word in FUNCTION_WORDS):
            for meant, said in _in_words(_foreign(), rest, _is_same):
                foreign.setdefault(meant, said)
    return lay, foreign


def _is_english_sentence(words: Sequence[str]) -> bool:
    """Tell whether the function words (such as "the") of a text are English."""
    return not ENGLISH.isdisjoint(words) and _ELSEWHERE.isdisjoint(words)


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    """Yield the meanings of the longest known words in an unspaced text, each with the word."""
    known = _unspaced_words()
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
    """Yield the meanings of known words and phrases in a list of words, each with the words."""
    for text, meant in table.get(words[0][:_BEGINNING], ()):
        known = text.split()
        if len(known) <= len(words) and all(map(is_same, known, words)):
            yield meant, " ".join(words[: len(known)])


def _is_same_in_english(known: str, word: str) -> bool:
    # "unity" is not a form of "unit", although their stems are equal.
    is_form = stem(known) == stem(word) and known.endswith(_OF_Y) == word.endswith(_OF_Y)
    return known == word or is_form


def _is_same(known: str, word: str) -> bool:
    """Tell whether two words differ only by an ending of at most two letters."""
    if known == word:
        return True
    beginning = max(len(known), len(word)) - _ENDING
    return beginning >= _BEGINNING and known[:beginning] == word[:beginning]


@lru_cache(maxsize=1)
def _english() -> tuple[_Words, set[str]]:
    """Return everyday English words with their meanings, and all English words of the table."""
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
    """Return the foreign words of languages that put spaces between words."""
    table: _Words = {}
    for author, _, _, _, _, *languages in _concepts():
        for one in filter(None, "|".join(languages).split("|")):
            table.setdefault(one[:_BEGINNING], []).append((one, author))
    return table


@lru_cache(maxsize=1)
def _unspaced_words() -> dict[str, list[str]]:
    """Return the foreign words of scripts without spaces, with their meanings."""
    table: dict[str, list[str]] = {}
    for author, _, *languages in _concepts():
        for one in filter(None, "|".join(languages[:3]).split("|")):
            table.setdefault(one, []).append(author)
    return table


@lru_cache(maxsize=1)
def _concepts() -> list[list[str]]:
    text = Path(__file__).with_name("lexicon.tsv").read_text("utf-8")
    return [line.split("\t") for line in text.splitlines()[1:]]
