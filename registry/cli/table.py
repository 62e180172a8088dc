"""Draw tables that fit the terminal, without a library's start-up cost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from registry.cli.width import Cut, fit, pad, width_of

GAP: Final = 2
FIRST_SHARE: Final = 0.45
"""What the first column may take of a terminal that is too narrow for everything."""
LEAST_READABLE: Final = 8


@dataclass(slots=True)
class Column:
    """One column of escaped one-line texts.

    ``drop``: 0 is always shown; of the others the highest goes first where room is short. The
    ``flexible`` column takes what the others leave, if that is at least ``least``. ``paint`` gets
    the padded cell and its text.
    """

    title: str
    cells: Sequence[str]
    drop: int = 0
    flexible: bool = False
    least: int = 28
    most: int = 60
    right: bool = False
    cut: Cut = "end"
    paint: Callable[[str, str], str] | None = None
    width: int = field(default=0, init=False)


def draw(
    columns: Sequence[Column],
    width: int,
    *,
    title: Callable[[str], str] = str,
    ellipsis: str = "\u2026",
) -> Iterator[str]:
    """Yield the lines of the table: a header, then the rows. A column without content is left out.

    ``title`` paints the header.
    """
    shown = _choose([column for column in columns if any(column.cells)], width)
    if not shown:
        return
    gap = " " * GAP
    yield title(
        gap.join(
            pad(
                fit(column.title, column.width, ellipsis=ellipsis), column.width, right=column.right
            )
            for column in shown
        ).rstrip()
    )
    last = shown[-1]
    for row in zip(*(column.cells for column in shown), strict=True):
        cells = []
        for column, text in zip(shown, row, strict=True):
            cell = fit(text, column.width, column.cut, ellipsis=ellipsis)
            if column is not last or column.right:
                cell = pad(cell, column.width, right=column.right)
            cells.append(column.paint(cell, text) if column.paint else cell)
        yield gap.join(cells).rstrip()


def _choose(columns: list[Column], width: int) -> list[Column]:
    for column in columns:
        natural = max(width_of(column.title), *map(width_of, column.cells))
        column.width = natural if column.flexible else min(natural, column.most)
    while columns:
        flexible = next((column for column in columns if column.flexible), None)
        rest = width - _taken(columns, flexible)
        need = min(flexible.least, flexible.width) if flexible else 0
        if rest >= need:
            if flexible:
                flexible.width = min(flexible.width, rest)
            return columns
        weakest = max(columns, key=lambda column: column.drop)
        if weakest.drop:
            columns = [column for column in columns if column is not weakest]
            continue
        return _squeeze(columns, flexible, width)
    return columns


def _squeeze(columns: list[Column], flexible: Column | None, width: int) -> list[Column]:
    """Shorten the first column, and where that isn't enough show nothing else."""
    first = columns[0]
    if first is flexible or len(columns) == 1:
        first.width = max(width, 1)
        return columns[:1]
    others = _taken(columns, flexible) - first.width
    room = width - others
    first.width = min(first.width, max(LEAST_READABLE, int(room * FIRST_SHARE)))
    if flexible is not None:
        flexible.width = room - first.width
    if room < LEAST_READABLE or (flexible and flexible.width < LEAST_READABLE):
        first.width = max(width, 1)
        return columns[:1]
    if flexible is None:
        first.width = room
    return columns


def _taken(columns: list[Column], flexible: Column | None) -> int:
    """Return the columns that everything but the flexible column takes."""
    fixed = sum(column.width for column in columns if column is not flexible)
    return fixed + GAP * (len(columns) - 1)
