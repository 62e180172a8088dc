"""Two texts side by side: what was, and what is."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final, Literal

from registry.model import Value

LINES: Final = 3000
"""Lines of a text that are compared; of twice as many it takes more than twice as long."""

AROUND: Final = 3
"""Lines that are the same and stand before and after what is different."""


@dataclass(frozen=True, slots=True)
class Row(Value):
    """One line of both sides; None: that side has none. Of a ``gap``, how many were ``skipped``."""

    kind: Literal["same", "changed", "gap"]
    old_line: int | None = None
    old: str | None = None
    new_line: int | None = None
    new: str | None = None
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class FileDiff(Value):
    """What is different in a file; ``note`` says why there are no rows, where there are none."""

    path: str
    rows: tuple[Row, ...]
    note: str = ""


def compare(path: str, old: bytes | None, new: bytes | None) -> FileDiff:
    """Compare two contents of a file; None: there was none."""
    try:
        was, now = [(data or b"").decode().splitlines() for data in (old, new)]
    except UnicodeDecodeError:
        return FileDiff(path, (), "It is no text, and has changed.")
    if max(len(was), len(now)) > LINES:
        return FileDiff(path, (), "It is too long to be compared here: 'skill-registry diff' can.")
    note = "" if was != now else "Only how its lines end has changed."
    return FileDiff(path, tuple(_rows(was, now)), note)


def _rows(was: Sequence[str], now: Sequence[str]) -> Iterator[Row]:
    matcher = difflib.SequenceMatcher(None, was, now)
    done = 0
    for group in matcher.get_grouped_opcodes(AROUND):
        if skipped := group[0][1] - done:
            yield Row("gap", skipped=skipped)
        for tag, i1, i2, j1, j2 in group:
            pairs = zip_longest(range(i1, i2), range(j1, j2))
            for left, right in pairs:
                yield Row(
                    "same" if tag == "equal" else "changed",
                    None if left is None else left + 1,
                    None if left is None else was[left],
                    None if right is None else right + 1,
                    None if right is None else now[right],
                )
        done = group[-1][2]
    if done and (skipped := len(was) - done):
        yield Row("gap", skipped=skipped)
