"""`skill-registry edit`."""

import os
import shlex
import subprocess
from collections.abc import Iterator, Mapping

import click

from registry.cli import completion, escape, options
from registry.cli.batch import report_copies
from registry.cli.findings import draw_findings
from registry.cli.group import session_command
from registry.cli.session import Console, Session, Status
from registry.errors import ChangeRefused
from registry.model import SkillDetail


@session_command(
    "skill-registry edit release-notes",
    "EDITOR=nano skill-registry edit release-notes",
    "VISUAL='code --wait' skill-registry edit ~/.claude/skills/release-notes",
)
@click.argument("name", shell_complete=completion.names)
def command(session: Session, *, name: str) -> None:
    """Open a skill's SKILL.md in your editor, then sync and check it.

    The editor is $VISUAL, else $EDITOR. The command prints the edit as a diff, and the findings
    about the new content. "undo" takes the edit back.

    Exit status: 1 if the editor failed, or if the skill can't be used any more.
    """
    from registry.catalog.resolve import resolve
    from registry.changes.made import record_edit

    console, registry = session.console, session.registry
    editor = _editor(os.environ)
    if not editor:
        raise click.ClickException(
            "No editor is set: the variable VISUAL or EDITOR names one, "
            f"such as: EDITOR=nano skill-registry edit {shlex.quote(name)}"
        )
    skill = registry.get(options.named(registry, name))
    path, place = _writable(session, skill), f"{skill.source}/{skill.folder}"
    before, stored = registry.read_bytes(place), resolve(registry.core.reader, place)
    console.note(f"Editing {escape.line(path)}")
    with report_copies(session, place, "changes", copies=None):
        try:
            status = subprocess.run([*editor, path], check=False).returncode  # noqa: S603  # theirs
        except OSError as error:
            problem = f"The editor {editor[0]!r} can't be started: {error.strerror}."
            raise click.ClickException(problem) from error
        now = registry.get(place)
    after = registry.read_bytes(place)
    record_edit(registry.core, stored, resolve(registry.core.reader, place))
    if before == after:
        console.note("Nothing was changed.")
    else:
        console.write(_report(session, now, before, after, place))
    if status:
        console.error(f"The editor ended with status {status}.")
    if status or now.status not in {"ok", "warning"}:
        raise click.exceptions.Exit(Status.FAILED)


def _editor(environ: Mapping[str, str]) -> list[str]:
    given = environ.get("VISUAL") or environ.get("EDITOR") or ""
    try:
        return shlex.split(given)
    except ValueError as error:
        raise click.UsageError(f"The editor {given!r} is no command: {error}.") from error


def _writable(session: Session, skill: SkillDetail) -> str:
    """Return the file to edit. Raises `ChangeRefused`, `SourceElsewhere`."""
    from registry.sync.owned import check_ours, check_writable
    from registry.sync.sources import find

    source = find(session.registry.core, skill.source)
    check_ours(session.registry.core, source)
    check_writable(source)
    path = os.path.realpath(skill.location)
    if os.path.isdir(path):
        raise ChangeRefused(path=path, reason="it holds no SKILL.md")
    if not os.access(path, os.W_OK):
        raise ChangeRefused(path=path, reason="it can only be read; pull a copy and edit that")
    return path


def _report(
    session: Session, skill: SkillDetail, before: bytes, after: bytes, place: str
) -> Iterator[str]:
    console = session.console
    yield from _diff(console, before, after)
    found = [one for checked in session.registry.check([place]) for one in checked.findings]
    told = [one for one in found if session.verbose or one.severity != "info"]
    yield f"{console.style(escape.line(skill.ref), 'bold')}: {'checked' if told else 'no findings'}"
    yield from draw_findings(console, told, console.width)


def _diff(console: Console, before: bytes, after: bytes) -> Iterator[str]:
    from difflib import unified_diff

    old, new = (data.decode("utf-8", "backslashreplace").splitlines() for data in (before, after))
    for line in unified_diff(old, new, "before", "after", lineterm=""):
        yield console.paint_diff(line)
