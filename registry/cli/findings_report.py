"""The report of a check: on a terminal what matters first and on one screen, in a pipe lines."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from registry.cli import escape, words
from registry.cli.column import Column
from registry.cli.console import Console
from registry.cli.findings_view import draw_findings, finding_line
from registry.cli.table import draw
from registry.cli.width import fit, width_of
from registry.model import SEVERITIES, Diagnostic

if TYPE_CHECKING:
    from registry.catalog.check import Checked

BELOW: Final = 7
"""Lines of a terminal kept for the head of the table, what is said below it, and the prompt."""

FEWEST: Final = 5
"""Rows of the table, and lines of findings, on the smallest of terminals."""


class Told(NamedTuple):
    """A finding and the skill that it is about."""

    skill: "Checked"
    finding: Diagnostic

    @property
    def order(self) -> tuple[bool, bool, int, str, str, str, int, str, str]:
        """Security first, then errors, warnings and what is minor; in each by skill and place."""
        one, skill = self.finding, self.skill
        return (
            one.severity == "info",
            one.category != "security",
            SEVERITIES.index(one.severity),
            skill.name,
            skill.path,
            one.path or "",
            one.line or 0,
            one.code,
            one.message,
        )

    @property
    def place(self) -> str:
        """Where it was found: path, and line if there is one."""
        one = self.finding
        path = f"{self.skill.path.rstrip('/')}/{one.path}" if one.path else self.skill.path
        return f"{path}:{one.line}" if one.line else path


class Tally(NamedTuple):
    """How often a code was found, and the first place."""

    first: Told
    number: int


def in_order(checked: "Sequence[Checked]", wanted: Callable[[Diagnostic], bool]) -> list[Told]:
    """Return the wanted findings of all skills, the gravest first."""
    told = [Told(one, found) for one in checked for found in one.findings if wanted(found)]
    return sorted(told, key=lambda one: one.order)


def lines(told: Sequence[Told]) -> Iterator[str]:
    """Yield a line for each finding."""
    return (finding_line(one.finding, one.skill.path) for one in told)


def report(
    console: Console, told: Sequence[Told], everything: Sequence[Told], *, room: int | None
) -> Iterator[str]:
    """Yield the findings, grouped by skill, and a table of the codes of ``everything``.

    ``room``: lines that are to be enough for all of it; None: as many as it takes.
    """
    tallies = _tallies(everything)
    if not tallies:
        return
    rows = len(tallies) if room is None else min(len(tallies), max(FEWEST, (room - BELOW) // 2))
    left = None if room is None else max(FEWEST, room - BELOW - rows)
    shown = 0
    for part in _paragraphs(console, told, fitted=room is not None):
        if left is not None and shown and len(part) > left:
            break
        yield from part
        shown += 1
        left = None if left is None else left - len(part)
    if more := len(told) - shown:
        what = words.count(more, "more finding")
        hint = "--all shows all, --select CODE those of one code"
        yield console.style(f"... and {what}: {hint}", "dim")
    if shown:
        yield ""
    yield from draw(console, TALLY, tallies[:rows])
    if rest := tallies[rows:]:
        found = words.count(sum(one.number for one in rest), "finding")
        yield console.style(f"... and {found} of {words.count(len(rest), 'more code')}", "dim")


def _paragraphs(console: Console, told: Sequence[Told], *, fitted: bool) -> Iterator[list[str]]:
    """Yield the lines of each finding, of the first of a skill with the skill's name above.

    ``fitted``: the name and its path take one line.
    """
    above: object = None
    for one in told:
        found = list(draw_findings(console, [one.finding], console.width))
        group = (one.order[:3], one.skill.path)
        if group != above:
            gap = [] if above is None else [""]
            found = [*gap, _heading(console, one.skill, fitted=fitted), *found]
            above = group
        yield found


def _heading(console: Console, skill: "Checked", *, fitted: bool) -> str:
    name, path = escape.line(skill.name), escape.line(skill.path)
    if fitted:
        name = fit(name, console.width // 2, ellipsis=console.ellipsis)
        room = console.width - width_of(name) - 2
        path = fit(path, room, "start", ellipsis=console.ellipsis)
    return f"{console.style(name, 'bold')}  {console.style(path, 'dim')}"


def _tallies(told: Sequence[Told]) -> list[Tally]:
    """Return each code with its count, in the order of the findings, the most frequent first."""
    counts = Counter((one.order[:3], one.finding.code) for one in told)
    firsts: dict[tuple[object, str], Told] = {}
    for one in told:
        firsts.setdefault((one.order[:3], one.finding.code), one)
    order = sorted(counts, key=lambda key: (key[0], -counts[key], key[1]))
    return [Tally(firsts[key], counts[key]) for key in order]


TALLY: Final[Sequence[Column[Tally]]] = (
    Column("CODE", lambda one: one.first.finding.code),
    Column("CATEGORY", lambda one: one.first.finding.category),
    Column("SEVERITY", lambda one: one.first.finding.severity, style=words.SEVERITY_STYLES),
    Column("FINDINGS", lambda one: f"{one.number:,}", right=True),
    Column("EXAMPLE", lambda one: one.first.place, flexible=True, cut="start", drop=1),
)
