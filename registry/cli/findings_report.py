"""The report of a check: on a terminal what matters first and on one screen, in a pipe lines."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from registry.cli import escape, formatting
from registry.cli.findings import draw_findings, finding_line
from registry.cli.formatting import fit, width_of
from registry.cli.listing import Column, draw_table
from registry.cli.session import Console
from registry.model import SEVERITIES, Diagnostic

if TYPE_CHECKING:
    from registry.catalog.checked import Checked

BELOW: Final = 7
"""Lines of a terminal kept for the head of the table, what is said below it, and the prompt."""

FEWEST: Final = 5
"""Rows of the table, and lines of findings, on the smallest of terminals."""


Group: TypeAlias = tuple[bool, bool, int]
"""How grave a finding is, the gravest first: not minor, about security, its severity."""


class Told(NamedTuple):
    """A finding and the skill that it is about."""

    skill: "Checked"
    finding: Diagnostic

    @property
    def place(self) -> str:
        """Where it was found: path, and line if there is one."""
        one = self.finding
        path = f"{self.skill.path.rstrip('/')}/{one.path}" if one.path else self.skill.path
        return f"{path}:{one.line}" if one.line else path


@dataclass(slots=True)
class Tally:
    """How often a code was found, and the first place."""

    first: Told
    number: int = 0


class Findings:
    """The findings of all skills in the order in which they matter, which are never held.

    That is security first, then errors, warnings and what is minor; in each by skill and place, as
    the skills come, and their findings.
    """

    def __init__(self, checked: "Sequence[Checked]") -> None:
        self._checked = checked
        self._groups: dict[Group, int] = {}
        self._of_skill = bytearray()
        """A bit for each group of which a skill has a finding."""
        tallies: dict[tuple[Group, str], Tally] = {}
        for skill in checked:
            bits = 0
            for finding in skill.findings:
                group = _group(finding)
                bits |= self._groups.setdefault(group, 1 << len(self._groups))
                key = group, finding.code
                if key not in tallies:
                    tallies[key] = Tally(Told(skill, finding))
                tallies[key].number += 1
            self._of_skill.append(bits)
        order = sorted(tallies, key=lambda key: (key[0], -tallies[key].number, key[1]))
        self.tallies: Final = [tallies[key] for key in order]
        """Each code with its number, in the order of the findings, the most frequent first."""

    def told(self, *, minor: bool) -> Iterator[Told]:
        """Yield the findings, those that are ``minor`` only if they are asked for."""
        for group, bit in sorted(self._groups.items()):
            if group[0] and not minor:
                continue
            for index, bits in enumerate(self._of_skill):
                if bits & bit:
                    skill = self._checked[index]
                    yield from (Told(skill, one) for one in skill.findings if _group(one) == group)

    def number(self, *, minor: bool) -> int:
        """Return how many `told` yields."""
        return sum(one.number for one in self.tallies if minor or not _group(one.first.finding)[0])


def _group(finding: Diagnostic) -> Group:
    severity = finding.severity
    return severity == "info", finding.category != "security", SEVERITIES.index(severity)


def lines(told: Iterable[Told]) -> Iterator[str]:
    """Yield a line for each finding."""
    return (finding_line(one.finding, one.skill.path) for one in told)


def report(console: Console, findings: Findings, *, minor: bool, room: int | None) -> Iterator[str]:
    """Yield the findings, grouped by skill, and a table of the codes of all.

    ``minor``: yield those that are minor, too. ``room``: lines that are to be enough for all of it;
    None: as many as it takes.
    """
    tallies = findings.tallies
    if not tallies:
        return
    rows = len(tallies) if room is None else min(len(tallies), max(FEWEST, (room - BELOW) // 2))
    left = None if room is None else max(FEWEST, room - BELOW - rows)
    shown = 0
    for part in _paragraphs(console, findings.told(minor=minor), fitted=room is not None):
        if left is not None and shown and len(part) > left:
            break
        yield from part
        shown += 1
        left = None if left is None else left - len(part)
    if more := findings.number(minor=minor) - shown:
        what = formatting.count(more, "more finding")
        hint = "--all shows all, --select CODE those of one code"
        yield console.style(f"... and {what}: {hint}", "dim")
    if shown:
        yield ""
    yield from draw_table(console, TALLY, tallies[:rows])
    if rest := tallies[rows:]:
        found = formatting.count(sum(one.number for one in rest), "finding")
        yield console.style(f"... and {found} of {formatting.count(len(rest), 'more code')}", "dim")


def _paragraphs(console: Console, told: Iterable[Told], *, fitted: bool) -> Iterator[list[str]]:
    """Yield the lines of each finding, of the first of a skill with the skill's name above.

    ``fitted``: the name and its path take one line.
    """
    above: object = None
    for one in told:
        found = list(draw_findings(console, [one.finding], console.width))
        group = (_group(one.finding), one.skill.path)
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


TALLY: Final[Sequence[Column[Tally]]] = (
    Column("CODE", lambda one: one.first.finding.code),
    Column("CATEGORY", lambda one: one.first.finding.category),
    Column("SEVERITY", lambda one: one.first.finding.severity, style=formatting.SEVERITY_STYLES),
    Column("FINDINGS", lambda one: f"{one.number:,}", right=True),
    Column("EXAMPLE", lambda one: one.first.place, flexible=True, cut="start", drop=1),
)
