"""Print listings: a list of columns makes the table, the lines in a pipe and the names."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Generic, Literal, NamedTuple, TypeVar

from registry.cli import escape
from registry.cli.console import Console, Style
from registry.db.queries.filters import Filters
from registry.model import Skill, record

if TYPE_CHECKING:
    from registry.cli.session import Session
    from registry.cli.width import Cut

T = TypeVar("T")

FIRST_SHARE: Final = 0.45
"""Share of the first column on a terminal that is too narrow for everything."""
_MAX_PROSE: Final = 1200
"""Characters of a text considered for a table: no terminal shows more on a line."""


class Column(NamedTuple, Generic[T]):
    """A column of a listing: its title and how to get its value from an item, not yet escaped.

    ``only``: in the table or in the lines in a pipe, not in both. ``prose``: line breaks become
    spaces. ``style``: of all cells, or of each text. ``when``: in the table only if this holds for
    the items. ``drop``: if there is not enough room, the highest is left out first; 0 never is. The
    ``flexible`` column gets the room that is left, if that is at least ``min_width``; the others
    get at most ``max_width`` and at most this ``share`` of the terminal.
    """

    title: str
    value: Callable[[T], str | int | None]
    only: Literal["table", "plain"] | None = None
    prose: bool = False
    style: Style | Mapping[str, Style] | None = None
    when: Callable[[Sequence[T]], bool] | None = None
    right: bool = False
    drop: int = 0
    flexible: bool = False
    min_width: int = 28
    max_width: int = 60
    share: float = 1.0
    cut: "Cut" = "end"

    def cells(self, items: Iterable[T], *, in_table: bool) -> Iterator[str]:
        """Yield the escaped text of each item; numbers in a table have thousands separators."""
        clean = escape.prose if self.prose else escape.line
        end = _MAX_PROSE if self.prose and in_table else None
        for value in map(self.value, items):
            if isinstance(value, str):
                yield clean(value[:end])
            else:
                yield "" if value is None else format(value, "," if in_table else "")


def emit(
    console: Console,
    style: str | None,
    items: Sequence[T],
    columns: Sequence[Column[T]],
    *,
    name: Callable[[T], str] | None = None,
    to_record: Callable[[T], object] = record,
    draw: Callable[[Console, Sequence[T]], Iterator[str]] | None = None,
    plain: Callable[[T], str] | None = None,
) -> bool:
    """Print ``items`` in the format ``style``; None: a table on a terminal, else plain lines.

    The format ``names`` prints ``name``, by default the first column of the plain lines. ``draw``
    replaces the table and ``plain`` the plain lines; both return escaped text. Return whether a
    table was printed on a terminal.
    """
    if style is None:
        style = "table" if console.is_terminal else "plain"
    if style == "json":
        # One object a line: readable, and written at full speed.
        rows = ",\n ".join(console.json_lines(map(to_record, items)))
        console.write([f"[{rows}]"], json_text=True)
    elif style == "jsonl":
        console.write(console.json_lines(map(to_record, items)), json_text=True)
    elif style == "table" and draw:
        console.write(draw(console, items))
    elif style == "table":
        from registry.cli import table

        console.write(table.draw(console, columns, items))
    elif style == "plain" and plain:
        console.write(map(plain, items))
    else:
        in_line = [column for column in columns if column.only != "table"]
        if style == "names":
            in_line = [Column("", name)] if name else in_line[:1]
        cells = [column.cells(items, in_table=False) for column in in_line]
        console.write(map("\t".join, zip(*cells, strict=True)))
    return style == "table" and console.is_terminal


def skill_line(done: str, skill: Skill) -> list[str]:
    """Return the line that a command prints about a skill it changed."""
    return [f"{done} {escape.line(skill.ref)}: {escape.line(skill.path)}"]


def draw_facts(console: Console, facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield one line per label and value, separated by a tab in a pipe."""
    rows = list(facts)
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        if console.is_terminal:
            yield f"{console.style(f'{label:{width}}', 'dim')}  {escape.line(value)}"
        else:
            yield f"{label.lower()}\t{escape.line(value)}"


def tell_nothing_found(session: "Session", *, narrowed: bool) -> None:
    """Explain on stderr why nothing is listed and what to do next."""
    note, registry = session.console.note, session.registry
    if not registry.sources():
        note(
            "The registry is empty. 'skill-registry sync FOLDER' registers a folder and reads its "
            "skills;\n'skill-registry source discover' finds the folders of agents on this machine."
        )
    elif narrowed or registry.list(Filters(all=True), limit=1).total:
        note("No skills match." if narrowed else "No skill can be used; --all lists the others.")
    else:
        note("The registered sources hold no skills. 'skill-registry sync' reads them again.")
