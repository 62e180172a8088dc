"""Print lists; columns define the table, the lines in a pipe, and the list of names."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from shlex import quote
from time import time
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, TypeVar

from registry.cli import escape, formatting
from registry.cli.formatting import Cut, ago, fit, width_of
from registry.cli.session import Console, Style, batches
from registry.db.read.listing import Filters
from registry.db.read.skills import quarantined, yanked
from registry.model import Found, Skill
from registry.text import name_key, quoted

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.cli.session import Session


T = TypeVar("T")

FIRST_SHARE: Final = 0.45
"""Share of the terminal's width for the first column, if the columns don't fit."""
MAX_PROSE: Final = 1200
"""Maximum number of characters of a text in a table; no terminal shows more in a line."""


class Column(NamedTuple, Generic[T]):
    """A column of a list: its title, and a function that returns an item's unescaped value.

    ``only``: print the column only in the table, or only in the lines for a pipe.

    ``prose``: if True, replace line breaks by spaces.

    ``time``: if True, the value is a UTC timestamp, and a terminal shows the age.

    ``style``: one style for all cells, or a style for each text.

    ``when``: a function of the set of cell texts. The column is in the table only if it returns
    True.

    ``drop``: the order in which columns are left out if the terminal is narrow. The highest number
    goes first, and columns with 0 always stay.

    ``flexible``: if True, the column gets the remaining width, at least ``min_width``. Every other
    column gets at most ``max_width``, and at most this ``share`` of the terminal.
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
        """Yield the escaped text of each item's cell; in a table, with thousands separators.

        On a terminal, ``now`` is the current time in seconds since 1970.
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


GAP: Final = 2
MIN_SHARE: Final = 16
MIN_READABLE: Final = 8


@dataclass(slots=True)
class _Strip:
    """A column of a table: its width and, if ``when`` needs them, the texts of its cells."""

    column: Column[Any]
    width: int = 0
    filled: bool = False
    texts: set[str] = field(default_factory=set)

    def measure(self, cells: Iterable[str]) -> None:
        """Increase the column's width so that these cells fit."""
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


def draw_table(console: Console, columns: Sequence[Column[T]], items: Iterable[T]) -> Iterator[str]:
    """Yield the header and the rows of a table, fitted to the console's width.

    Empty columns are left out. To save memory, the items are not stored but iterated twice: first
    to measure them, then to draw them.
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

    def fitted(strip: _Strip, text: str, cut: Cut = "end", style: Style | None = None) -> str:
        cell = fit(text, strip.width, cut, ellipsis=console.ellipsis)
        space = " " * (strip.width - width_of(cell))
        cell = console.style(cell, style)  # without padding, because a line must not end in spaces
        return space + cell if strip.column.right else cell + space

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
                cells.append(fitted(strip, text, strip.column.cut, style))
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
    """Make the first column narrower; if this isn't enough, show only the first column."""
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
    """Return the total width of the columns and gaps, without the flexible column."""
    fixed = sum(strip.width for strip in strips if strip is not flexible)
    return fixed + GAP * (len(strips) - 1)


NEAREST: Final = 5
"""Maximum number of similar values in a message, if no skill has the given value."""


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
    """Print ``items`` in the chosen format; the default is a table on a terminal, else plain lines.

    ``items`` are streamed, but a table iterates over them twice. The format ``names`` prints
    ``name``, by default the first column of the plain lines. ``draw`` returns escaped lines that
    replace the table. ``nothing`` is printed on stderr if there are no items. Returns True if a
    table was printed on a terminal.
    """
    console = session.console
    style = session.style or ("table" if console.is_terminal else "plain")
    if style in {"json", "jsonl"}:
        # Print one object on each line, which is readable and fast.
        rows = console.json_lines(map(to_record, items) if to_record else items)
        console.write(_array(rows) if session.as_json else rows, json_text=True)
    elif style == "table" and draw:
        console.write(draw(console, items))
    elif style == "table":
        console.write(draw_table(console, columns, items))
    else:
        in_line = [column for column in columns if column.only != "table"]
        if style == "names":
            in_line = [Column("", name)] if name else in_line[:1]
        console.write(_plain_lines(in_line, items))
    if nothing and not items:
        console.note(nothing)
    return style == "table" and console.is_terminal


def _array(rows: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a JSON array with these elements."""
    before = "["
    last = None
    for row in rows:
        if last is not None:
            yield f"{before}{last},"
            before = " "
        last = row
    yield "[]" if last is None else f"{before}{last}]"


def _plain_lines(columns: Sequence[Column[T]], items: Iterable[T]) -> Iterator[str]:
    """Yield a line for each item, with tabs between the columns."""
    for some in batches(items):
        cells = [column.cells(some, in_table=False) for column in columns]
        yield from map("\t".join, zip(*cells, strict=True))


def skill_line(done: str, skill: Skill) -> list[str]:
    """Return the lines that report a change of a skill."""
    return [f"{done} {escape.line(skill.ref)}: {escape.line(skill.path)}"]


def draw_facts(console: Console, facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each label and value; in a pipe, a tab is between them."""
    rows = list(facts)
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        if console.is_terminal:
            yield f"{console.style(f'{label:{width}}', 'dim')}  {escape.line(value)}"
        else:
            yield f"{label.lower()}\t{escape.line(value)}"


def report_left_out(session: "Session", chosen: Filters) -> None:
    """Print on stderr how many skills of other projects the list leaves out."""
    elsewhere = session.registry.left_out(chosen)
    if elsewhere:
        are, them = ("is", "it") if elsewhere == 1 else ("are", "them")
        left = f"{formatting.count(elsewhere, 'skill')} of other projects {are} left out"
        session.console.note(f"{left}; --all lists {them}.")


def report_quarantined(session: "Session", chosen: Filters) -> None:
    """Print on stderr how many skills of the chosen source, or of all sources, are quarantined."""
    if chosen not in (Filters(all=chosen.all), Filters(all=chosen.all, source=chosen.source)):
        return
    every = quarantined(session.registry.core.reader)
    held = sorted(ref for one, ref in every.items() if chosen.source in {None, one[0]})
    if not held:
        return
    of = f" of {escape.line(chosen.source)}" if chosen.source else ""
    are = "is" if len(held) == 1 else "are"
    source = f" --source {quote(escape.line(chosen.source))}" if chosen.source else ""
    way = f"To see which, run: skill-registry list{source} --all --format table"
    if chosen.all:
        them = "It is" if len(held) == 1 else "They are"
        way = f"{them}: {formatting.some_refs(held)}"
    text = f"{formatting.count(len(held), 'skill')}{of} {are} quarantined. {way}"
    session.console.note(text)


def report_nothing_found(session: "Session", chosen: Filters, *, more: Found | None = None) -> None:
    """Explain on stderr why a list or search has no results, and what the user can do.

    ``more`` has the results of a search with ``--all``; its first results name the reasons.
    """
    note, registry = session.console.note, session.registry
    sources = registry.sources()
    unread = [one.name for one in registry.own_sources() if one.last_sync_at is None]
    if unread:
        are, them = ("is", "it") if len(unread) == 1 else ("are", "them")
        names = ", ".join(map(escape.line, unread))
        note(
            f"{formatting.count(len(unread), 'source')} {are} not synced yet: {names}. To sync "
            f"{them}, run: skill-registry sync"
        )
    if unread and not any(one.skills for one in sources):
        return
    if not sources:
        note(
            "The registry is empty. To register a folder and read its skills, run: "
            "skill-registry sync FOLDER\n"
            "To find the skill folders of agents on this machine, run: skill-registry source "
            "discover"
        )
    elif not registry.list(Filters(all=True), limit=1).total:
        note("The registered sources have no skills. To read them again, run: skill-registry sync")
    elif unknown := list(_unknown(registry, chosen)):
        for message in unknown:
            note(message)
    elif more is not None or chosen not in (Filters(), Filters(all=True)):
        others = _hidden(registry, chosen) if more is None else more.total
        do, them = ("that is", "it") if others == 1 else ("that are", "them")
        hidden = registry.list(replace(chosen, all=True), limit=FEW) if more is None else more
        reasons = _reasons(registry, hidden)
        if more is None:  # report_left_out() counts the skills of other projects
            reasons = [one for one in reasons if one != _ELSEWHERE]
        which = " or ".join(reasons)
        does = "lists" if more is None else "finds"
        how = f" {others:,} {do} {which} would match; --all {does} {them}." if others > 0 else ""
        note(f"No skills match.{how}")
    elif not registry.left_out():  # report_left_out() prints these
        note("No usable skills; to list the others, add --all.")


_UNSEEN: Final[Mapping[str, str]] = {
    "tag-not-accepted": "without an accepted tag",
    "tag-rejected": "with a rejected tag",
    "other-team": "in a source of scope team",
    "deny": "in deny",
    "mode-none": "not in allow",
    "mode-explicit": "not in allow",
    "undeclared-denied": "without required tools",
    "tools-missing": "for tools that it doesn't have",
    "fallback-not-needed": "only for agents without its tools",
    "env-missing": "for an environment variable that is not set",
    "program-missing": "for a program that is not installed",
    "hidden": "hidden from models by their authors",
}
"""Which skills a personality doesn't see, by the code of the rule in `decide`."""


def report_personality(session: "Session", name: str, *, sees_some: bool = False) -> None:
    """Explain on stderr why a personality sees no skill, or a team source despite its tags.

    If ``sees_some``, the caller knows that the personality sees a skill. Then the rules are
    computed only if it has tags and a team source.
    """
    from registry.catalog.visibility.decisions import Decided, personality

    registry = session.registry
    chosen = personality(registry.core.settings, name)
    accepted = sorted(chosen.global_ingest.accept_tags)
    if sees_some and not (accepted and chosen.team):
        return
    if not (rules := Decided.of(registry.core.reader, chosen).rules()):
        return
    if any(visible for _, visible, _ in rules):
        if accepted and any(rule == "team" for rule, *_ in rules):
            session.console.note(
                f"The personality {escape.line(name)} also sees all skills of the source "
                f"{escape.line(str(chosen.team))}, because accept_tags doesn't limit a team source."
            )
        return
    total = sum(count for *_, count in rules)
    reasons = [f"{count:,} {_UNSEEN.get(rule, rule)}" for rule, _, count in rules]
    shown = escape.line(name)
    session.console.note(
        f"The personality {shown} sees none of the {formatting.count(total, 'skill')}: "
        f"{formatting.listed(reasons)}."
    )
    if accepted:
        counts = {one.value: one.count for one in registry.tags()}
        some = ", ".join(f"{escape.line(tag)} ({counts.get(tag, 0):,})" for tag in accepted)
        session.console.note(f"Skills of all sources with a tag that it accepts: {some}.")
    if any(rule == "other-team" for rule, *_ in rules):
        teams = [one.name for one in registry.sources(counted=False) if one.scope == "team"]
        team = quote(escape.line(teams[0])) if len(teams) == 1 else "NAME"
        session.console.note(
            "Tags don't limit a source of scope team: the key team: NAME shows all its skills. To "
            f"limit it by tags, run: skill-registry source update {team} --scope community"
        )
    session.console.note(
        f"To see the reason for a skill, run: skill-registry why NAME --personality {quote(shown)}"
    )


FEW: Final = 100
"""Maximum number of skills of a list without results that are read for the reasons."""

_ELSEWHERE: Final = "of other projects"
REASONS: Final = ("shadowed", "invalid", "quarantined", "yanked", _ELSEWHERE)


def _reasons(registry: "SkillRegistry", skills: Iterable[Skill]) -> list[str]:
    """Return the reasons why these skills are only found with ``--all``."""
    reader = registry.core.reader
    held, withdrawn = quarantined(reader), yanked(reader)

    def reason(one: Skill) -> str:
        if (one.source, one.folder) in held:
            return "quarantined"
        if (one.source, one.folder) in withdrawn:
            return "yanked"
        if one.status == "invalid":
            return "invalid"
        return "shadowed" if one.shadowed else _ELSEWHERE

    return sorted({reason(one) for one in skills}, key=REASONS.index)


def _hidden(registry: "SkillRegistry", chosen: Filters) -> int:
    """Return how many more visible skills ``chosen`` has with ``all``."""
    return registry.list(replace(chosen, all=True), limit=1).total - registry.left_out(chosen)


def _unknown(registry: "SkillRegistry", chosen: Filters) -> Iterator[str]:
    """Yield messages about filter values that no skill has, with similar values that exist."""
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
                hint = f": no skill has a {what}"
            yield f"No skill has the {what} {quoted(value)}{hint}."
