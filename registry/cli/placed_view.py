"""Draw where a skill stands for a query."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from registry.cli import escape, formatting
from registry.cli.findings import INDENT, draw_findings
from registry.cli.formatting import wrap
from registry.cli.listing import Column, draw_table
from registry.cli.session import Console

if TYPE_CHECKING:
    from registry.catalog.search.explain import Ahead, AskedWord, Placed
    from registry.catalog.why import Explanation

T = TypeVar("T")


def draw(console: Console, placed: "Iterable[Placed]") -> Iterator[str]:
    """Yield paragraphs about each skill: its place, its words, what comes before, what to write."""
    for index, one in enumerate(placed):
        if index:
            yield ""
        yield f"{console.style(escape.line(handle(one)), 'bold')}: {_standing(one)}"
        if one.ref is not None:
            yield f"{INDENT}{escape.line(one.path)}"
        if one.place is None:
            yield from draw_findings(console, one.reasons, console.width)
        yield from _table(console, WORDS, one.words)
        yield from _table(console, AHEAD, one.ahead)
        if one.to_write:
            yield ""
            told = f"Its name, tags and description lack: {', '.join(one.to_write)}"
            yield from wrap(escape.prose(told), console.width)


def _standing(one: "Placed") -> str:
    if one.place is None:
        return f"not found; {formatting.count(one.total, 'hit')} in all"
    beside = "" if one.beside is None else f", as one that is alike {escape.line(one.beside)}"
    return f"place {one.place:,} of {one.total:,}{beside}; its head says {one.confidence:.0%} of it"


def _table(console: Console, columns: Sequence[Column[T]], rows: Sequence[T]) -> Iterator[str]:
    if rows:
        yield ""
        yield from draw_table(console, columns, rows)


def handle(one: "Placed | Explanation") -> str:
    """Return what a skill is called: its ref, else its path."""
    return one.path if one.ref is None else one.ref


def _why(one: "Ahead") -> str:
    facts = ["its name is what was typed"] if one.named else []
    if one.words:
        facts.append(f"says {', '.join(one.words)}")
    if one.stronger:
        facts.append(f"has {', '.join(one.stronger)} in its name or tags")
    return "; ".join(facts) or "says the same words more often, or in fewer others"


WORDS: Final[Sequence[Column["AskedWord"]]] = (
    Column("WORD", lambda one: one.word, max_width=24),
    Column("TELLS", lambda one: f"{one.telling:.0%}", right=True),
    Column("STANDS IN", lambda one: ", ".join(one.parts) or "no part of it"),
    Column("FOR", lambda one: one.said),
)

AHEAD: Final[Sequence[Column["Ahead"]]] = (
    Column("#", lambda one: one.place, right=True),
    Column("BEFORE IT", lambda one: one.ref, style="bold", share=0.45, cut="middle"),
    Column("SINCE IT", _why, prose=True, flexible=True),
)

COLUMNS: Final[Sequence[Column["Placed"]]] = (
    Column("SKILL", handle),
    Column("PLACE", lambda one: None if one.place is None else str(one.place)),
    Column("LACKS", lambda one: ", ".join(one.to_write), prose=True),
)
