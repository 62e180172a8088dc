"""What was worked out, kept by what it is of: within bounds, what was used last."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """A bounded number of values; safe for many threads.

    ``most`` is how much all of them may weigh together; each weighs 1 unless told. What weighs more
    than a sixteenth of that is not kept.
    """

    def __init__(self, most: int, weigh: Callable[[T], int] = lambda _: 1) -> None:
        self._most = most
        self._weigh = weigh
        self._values: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """Return what is kept for a key."""
        held = self._held(key)
        return None if held is None else held[0]

    def keep(self, key: Hashable, value: T) -> None:
        """Keep a value, and let go of what was not used for longest."""
        weight = self._weigh(value)
        if weight * 16 > self._most:
            return
        with self._lock:
            _, before = self._values.pop(key, (None, 0))
            self._values[key] = value, weight
            self._weight += weight - before
            while self._weight > self._most:
                _, (_, gone) = self._values.popitem(last=False)
                self._weight -= gone

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key, worked out where it is not kept."""
        held = self._held(key)
        if held is not None:
            return held[0]
        made = make()
        self.keep(key, made)
        return made

    def _held(self, key: Hashable) -> tuple[T, int] | None:
        """Return a value, which may be None itself, with its weight."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)
