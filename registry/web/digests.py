"""Digests that took work to find, kept by what they are of."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

MOST: Final = 10_000
"""Of so many; a skill with several files has to be packed to be told."""


class Digests:
    """A bounded number of digests."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, str] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, key: Hashable, make: Callable[[], str]) -> str:
        """Return the digest for a key, worked out where it is not known."""
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            return known
        made = make()
        with self._lock:
            self._known[key] = made
            while len(self._known) > MOST:
                self._known.popitem(last=False)
        return made
