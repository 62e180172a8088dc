"""One recorded run of an operation, and the trying of what a power cut at each call leaves of it."""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from tests.powerloss.model import History
from tests.powerloss.operations import OPERATIONS, Operation, World
from tests.powerloss.promises import Outcome, broken_promises, find
from tests.powerloss.recorder import Call, record
from tests.powerloss.states import Cut, State, states_without
from tests.powerloss.tree import Tree, digest

GOES_ON: Final = 5
"""Of so many states one is changed further, which takes longer than all other checks."""

_CHOSEN: Final = re.compile(r"(?<=/)[0-9a-f]{16}(?=/|$)|(?<=\.exchange-)[^./]+")
"""Names by chance."""


class Failure(NamedTuple):
    """A state in which something does not hold."""

    state: State
    broken: list[str]

    def __str__(self) -> str:
        kind = "ordered" if self.state.ordered else "reordered"
        broken = "\n".join(f"  => {one}" for one in self.broken)
        return f"{kind}: {self.state.describe()}\n{broken}".replace(self.state.history.base, "")


class Run:
    """The recorded run of an operation in the folder ``base``, which is made and the run's own.

    ``legal`` is what is seen before the first step and after each, where no power is cut; ``end``
    is what the run left behind.
    """

    def __init__(self, operation: Operation, base: str) -> None:
        os.mkdir(base)
        self.operation = operation
        self.world = World(base)
        if operation.interrupted is None:
            start = operation.prepare(self.world)
        else:
            first = OPERATIONS[operation.interrupted]
            begun = History(base, first.prepare(self.world), self._record(first))
            self._become(begun, 1 + _last_rename(begun.calls, self.world.root))
            start = self.world.tree()
        self.history = History(self.world.base, start, self._record(operation))
        self.end: Tree = self.world.tree()
        self.legal = [self._seen(at) for at in (0, *(done + 1 for done in self.history.done))]
        self._held: set[tuple[bytes, int]] = set()

    def _record(self, operation: Operation) -> list[Call]:
        return record(lambda done: operation.run(self.world, done), self.world.base)

    def _become(self, history: History, at: int) -> None:
        """Make the disk what it was before a call, with everything arrived."""
        self.world.become(Cut(history, at).whole().tree())

    def _seen(self, at: int) -> Outcome:
        self._become(self.history, at)
        found = find(self.world, self.operation)
        assert not found.broken, found.broken
        return found.outcome

    def failures(self, states: Iterable[State]) -> Iterator[Failure | None]:
        """Try each state that is not known to be good; yield what fails, or None.

        Each skill must be as after the last acknowledged step, or as after the next.
        """
        failed: set[tuple[bytes, int]] = set()
        for state in states:
            tree, acknowledged = state.tree(), state.acknowledged
            key = digest(tree), acknowledged
            if key in self._held or key in failed:
                continue
            self.world.become(tree)
            broken = broken_promises(
                self.world,
                self.operation,
                self.legal[acknowledged : acknowledged + 2],
                goes_on=len(self._held) % GOES_ON == 0,
            )
            (failed if broken else self._held).add(key)
            yield Failure(state, broken) if broken else None

    def syncs(self, pattern: str) -> set[int]:
        """Return the calls that make durable what matches the pattern, see `place`."""
        return {
            sync.at for sync in self.history.syncs if re.fullmatch(pattern, self.place(sync.at))
        }

    def failure_without(self, calls: Collection[int]) -> Failure | None:
        """Return what fails when these calls did not make anything durable."""
        return next(filter(None, self.failures(states_without(self.history, calls))), None)

    def place(self, call: int) -> str:
        """Return the path of a call below the world, with * for names by chance."""
        return _CHOSEN.sub("*", os.path.relpath(self.history.calls[call].path, self.world.base))


def _last_rename(calls: Collection[Call], root: str) -> int:
    return max(
        at
        for at, call in enumerate(calls)
        if call.kind in {"rename", "exchange"} and f"{root}/alpha" in {call.path, call.other}
    )
