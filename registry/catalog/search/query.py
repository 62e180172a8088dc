"""Parse a query into search terms: words, phrases and synonyms."""

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
    get gets getting give given going gone got had hadn has hasn have haven having he her here him
    his how however i if in instead into is isn it its itself just keep kind know let like ll look
    looking lot m make makes making many may maybe me might more most much must my myself need
    needs never no nobody none nor not nothing now of off often ok okay on once one ones only or
    other others our out over own please put quite re really s said same say see shall she should
    shouldn show since skill skills so some somebody someone something sometimes somewhere still
    such sure t take takes tell than that the their them then there these they thing things think
    this those though through to too try trying under until up upon us use used uses using ve very
    via want wants was wasn way we well went were weren what whatever when where whether which
    while who whole whom whose why will with within without won would wouldn yet you your
    yours""".split()
)

_FUNCTION_WORDS_OF: Final[dict[str, frozenset[str]]] = {
    "de": frozenset(
        """aber alle als am auch auf aus bei beim bekomme bin bis bitte brauche da damit dann das
        dass dein deine dem den denn der deren des dich die dir doch durch ein eine einem einen
        einer eines er es etwas euch für gegen habe haben hat hier ich ihm ihn ihr ihre im immer
        in ist jede jeder kann kannst kein keine können machen man mein meine meinem meinen meiner
        mich mir mit möchte muss nach nicht noch nur ob oder ohne schon sehr sein seine sich sie
        sind soll über um und uns unser unsere unter vom von vor wann warum was weil welche welchen
        welcher wenn werden wie wieder will wir wird wo zu zum zur zwischen""".split()
    ),
    "fr": frozenset(
        """alors au aucun aussi aux avec avoir ce ces cet cette chez comme comment d dans de depuis
        des donc du elle elles en encore entre est et être faire fait faut il ils je l la le les
        leur leurs lui ma mais mes moi mon ne nos notre nous on ou où par pas peut plus pour
        pourquoi puis qu quand que quel quelle qui quoi s sa sans se ses si son sont sous suis sur
        ta te tes toi ton tous tout toute toutes très tu un une vers veux voici vos votre
        vous""".split()
    ),
    "es": frozenset(
        """a al algo ante antes aquí así como cómo con contra cual cuál cuando cuándo da de del
        desde donde dónde e el él ella ellas ellos en entre era es esa ese eso esta está están este
        esto estos fue ha hacer hacia han hasta hay la las le les lo los mas más me mi mis muy ni
        no necesito nos o otra otro para pero por porque puede puedo que qué quiero se ser si sí
        sin sobre son soy su sus también te tengo tiene todo todos tu tus un una uno y ya
        yo""".split()
    ),
    "pt": frozenset(
        """a ao aos até com como da das de do dos e ela ele eles em entre essa esse está estou eu
        fazer foi isso isto já mais mas me meu meus minha minhas muito na não no nos nós o os ou
        para pela pelas pelo pelos pode por porque posso preciso qual quais quando que quem quero
        se sem ser seu seus são só sobre sua suas também tem tenho ter um uma umas uns
        você vocês""".split()
    ),
    "ru": frozenset(
        """а без бы был была было быть в вам вас ваш весь во вот все всё вы где да для до его ее её
        ей если есть ещё же за и из или им их к как какой когда который кто ли мне мой может можно
        мой моя моё мои мы на над надо нам нас наш не нет ни но ну нужно о об он она они оно от по
        под при с сделать со так такой там то тот ту ты у уже хочу чего чей чем что чтобы эта эти
        это этот я""".split()
    ),
    "it": frozenset(
        """a agli ai al alla alle anche che chi ci col come con cosa così da dal dalla degli dei del
        della delle di dove e ed gli ha ho i il in la le lo loro ma mi mia mie miei mio nel nella
        nelle noi non ogni per perché più può quale quando quanto quella quello questa questo se sei
        si sono su sui sul sulla sull suo tra tu tutti tutto un una uno vorrei""".split()
    ),
}
"""Function words of each language, in the order of the columns of the table of concepts."""

OTHERS: Final = frozenset().union(*_FUNCTION_WORDS_OF.values()) - frozenset(
    "ai ci dal die dos ed ha in man me ni on sem sui sur toi was".split()
)
"""Foreign function words to remove from a query, except words with a meaning in English."""

FUNCTION_WORDS: Final = ENGLISH | OTHERS

FUNCTION_CHARACTERS: Final = re.compile(
    "(?:怎么样?|什么|哪[个些里儿]|如何|为什么|有没有|是不是|能不能|可不可以|可以|需要|想要|希望|一下|一个|一些"
    "|帮我|帮忙|给我|告诉|看看|不要|不会|没有|还是|或者|以及|并且|但是|因为|所以|每次|总是|老是|怎样|多少|最好|现在"
    "|이랑|에서|으로|에게|까지|부터|하는|하고|해줘|하기|싶어|싶다|싶은|방법|어떻게|만들기|만들어|주세요"
    "|[的了吗呢吧啊呀嘛们我你您他她它这那哪么和与或把被给让想请就都也很太又再还只是在有不なのをはがにでとへもや])+"
)
"""Function characters and words at which a text without spaces is split.

They are function words of Chinese, the particles of Japanese, and the endings and particles of
Korean.
"""


Term: TypeAlias = tuple[str, ...]
"""Lower-case words that must follow each other."""

MAX_TERMS: Final = 32
"""Maximum number of terms of a query.

Later terms are ignored, because the first terms show the topic.
"""

_QUOTED: Final = re.compile(r'"([^"]*)"|\u201c([^\u201d]*)\u201d|\u300c([^\u300d]*)\u300d')
_OTHER_WIDTH: Final = re.compile("[\uff01-\uffee]+")
_BETWEEN: Final = re.compile(r"[\s'\u2019]+")
"""Separators of words.

As in the search index, an apostrophe also separates words ("the team's").
"""
_KATAKANA: Final = re.compile("([\u30a0-\u30ff]{3,})")
_HIRAGANA: Final = re.compile("[\u3040-\u309f]")
_MIN_PART: Final = 2
_MIN_JOINED: Final = 6
"""Minimum length of a compound and of its parts, in characters."""

_MAX_SHORT: Final = 4
"""Maximum number of words of a short query."""

_MIN_STEM: Final = 4
_LONGEST_KEPT: Final = 40
"""Maximum length of a word with a cached stem.

Very long words would fill the memory.
"""


def parse(query: str) -> list[Term]:
    """Return the terms of a query; the terms of phrases come first.

    Function words are removed, unless there are no other words.
    """
    query = _of_usual_width(query)
    empty = FUNCTION_WORDS.union(*(_FUNCTION_WORDS_OF[one] for one in language_of(query)))
    phrases = [group for match in _QUOTED.finditer(query) for group in match.groups() if group]
    loose = list(_loose(_QUOTED.sub(" ", query)))
    quoted = [term for phrase in phrases if (term := _phrase(phrase))]
    telling = [term for term in loose if not empty.issuperset(map(str.casefold, term))]
    found = [*quoted, *(telling if telling or quoted else loose)]
    unique = dict.fromkeys(tuple(word.casefold() for word in term) for term in found)
    return list(unique)[:MAX_TERMS]


def unquoted(query: str) -> str:
    """Return the parts of a query that are outside quotation marks."""
    return _QUOTED.sub(" ", _of_usual_width(query))


def _of_usual_width(text: str) -> str:
    """Return a text with ASCII letters and digits in place of full-width ones."""
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
    """Yield the terms outside quotation marks; for a compound, yield it and then its parts."""
    for piece in _BETWEEN.split(text):
        for place, part in enumerate(runs(piece)):
            if place % 2:
                yield from _unspaced(part)
            elif said := tuple(split(part)):
                yield said
                if len(said) > 1:
                    yield from ((word,) for word in said if not _is_empty((word,)))


def _unspaced(run: str) -> list[Term]:
    """Return the terms of a text without spaces.

    The terms are pairs of adjacent characters, and words in Katakana. A pair is left out if its
    characters belong to two known words. Pairs with Hiragana are mostly endings and particles, so
    they are returned only if there are no other terms. A text of one character is itself a term.
    """
    parts = [letters(part) for part in FUNCTION_CHARACTERS.split(run)]
    found: list[Term] = []
    for part in parts:
        for place, piece in enumerate(_KATAKANA.split(part)):
            if place % 2:
                found.append(tuple(pairs(piece)))
            else:
                found += ((pair,) for pair in _pairs_within(piece))
    whole = letters(run)
    telling = [term for term in found if not _HIRAGANA.search(term[0])]
    return telling or found or [(pair,) for pair in pairs(whole)] or [(whole,)] * bool(whole)


def _pairs_within(text: str) -> list[str]:
    """Return the pairs of characters of a text, except those between two known words."""
    ends = [start + len(word) for start, word in _known_in(text)]
    starts = {start for start, _ in _known_in(text)}
    borders = {end - 1 for end in ends if end in starts}
    return [pair for place, pair in enumerate(pairs(text)) if place not in borders]


def _is_empty(term: Term) -> bool:
    return all(word.casefold() in FUNCTION_WORDS for word in term)


def joined(terms: list[Term]) -> list[Term]:
    """Return the compounds of adjacent words: for "web socket", this is "websocket"."""
    return [
        (one[0] + other[0],)
        for one, other in pairwise(terms)
        if len(one) == len(other) == 1
        and min(len(one[0]), len(other[0])) >= _MIN_PART
        and len(one[0] + other[0]) >= _MIN_JOINED
        and not has_unspaced(one[0] + other[0])
    ]


def joined_in(text: str, terms: list[Term]) -> list[Term]:
    """Return the compounds of adjacent words.

    In a short query, a part of a compound may be a function word: "one login". In a sentence, this
    is rare.
    """
    every: list[Term] = [(word,) for word in split(text.casefold())]
    near = pairwise(every) if len(every) <= _MAX_SHORT else ()
    mixed = [pair for pair in near if sum(map(_is_empty, pair)) == 1]
    found = [*joined(terms), *(one for pair in mixed for one in joined([*pair]))]
    return list(dict.fromkeys(found))


def pattern(term: Term) -> str:
    """Return a regular expression that finds a term in the original text."""
    if has_unspaced("".join(term)):
        # Adjacent pairs share a character, so the first character of each pair and the last pair
        # give the text.
        text = "".join(word[0] for word in term[:-1]) + term[-1]
        return r"\s*".join(map(re.escape, text))
    return r"\b" + between(term)


def between(term: Term) -> str:
    """Return a regular expression for these words in order, with little text between them."""
    return r"\W{0,3}".join(map(re.escape, term))


def stem(word: str) -> str:
    """Return a word without its English ending, so that "charts" also finds "chart"."""
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
"""A cache of stems, because descriptions use the same words again and again."""


MAX_WORDS: Final = 16
"""Maximum number of synonyms, and of translations, to add to a query."""

MAX_KEY: Final = 12
"""Maximum length of a known foreign word in a script without spaces, in characters."""

_COLUMNS: Final = ("de", "fr", "es", "pt", "ru", "it")
_BEGINNING: Final = 4
_OF_Y: Final = ("y", "ies")
_LONG_BEGINNING: Final = 6
_ENDING: Final = 2
_BETWEEN_WORDS: Final = 3

_Words: TypeAlias = dict[str, list[tuple[str, str]]]
"""Known phrases and their meanings; the key is the first word of the phrase."""


class OtherWords(NamedTuple):
    """Terms to add to a query: synonyms of everyday English words, and translations."""

    lay: tuple[Term, ...]
    foreign: tuple[Term, ...]


def other_words(query: str) -> OtherWords:
    """Return technical terms for everyday or foreign words of a query, without duplicates."""
    text = f" {' '.join(split(fold(query)))} "
    return OtherWords(
        *(
            tuple(tuple(one.split()) for one in meant if f" {one} " not in text)[:MAX_WORDS]
            for meant in _meant(query)
        )
    )


def said_for(query: str) -> dict[Term, str]:
    """Map each term of `other_words` to the words of the query that led to it."""
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
    is_english = _function_words_in(query)["en"] and not language_of(query)
    languages = () if is_english else language_of(query) or _COLUMNS
    is_same = _is_same if language_of(query) else _is_surely_same
    for start, word in enumerate(said_words):
        rest = said_words[start:]
        for meant, said in _in_words(told, rest, _is_same_in_english):
            if said not in FUNCTION_WORDS:
                lay.setdefault(meant, said)
        # If a word exists in English and in a foreign language, it counts as English.
        if not (word in english or word in FUNCTION_WORDS):
            for language in languages:
                for meant, said in _in_words(_foreign()[language], rest, is_same):
                    foreign.setdefault(meant, said)
    return lay, foreign


def language_of(query: str) -> Sequence[str]:
    """Return the language of a query that isn't in English; several if the languages are similar.

    The result is the language with the most function words in the query. Words of one letter don't
    count. The result is empty if the query is in English, or has no function words.
    """
    told = _function_words_in(query)
    most = max(told.values())
    return [one for one, count in told.items() if count == most] if most > told["en"] else ()


def _function_words_in(query: str) -> dict[str, int]:
    """Return the number of function words of each language, and of English."""
    long = [word for word in split(query.casefold()) if len(word) > 1]
    counts = {
        one: sum(word in words and word in OTHERS for word in long)
        for one, words in _FUNCTION_WORDS_OF.items()
    }
    return {"en": sum(word in ENGLISH for word in long), **counts}


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    """Yield the meanings of the longest known words in unspaced text, each with the word."""
    known = _unspaced_words()
    for _, word in _known_in(text):
        yield from ((meant, word) for meant in known[word])


def _known_in(text: str) -> list[tuple[int, str]]:
    """Return the longest known words in a text without spaces, each with its offset."""
    known = _unspaced_words()
    found: list[tuple[int, str]] = []
    start = 0
    while start < len(text):
        ends = range(min(len(text), start + MAX_KEY), start + 1, -1)
        word = next((text[start:end] for end in ends if text[start:end] in known), "")
        if word:
            found.append((start, word))
        start += len(word) or 1
    return found


def _in_words(
    table: _Words, words: Sequence[str], is_same: Callable[[str, str], bool]
) -> Iterator[tuple[str, str]]:
    """Yield the meanings of known words and phrases in a list of words, each with its words.

    The first word of a phrase must be the first word of the list. The other words of the phrase may
    follow in any order, with at most `_BETWEEN_WORDS` other words between them. For example,
    "cancel their subscription" contains "cancel subscription".
    """
    for text, meant in table.get(words[0][:_BEGINNING], ()):
        known = text.split()
        if not is_same(known[0], words[0]):
            continue
        near = words[1 : len(known) + _BETWEEN_WORDS]
        said = [next((word for word in near if is_same(one, word)), None) for one in known[1:]]
        if None not in said:
            yield meant, " ".join([words[0], *filter(None, said)])


@lru_cache(maxsize=1)
def everyday_words() -> frozenset[str]:
    """Return everyday English words that say little about the topic, such as "nice" and "month"."""
    return frozenset(Path(__file__).with_name("everyday.txt").read_text("utf-8").split())


def is_english_word(word: str) -> bool:
    """Tell whether a word is a form of an English word in the table of concepts."""
    return word in FUNCTION_WORDS | everyday_words() or stem(word) in _english_stems()


@lru_cache(maxsize=1)
def _english_stems() -> set[str]:
    return stems(_english()[1])


def _is_same_in_english(known: str, word: str) -> bool:
    # "unity" isn't a form of "unit", although both have the same stem.
    is_form = stem(known) == stem(word) and known.endswith(_OF_Y) == word.endswith(_OF_Y)
    return known == word or is_form


def _is_same(known: str, word: str, least: int = _BEGINNING) -> bool:
    """Tell whether two words differ only by an ending of at most two letters."""
    if known == word:
        return True
    beginning = max(len(known), len(word)) - _ENDING
    return beginning >= least and known[:beginning] == word[:beginning]


def _is_surely_same(known: str, word: str) -> bool:
    """Tell whether two words are forms of the same word, for words in an unknown language.

    This is stricter than `_is_same`: "poster" isn't a form of "postal".
    """
    return _is_same(known, word, _LONG_BEGINNING if word.isascii() else _BEGINNING)


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
def _foreign() -> dict[str, _Words]:
    """Return the foreign words of each language that separates words by spaces."""
    found: dict[str, _Words] = {language: {} for language in _FUNCTION_WORDS_OF}
    for author, _, _, _, _, *cells in _concepts():
        for language, cell in zip(_COLUMNS, cells, strict=True):
            for one in filter(None, cell.split("|")):
                found[language].setdefault(one[:_BEGINNING], []).append((one, author))
    return found


@lru_cache(maxsize=1)
def _unspaced_words() -> dict[str, list[str]]:
    """Return the foreign words in scripts without spaces, with their meanings."""
    table: dict[str, list[str]] = {}
    for author, _, *languages in _concepts():
        for one in filter(None, "|".join(languages[:3]).split("|")):
            table.setdefault(one, []).append(author)
    return table


@lru_cache(maxsize=1)
def _concepts() -> list[list[str]]:
    text = Path(__file__).with_name("lexicon.tsv").read_text("utf-8")
    return [line.split("\t") for line in text.splitlines()[1:]]
