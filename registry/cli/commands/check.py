"""`skill-registry check`: findings, their report, and `--fix`."""

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import click

from registry.cli import completion, escape, formatting, options
from registry.cli.findings import draw_findings, finding_line
from registry.cli.formatting import fit, width_of
from registry.cli.group import session_command
from registry.cli.hints import hint
from registry.cli.listing import Column, draw_table, emit
from registry.cli.progress import waiting
from registry.cli.prompts import confirm
from registry.cli.session import Console, Session, Status
from registry.errors import DatabaseProblem, FindingUnknown, RegistryError
from registry.model import SEVERITIES, Diagnostic

if TYPE_CHECKING:
    from registry.catalog.check import Checked
    from registry.changes.fix import Fix


BELOW: Final = 7
"""Number of terminal lines for the header of the table, the messages below it, and the prompt."""

FEWEST: Final = 5
"""Minimum number of lines on a small terminal, for the table and for the findings separately."""


Group: TypeAlias = tuple[int, bool]
"""The sort key of a finding.

Its parts are the rank of its severity, and False if it is about security.
"""


Key: TypeAlias = tuple[Group, str]
"""The group and the code of a finding."""

MOST_ALIKE: Final = 3
"""Maximum number of warnings with the same code that a terminal shows in full."""


class SkillFinding(NamedTuple):
    """A finding, and the skill that has it."""

    skill: "Checked"
    finding: Diagnostic

    @property
    def place(self) -> str:
        """The path and line of the finding."""
        one = self.finding
        path = f"{self.skill.path.rstrip('/')}/{one.path}" if one.path else self.skill.path
        return f"{path}:{one.line}" if one.line else path


@dataclass(slots=True)
class Tally:
    """The number of findings with the same code, and the first of them."""

    first: SkillFinding
    number: int = 0

    @property
    def key(self) -> Key:
        """The group and code of the findings."""
        return _key(self.first.finding)

    @property
    def is_folded(self) -> bool:
        """Whether a report that must fit on the terminal shows only the first finding."""
        return self.number > MOST_ALIKE and self.first.finding.severity != "error"


class Findings:
    """The findings of all skills by severity, without a copy of them in memory.

    Errors come first, then warnings and minor findings; in each of these, security findings come
    first. In each group, findings are sorted by skill and position.
    """

    def __init__(self, checked: "Sequence[Checked]") -> None:
        self._checked = checked
        self._skills: dict[Group, list[int]] = {}
        """For each group of findings, the indexes of the skills with findings of this group."""
        self.skills = 0
        """The number of checked skills; folders without a skill don't count."""
        tallies: dict[Key, Tally] = {}
        for index, skill in enumerate(checked):
            self.skills += skill.is_skill
            for finding in skill.findings:
                group = _group(finding)
                indexes = self._skills.setdefault(group, [])
                if indexes[-1:] != [index]:
                    indexes.append(index)
                tallies.setdefault(_key(finding), Tally(SkillFinding(skill, finding))).number += 1
        order = sorted(tallies, key=lambda key: (key[0], -tallies[key].number, key[1]))
        self.tallies: Final = [tallies[key] for key in order]
        """The codes with their numbers, by group; the most frequent code of a group comes first."""

    def ordered(self, *, minor: bool) -> Iterator[SkillFinding]:
        """Yield the findings; minor findings only if ``minor``."""
        for group, indexes in sorted(self._skills.items()):
            for index in [] if _is_minor(group) and not minor else indexes:
                skill = self._checked[index]
                found = (one for one in skill.findings if _group(one) == group)
                yield from (SkillFinding(skill, one) for one in found)

    def number(self, *, minor: bool) -> int:
        """Return the number of findings that `ordered` yields."""
        return sum(
            one.number for one in self.tallies if minor or not _is_minor(_group(one.first.finding))
        )


def _group(finding: Diagnostic) -> Group:
    return SEVERITIES.index(finding.severity), finding.category != "security"


def _key(finding: Diagnostic) -> Key:
    return _group(finding), finding.code


def _is_minor(group: Group) -> bool:
    return SEVERITIES[group[0]] == "info"


def lines(findings: Iterable[SkillFinding]) -> Iterator[str]:
    """Yield a line for each finding."""
    return (finding_line(one.finding, one.skill.path) for one in findings)


def report(console: Console, findings: Findings, *, minor: bool, room: int | None) -> Iterator[str]:
    """Yield the findings, grouped by skill, and a table of all codes.

    Minor findings are included only if ``minor``. ``room`` is the maximum number of lines; None
    means no limit. With a limit, only the first of many warnings with the same code is shown.
    """
    tallies = findings.tallies
    if not tallies:
        return
    rows = len(tallies) if room is None else min(len(tallies), max(FEWEST, (room - BELOW) // 2))
    left = None if room is None else max(FEWEST, room - BELOW - rows)
    shown = 0
    folded = {} if room is None else {one.key: one.number - 1 for one in tallies if one.is_folded}
    for key, part in _paragraphs(console, _firsts(findings, folded, minor=minor), room is not None):
        if hidden := folded.get(key):
            part.append(console.style(f"    ... and {hidden:,} more with this code", "dim"))
        if left is not None and shown and len(part) > left:
            break
        yield from part
        shown += 1 + folded.get(key, 0)
        left = None if left is None else left - len(part)
    if more := findings.number(minor=minor) - shown:
        what = formatting.count(more, "more finding")
        hint = "to see all, add --all; to see one code, add --select CODE"
        yield console.style(f"... and {what}: {hint}", "dim")
    if shown:
        yield ""
    yield from draw_table(console, TALLY, tallies[:rows])
    if rest := tallies[rows:]:
        found = formatting.count(sum(one.number for one in rest), "finding")
        yield console.style(f"... and {found} of {formatting.count(len(rest), 'more code')}", "dim")


def _firsts(
    findings: Findings, folded: Mapping[Key, int], *, minor: bool
) -> Iterator[SkillFinding]:
    """Yield the findings, but only the first one of each code in ``folded``."""
    seen: set[Key] = set()
    for one in findings.ordered(minor=minor):
        key = _key(one.finding)
        if key not in seen:
            yield one
        if key in folded:
            seen.add(key)


def _paragraphs(
    console: Console, findings: Iterable[SkillFinding], fitted: bool
) -> Iterator[tuple[Key, list[str]]]:
    """Yield the key and the lines of each finding, with a heading for each skill.

    If ``fitted``, the heading (the name and path of the skill) is shortened to one line.
    """
    above: object = None
    for one in findings:
        found = list(draw_findings(console, [one.finding], console.width))
        group = (_group(one.finding), one.skill.path)
        if group != above:
            gap = [] if above is None else [""]
            found = [*gap, _heading(console, one.skill, fitted=fitted), *found]
            above = group
        yield _key(one.finding), found


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


def mend(
    session: Session,
    targets: Sequence[str],
    select: Sequence[str],
    ignore: Sequence[str],
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Print the diffs, ask on a terminal, and fix the skills.

    Exits with status 1 if a file can't be changed. The format ``json`` prints objects that contain
    the diffs.
    """
    from registry.catalog.check import Checks, check
    from registry.changes.fix import fixes_of

    console, registry = session.console, session.registry
    with waiting(console, "checking"):
        checked = check(registry.core, targets, select=select, ignore=ignore)
        found = fixes_of(registry.core, checked, select, ignore)
    _show_fixes(session, found)
    if dry_run:
        return
    skills = formatting.count(len(found), "skill")
    if not found:
        console.note("Nothing to fix.")
        _note_left(session, checked, targets, select, ignore)
        return
    confirm(session, f"Fix {skills}?", yes=yes)
    failed = 0
    for one in found:
        try:
            registry.fix(one)
        except DatabaseProblem:
            raise
        except RegistryError as error:
            failed += 1
            console.error(f"{error} {hint(error)}".rstrip())
    console.note(f"Fixed {formatting.count(len(found) - failed, 'skill')}.")
    folders = [os.path.dirname(one.path) for one in found]
    with waiting(console, "checking"):
        again = {
            one.path: one for one in check(registry.core, folders, select=select, ignore=ignore)
        }
        rest = (one for one in checked if one.path not in again)
        checked = Checks(chain(rest, again.values()))
    _note_left(session, checked, targets, select, ignore)
    if failed:
        raise click.exceptions.Exit(Status.FAILED)


def _note_left(
    session: Session,
    checked: "Sequence[Checked]",
    targets: Sequence[str],
    select: Sequence[str],
    ignore: Sequence[str],
) -> None:
    """Print how many errors and warnings are left, and the command that shows them."""
    left = sum(
        one.number for one in Findings(checked).tallies if one.first.finding.severity != "info"
    )
    if left:
        told, it = ("is", "it") if left == 1 else ("are", "them")
        findings = formatting.count(left, "finding")
        way = _typed([], targets, select, ignore)
        session.console.note(f"{findings} {told} left. To see {it}, run: {way}")


def _typed(
    flags: Sequence[str], targets: Sequence[str], select: Sequence[str], ignore: Sequence[str]
) -> str:
    """Return the command that checks the same targets, with these flags."""
    chosen = [("--select", code) for code in select] + [("--ignore", code) for code in ignore]
    words = ["skill-registry", "check", *flags, *targets, *chain.from_iterable(chosen)]
    return escape.line(shlex.join(words))


def _show_fixes(session: Session, found: "Sequence[Fix]") -> None:
    console = session.console
    if session.style in {"json", "jsonl"}:
        from registry.cli.listing import emit

        emit(session, found, ())
    elif session.style == "names":
        console.write(escape.line(one.path) for one in found)
    elif console.is_terminal:
        console.page(list(_painted(console, found)))
    else:
        console.write_bytes("".join(one.diff for one in found).encode("utf-8", "backslashreplace"))


def _painted(console: Console, found: "Sequence[Fix]") -> Iterator[str]:
    for one in found:
        # Keep the line ending, because it is part of the diff.
        yield from (console.paint_diff(line) for line in one.diff.removesuffix("\n").split("\n"))


def _code(text: str) -> str:
    """Parse the code of a finding; if it ends with a hyphen, it is a prefix of codes."""
    from registry.catalog.check import codes_of

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
    "skill-registry check                        # all sources",
    "skill-registry check pdf-forms ./my-skills  # a skill and a folder",
    "skill-registry check --select yaml-         # only findings about broken YAML",
    "skill-registry check --fix --dry-run        # show the fixes without making them",
    "skill-registry check --strict .             # for CI: warnings also fail",
    "skill-registry check --fail-on security .   # for CI: only security findings fail",
    "skill-registry check --json | jq -r '.[].findings[].code' | sort | uniq -c",
    starts_new=True,
)
@click.argument(
    "targets", nargs=-1, metavar="[TARGET]...", shell_complete=completion.names_or_paths
)
@_code_option(
    "--select", help="Only findings whose code is or begins with CODE, such as yaml- (repeatable)."
)
@_code_option("--ignore", help="No findings whose code is or begins with CODE (repeatable).")
@click.option("--all", "every", is_flag=True, help="Show all findings, including minor ones.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "security"]),
    help=(
        "The findings that make the command fail: errors (default), errors and warnings, "
        "or only security errors and warnings."
    ),
)
@click.option("--strict", is_flag=True, help="Same as --fail-on warning.")
@click.option(
    "--fix",
    is_flag=True,
    help="Make the repairs that need no judgement, after showing a diff and asking.",
)
@click.option("--dry-run", is_flag=True, help="Only print the diff. Requires --fix.")
@click.option("-y", "--yes", is_flag=True, help="Skip the confirmation. Requires --fix.")
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

    TARGET is a folder (registered or not), a source or a skill; without one, all sources are
    checked. The check reads files from disk. In a pipe each finding is a line "path:line: severity
    code message (fix: ...)". A terminal shows as many findings as fit, of many warnings with the
    same code only the first, and a table of the codes; --all and --select show every finding.

    Errors come first, then warnings; in both, security findings come first: they are about what a
    skill may do to its reader. A security error is almost certainly harmful; a warning needs a
    person's judgement. Neither makes a skill invalid.

    --fix makes these repairs: it quotes values that break the YAML, closes brackets, repairs
    unpaired quotes, sets a name that differs from its folder only in case, spaces or underscores to
    the folder's name, and removes duplicate tags, byte order marks, mixed line ends and tabs. Every
    other byte stays. For registered skills, "history" keeps the version before the repair.

    Exit status: 1 if there is a finding that --fail-on selects (by default: an error); with --fix,
    if a repair failed.
    """
    if strict and fail_on == "security":
        raise click.UsageError("--strict and --fail-on security can't be combined.")
    if (dry_run or yes) and not fix:
        raise click.UsageError("--dry-run and --yes require --fix.")
    if fix and (strict or fail_on):
        raise click.UsageError(
            "--fix can't be combined with --strict or --fail-on. Run check again afterwards to "
            "fail on the remaining findings."
        )
    console, registry = session.console, session.registry
    if not targets and not registry.own_sources():
        raise click.ClickException(
            "No source is on this machine. To check a folder, run: skill-registry check FOLDER"
        )
    if fix:
        mend(session, targets, select, ignore, dry_run=dry_run, yes=yes)
        return
    from registry.catalog.check import check

    with waiting(console, "checking"):
        checked = check(registry.core, targets, select=select, ignore=ignore)
        findings = Findings(checked)
    _show(session, checked, findings, whole=every or bool(select))
    found = findings.tallies
    if session.is_for_people:
        console.note(summary(findings.skills, found))
        if not targets:
            _note_sources(session, found)
        if _has_fixes(session, checked, select, ignore):
            way = _typed(["--fix"], targets, select, ignore)
            message = f"To see the repairs that need no judgement, run: {way}"
            console.note(message, "dim")
    if any(_fails(one, "warning" if strict else fail_on or "error") for one in found):
        raise click.exceptions.Exit(Status.FAILED)


def _note_sources(session: Session, found: Sequence[Tally]) -> None:
    """Print how many folders have no SKILL.md, and how to make differing names equal."""
    differing = [one.first for one in found if one.first.finding.code == "name-differs-from-folder"]
    if differing:
        folder = differing[0].skill.path.rstrip("/")
        path, name = (shlex.quote(escape.line(one)) for one in (folder, os.path.basename(folder)))
        message = "To give a skill the name of its folder, run, for example: skill-registry rename"
        session.console.note(f"{message} {path} {name}", "dim")
    if number := session.registry.list(status="no_document", limit=0).total:
        folders = formatting.count(number, "folder")
        session.console.note(
            f"{folders} without a SKILL.md. To list them, run: skill-registry list --status "
            "no_document"
        )


def _show(
    session: Session, checked: "Sequence[Checked]", findings: Findings, *, whole: bool
) -> None:
    """Print the findings; if ``whole``, all of them.

    Otherwise, leave out minor findings, and findings that don't fit on the terminal.
    """
    console = session.console
    minor = whole or session.verbose
    if session.style in {"json", "jsonl"}:
        emit(session, checked, COLUMNS)
    elif session.style == "names":
        emit(session, _skills(findings.ordered(minor=minor)), COLUMNS)
    elif session.style == "table" or console.is_terminal:
        room = None if whole or not console.is_terminal else console.height
        console.write(report(console, findings, minor=minor, room=room))
    else:
        console.write(lines(findings.ordered(minor=minor)))


def _skills(findings: Iterable[SkillFinding]) -> "Iterator[Checked]":
    """Yield each skill once, without its findings."""
    seen: set[str] = set()
    for one in findings:
        if one.skill.path not in seen:
            seen.add(one.skill.path)
            yield one.skill


def _has_fixes(
    session: Session, checked: "Sequence[Checked]", select: Sequence[str], ignore: Sequence[str]
) -> bool:
    from registry.changes.fix import has_fixes

    return has_fixes(session.registry.core, checked, select=select, ignore=ignore)


def _fails(one: Tally, level: str) -> bool:
    finding = one.first.finding
    if level == "security":
        return finding.category == "security" and finding.severity != "info"
    return finding.severity == "error" or (level == "warning" and finding.severity == "warning")


def summary(number: int, found: Sequence[Tally]) -> str:
    """Return one line with the number of checked skills and the number of findings."""
    of = Counter[str]()
    for one in found:
        of[one.first.finding.severity] += one.number
    counts = [formatting.count(of["error"], "error"), formatting.count(of["warning"], "warning")]
    if of["info"]:
        counts.append(f"{of['info']:,} minor")
    grave = sum(one.number for one in found if _fails(one, "security"))
    message = f"; {grave:,} of them about security" if grave else ""
    return f"{formatting.count(number, 'skill')} checked: {', '.join(counts)}{message}"


COLUMNS: Final[Sequence[Column["Checked"]]] = (Column("PATH", lambda one: one.path),)
