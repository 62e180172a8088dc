"""Draw tables that fit the terminal, without a library's start-up cost."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import Any, Final, TypeVar

from registry.cli.column import FIRST_SHARE, Column
from registry.cli.console import Console, batches
from registry.cli.width import Cut, fit, pad, width_of

T = TypeVar("T")

GAP: Final = 2
MIN_SHARE: Final = 16
MIN_READABLE: Final = 8


@dataclass(slots=True)
class _Strip:
    """A column with its width, whether anything is in it, and the texts it is judged by."""

    column: Column[Any]
    width: int = 0
    filled: bool = False
    texts: set[str] = field(default_factory=set)

    def measure(self, cells: Iterable[str]) -> None:
        """Take note of some of its cells."""
        for cell in cells:
            if cell:
                self.filled = True
                self.width = max(self.width, width_of(cell))
            if self.column.when is not None:
                self.texts.add(cell)

    @property
    def is_wanted(self) -> bool:
        when = self.column.when
        return self.filled and (when is None or when(self.texts))


def draw(console: Console, columns: Sequence[Column[T]], items: Iterable[T]) -> Iterator[str]:
    """Yield the header and the rows, no line wider than the console.

    Columns without content are left out. The items are gone through twice, to measure and to draw
    them, and never held.
    """
    now = time() if console.is_terminal else None
    strips = [_Strip(column) for column in columns if column.only != "plain"]
    for some in batches(items):
        for strip in strips:
            strip.measure(strip.column.cells(some, in_table=True, now=now))
    shown = _choose([strip for strip in strips if strip.is_wanted], console.width)
    if not shown:
        return
    gap = " " * GAP

    def fitted(strip: _Strip, text: str, cut: Cut = "end") -> str:
        cell = fit(text, strip.width, cut, ellipsis=console.ellipsis)
        if strip is shown[-1] and not strip.column.right:
            return cell
        return pad(cell, strip.width, right=strip.column.right)

    heads = (fitted(strip, strip.column.title) for strip in shown)
    yield console.style(gap.join(heads).rstrip(), "dim")
    for some in batches(items):
        rows = zip(*(s.column.cells(some, in_table=True, now=now) for s in shown), strict=True)
        for row in rows:
            cells = []
            for strip, text in zip(shown, row, strict=True):
                style = strip.column.style
                if isinstance(style, Mapping):
                    style = style.get(text)
                cells.append(console.style(fitted(strip, text, strip.column.cut), style))
            yield gap.join(cells).rstrip()


def _choose(strips: list[_Strip], width: int) -> list[_Strip]:
    flexible = next((strip for strip in strips if strip.column.flexible), None)
    for strip in strips:
        column = strip.column
        strip.width = max(width_of(column.title), strip.width)
        if strip is not flexible:
            strip.width = min(
                strip.width, column.max_width, max(MIN_SHARE, int(width * column.share))
            )
    while strips:
        rest = width - _taken(strips, flexible)
        if rest >= (min(flexible.column.min_width, flexible.width) if flexible else 0):
            if flexible:
                flexible.width = min(flexible.width, rest)
            break
        weakest = max(strips, key=lambda strip: strip.column.drop)
        if not weakest.column.drop:
            return _squeeze(strips, flexible, width)
        strips = [strip for strip in strips if strip is not weakest]
        flexible = None if weakest is flexible else flexible
    return strips


def _squeeze(strips: list[_Strip], flexible: _Strip | None, width: int) -> list[_Strip]:
    """Shorten the first column; if that is not enough, show it alone."""
    first = strips[0]
    room = width - (_taken(strips, flexible) - first.width)
    share = min(first.width, max(MIN_READABLE, int(room * FIRST_SHARE)))
    alone = first is flexible or len(strips) == 1 or room < MIN_READABLE
    if alone or (flexible and room - share < MIN_READABLE):
        first.width = max(width, 1)
        return strips[:1]
    if flexible is None:
        first.width = room
    else:
        first.width, flexible.width = share, room - share
    return strips


def _taken(strips: list[_Strip], flexible: _Strip | None) -> int:
    """Return the width of all columns but the flexible one, with the gaps."""
    fixed = sum(strip.width for strip in strips if strip is not flexible)
    return fixed + GAP * (len(strips) - 1)
