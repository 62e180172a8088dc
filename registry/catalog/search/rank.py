"""Rank skills for a query, and compute how well they match.

A search makes two lists of matches: in heads (name, tags and description), and in bodies. Then it
combines the lists.
"""

import json
import math
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from string import ascii_lowercase
from typing import Final, NamedTuple, Self

from registry.catalog.search.query import (
    OtherWords,
    Term,
    everyday_words,
    is_english_word,
    joined,
    joined_in,
    language_of,
    other_words,
    parse,
    said_for,
    stem,
    stems,
    unquoted,
)
from registry.db.interface import Condition, IndexQuery, Pattern, Reader, SearchLimits, SearchTerms
from registry.disk.files import digest
from registry.model import Skill
from registry.text import has_unspaced, shorten, words

MAX_RANKED: Final = 100
"""Maximum number of skills that are ranked in each list of matches; users read no further pages."""

COMMON: Final = 0.3
SMALL: Final = 3000
"""A word is common if this number of heads contain it.

In a large catalogue, the number is the share ``COMMON`` of the heads. All common words have the
same weight.
"""

MAX_BODY_TERMS: Final = 6
MAX_TEXTS: Final = 3000
"""Maximum number of bodies to rank.

The search looks for the rarest words of a query in bodies first. When more bodies than this match,
it looks for no further word. Another word would take time and improve the result only a little.
"""

EVERYWHERE: Final = 10_000
"""If at least this number of bodies contain a word, the search doesn't look for it in bodies.

Counting stops at this number. If all words of a query are so common, the search looks only for the
rarest of them in bodies.
"""

MAX_KNOWN, MAX_LENGTH = 5000, 60
"""Maximum number of patterns with cached counts, and maximum length of such a pattern."""

RANK: Final = 6
"""The constant k of reciprocal rank fusion, k / (k + rank); at rank k, the score is half."""

HEADS_WEIGHT, BODIES_WEIGHT, LAY_WEIGHT, FOREIGN_WEIGHT, MEANING_WEIGHT = 1.0, 0.8, 1.0, 1.0, 1.0
"""Weight of the first result of each list of matches.

The heads are names, tags and descriptions. The lists for everyday words (lay) and for translations
(foreign) also are matches in the heads. The last list, skills with a similar meaning, exists only
with the extra ``semantic``.
"""

_UNKNOWN_PAIR: Final = 0.2
"""Factor for the weight of pairs of characters that occur in no name, tag or description.

Such pairs are usually not words.
"""

_EVERYDAY: Final = 0.15
"""Factor for the weight of everyday words.

Only few skills contain words such as "nice", but these words don't describe a task.
"""

_TELLING: Final = 5
"""Number of a query's rarest words from which the confidence is computed.

A query that is a sentence has more words than the head of any skill.
"""

_SHORT: Final = 4
_LENIENT: Final = 1.14
"""Factor for the confidence of queries with more than ``_SHORT`` words.

If a skill doesn't contain one of three keywords, it has another topic. But a sentence also has
words that no author of a skill would use.
"""

_LEAST: Final = 0.1
"""Minimum weight of a word; a word that every skill contains has this weight."""

_BELOW: Final = 0.9
_MIN_PREFIX: Final = 3
_MIN_SPELLED: Final = 5
_SAME_BEGINNING: Final = 2
_CUTOFF: Final = 0.8
_NEAREST: Final = 3
"""Maximum number of similar words to try for a word that no skill contains.

A server's index may still contain words that no skill contains any more, so one word isn't enough.
"""

_MAX_SPELLED: Final = 30
_MAX_CORRECTED: Final = 4
"""Maximum length of a corrected word, and maximum number of corrected words in a query.

Each correction takes some hundred lookups.
"""

_MIN_PART: Final = 2
_SELDOM: Final = 5000
_TIMES: Final = 100
"""A word may be misspelt if less than one in ``_SELDOM`` bodies contains it.

The word is replaced if a similar word is in more than ``_TIMES`` times as many texts.
"""


class Among(NamedTuple):
    """The versions in a view that doesn't show all skills.

    ``key`` identifies the view in caches: each such view of a database has a different key.
    """

    ids: frozenset[int]
    key: str

    @classmethod
    def of(cls, ids: Collection[int] | None) -> "Among | None":
        """Return the versions ``ids`` of a view; None if the view shows all skills."""
        return None if ids is None else _among(tuple(ids))


@lru_cache(maxsize=8)
def _among(ids: tuple[int, ...]) -> Among:
    return Among(frozenset(ids), digest(json.dumps(ids).encode()))


class Word(NamedTuple):
    """A typed term, its search pattern, and how many heads and bodies contain the pattern.

    ``also`` holds other spellings: "powerbi" for "power bi". ``size`` is the number of skills in
    the catalogue.
    """

    typed: Term
    pattern: Pattern
    heads: int
    bodies: int
    size: int
    also: tuple[Pattern, ...] = ()

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """The patterns of all spellings of the word."""
        return self.pattern, *self.also

    @property
    def weight(self) -> float:
        """The weight of the word; rarer words have a higher weight."""
        common = self._common
        weight = math.log(common / (min(self.heads, common - 1) + 1)) + _LEAST
        if self.typed[0] in everyday_words() and len(self.typed) == 1:
            return weight * _EVERYDAY
        is_accident = not self.heads and has_unspaced("".join(self.pattern.words))
        return weight * _UNKNOWN_PAIR if is_accident else weight

    @property
    def telling(self) -> float:
        """The weight as a share of the maximum weight, from 0 to 1."""
        return self.weight / (math.log(self._common) + _LEAST)

    @property
    def _common(self) -> int:
        return max(SMALL, int(self.size * COMMON))


class Asked(NamedTuple):
    """A query with the patterns to search for; ``others`` holds its synonyms and translations."""

    words: tuple[Word, ...]
    others: OtherWords

    @property
    def terms(self) -> list[Term]:
        """The terms as the user typed them."""
        return [word.typed for word in self.words]


class Said(NamedTuple):
    """A parsed query: its terms, compounds of adjacent terms, and synonyms.

    ``kept`` has the words that must not be corrected: for a query in another language, all of its
    words.
    """

    terms: Sequence[Term]
    compounds: Sequence[Term]
    others: OtherWords
    kept: frozenset[str] = frozenset()

    @classmethod
    def of(cls, query: str) -> Self:
        """Parse a query without reading the index."""
        terms = parse(query)
        compounds = [term for term in joined_in(unquoted(query), terms) if term not in terms]
        is_foreign = bool(language_of(query))
        meant = said_for(unquoted(query)).values()
        kept = (
            [one[0] for one in terms] if is_foreign else [w for one in meant for w in one.split()]
        )
        return cls(terms, compounds, other_words(unquoted(query)), frozenset(kept))


def understand(reader: Reader, said: Said, among: Among | None) -> Asked:
    """Return the query with patterns that occur in the search index.

    If no skill contains a word, words that begin with it, or words with a similar spelling, replace
    it. In a view that doesn't show all skills, ``among`` holds its skills, and only these are
    counted.
    """
    terms = said.terms
    sought = [(term, _pattern(term)) for term in (*terms, *said.compounds)]
    counted_words = counted(reader, sought, among)
    words = _instead(reader, counted_words[: len(terms)], said.kept, among)
    words += [word for word in counted_words[len(terms) :] if word.heads]
    return Asked(tuple(words), said.others)


def expect(reader: Reader, queries: Sequence[Said], condition: Condition, most: int) -> None:
    """Announce the next queries to the index, so that a server gets all SELECTs at once."""

    def sought(said: Said) -> SearchTerms:
        typed = [
            (_pattern(term), Pattern(term, prefix=True) if _may_begin(term) else None)
            for term in said.terms
        ]
        others = said.others
        return SearchTerms(
            typed,
            [*map(_pattern, said.compounds)],
            [*map(Pattern, others.lay)],
            [*map(Pattern, others.foreign)],
        )

    limits = SearchLimits(EVERYWHERE, MAX_BODY_TERMS, MAX_TEXTS, MAX_RANKED, RANK)
    reader.index.expect(reader, [*map(sought, queries)], condition, most, limits)


def counted(
    reader: Reader, looked_for: Sequence[tuple[Term, Pattern]], among: Among | None = None
) -> list[Word]:
    """Return these words, each with the number of heads and of bodies that contain its patterns."""
    pairs = _counts(reader, [pattern for _, pattern in looked_for], among)
    size = reader.index.size(reader) if among is None else len(among.ids)
    return [Word(*one, *counts, size) for one, counts in zip(looked_for, pairs, strict=True)]


def _counts(
    reader: Reader, patterns: Sequence[Pattern], among: Among | None
) -> list[tuple[int, int]]:
    """Return the number of heads and of bodies with each pattern, if possible from the cache."""

    def nothing(_: Reader) -> dict[Pattern, tuple[int, int]]:
        return {}

    known = reader.remembered(
        "word counts" if among is None else f"word counts {among.key}", nothing
    )
    new = [one for one in dict.fromkeys(patterns) if one not in known]
    ids = None if among is None else among.ids
    counts = dict(zip(new, reader.index.counts(reader, new, EVERYWHERE, ids), strict=True))
    found = [counts[one] if one in counts else known[one] for one in patterns]
    if len(known) + len(counts) > MAX_KNOWN:
        known.clear()
    known.update(
        (one, count) for one, count in counts.items() if sum(map(len, one.words)) <= MAX_LENGTH
    )
    return found


def _pattern(term: Term) -> Pattern:
    """Return the pattern of a term.

    In a script without spaces, a single character matches pairs that begin with it.
    """
    return Pattern(term, len(term) == 1 and len(term[0]) == 1 and has_unspaced(term[0]))


def _instead(
    reader: Reader, words: Sequence[Word], kept: Collection[str], among: Among | None
) -> list[Word]:
    """Return the words, with replacements for words that no skill has or that look misspelt."""
    found = list(words)
    unknown = [
        place
        for place, word in enumerate(words)
        if not word.heads + word.bodies and _may_begin(word.typed)
    ]
    typed = [words[place].typed for place in unknown]
    begun = counted(reader, [(one, Pattern(one, prefix=True)) for one in typed], among)
    for place, word in zip(unknown, begun, strict=True):
        if word.heads + word.bodies:
            found[place] = word
    left = [at for at, word in enumerate(found) if _is_doubtful(word, kept)]
    for place in left[:_MAX_CORRECTED]:
        found[place] = _spelled(reader, found[place], among)
    return found


def _may_begin(term: Term) -> bool:
    """Tell whether words that begin with a term may replace it, if no skill contains it."""
    return len(term) == 1 and len(term[0]) >= _MIN_PREFIX and not has_unspaced(term[0])


def _is_doubtful(word: Word, kept: Collection[str]) -> bool:
    """Tell whether a word may be misspelt: no head and hardly any body contains it."""
    said = word.typed[0]
    return not (
        word.heads
        or word.bodies * _SELDOM > word.size
        or len(word.typed) > 1
        or not _MIN_SPELLED <= len(said) <= _MAX_SPELLED
        or said in kept
        or has_unspaced(said)
    )


def _spelled(reader: Reader, word: Word, among: Among | None) -> Word:
    """Return a word with the spelling that skills use.

    The word may be two joined words ("powerbi"), or misspelt. If some bodies contain the word, a
    similar word replaces it only if many times more texts contain that word. Known English words
    don't change.
    """
    said = word.typed[0]
    parts = [(said[:at], said[at:]) for at in range(_MIN_PART, len(said) - _MIN_PART + 1)]
    apart = counted(reader, [(word.typed, Pattern(one)) for one in parts], among)
    best = max(apart, key=lambda one: one.heads, default=word)
    if best.heads > word.bodies:
        return best
    return word if is_english_word(said) else _nearly(reader, word, among)


def _nearly(reader: Reader, word: Word, among: Among | None) -> Word:
    """Return the most frequent word among those with a similar spelling, or else the word itself.

    The index has the words of all skills. In a view that doesn't show all skills, the most similar
    words may occur only in hidden skills. So this function then tries all similar words.
    """
    said = stem(word.typed[0])
    slips = reader.index.known(reader, _slips(said)) if len(said) >= _MIN_SPELLED else []
    # The index stems words a second time, so a stem that looks like a plural needs an "e":
    # "databas".
    tried = [*slips, *(f"{one}e" for one in slips if one.endswith("s"))]
    words = counted(reader, [(word.typed, Pattern((other,))) for other in tried], among)
    best = max(words, key=lambda one: (one.heads, one.bodies), default=word)
    if best.heads + best.bodies > _TIMES * word.bodies:
        return best
    if word.bodies:
        return word
    known = reader.index.vocabulary(reader, said[:_SAME_BEGINNING])
    most = _NEAREST if among is None else max(len(known), 1)
    near = get_close_matches(said, known, most, _CUTOFF)
    words = counted(reader, [(word.typed, Pattern((other,))) for other in near], among)
    return next((one for one in words if one.heads + one.bodies), word)


def _slips(word: str) -> list[str]:
    """Return the words that differ by one letter, or by two exchanged letters.

    The first letter doesn't change, because it is nearly always right.
    """
    cuts = [(word[:at], word[at:]) for at in range(1, len(word) + 1)]
    found = [a + b[1:] for a, b in cuts if b]
    found += [a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1]
    found += [a + letter + b[1:] for a, b in cuts if b for letter in ascii_lowercase]
    found += [a + letter + b for a, b in cuts for letter in ascii_lowercase]
    return [one for one in dict.fromkeys(found) if one != word]


def rank(
    reader: Reader,
    asked: Asked,
    condition: Condition,
    most: int,
    among: Among | None = None,
    near: Sequence[int] = (),
) -> dict[int, float]:
    """Return the scores of the skills that match and meet a condition, by version id, best first.

    At most ``most`` skills of each list of matches are used. ``near`` is a list of skills with a
    similar meaning; see `meaning.nearest`.
    """
    in_heads = [one for word in asked.words if word.heads for one in word.patterns]
    in_bodies = [word.pattern for word in _rarest(asked)]
    every = sum(word.weight for word in asked.words) or 1.0
    # In the score, the share of a list is the weight of its words as a part of the query's weight.
    above = sum(word.weight for word in asked.words if word.heads) / every
    below = sum(word.weight for word in asked.words if word.bodies) / every
    questions: list[tuple[float, IndexQuery]] = [
        (HEADS_WEIGHT * above, ("heads", in_heads)),
        (BODIES_WEIGHT * below, ("bodies", in_bodies)),
    ]
    if asked.others.lay:
        questions.append((LAY_WEIGHT, ("heads", [*in_heads, *map(Pattern, asked.others.lay)])))
    if asked.others.foreign:
        questions.append((FOREIGN_WEIGHT, ("heads", list(map(Pattern, asked.others.foreign)))))
    ids = None if among is None else among.ids
    lists = reader.index.best(reader, [one for _, one in questions], condition, most, ids)
    scores: dict[int, float] = {}
    weights = [weight for weight, _ in questions]
    for weight, found in zip((*weights, MEANING_WEIGHT), (*lists, near), strict=True):
        for place, one in enumerate(found):
            scores[one] = scores.get(one, 0.0) + weight * RANK / (RANK + place)
    # if the query has only one word, a head with this word contains the whole query
    if len(asked.words) == 1:
        named = set[int]().union(lists[0], *lists[2:])
        _put_last(scores, scores.keys() - named, named)
    return dict(sorted(scores.items(), key=lambda one: (-one[1], one[0])))


def _put_last(scores: dict[int, float], last: Collection[int], others: Collection[int]) -> None:
    """Lower the scores of the skills ``last`` below those of ``others``; keep their order."""
    most = max((scores[one] for one in last), default=0.0)
    least = min((scores[one] for one in others), default=most)
    for one in last:
        scores[one] *= min(1.0, _BELOW * least / most)


def _rarest(asked: Asked) -> list[Word]:
    """Return the words to look for in bodies: the rarest words of the query."""
    said = (word for word in asked.words if word.bodies)
    telling = [word for word in said if word.bodies < EVERYWHERE or word.heads < MAX_RANKED]
    rarest = sorted(telling, key=lambda word: word[::-1])
    found: list[Word] = []
    texts = 0
    for word in rarest[:MAX_BODY_TERMS]:
        texts += word.bodies
        if found and texts > MAX_TEXTS:
            break
        found.append(word)
    return found


FITS: Final = 0.68
"""If the confidence is lower than this, a search reports that there is no close match.

In a trial with keywords and 10,000 skills, it reported this for 14 of 15 queries without a suitable
skill, and for 7 of 228 queries with a suitable skill.
"""

MEANT: Final = 0.9
"""Weight of translations relative to the typed words."""

MAX_MISSING, MAX_WORD = 5, 40
"""Maximum number of reported missing words, and maximum number of characters of each."""

_LAY: Final = 0.3


class _Sought(NamedTuple):
    """The stems to find for one form of a word.

    If ``last`` isn't empty, the text must also contain a word that begins with ``last``.
    """

    stems: Sequence[str]
    last: str = ""


class Fit(NamedTuple):
    """The share of a query that a head contains, weighted by word, from 0 to 1.

    ``whole`` is computed from all words, ``confidence`` only from the `_TELLING` rarest words.
    """

    whole: float
    confidence: float


class Wanted(NamedTuple):
    """The patterns to find in each head (name, tags, description), and the weights of the words.

    The rarest words come first. ``every`` is the sum of all weights. A word counts as found if the
    head contains one of its patterns.
    """

    words: Sequence[tuple[float, Sequence[_Sought]]]
    every: float
    lay: Sequence[_Sought]
    foreign: Sequence[_Sought]

    def named_by(self, head: str) -> Fit:
        """Return which share of the query a head contains."""
        said = _stems(head)
        own, told, first = 0.0, 0.0, 0.0
        for place, (weight, ways) in enumerate(self.words):
            if place < _TELLING:
                first += weight
            if _holds(said, ways[0]) or any(_holds(said, one) for one in ways[1:]):
                own += weight
                told += weight if place < _TELLING else 0.0
        lay, foreign = _LAY * _share(said, self.lay), MEANT * _share(said, self.foreign)
        whole = min(1.0, max(own / self.every + lay, foreign))
        lenient = _LENIENT if len(self.words) > _SHORT else 1.0
        return Fit(whole, min(1.0, lenient * max(told / (first or 1.0) + lay, foreign)))


def confidence(asked: Asked, skill: Skill) -> float:
    """Return the share of the query's rarest words that a skill's head contains, from 0 to 1.

    The rarer a word is, the more it counts. The head is the skill's name, tags and description.
    """
    return wanted(asked).named_by(head_of(skill)).confidence


def head_of(skill: Skill) -> str:
    """Return the head of a skill: its name, tags and description as one text."""
    return " ".join([skill.name, *skill.tags, skill.description])


def missing(queries: Sequence[Asked], skills: Sequence[Skill]) -> tuple[str, ...]:
    """Return the typed words that the names, tags and descriptions of these skills don't contain.

    Each word is returned once. The parts of a compound ("on-call") are not returned again.
    """
    heads = [_stems(head_of(skill)) for skill in skills]
    found = dict.fromkeys(
        word.typed
        for asked in queries
        for word, ways in _ways(asked)
        if not has_unspaced("".join(word.typed))
        and not any(_holds(said, one) for said in heads for one in ways)
    )
    parts = {(part,) for term in found if len(term) > 1 for part in term}
    told = [shorten(" ".join(term), MAX_WORD) for term in found if term not in parts]
    return tuple(told[:MAX_MISSING])


MAX_SHORTER: Final = 3
"""Maximum number of shorter queries that are suggested."""

_FEW: Final = 2, 4
"""Minimum and maximum number of words of a suggested query."""


def shorter(queries: Sequence[Asked], skills: Sequence[Skill]) -> tuple[str, ...]:
    """Return shorter queries with words that occur together in the head of one of these skills.

    The rarest words come first. Foreign words are replaced by their English translations.
    """
    heads = [_stems(head_of(skill)) for skill in skills]
    found: dict[str, float] = {}
    for asked in queries:
        if asked.others.foreign:
            words = dict.fromkeys(word for term in asked.others.foreign for word in term)
            found[" ".join([*words][: _FEW[1]])] = math.inf
        ways = [one for one in _ways(asked) if not has_unspaced("".join(one[0].typed))]
        for said in heads:
            matching = [word for word, some in ways if any(_holds(said, one) for one in some)]
            telling = sorted(matching, key=lambda word: -word.weight)[: _FEW[1]]
            if _FEW[0] <= len(telling) < len(ways):
                text = " ".join(" ".join(word.typed) for word in matching if word in telling)
                found[text] = sum(word.weight for word in telling)
    best = sorted(found, key=lambda text: -found[text])
    return tuple(shorten(text, MAX_WORD) for text in best[:MAX_SHORTER])


def respelled(queries: Sequence[Asked], skills: Sequence[Skill]) -> tuple[tuple[str, str], ...]:
    """Return the words for which the search used another spelling, and the words in that spelling.

    The spelling is that of these skills' heads, because the index has only stems.
    """
    heads = dict.fromkeys(one for skill in skills for one in words(head_of(skill).casefold()))
    found: dict[str, str] = {}
    for asked in queries:
        for word in asked.words:
            used = word.pattern.words
            if used != word.typed and not word.pattern.prefix:
                same = [one for one in heads if len(used) == 1 and one.startswith(used[0])]
                found[" ".join(word.typed)] = min(same, key=len, default=" ".join(used))
    return tuple((shorten(typed, MAX_WORD), used) for typed, used in found.items())


def _share(said: frozenset[str], meant: Sequence[_Sought]) -> float:
    return sum(_holds(said, one) for one in meant) / len(meant) if meant else 0.0


def _holds(said: frozenset[str], sought: _Sought) -> bool:
    if sought.last and not any(word.startswith(sought.last) for word in said):
        return False
    return said.issuperset(sought.stems)


@lru_cache(maxsize=16)
def wanted(asked: Asked) -> Wanted:
    """Return the patterns to find in heads (name, tags, description)."""
    words = [(word.weight, ways) for word, ways in _ways(asked)]
    words.sort(key=lambda one: -one[0])
    return Wanted(
        words,
        sum(weight for weight, _ in words) or 1.0,
        [_sought(Pattern(term)) for term in asked.others.lay],
        [_sought(Pattern(term)) for term in asked.others.foreign],
    )


def _ways(asked: Asked) -> list[tuple[Word, list[_Sought]]]:
    """Return each typed word with its forms, and with its compound with an adjacent word.

    The compound ("websocket") may be found in place of both words ("web socket"). The compound
    doesn't count as an additional word.
    """
    neighbours = {one: pair for pair in pairwise(asked.terms) for one in joined(list(pair))}
    compounds = [word for word in asked.words if word.typed in neighbours]
    return [
        (
            word,
            [
                _sought(pattern)
                for one in (word, *compounds)
                for pattern in one.patterns
                if one is word or word.typed in neighbours[one.typed]
            ],
        )
        for word in asked.words
        if word.typed not in neighbours
    ]


def _sought(pattern: Pattern) -> _Sought:
    found = [stem(word) for word in pattern.words]
    return _Sought(found[:-1], found[-1]) if pattern.prefix else _Sought(found)


@lru_cache(maxsize=1000)
def _stems(text: str) -> frozenset[str]:
    """Return the stems of the words in a head.

    A cache has the results, because many queries find the same skills.
    """
    return frozenset(stems(words(text.casefold())))
