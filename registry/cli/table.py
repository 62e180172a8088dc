"""Draw tables that fit the terminal, without a library's start-up cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import time
from typing import Any, Final, TypeVar

from registry.cli.column import FIRST_SHARE, Column
from registry.cli.console import Console
from registry.cli.width import Cut, fit, pad, width_of

T = TypeVar("T")

GAP: Final = 2
MIN_SHARE: Final = 16
MIN_READABLE: Final = 8


@dataclass(slots=True)
class _Strip:
    """A column with its cells and its width."""

    column: Column[Any]
    cells: list[str]
    width: int = 0


def draw(console: Console, columns: Sequence[Column[T]], items: Sequence[T]) -> Iterator[str]:
    """Yield the header and the rows, no line wider than the console.

    Columns without content are left out.
    """
    now = time() if console.is_terminal else None
    strips = [
        _Strip(column, list(column.cells(items, in_table=True, now=now)))
        for column in columns
        if column.only != "plain" and (column.when is None or column.when(items))
    ]
    shown = _choose([strip for strip in strips if any(strip.cells)], console.width)
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
    for row in zip(*(strip.cells for strip in shown), strict=True):
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
        strip.width = max(width_of(column.title), *map(width_of, strip.cells))
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
