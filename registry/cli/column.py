"""A column of a listing, as the table, the lines in a pipe and the names are made of."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, Generic, Literal, NamedTuple, TypeVar

from registry.cli import escape
from registry.cli.console import Style
from registry.cli.words import ago

if TYPE_CHECKING:
    from registry.cli.width import Cut

T = TypeVar("T")

FIRST_SHARE: Final = 0.45
"""Share of the first column on a terminal that is too narrow for everything."""
MAX_PROSE: Final = 1200
"""Characters of a text considered for a table: no terminal shows more on a line."""


class Column(NamedTuple, Generic[T]):
    """A column of a listing: its title and how to get its value from an item, not yet escaped.

    ``only``: in the table or in the lines in a pipe, not in both. ``prose``: line breaks become
    spaces. ``time``: a UTC timestamp, of which a terminal shows how long ago it was. ``style``: of
    all cells, or of each text. ``when``: in the table only if this holds for the texts of its
    cells. ``drop``: if there is not enough room, the highest is left out first; 0 never is. The
    ``flexible`` column gets the room that is left, if that is at least ``min_width``; the others
    get at most ``max_width`` and at most this ``share`` of the terminal.
    """

    title: str
    value: Callable[[T], str | int | None]
    only: Literal["table", "plain"] | None = None
    prose: bool = False
    time: bool = False
    style: Style | Mapping[str, Style] | None = None
    when: Callable[[AbstractSet[str]], bool] | None = None
    right: bool = False
    drop: int = 0
    flexible: bool = False
    min_width: int = 28
    max_width: int = 60
    share: float = 1.0
    cut: "Cut" = "end"

    def cells(
        self, items: Iterable[T], *, in_table: bool, now: float | None = None
    ) -> Iterator[str]:
        """Yield the escaped text of each item; numbers in a table have thousands separators.

        ``now``: on a terminal, the seconds since 1970.
        """
        clean = escape.prose if self.prose else escape.line
        if self.time and now is not None:
            for value in map(self.value, items):
                yield clean(ago(str(value), now)) if value else ""
            return
        end = MAX_PROSE if self.prose and in_table else None
        for value in map(self.value, items):
            if isinstance(value, str):
                yield clean(value[:end])
            else:
                yield "" if value is None else format(value, "," if in_table else "")
