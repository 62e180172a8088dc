"""`skill-registry check`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import click

from registry.cli import complete, escape, options, words
from registry.cli.column import Column
from registry.cli.console import Console
from registry.cli.findings_view import draw_findings, finding_line
from registry.cli.group import session_command
from registry.cli.listing import emit
from registry.cli.progress import waiting
from registry.cli.run import Status
from registry.cli.session import Session
from registry.cli.table import draw
from registry.model import SEVERITIES, Diagnostic

if TYPE_CHECKING:
    from registry.catalog.check import Checked


@session_command(
    "skill-registry check                        # everything that is registered",
    "skill-registry check pdf-forms ./my-skills  # a skill, and a folder",
    "skill-registry check --strict .             # in a build: warnings fail, too",
    "skill-registry check --fail-on security .   # ... or only what may do harm",
    "skill-registry check --json | jq -r '.[].findings[].code' | sort | uniq -c",
    starts_new=True,
)
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=complete.names_or_paths)
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "security"]),
    default="error",
    show_default=True,
    help="Fail on errors; on warnings, too; or only on warnings and errors about security.",
)
@click.option("--strict", is_flag=True, help="Short for --fail-on warning.")
@options.format_options
def command(
    session: Session, *, targets: tuple[str, ...], fail_on: str, strict: bool, style: str | None
) -> None:
    """Check skills for mistakes and risks.

    TARGET is a folder (registered or not), a source or a skill; without one every source is
    checked. The skills are read from disk as they are now. In a pipe each finding is a line
    "path:line: severity code message (fix: ...)". Minor findings are shown with --verbose.

    Security comes first: what a skill may do to its reader, as opposed to its format. A security
    error is near-certain harm, a warning is for a person to look at; neither makes a skill invalid.

    Exit status: 1 where there is a finding of the level that --fail-on names.
    """
    if strict and fail_on == "security":
        raise click.UsageError("--strict and --fail-on security exclude each other.")
    console, registry = session.console, session.registry
    if not targets and not registry.own_sources():
        console.error(
            "No source is on this machine: name a folder to check, 'skill-registry check FOLDER'."
        )
        raise click.exceptions.Exit(Status.FAILED)
    with waiting(console, "checking"):
        checked = registry.check(targets)
    shown: Sequence[Checked] = checked
    if style not in {"json", "jsonl"}:
        shown = _worth_showing(checked, verbose=session.verbose)
    emit(console, style, shown, COLUMNS, draw=_draw, plain=_lines)
    everything = [finding for one in checked for finding in one.findings]
    if style == "table" or (style is None and console.is_terminal):
        console.write(_by_code(console, [f for one in shown for f in one.findings]))
    if style in {None, "table"}:
        console.note(summary(len(checked), everything))
    if any(_fails(finding, "warning" if strict else fail_on) for finding in everything):
        raise click.exceptions.Exit(Status.FAILED)


def _fails(finding: Diagnostic, level: str) -> bool:
    if level == "security":
        return finding.category == "security" and finding.severity != "info"
    return finding.severity == "error" or (level == "warning" and finding.severity == "warning")


def summary(number: int, findings: Sequence[Diagnostic]) -> str:
    """Return how many skills were checked and how many findings there are, as one line."""
    found = Counter[str](finding.severity for finding in findings)
    counts = [words.count(found["error"], "error"), words.count(found["warning"], "warning")]
    if found["info"]:
        counts.append(f"{found['info']:,} minor")
    grave = sum(_fails(finding, "security") for finding in findings)
    told = f"; {grave:,} of them about security" if grave else ""
    return f"{words.count(number, 'skill')} checked: {', '.join(counts)}{told}"


@dataclass(frozen=True, slots=True)
class _Tally:
    """How often a code was found, and how grave it is."""

    finding: Diagnostic
    count: int


def _by_code(console: Console, findings: Sequence[Diagnostic]) -> Iterator[str]:
    """Yield a table of the codes, those of security first."""
    counted = Counter((f.category != "security", f.severity, f.code) for f in findings)
    one_of = {(f.category != "security", f.severity, f.code): f for f in findings}
    if not counted:
        return
    order = sorted(counted, key=lambda key: (key[0], SEVERITIES.index(key[1]), -counted[key], key))
    yield ""
    yield from draw(console, TALLY, [_Tally(one_of[key], counted[key]) for key in order])


def _draw(console: Console, checked: "Sequence[Checked]") -> Iterator[str]:
    for index, one in enumerate(checked):
        if index:
            yield ""
        folder = console.style(escape.line(one.path), "dim")
        yield f"{console.style(escape.line(one.name), 'bold')}  {folder}"
        yield from draw_findings(console, one.findings, console.width)


def _lines(one: "Checked") -> str:
    return "\n".join(finding_line(finding, one.path) for finding in one.findings)


def _worth_showing(checked: "Sequence[Checked]", *, verbose: bool) -> "Sequence[Checked]":
    told = [
        replace(one, findings=[f for f in one.findings if verbose or f.severity != "info"])
        for one in checked
    ]
    return [one for one in told if one.findings]


TALLY: Final[Sequence[Column[_Tally]]] = (
    Column("CODE", lambda tally: tally.finding.code),
    Column("CATEGORY", lambda tally: tally.finding.category),
    Column("SEVERITY", lambda tally: tally.finding.severity),
    Column("FINDINGS", lambda tally: f"{tally.count:,}", right=True),
)

COLUMNS: Final[Sequence[Column["Checked"]]] = (Column("PATH", lambda one: one.path),)
