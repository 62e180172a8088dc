"""Which skills a query finds, the best first: what heads say and what bodies say, in one list.

Both lists are ranked by how often and how rare the words are (BM25); a skill's places in them are
put together by reciprocal ranks (Cormack, Clarke, Büttcher 2009), where heads count more.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from registry.catalog.search.lexicon import OtherWords, other_words
from registry.catalog.search.query import Term, joined, parse, stem, unquoted
from registry.db.asked import Condition, Pattern, Question
from registry.db.interface import Reader
from registry.text import has_unspaced

MAX_RANKED: Final = 100
"""So many of the best are ranked in each list; nobody pages on to the others."""

COMMON: Final = 3000
"""Words that so many texts hold are equally common."""

MAX_BODY_TERMS: Final = 6
MAX_TEXTS: Final = 3000
"""The rarest words are looked for in bodies, as long as no more texts have to be ranked for them:
more of them cost more than they tell."""

RANK: Final = 6
"""How slowly a place in a list loses its worth: after so many others, half of it."""

HEADS, BODIES, LAY, FOREIGN = 1.0, 0.6, 1.0, 1.0
"""What the first place is worth: in heads, in bodies; in heads where lay words of English count as
well; in heads for what words of other languages mean."""

_UNKNOWN_PAIR: Final = 0.2
"""Most pairs of neighbouring characters that no skill has are no words."""

_LEAST: Final = 0.1
"""What a word tells that everybody has."""

_MIN_PREFIX: Final = 3
_MIN_SPELLED: Final = 5
_SAME_BEGINNING: Final = 1
_CUTOFF: Final = 0.8


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as the index is asked: ``terms`` with how many heads and bodies hold each.

    ``patterns``: for each term, what is looked for. ``others``: what it says in other words.
    """

    terms: tuple[Term, ...]
    patterns: tuple[Pattern, ...]
    heads: tuple[int, ...]
    bodies: tuple[int, ...]
    others: OtherWords

    @property
    def weights(self) -> list[float]:
        """How much each term tells."""
        return list(map(_weight, self.patterns, self.heads, self.bodies))


def understand(reader: Reader, query: str) -> Asked:
    """Return how the index is asked for a query.

    A word that no skill has stands for those that begin with it, else for those spelt much alike.
    """
    terms = parse(query)
    compounds = [term for term in joined(terms) if term not in terms]
    looked_for = [_pattern(term) for term in (*terms, *compounds)]
    heads = reader.index.counts(reader, "heads", looked_for, COMMON)
    bodies = reader.index.counts(reader, "bodies", looked_for, COMMON)
    for place, term in enumerate(terms):
        if not heads[place] + bodies[place] and len(term) == 1:
            for pattern in _instead(reader, term[0]):
                (count,) = reader.index.counts(reader, "heads", [pattern], COMMON)
                (below,) = reader.index.counts(reader, "bodies", [pattern], COMMON)
                if count + below:
                    looked_for[place], heads[place], bodies[place] = pattern, count, below
                    break
    known = [place for place in range(len(looked_for)) if place < len(terms) or heads[place]]
    return Asked(
        tuple((*terms, *compounds)[place] for place in known),
        tuple(looked_for[place] for place in known),
        tuple(heads[place] for place in known),
        tuple(bodies[place] for place in known),
        other_words(unquoted(query)),
    )


def _pattern(term: Term) -> Pattern:
    """Return what is looked for: a single character begins a pair."""
    return Pattern(term, len(term) == 1 and len(term[0]) == 1 and has_unspaced(term[0]))


def _instead(reader: Reader, word: str) -> Iterator[Pattern]:
    if has_unspaced(word):
        return
    if len(word) >= _MIN_PREFIX:
        yield Pattern((word,), prefix=True)
    if len(word) >= _MIN_SPELLED:
        known = reader.index.vocabulary(reader, word[:_SAME_BEGINNING])
        for other in get_close_matches(stem(word), known, 1, _CUTOFF):
            yield Pattern((other,))


def rank(reader: Reader, asked: Asked, condition: Condition, most: int) -> dict[int, float]:
    """Return the ids of skills that match and a condition holds for, with scores, the best first.

    At most ``most`` of each list are looked at.
    """
    in_heads = [one for one, count in zip(asked.patterns, asked.heads, strict=True) if count]
    questions: list[tuple[float, Question]] = [
        (HEADS * _known(asked.heads, asked), ("heads", in_heads)),
        (
            BODIES * _known(asked.bodies, asked),
            ("bodies", _rarest(asked)),
        ),
    ]
    if asked.others.lay:
        questions.append((LAY, ("heads", [*in_heads, *map(Pattern, asked.others.lay)])))
    if asked.others.foreign:
        questions.append((FOREIGN, ("heads", list(map(Pattern, asked.others.foreign)))))
    lists = reader.index.best(reader, [one for _, one in questions], condition, most)
    scores: dict[int, float] = {}
    for (weight, _), found in zip(questions, lists, strict=True):
        for place, one in enumerate(found):
            scores[one] = scores.get(one, 0.0) + weight * RANK / (RANK + place)
    return dict(sorted(scores.items(), key=lambda one: (-one[1], one[0])))


def _rarest(asked: Asked) -> list[Pattern]:
    """Return what is looked for in bodies."""
    held = sorted(
        (count, heads, pattern)
        for count, heads, pattern in zip(asked.bodies, asked.heads, asked.patterns, strict=True)
        if count
    )
    found: list[Pattern] = []
    texts = 0
    for count, _, pattern in held[:MAX_BODY_TERMS]:
        texts += count
        if found and texts > MAX_TEXTS:
            break
        found.append(pattern)
    return found


def _known(counts: Sequence[int], asked: Asked) -> float:
    """Return which share of what was asked a list can tell of at all."""
    known = sum(one for one, count in zip(asked.weights, counts, strict=True) if count)
    return known / (sum(asked.weights) or 1.0)


def telling(pattern: Pattern, heads: int, bodies: int) -> float:
    """Return how much a term tells as a share of what it can, from 0 to 1."""
    return _weight(pattern, heads, bodies) / (math.log(COMMON) + _LEAST)


def _weight(pattern: Pattern, heads: int, bodies: int) -> float:
    """Return how much a term tells: the more, the fewer skills have it."""
    weight = math.log(COMMON / (min(heads, COMMON - 1) + 1)) + _LEAST
    is_accident = not heads + bodies and has_unspaced("".join(pattern.words))
    return weight * _UNKNOWN_PAIR if is_accident else weight
