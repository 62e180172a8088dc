"""Print listings: as a table, as JSON, as lines for other programs."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from registry.cli import escape, words
from registry.cli.console import Console
from registry.cli.session import Session
from registry.db.queries.filters import Filters
from registry.model import Skill

if TYPE_CHECKING:
    from registry.cli.table import Column

T = TypeVar("T")

_SHORTEST_REF: Final = 16
_LONGEST_REF: Final = 60
_LONGEST_SHOWN: Final = 1200
"""Characters of a description that are looked at: no terminal shows more on a line."""


class Listing(NamedTuple):
    """How the values of one kind are printed.

    ``record``: as JSON; ``name``: what the format ``names`` prints; ``plain``: the fields of a line
    in a pipe, the handle first; ``draw``: the lines on a terminal. All but ``record`` return
    escaped text.
    """

    record: Callable[[Any], dict[str, Any]]
    name: Callable[[Any], str]
    plain: Callable[[Any], Sequence[str]]
    draw: Callable[[Console, Sequence[Any]], Iterator[str]]


def emit(console: Console, style: str | None, items: Sequence[T], listing: Listing) -> bool:
    """Print ``items`` in the format ``style``; None: as fits the stream.

    Returns whether people are reading, who may be told more on stderr.
    """
    if style is None:
        style = "table" if console.is_terminal else "plain"
    if style == "json":
        # One object a line: readable, and written at full speed.
        rows = ",\n ".join(console.json_lines(map(listing.record, items)))
        console.write([f"[{rows}]"], json_text=True)
    elif style == "jsonl":
        console.write(console.json_lines(map(listing.record, items)), json_text=True)
    elif style == "names":
        console.write(map(listing.name, items))
    elif style == "plain":
        console.write("\t".join(listing.plain(item)) for item in items)
    else:
        console.write(listing.draw(console, items))
    return style == "table" and console.is_terminal


def draw(console: Console, columns: "Sequence[Column]") -> Iterator[str]:
    """Yield the lines of a table, painted for this console."""
    from registry.cli import table

    return table.draw(
        columns,
        console.width,
        title=lambda text: console.style(text, "dim"),
        ellipsis=console.ellipsis,
    )


def ref_of(skill: Skill) -> str:
    """Return a skill's ref, escaped."""
    return escape.line(skill.ref)


def skill_fields(skill: Skill) -> Sequence[str]:
    """Return ref and description."""
    return escape.line(skill.ref), escape.prose(skill.description)


def draw_skills(console: Console, skills: Sequence[Skill]) -> Iterator[str]:
    """Yield the lines of a table of skills; what all of them share is left out."""
    from registry.cli.table import FIRST_SHARE, Column

    states = [words.state(skill.status, shadowed=skill.shadowed) for skill in skills]
    told = not set(states) <= {"ok", "warning"}
    sources = [escape.line(skill.source) for skill in skills]
    return draw(
        console,
        [
            Column(
                "SKILL",
                [escape.line(skill.ref) for skill in skills],
                most=max(_SHORTEST_REF, min(_LONGEST_REF, int(console.width * FIRST_SHARE))),
                cut="middle",
                paint=lambda cell, _text: console.style(cell, "bold"),
            ),
            Column("STATUS", states if told else [], drop=1, paint=painter(console)),
            Column("KIND", [escape.line(skill.kind or "") for skill in skills], drop=5, most=16),
            Column("SOURCE", sources if len(set(sources)) > 1 else [], drop=3, most=20),
            Column("TAGS", [", ".join(map(escape.line, s.tags)) for s in skills], drop=6, most=24),
            Column("UPDATED", [words.day(skill.updated_at) for skill in skills], drop=4),
            Column(
                "DESCRIPTION",
                [escape.prose(skill.description[:_LONGEST_SHOWN]) for skill in skills],
                flexible=True,
                least=40,
            ),
        ],
    )


def painter(console: Console) -> Callable[[str, str], str]:
    """Return what paints a cell by the status in it."""
    styles = words.STATUS_STYLES | words.SEVERITY_STYLES

    def paint(cell: str, text: str) -> str:
        return console.style(cell, styles.get(text.replace(" ", "_")))

    return paint


def tell_nothing_found(session: Session, *, narrowed: bool) -> None:
    """Say on stderr why nothing is listed, and what to do next."""
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
