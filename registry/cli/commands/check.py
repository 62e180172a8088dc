"""`skill-registry check`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from registry.cli import complete, escape, options, words
from registry.cli.console import Console
from registry.cli.findings_view import draw_findings, finding_line
from registry.cli.group import Command
from registry.cli.listing import Listing, emit
from registry.cli.run import Status
from registry.cli.session import Session
from registry.model import Diagnostic, record

if TYPE_CHECKING:
    from registry.catalog.check import Checked


@click.command(
    cls=Command,
    examples=(
        "skill-registry check                        # everything that is registered",
        "skill-registry check pdf-forms ./my-skills  # a skill, and a folder",
        "skill-registry check --strict .             # in a build: warnings fail, too",
        "skill-registry check --json | jq -r '.[].findings[].code' | sort | uniq -c",
    ),
)
@click.argument("targets", nargs=-1, metavar="[TARGET]...", shell_complete=complete.names_or_paths)
@click.option("--strict", is_flag=True, help="Fail on warnings, too.")
@options.format_options
@click.pass_obj
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
    checked = registry.check(targets)
    shown = checked if style in {"json", "jsonl"} else _worth_showing(checked, session)
    emit(console, style, shown, listing(verbose=session.verbose))
    found = Counter[str](finding.severity for one in checked for finding in one.findings)
    if style in {None, "table"}:
        console.note(summary(len(checked), found))
    if found["error"] or (strict and found["warning"]):
        raise click.exceptions.Exit(Status.FAILED)


def summary(number: int, found: "Counter[str]") -> str:
    """Say how many skills were checked and what was found."""
    counts = [words.count(found["error"], "error"), words.count(found["warning"], "warning")]
    if found["info"]:
        counts.append(f"{found['info']:,} minor")
    return f"{words.count(number, 'skill')} checked: {', '.join(counts)}"


def listing(*, verbose: bool) -> Listing:
    """Return how the findings are printed."""

    def lines(one: "Checked") -> Sequence[str]:
        return ["\n".join(finding_line(f, one.path) for f in _told(one.findings, verbose=verbose))]

    def draw(console: Console, checked: "Sequence[Checked]") -> Iterator[str]:
        for index, one in enumerate(checked):
            if index:
                yield ""
            folder = console.style(escape.line(one.path), "dim")
            yield f"{console.style(escape.line(one.name), 'bold')}  {folder}"
            yield from draw_findings(console, _told(one.findings, verbose=verbose), console.width)

    return Listing(record, lambda one: escape.line(one.path), lines, draw)


def _worth_showing(checked: "Sequence[Checked]", session: Session) -> "Sequence[Checked]":
    return [one for one in checked if _told(one.findings, verbose=session.verbose)]


def _told(findings: Sequence[Diagnostic], *, verbose: bool) -> Sequence[Diagnostic]:
    return [finding for finding in findings if verbose or finding.severity != "info"]
