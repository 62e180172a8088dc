"""Where in a text the patterns of behaviours can match, found sooner than by the patterns.

A pattern has ways to match, and every match holds one needle of each of the sets of its way
(``needles.json``, which ``python -m tests.needles`` works out from the patterns). Where a needle is
missing there is no match, so that what is passed over here is never a finding.
"""

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from ahocorasick_rs import AhoCorasick, BytesAhoCorasick, Implementation

_FILE: Final = Path(__file__).with_name("behaviours") / "needles.json"

STEP: Final = 16
"""Bytes after a needle in which the same one is not noted again."""

SLACK: Final = 64
"""Bytes around a stretch, as needles are noted every `STEP` bytes, and shortened."""

PIECE: Final = 1 << 16
"""Bytes that are looked through at once, so that hostile repetition takes little memory."""


_Way: TypeAlias = tuple[int, tuple[frozenset[str], ...], tuple[int, ...]]
"""A pattern's number, sets of which a match holds one needle each, the first one rarest, and how
many bytes of the match may lie before a needle of each set."""

_Look: TypeAlias = Callable[[bytes | str], Sequence[tuple[int, int, int]]]

Hits: TypeAlias = dict[str, list[int]]
"""Where each needle is that a text holds."""


class Prefilter:
    """Some patterns, and what their matches hold."""

    def __init__(
        self,
        kind: Literal["patterns", "foreign"],
        numbers: Iterable[int],
        words: Iterable[str] = (),
    ) -> None:
        """``numbers``: of the behaviours that are looked for. ``words``: looked for as well."""
        told = _told()
        sets = [frozenset(one) for one in told["sets"]]
        self._widths: Sequence[int] = [width for width, _ in told[kind]]
        # The first set of a way says most: only if a text holds one of it, the others are compared.
        self._ways: list[_Way] = []
        self._begun: dict[str, list[int]] = {word: [] for word in words}
        for number in numbers:
            for way in told[kind][number][1]:
                its = number, tuple(sets[one] for one, _ in way), tuple(b for _, b in way)
                for needle in its[1][0]:
                    self._begun.setdefault(needle, []).append(len(self._ways))
                for needle in chain.from_iterable(its[1]):
                    self._begun.setdefault(needle, [])
                self._ways.append(its)
        self._needles = list(self._begun)
        self._longest = max(map(len, self._needles))
        how = Implementation.ContiguousNFA
        machine: Any
        if kind == "foreign":
            machine = AhoCorasick(self._needles, implementation=how)
        else:
            machine = BytesAhoCorasick([one.encode() for one in self._needles], implementation=how)
        self._look: _Look = partial(machine.find_matches_as_indexes, overlapping=True)

    def hits(self, lower: bytes | str) -> Hits:
        """Return the needles that a text in small letters holds, and where."""
        found: defaultdict[int, list[int]] = defaultdict(list)
        for needle, place, _ in self._look(lower[:PIECE]):
            found[needle].append(place)
        for begin in range(PIECE - self._longest, len(lower) - self._longest, PIECE):
            piece = lower[begin : begin + PIECE + self._longest]
            for needle, place, _ in self._look(piece):
                places = found[needle]
                if not places or begin + place >= places[-1] + STEP:
                    places.append(begin + place)
        return {self._needles[needle]: places for needle, places in found.items()}

    def find(self, hits: Hits, size: int) -> Iterator[tuple[int, Sequence[tuple[int, int]]]]:
        """Yield the number of each behaviour that a text may have, and the stretches to look in.

        The stretches are in order and apart.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        present = frozenset(hits)
        for way in set(chain.from_iterable(map(self._begun.__getitem__, hits))):
            number, sets, before = self._ways[way]
            if any(map(present.isdisjoint, sets)):
                continue
            places = [[hits[needle] for needle in present & one] for one in sets]
            stretches = list(_stretches(places, before, self._widths[number]))
            if stretches:
                found.setdefault(number, []).extend(stretches)
        for number in sorted(found):
            yield number, _joined(found[number], size)


@cache
def _told() -> dict[str, Any]:
    told: dict[str, Any] = json.loads(_FILE.read_bytes())
    return told


def _stretches(
    sets: Sequence[Sequence[Sequence[int]]], before: Sequence[int], width: int
) -> Iterator[tuple[int, int]]:
    """Yield where a match of at most ``width`` bytes may lie that holds one needle of each set.

    ``sets``: the places of each needle of each set.
    """
    rarest = min(range(len(sets)), key=lambda one: sum(map(len, sets[one])))
    others = [its for number, its in enumerate(sets) if number != rarest]
    places = sets[rarest][0] if len(sets[rarest]) == 1 else sorted(chain(*sets[rarest]))
    ahead, behind = before[rarest] + SLACK, width + SLACK
    begin, end = places[0] - ahead, places[0] + behind
    for place in places:
        if place - ahead > end:
            if all(any(_holds(one, begin, end) for one in its) for its in others):
                yield begin, end
            begin = place - ahead
        end = place + behind
    if all(any(_holds(one, begin, end) for one in its) for its in others):
        yield begin, end


def _holds(places: Sequence[int], begin: int, end: int) -> bool:
    """Tell whether one of the ``places`` is in a stretch."""
    first = bisect_left(places, begin)
    return first < len(places) and places[first] < end


def _joined(stretches: list[tuple[int, int]], size: int) -> Sequence[tuple[int, int]]:
    """Return the stretches in order, those joined that touch."""
    stretches.sort()
    joined: list[tuple[int, int]] = []
    for begin, end in stretches:
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((max(0, begin), end))
    return [(begin, min(end, size)) for begin, end in joined]
