"""Print listings: a list of columns makes the table, the lines in a pipe and the names."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from registry.cli import escape, words
from registry.cli.column import Column
from registry.cli.console import Console, batches
from registry.db.read.listing import Filters
from registry.model import Skill
from registry.text import name_key, quoted

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.cli.session import Session

T = TypeVar("T")

NEAREST: Final = 5
"""Values named at most where none is the one that was asked for."""


def emit(
    session: "Session",
    items: Iterable[T],
    columns: Sequence[Column[T]],
    *,
    name: Callable[[T], str] | None = None,
    to_record: Callable[[T], object] | None = None,
    draw: Callable[[Console, Iterable[T]], Iterator[str]] | None = None,
    nothing: str = "",
) -> bool:
    """Print ``items`` in the format that was asked for: else a table on a terminal, or plain lines.

    ``items`` are printed as they come; those of a table are gone through twice. The format
    ``names`` prints ``name``, by default the first column of the plain lines. ``draw``
    replaces the table by its lines of escaped text. ``nothing`` is said on stderr of a list that is
    empty. Return whether a table was printed on a terminal.
    """
    console = session.console
    style = session.style or ("table" if console.is_terminal else "plain")
    if style in {"json", "jsonl"}:
        # One object a line: readable, and written at full speed.
        rows = console.json_lines(map(to_record, items) if to_record else items)
        console.write(_array(rows) if session.as_json else rows, json_text=True)
    elif style == "table" and draw:
        console.write(draw(console, items))
    elif style == "table":
        from registry.cli import table

        console.write(table.draw(console, columns, items))
    else:
        in_line = [column for column in columns if column.only != "table"]
        if style == "names":
            in_line = [Column("", name)] if name else in_line[:1]
        console.write(_plain_lines(in_line, items))
    if nothing and not items:
        console.note(nothing)
    return style == "table" and console.is_terminal


def _array(rows: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a JSON array, given its elements."""
    before = "["
    last = None
    for row in rows:
        if last is not None:
            yield f"{before}{last},"
            before = " "
        last = row
    yield "[]" if last is None else f"{before}{last}]"


def _plain_lines(columns: Sequence[Column[T]], items: Iterable[T]) -> Iterator[str]:
    """Yield a line for each item: the columns, separated by tabs."""
    for some in batches(items):
        cells = [column.cells(some, in_table=False) for column in columns]
        yield from map("\t".join, zip(*cells, strict=True))


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


def tell_left_out(session: "Session", chosen: Filters, does: str) -> None:
    """Say on stderr how many skills of projects elsewhere are left out.

    ``does``: what ``--all`` does with them.
    """
    elsewhere = session.registry.left_out(chosen)
    if elsewhere:
        are, them = ("is", "it") if elsewhere == 1 else ("are", "them")
        left = f"{words.count(elsewhere, 'skill')} of projects elsewhere {are} left out"
        session.console.note(f"{left}; --all {does} {them}.")


def tell_nothing_found(session: "Session", chosen: Filters, *, narrowed: bool) -> None:
    """Explain on stderr why nothing is listed and what to do next.

    ``narrowed``: something other than the filters was asked for, too.
    """
    note, registry = session.console.note, session.registry
    sources = registry.sources()
    unread = [one.name for one in registry.own_sources() if one.last_sync_at is None]
    if unread:
        are, them = ("is", "it") if len(unread) == 1 else ("are", "them")
        names = ", ".join(map(escape.line, unread))
        note(
            f"{words.count(len(unread), 'source')} {are} not read yet: {names}. To read {them}, "
            "run: skill-registry sync"
        )
    if unread and not any(one.skills for one in sources):
        return
    if not sources:
        note(
            "The registry is empty. 'skill-registry sync FOLDER' registers a folder and reads its "
            "skills;\n'skill-registry source discover' finds the folders of agents on this machine."
        )
    elif not registry.list(Filters(all=True), limit=1).total:
        note("The registered sources hold no skills. 'skill-registry sync' reads them again.")
    elif unknown := list(_unknown(registry, chosen)):
        for told in unknown:
            note(told)
    elif narrowed or chosen not in (Filters(), Filters(all=True)):
        others = 0 if narrowed else _hidden(registry, chosen)
        do, them = ("that is", "it") if others == 1 else ("that are", "them")
        more = (
            f" {others:,} {do} shadowed or invalid would; --all lists {them}." if others > 0 else ""
        )
        note(f"No skills match.{more}")
    elif not registry.left_out():  # which is said then
        note("No skill can be used; --all lists the others.")


def _hidden(registry: "SkillRegistry", chosen: Filters) -> int:
    """Count the skills that ``chosen`` leaves out though they are seen from here."""
    return registry.list(replace(chosen, all=True), limit=1).total - registry.left_out(chosen)


def _unknown(registry: "SkillRegistry", chosen: Filters) -> Iterator[str]:
    """Yield what no skill has of that which was asked for, and what comes near."""
    from difflib import get_close_matches

    for what, wanted, facets in (
        ("tag", [*chosen.tags, *chosen.any_tags], registry.tags),
        ("kind", [chosen.kind] if chosen.kind else [], registry.kinds),
        ("category", [chosen.category] if chosen.category else [], registry.categories),
    ):
        known = [facet.value for facet in facets()] if wanted else []
        keys = {name_key(value): value for value in known}
        for value in wanted:
            key = name_key(" ".join(value.split()))
            if key in keys:
                continue
            near = get_close_matches(key, keys, n=NEAREST)
            near += [one for one in keys if key and (key in one or one in key) and one not in near]
            nearest = ", ".join(quoted(keys[one]) for one in near[:NEAREST])
            hint = f"; nearest: {nearest}" if nearest else ""
            if not known:
                hint = f": none has a {what}"
            yield f"No skill has the {what} {quoted(value)}{hint}."
