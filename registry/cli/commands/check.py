"""`skill-registry check`."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from registry.cli import completion, formatting, options
from registry.cli.findings_report import Findings, Tally, Told, lines, report
from registry.cli.group import session_command
from registry.cli.listing import Column, emit
from registry.cli.progress import waiting
from registry.cli.session import Session, Status
from registry.errors import FindingUnknown

if TYPE_CHECKING:
    from registry.catalog.checked import Checked


def _code(text: str) -> str:
    """Take a code of findings, or the beginning of several, which ends with a hyphen."""
    from registry.catalog.codes import codes_of

    try:
        codes_of(text)
    except FindingUnknown as error:
        raise ValueError(str(error)) from error
    return text


_code_option: Final = partial(
    click.option,
    metavar="CODE",
    multiple=True,
    type=options.Parsed("code", _code),
    shell_complete=completion.codes,
)


@session_command(
    "skill-registry check                        # everything that is registered",
    "skill-registry check pdf-forms ./my-skills  # a skill, and a folder",
    "skill-registry check --select yaml-         # all about broken YAML, and nothing else",
    "skill-registry check --fix --dry-run        # what could be mended without judgement",
    "skill-registry check --strict .             # in a build: warnings fail, too",
    "skill-registry check --fail-on security .   # ... or only what may do harm",
    "skill-registry check --json | jq -r '.[].findings[].code' | sort | uniq -c",
    starts_new=True,
)
@click.argument(
    "targets", nargs=-1, metavar="[TARGET]...", shell_complete=completion.names_or_paths
)
@_code_option("--select", help="Only findings of this code, or beginning so: yaml- (repeatable).")
@_code_option("--ignore", help="No findings of this code, or beginning so (repeatable).")
@click.option("--all", "every", is_flag=True, help="Show all findings, the minor ones, too.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "security"]),
    help="Fail on errors (the default); on warnings, too; or only on warnings and errors about "
    "security.",
)
@click.option("--strict", is_flag=True, help="Short for --fail-on warning.")
@click.option(
    "--fix", is_flag=True, help="Mend what takes no judgement: show it as a diff, ask, and do it."
)
@click.option("--dry-run", is_flag=True, help="With --fix: only print the diff.")
@click.option("--yes", is_flag=True, help="With --fix: don't ask.")
@options.format_options
def command(
    session: Session,
    *,
    targets: tuple[str, ...],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    every: bool,
    fail_on: str | None,
    strict: bool,
    fix: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Check skills for mistakes and risks.

    TARGET is a folder (registered or not), a source or a skill; without one every source is
    checked. The skills are read from disk as they are now. In a pipe each finding is a line
    "path:line: severity code message (fix: ...)". On a terminal as much is shown as it has room
    for, and a table counts the codes; --all and --select show everything.

    Security comes first: what a skill may do to its reader, as opposed to its format. A security
    error is near-certain harm, a warning is for a person to look at; neither makes a skill invalid.

    With --fix values that are broken YAML are put in quotes as they are read, a name that differs
    from its folder in case and spaces alone becomes the folder's, tags are written once each, and
    byte order marks, mixed line ends and tabs go; every other byte stays. Of registered skills
    "history" keeps what was before.

    Exit status: 1 where there is a finding of the level that --fail-on names; with --fix, where
    something could not be mended.
    """
    if strict and fail_on == "security":
        raise click.UsageError("--strict and --fail-on security exclude each other.")
    if (dry_run or yes) and not fix:
        raise click.UsageError("--dry-run and --yes go with --fix.")
    if fix and (strict or fail_on):
        raise click.UsageError("--fix reports no findings: check again to fail on what is left.")
    console, registry = session.console, session.registry
    if not targets and not registry.own_sources():
        raise click.ClickException(
            "No source is on this machine: name a folder to check, 'skill-registry check FOLDER'."
        )
    if fix:
        from registry.cli.mending import mend

        mend(session, targets, select, ignore, dry_run=dry_run, yes=yes)
        return
    from registry.catalog.check import check

    with waiting(console, "checking"):
        checked = check(registry.core, targets, select=select, ignore=ignore)
        findings = Findings(checked)
    _show(session, checked, findings, whole=every or bool(select))
    found = findings.tallies
    if session.style in {None, "table"}:
        console.note(summary(len(checked), found))
        if console.is_terminal and any(map(_is_mendable, found)):
            told = "What takes no judgement is mended, after you saw it, by: check --fix"
            console.note(told, "dim")
    if any(_fails(one, "warning" if strict else fail_on or "error") for one in found):
        raise click.exceptions.Exit(Status.FAILED)


def _show(
    session: Session, checked: "Sequence[Checked]", findings: Findings, *, whole: bool
) -> None:
    """Print the findings; ``whole``: the minor ones, too, and more than a terminal has room for."""
    console = session.console
    minor = whole or session.verbose
    if session.style in {"json", "jsonl"}:
        emit(session, checked, COLUMNS)
    elif session.style == "names":
        emit(session, _skills(findings.told(minor=minor)), COLUMNS)
    elif session.style == "table" or console.is_terminal:
        room = None if whole or not console.is_terminal else console.height
        console.write(report(console, findings, minor=minor, room=room))
    else:
        console.write(lines(findings.told(minor=minor)))


def _skills(told: Iterable[Told]) -> "Iterator[Checked]":
    """Yield each skill once."""
    seen: set[str] = set()
    for one in told:
        if one.skill.path not in seen:
            seen.add(one.skill.path)
            yield one.skill


def _is_mendable(one: Tally) -> bool:
    from registry.document.mend import MENDABLE

    return one.first.finding.code in MENDABLE


def _fails(one: Tally, level: str) -> bool:
    finding = one.first.finding
    if level == "security":
        return finding.category == "security" and finding.severity != "info"
    return finding.severity == "error" or (level == "warning" and finding.severity == "warning")


def summary(number: int, found: Sequence[Tally]) -> str:
    """Return how many skills were checked and how many findings there are, as one line."""
    of = Counter[str]()
    for one in found:
        of[one.first.finding.severity] += one.number
    counts = [formatting.count(of["error"], "error"), formatting.count(of["warning"], "warning")]
    if of["info"]:
        counts.append(f"{of['info']:,} minor")
    grave = sum(one.number for one in found if _fails(one, "security"))
    told = f"; {grave:,} of them about security" if grave else ""
    return f"{formatting.count(number, 'skill')} checked: {', '.join(counts)}{told}"


COLUMNS: Final[Sequence[Column["Checked"]]] = (Column("PATH", lambda one: one.path),)
