"""Find the parts of a text in which patterns can match, within a limit of processor time.

A pattern can match in several ways. For each way there are sets of needles, which are strings.
Every match contains at least one needle of each set. The needles are in ``needles.json``, which
``python -m tests.needles`` derives from the patterns. A text without these needles has no match. So
the prefilter never causes a missed finding.

A hostile text can make a pattern slow. Each repetition in a pattern has a maximum length. But
several repetitions in a row still allow thousands of attempts at each position of the text.
Ordinary texts need a hundredth of the limit.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import Path
from re import Match, Pattern
from time import perf_counter, thread_time
from typing import Any, AnyStr, Final, Generic, NamedTuple, TypeAlias

from ahocorasick_rs import AhoCorasick, BytesAhoCorasick, Implementation

LEAST: Final = 0.5
"""Minimum limit of processor time for a text, in seconds."""

FOR_EACH_BYTE: Final = 4e-6
"""Additional processor time for each byte of a text, in seconds."""

WINDOW: Final = 4096
"""Number of characters that one call searches; a running call can't be interrupted."""

CLOCKED: Final = 8192
"""Number of characters that are searched between two readings of the clock."""

LONGEST: Final = 3072
"""Maximum number of characters of a match outside the part that is searched."""


class CpuBudget:
    """The processor time for one text; when it is used up, ``is_over`` is True.

    Reading a thread's processor time needs a system call. So the wall clock is read first, and the
    processor time only after the wall clock exceeds the limit.
    """

    def __init__(self, size: int) -> None:
        self._granted = LEAST + size * FOR_EACH_BYTE
        self._until = perf_counter() + self._granted
        self._cpu_until = 0.0
        self._unclocked = 0
        self.is_over = False
        """Whether the processor time for this text is used up."""

    def find(
        self, pattern: Pattern[AnyStr], text: AnyStr, begin: int, end: int
    ) -> Iterator[Match[AnyStr]]:
        """Yield the matches between two offsets until the processor time is used up."""
        while begin < end and not self.is_over:
            stop = begin + WINDOW
            found = [
                match
                for match in pattern.finditer(text, begin, min(end, stop + LONGEST))
                if match.start() < stop
            ]
            self._clock(min(end, stop) - begin)
            yield from found
            begin = max(stop, found[-1].end() if found else 0)

    def _clock(self, size: int) -> None:
        """Read the clock once in `CLOCKED` bytes, because reading it is slow."""
        self._unclocked += size
        if self._unclocked >= CLOCKED:
            self._unclocked = 0
            if perf_counter() > self._until:
                now = thread_time()
                self._cpu_until = self._cpu_until or now + self._granted
                self.is_over = now > self._cpu_until


_FILE: Final = Path(__file__).with_name("behaviours") / "needles.json"

STEP: Final = 16
"""In a long text, only one needle in this number of bytes is recorded."""

SLACK: Final = 64
"""Bytes added to both ends of a part, because only one needle in `STEP` bytes is recorded."""

FEW: Final = 4
"""Maximum number of needles in a set that are searched one by one.

The search for them looks only near the needles of the rarest set.
"""

PIECE: Final = 1 << 16
"""Number of bytes that are searched at once.

This limits the memory for a text that repeats a needle.
"""

_Look: TypeAlias = Callable[[bytes | str], Sequence[tuple[int, int, int]]]

Hits: TypeAlias = Mapping[AnyStr, Sequence[int]]
"""The offsets of each needle in a text."""


class _Way(NamedTuple, Generic[AnyStr]):
    """One way in which a pattern can match: the number of the pattern, and the limits of a match.

    A match begins at most ``before`` bytes before a needle of the rarest set, and ends at most
    ``behind`` bytes after it. A match also contains one needle of each other set: ``few`` are the
    small sets, ``many`` the large sets. If ``in_line``, a match has no line end.
    """

    number: int
    before: int
    behind: int
    few: Sequence[Sequence[AnyStr]]
    many: Sequence[frozenset[AnyStr]]
    in_line: bool


class Prefilter(Generic[AnyStr]):
    """Finds the parts of a text in which some patterns can match."""

    def __init__(self, numbers: Iterable[int], words: Iterable[AnyStr], kind: type[AnyStr]) -> None:
        """Prepare the search for the patterns with these ``numbers``.

        The offsets of ``words`` are also recorded. ``kind`` is bytes for `BEHAVIOURS`, and str for
        `FOREIGN`.
        """
        derived = _derived()
        is_bytes = issubclass(kind, bytes)
        sets: list[list[AnyStr]] = derived["sets"]
        if is_bytes:
            sets = [[needle.encode() for needle in one] for one in derived["sets"]]
        patterns = derived["patterns" if is_bytes else "foreign"]
        self._ways: dict[AnyStr, list[_Way[AnyStr]]] = {word: [] for word in words}
        for number in numbers:
            width, in_line, ways = patterns[number]
            for (rarest, before), *others in ways:
                few = [sets[one] for one, _ in others if len(sets[one]) <= FEW]
                many = [frozenset(sets[one]) for one, _ in others if len(sets[one]) > FEW]
                for needle in chain.from_iterable(many):
                    self._ways.setdefault(needle, [])
                few.sort(key=len)
                way = _Way(number, before + SLACK, width + SLACK, few, many, bool(in_line))
                for needle in sets[rarest]:
                    self._ways.setdefault(needle, []).append(way)
        self._needles: list[AnyStr] = list(self._ways)
        self._line_end: Any = b"\n" if is_bytes else "\n"
        self._longest = max(map(len, self._needles))
        machine: Any = BytesAhoCorasick if is_bytes else AhoCorasick
        machine = machine(self._needles, implementation=Implementation.ContiguousNFA)
        self._look: _Look = partial(machine.find_matches_as_indexes, overlapping=True)

    def hits(self, lower: AnyStr) -> Hits[AnyStr]:
        """Return the needles in a lower-case text, with their offsets."""
        found: dict[int, list[int]] = {}
        for needle, place, _ in self._look(lower[:PIECE]):
            if needle in found:
                found[needle].append(place)
            else:
                found[needle] = [place]
        for begin in range(PIECE - self._longest, len(lower) - self._longest, PIECE):
            piece = lower[begin : begin + PIECE + self._longest]
            for needle, place, _ in self._look(piece):
                places = found.setdefault(needle, [])
                if not places or begin + place >= places[-1] + STEP:
                    places.append(begin + place)
        return {self._needles[needle]: places for needle, places in found.items()}

    def find(
        self, hits: Hits[AnyStr], lower: AnyStr
    ) -> Iterator[tuple[int, Sequence[tuple[int, int]]]]:
        """Yield the number of each pattern that may match, with the parts of the text to search.

        The parts are sorted and don't overlap.
        """
        found: dict[int, list[tuple[int, int]]] = {}
        present: frozenset[AnyStr] = frozenset(hits)
        way: _Way[AnyStr]
        others: Sequence[Iterable[AnyStr]]
        for needle, places in hits.items():
            for way in self._ways[needle]:
                others = way.few
                if way.many:
                    if any(map(present.isdisjoint, way.many)):
                        continue
                    others = list(chain(way.few, map(present.intersection, way.many)))
                if way.in_line:
                    stretches = _lines(places, way.before, way.behind, lower, self._line_end)
                else:
                    stretches = _stretches(places, way.before, way.behind)
                for begin, end in stretches:
                    if _has_one_of_each(others, lower, begin, end):
                        found.setdefault(way.number, []).append((begin, end))
        for number in sorted(found):
            yield number, _joined(found[number], len(lower))


@cache
def _derived() -> dict[str, Any]:
    derived: dict[str, Any] = json.loads(_FILE.read_bytes())
    return derived


def _has_one_of_each(sets: Iterable[Iterable[AnyStr]], lower: AnyStr, begin: int, end: int) -> bool:
    """Tell whether a part of a text contains at least one needle of each set."""
    for needles in sets:
        for needle in needles:
            if lower.find(needle, begin, end) >= 0:
                break
        else:
            return False
    return True


def _stretches(places: Sequence[int], before: int, behind: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text around these offsets; overlapping parts are merged."""
    begin, end = max(0, places[0] - before), places[0] + behind
    for place in places:
        if place - before > end:
            yield begin, end
            begin = place - before
        end = place + behind
    yield begin, end


def _lines(
    places: Sequence[int], before: int, behind: int, lower: AnyStr, line_end: AnyStr
) -> Iterator[tuple[int, int]]:
    """Yield the parts of a text as `_stretches` does, but only within the line of each offset."""
    begin = end = whole = 0
    for place in places:
        if place + STEP < whole:
            continue  # the previous part already contains this line
        first = max(0, place - before)
        first = lower.rfind(line_end, first, place) + 1 or first
        if first > end:
            if end:
                yield begin, end
            begin = first
        whole = lower.find(line_end, place + STEP, place + behind) + 1
        end = whole or place + behind
    yield begin, end


def _joined(stretches: list[tuple[int, int]], size: int) -> Sequence[tuple[int, int]]:
    """Return the parts of a text in order; overlapping parts are merged."""
    if len(stretches) == 1:
        return [(stretches[0][0], min(stretches[0][1], size))]
    stretches.sort()
    joined: list[tuple[int, int]] = []
    for begin, end in stretches:
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return [(begin, min(end, size)) for begin, end in joined]
