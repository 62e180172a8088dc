"""`skill-registry check`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
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

if TYPE_CHECKING:
    from registry.catalog.check import Checked


@session_command(
    "skill-registry check                        # everything that is registered",
    "skill-registry check pdf-forms ./my-skills  # a skill, and a folder",
    "skill-registry check --strict .             # in a build: warnings fail, too",
    "skill-registry check --json | jq -r '.[].findings[].code' | sort | uniq -c",
    starts_new=True,
)
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=complete.names_or_paths)
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
@options.format_options
def command(session: Session, *, targets: tuple[str, ...], strict: bool, style: str | None) -> None:
    """Check skills for mistakes and risks.

    TARGET is a folder (registered or not), a source or a skill; without one every source is
    checked. The skills are read from disk as they are now. In a pipe each finding is a line
    "path:line: severity code message (fix: ...)". Minor findings are shown with --verbose.

    Exit status: 1 where there is an error, and with --strict also where there is a warning.
    """
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
    found = Counter[str](finding.severity for one in checked for finding in one.findings)
    if style in {None, "table"}:
        console.note(summary(len(checked), found))
    if found["error"] or (strict and found["warning"]):
        raise click.exceptions.Exit(Status.FAILED)


def summary(number: int, found: "Counter[str]") -> str:
    """Return how many skills were checked and how many findings there are, as one line."""
    counts = [words.count(found["error"], "error"), words.count(found["warning"], "warning")]
    if found["info"]:
        counts.append(f"{found['info']:,} minor")
    return f"{words.count(number, 'skill')} checked: {', '.join(counts)}"


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


COLUMNS: Final[Sequence[Column["Checked"]]] = (Column("PATH", lambda one: one.path),)
