"""Limit the processor time for checking one text: its author decides how slow a pattern is.

Each repetition in a pattern is bounded, but several in a row still give thousands of ways to try at
each place. Ordinary texts need a hundredth of this budget.
"""

from collections.abc import Iterator
from re import Match, Pattern
from time import thread_time
from typing import AnyStr, Final

LEAST: Final = 0.5
"""Seconds of processor time that any text is granted."""

FOR_EACH_BYTE: Final = 4e-6
"""Seconds that are granted besides."""

WINDOW: Final = 4096
"""Characters in which matches are looked for at once, since a search can't be interrupted."""

CLOCKED: Final = 8192
"""Characters that are searched before the time is looked at again."""

LONGEST: Final = 3072
"""Characters that a match which begins in them may have."""


class CpuBudget:
    """The time that is left for one text; ``is_over`` once there is none."""

    def __init__(self, size: int) -> None:
        self._until = thread_time() + LEAST + size * FOR_EACH_BYTE
        self._unclocked = 0
        self.is_over = False
        """Whether the budget of this text is spent."""

    def find(
        self, pattern: Pattern[AnyStr], text: AnyStr, begin: int, end: int
    ) -> Iterator[Match[AnyStr]]:
        """Yield the matches between two offsets until the budget is spent."""
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
        """Look at the clock after every `CLOCKED` bytes: that takes as long as many a search."""
        self._unclocked += size
        if self._unclocked >= CLOCKED:
            self._unclocked = 0
            self.is_over = thread_time() > self._until
