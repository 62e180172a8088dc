"""How well what was found fits what was asked: whether its head names the telling words.

A search of thousands of texts always finds something. What fits says the words in its name, tags
or description; where the best hits don't, that is said, instead of presenting them as answers.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from registry.catalog.search.query import joined, stem, stems
from registry.catalog.search.rank import Asked, Word
from registry.db.interface import Pattern
from registry.model import Skill
from registry.text import has_unspaced, shorten, words

FITS: Final = 0.68
"""Below this confidence perhaps nothing fits. In a trial about 10,000 skills, asked by keywords, it
was said of 14 in 15 questions that had no answer, and of 7 in 228 that had one."""

MEANT: Final = 0.9
"""What other words tell, against those that were asked."""

MAX_MISSING, MAX_WORD = 5, 40
"""Words that are told, and the characters of one."""

_LAY: Final = 0.3


class _Sought(NamedTuple):
    """The stems of a pattern; ``last``: some word begins so, where it is not empty."""

    stems: Sequence[str]
    last: str = ""


class Wanted(NamedTuple):
    """What is looked for in each head: what was asked, with what each word tells, and all of it.

    Any of the patterns of a word will do.
    """

    words: Sequence[tuple[float, Sequence[_Sought]]]
    every: float
    lay: Sequence[_Sought]
    foreign: Sequence[_Sought]

    def named_by(self, head: str) -> float:
        """Return how much of it the text of a head names."""
        said = _stems(head)
        own = 0.0
        for weight, ways in self.words:
            if _holds(said, ways[0]) or any(_holds(said, one) for one in ways[1:]):
                own += weight
        own = own / self.every + _LAY * _share(said, self.lay)
        return min(1.0, max(own, MEANT * _share(said, self.foreign)))


def confidence(asked: Asked, skill: Skill) -> float:
    """Return how much of what was asked a skill's head names, weighed by how rare it is: 0 to 1."""
    return wanted(asked).named_by(head_of(skill))


def head_of(skill: Skill) -> str:
    """Return the text of a skill's head."""
    return " ".join([skill.name, *skill.tags, skill.description])


def missing(queries: Sequence[Asked], skills: Sequence[Skill]) -> tuple[str, ...]:
    """Return the words that no head of these skills names, as they were typed, each once.

    Of those that were typed as one ("on-call") the parts are not told besides.
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


def _share(said: frozenset[str], meant: Sequence[_Sought]) -> float:
    return sum(_holds(said, one) for one in meant) / len(meant) if meant else 0.0


def _holds(said: frozenset[str], sought: _Sought) -> bool:
    if sought.last and not any(word.startswith(sought.last) for word in said):
        return False
    return said.issuperset(sought.stems)


@lru_cache(maxsize=16)
def wanted(asked: Asked) -> Wanted:
    """Return what is looked for in heads."""
    words = [(word.weight, ways) for word, ways in _ways(asked)]
    return Wanted(
        words,
        sum(weight for weight, _ in words) or 1.0,
        [_sought(Pattern(term)) for term in asked.others.lay],
        [_sought(Pattern(term)) for term in asked.others.foreign],
    )


def _ways(asked: Asked) -> list[tuple[Word, list[_Sought]]]:
    """Return the words that were asked for, each with itself and what it makes with a neighbour.

    What two words make as one says both, and is not asked for besides: "web socket", "websocket".
    """
    neighbours = {one: pair for pair in pairwise(asked.terms) for one in joined(list(pair))}
    compounds = [word for word in asked.words if word.typed in neighbours]
    return [
        (
            word,
            [
                _sought(one.pattern)
                for one in (word, *compounds)
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
    """Return the stems of a head's words: the same skills are found by many questions."""
    return frozenset(stems(words(text.casefold())))
