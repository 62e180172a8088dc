"""The states of the disk that a power cut may leave: those most telling, and random ones.

At each cut, which is before one of the recorded calls or after the last, for each change of names:
all but it and what needs it; only it and what it needs; a beginning of all. For each file with
writes that were not synced: nothing of them, zeros, a beginning, all of them alone. And chance.
"""

import itertools
import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from tests.powerloss.model import SECTOR, History, Part, Pending, Ranges, Write
from tests.powerloss.tree import Tree

Names: TypeAlias = frozenset[int]
Data: TypeAlias = Mapping[int, tuple[Part, ...]]

_BEGINNINGS: Final = 4
"""Beginnings of a file's writes that are tried at a cut."""


@dataclass(frozen=True)
class State:
    """One state of the disk after a cut; `tree` says what it is like."""

    history: History
    cut: int
    names: Names
    data: Data
    pending: Pending = field(repr=False)

    @property
    def acknowledged(self) -> int:
        """How many steps the work had said to be done."""
        return sum(at < self.cut for at in self.history.done)

    @property
    def ordered(self) -> bool:
        """Whether the names are what a journal in order may leave: a beginning of all changes."""
        return self.names == frozenset(range(len(self.names)))

    @property
    def lost(self) -> int:
        """How much of what had happened did not arrive."""
        writes = sum(
            len(left) - sum(part.write in left and part.ranges is None for part in self._of(number))
            for number, left in self.pending.open.items()
        )
        return writes + len(self.pending.names) - len(self.names)

    def _of(self, number: int) -> tuple[Part, ...]:
        return self.data.get(number, ())

    def tree(self) -> Tree:
        """Return what is on the disk."""
        return self.history.tree(self.names, self.data)

    def describe(self) -> str:
        """Say in lines where the cut was, and which calls before it were lost."""
        calls = self.history.calls
        lines = [f"cut after {calls[self.cut - 1]}" if self.cut else "cut before the first call"]
        lines += [
            f"lost: {calls[self.history.namings[number].at]}"
            for number in self.pending.names
            if number not in self.names
        ]
        for number, left in self.pending.open.items():
            arrived = {part.write: part.ranges for part in self._of(number)}
            for write in left:
                if write not in arrived:
                    lines.append(f"lost: {calls[write.at]}")
                elif arrived[write] is not None:
                    lines.append(f"arrived in part {arrived[write]}: {calls[write.at]}")
        return "\n  ".join(lines)


class Cut:
    """What may be on the disk when the power goes before the call of index ``at``."""

    def __init__(self, history: History, at: int) -> None:
        self.history = history
        self.at = at
        self.pending = history.pending(at)
        self.all: Names = frozenset(self.pending.names)
        self.open_names = sorted(self.all - self.pending.durable)

    def state(self, names: Names, chosen: Data) -> State:
        """Return a state in which these changes of names and, of what is open, these writes are."""
        data = dict(self.pending.kept)
        for number, parts in chosen.items():
            data[number] = tuple(
                sorted((*data.get(number, ()), *parts), key=lambda part: part.write.at)
            )
        return State(self.history, self.at, names, data, self.pending)

    def whole(self) -> State:
        """Return the state in which everything has arrived."""
        return self.state(self.all, self.arrived())

    def telling_names(self) -> Iterator[State]:
        """Yield what may have become of names, with all that was written."""
        everything = self.arrived()
        for names in self._namings():
            yield self.state(names, everything)

    def telling(self) -> Iterator[State]:
        """Yield all states that are not left to chance."""
        everything, zeros = self.arrived(), self.arrived(())
        yield from self.telling_names()
        for names in self._namings():
            yield self.state(names, {})
            yield self.state(names, zeros)
        for names in (self.all, self.pending.durable):
            for number, left in self.pending.open.items():
                for parts in _partly(left):
                    yield self.state(names, {**everything, number: parts})
                yield self.state(names, {number: everything[number]})

    def arrived(self, ranges: Ranges | None = None) -> dict[int, tuple[Part, ...]]:
        """Return all writes that are open, as having arrived, or these ranges of each."""
        return {
            number: tuple(Part(write, ranges) for write in left)
            for number, left in self.pending.open.items()
        }

    def _namings(self) -> Iterator[Names]:
        needs, durable = self.history.needs, self.pending.durable
        yield self.all
        yield durable
        for number in self.open_names:
            yield self.without(number)
            yield durable | needs[number]
            yield durable | {one for one in self.pending.names if one < number}

    def without(self, number: int) -> Names:
        """Return all changes of names but one, and those that need it."""
        return frozenset(one for one in self.all if number not in self.history.needs[one])

    def by_chance(self, chance: random.Random) -> State:
        """Return some state."""
        names = self.all
        for _ in range(chance.randrange(3) if self.open_names else 0):
            names &= self.without(chance.choice(self.open_names))
        if chance.random() < 0.3:
            names &= frozenset(range(chance.randrange(len(self.pending.names) + 1)))
            names |= self.pending.durable
        data = {}
        for number, left in self.pending.open.items():
            odds = chance.choice((0.0, 0.5, 0.9, 1.0))
            data[number] = tuple(
                Part(write, _torn(write, chance) if chance.random() < 0.2 else None)
                for write in left
                if chance.random() < odds
            )
        return self.state(names, data)


def _partly(left: Sequence[Write]) -> Iterator[tuple[Part, ...]]:
    """Yield less than all of a file's writes: nothing, sizes alone, beginnings, all but one."""
    yield ()
    yield tuple(Part(write, ()) for write in left)
    step = max(1, len(left) // _BEGINNINGS)
    for number in range(len(left) - 1, -1, -step):
        last, half = left[number], len(left[number].data) // 2
        before = tuple(Part(write) for write in left[:number])
        yield (*before, Part(last, ((0, half),)))
        yield (*before, *(Part(write) for write in left[number + 1 :]))


def _torn(write: Write, chance: random.Random) -> Ranges:
    """Return a part of a write: a beginning, or some of its sectors."""
    size = len(write.data)
    if chance.random() < 0.5:
        return ((0, chance.randrange(size + 1)),)
    first = -write.number % SECTOR
    edges = [0, *range(first, size, SECTOR), size]
    return tuple(
        (start, end)
        for start, end in itertools.pairwise(edges)
        if start < end and chance.random() < 0.5
    )


def all_states(history: History, *, by_chance: int = 0, seed: int = 0) -> Iterator[State]:
    """Yield the telling states of all cuts, and at each so many by chance."""
    for at in range(len(history.calls) + 1):
        cut, chance = Cut(history, at), random.Random(f"{seed} {at}")
        yield from cut.telling()
        for _ in range(by_chance):
            yield cut.by_chance(chance)


def some_states(history: History, number: int, seed: int) -> Iterator[State]:
    """Yield states right after what was acknowledged, of names most of all; and some by chance."""
    chance = random.Random(seed)
    for at in history.done:
        yield from Cut(history, at + 1).telling_names()
    for _ in range(number):
        cut = Cut(history, chance.randrange(len(history.calls) + 1))
        telling = list(cut.telling())
        yield chance.choice(telling) if chance.random() < 0.7 else cut.by_chance(chance)


def states_without(history: History, calls: Collection[int]) -> Iterator[State]:
    """Yield states that certain syncs rule out: all has arrived but what they were for.

    The latest cuts come first: what is lost then was acknowledged.
    """
    lacking = History(history.base, history.start, history.calls, without=calls)
    synced = {sync.node for sync in history.syncs if sync.at in calls}
    for at in range(len(history.calls), min(calls), -1):
        cut, known = Cut(lacking, at), history.pending(at)
        everything = cut.arrived()
        for number in cut.open_names:
            if number in known.durable:
                yield cut.state(cut.without(number), everything)
        for node, left in cut.pending.open.items():
            if node in synced and left != known.open.get(node):
                for parts in _partly(left):
                    yield cut.state(cut.all, {**everything, node: parts})
