"""Two texts side by side: what was, and what is."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from time import thread_time
from typing import Any, Final, Literal

from registry.mcp.fairness import keep_on
from registry.model import Value

LINES: Final = 3000
"""Lines of a file that are compared; of twice as many it takes more than twice as long."""

BYTES: Final = 2 << 20
"""Bytes of files that one page compares, of both sides together."""

ROWS: Final = 10_000
"""Rows that one page shows."""

SECONDS: Final = 1.0
"""Processor time that one page takes to compare."""

NO_ROOM: Final = "This page is full. To compare this file, run: skill-registry diff"

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


class NoRoom(Exception):
    """A page has as much as it may show."""


class Room:
    """How much one page may still compare: bytes, rows, and seconds of processor time."""

    def __init__(self) -> None:
        self._bytes = BYTES
        self._rows = ROWS
        self._end = thread_time() + SECONDS

    def take(self, *, size: int = 0, rows: int = 0) -> None:
        """Take some of it. Raises `NoRoom`, and `ClientGone` if the visitor has gone."""
        keep_on()
        self._bytes -= size
        self._rows -= rows
        if min(self._bytes, self._rows) < 0 or thread_time() > self._end:
            raise NoRoom


class _Matcher(difflib.SequenceMatcher[str]):
    """Compares step by step: some texts take it minutes."""

    room: Room

    def find_longest_match(self, *where: Any, **named: Any) -> difflib.Match:
        """Take one step."""
        self.room.take()
        return super().find_longest_match(*where, **named)


def compare(path: str, old: bytes | None, new: bytes | None, room: Room | None = None) -> FileDiff:
    """Compare two contents of a file; None: there was none."""
    try:
        was, now = [(data or b"").decode().splitlines() for data in (old, new)]
    except UnicodeDecodeError:
        return FileDiff(path, (), "It is no text, and has changed.")
    if max(len(was), len(now)) > LINES:
        return FileDiff(path, (), "It is too long to be compared here: 'skill-registry diff' can.")
    note = "" if was != now else "Only how its lines end has changed."
    try:
        return FileDiff(path, tuple(_rows(was, now, room or Room())), note)
    except NoRoom:
        return FileDiff(path, (), NO_ROOM)


def _rows(was: Sequence[str], now: Sequence[str], room: Room) -> Iterator[Row]:
    matcher = _Matcher(None, was, now)
    matcher.room = room
    done = 0
    for group in matcher.get_grouped_opcodes(AROUND):
        if skipped := group[0][1] - done:
            yield Row("gap", skipped=skipped)
        for tag, i1, i2, j1, j2 in group:
            room.take(rows=max(i2 - i1, j2 - j1))
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
