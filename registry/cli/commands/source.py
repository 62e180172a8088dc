"""`skill-registry source`: register, list and remove the folders that hold skills."""

import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from registry.cli import complete, escape, options, words
from registry.cli.column import Column
from registry.cli.group import Group, session_command
from registry.cli.listing import emit
from registry.cli.nested import tell_nesting
from registry.cli.session import Session
from registry.model import SCOPES, Scope, Source

if TYPE_CHECKING:
    from registry.sync.places import Discovered


@click.group(
    cls=Group,
    examples=(
        "skill-registry source discover",
        "skill-registry source add ~/work/skills --scope team --name work",
        "skill-registry source list",
    ),
)
def command() -> None:
    """Register, list and remove the folders that hold skills.

    Of one name in two sources the stronger scope wins: project, team, personal, community,
    bundled; within a scope the higher priority.
    """


@session_command(
    "skill-registry source list",
    "skill-registry source list --json | jq -r '.[].path'",
    group=command,
)
@options.format_options
def list_(session: Session, *, style: str | None) -> None:
    """List the sources, the strongest first.

    In a pipe each line is a name, the scope, the number of skills and the path, with tabs between.
    """
    sources = session.registry.sources()
    emit(session.console, style, sources, SOURCES)
    if not sources:
        session.console.note(
            "No sources are registered yet. 'skill-registry sync FOLDER' registers a folder and "
            "reads its\nskills; 'skill-registry source discover' finds the folders of agents."
        )


@session_command(
    "skill-registry source add ~/.claude/skills",
    "skill-registry source add ~/work/skills --scope team --priority 10",
    group=command,
    starts_new=True,
)
@click.argument("folder", type=click.Path())
@click.option(
    "--scope", type=click.Choice(SCOPES), default="personal", show_default=True, help="Its scope."
)
@click.option("--name", metavar="NAME", help="Its name; by default taken from the path.")
@click.option(
    "--priority",
    metavar="N",
    type=int,
    default=0,
    show_default=True,
    help="Within a scope the higher is the stronger.",
)
@options.json_option
def add(
    session: Session, *, folder: str, scope: Scope, name: str | None, priority: int, as_json: bool
) -> None:
    """Register a folder without reading it yet.

    The next sync reads its skills.
    """
    tell_nesting(session, [folder])
    source = session.registry.add_source(folder, name=name, scope=scope, priority=priority)
    shown, path = escape.line(source.name), escape.line(source.path)
    done = f"Registered the source {shown} ({source.scope}): {path}"
    session.console.answer(source, [done], as_json=as_json)
    if not as_json:
        session.console.note(f"Now read its skills: skill-registry sync {shlex.quote(shown)}")


@session_command(
    "skill-registry source adopt work", "skill-registry source adopt work --yes", group=command
)
@click.argument("name", shell_complete=complete.sources)
@click.option("--yes", is_flag=True, help="Don't ask.")
@options.json_option
def adopt(session: Session, *, name: str, yes: bool, as_json: bool) -> None:
    """Take a source of this host as yours.

    On a server everybody who may write there can register a folder under this host's name; the
    next sync here would upload it. So a sync leaves out what you did not add on this machine
    yourself, until you adopt it. A file as the database needs none of this.
    """
    from registry.sync.sources import find

    source = find(session.registry.core, name)
    shown, path = escape.line(source.name), escape.line(source.path)
    if not yes:
        if not session.console.err_is_terminal or not sys.stdin.isatty():
            raise click.UsageError(f"{shown} is {path} ({source.scope}); --yes adopts it.")
        question = f"Read, sync and upload {path} as the source {shown} ({source.scope})?"
        click.confirm(question, abort=True, err=True)
    source = session.registry.adopt_source(name)
    done = f"Adopted the source {shown} ({source.scope}): {path}"
    session.console.answer(source, [done], as_json=as_json)


@session_command("skill-registry source remove work", group=command)
@click.argument("name", shell_complete=complete.sources)
@options.json_option
def remove(session: Session, *, name: str, as_json: bool) -> None:
    """Forget a source and its skills.

    The folder and the skills in it stay as they are. NAME is the source's name or path.
    """
    source = session.registry.remove_source(name)
    name, path = escape.line(source.name), escape.line(source.path)
    held = words.count(source.skills, "skill")
    done = f"Forgot the source {name} and its {held}; {path} stays as it is."
    session.console.answer(source, [done], as_json=as_json)


@session_command(
    "skill-registry source discover",
    "skill-registry source discover ~/work/project",
    group=command,
    starts_new=True,
)
@click.argument("project", type=click.Path(), default=".", required=False)
@options.format_options
def discover(session: Session, *, project: str, style: str | None) -> None:
    """Find the well-known skill folders of agents on this machine.

    Looks below your home folder and below PROJECT, by default the current folder. Nothing is
    registered. In a pipe each line is a path, the scope, and the source or a hyphen.
    """
    home = os.path.expanduser("~")
    found = session.registry.discover(home, os.path.expanduser(project))
    emit(session.console, style, found, DISCOVERED)
    new = [one for one in found if one.source is None]
    if not found:
        session.console.note(
            "No well-known folder was found. 'skill-registry sync FOLDER' takes any folder."
        )
    elif new and style in {None, "table"}:
        session.console.note("Register what is new, and read its skills:")
        for one in new:
            scope = "" if one.scope == "personal" else f" --scope {one.scope}"
            path = shlex.quote(one.path)
            session.console.note(f"  skill-registry sync {escape.line(path)}{scope}")


def _result(source: Source) -> str | None:
    if not source.enabled:
        return "off"
    return None if source.last_result == "ok" else source.last_result


SOURCES: Final[Sequence[Column[Source]]] = (
    Column("SOURCE", lambda source: source.name, style="bold"),
    Column("SCOPE", lambda source: source.scope, drop=1),
    Column("PRIORITY", lambda source: str(source.priority or ""), only="table", right=True, drop=5),
    Column("SKILLS", lambda source: source.skills, right=True, drop=2),
    Column("HOST", lambda source: source.host, only="table", drop=3),
    Column(
        "SYNCED", lambda source: source.last_sync_at or "never", only="table", time=True, drop=4
    ),
    Column("RESULT", _result, only="table", drop=4),
    Column("FOLDER", lambda source: source.path, flexible=True, cut="start"),
)

DISCOVERED: Final[Sequence[Column["Discovered"]]] = (
    Column("FOLDER", lambda one: one.path, max_width=1000, cut="start"),
    Column("SCOPE", lambda one: one.scope, drop=2),
    Column("SOURCE", lambda one: one.source or "(new)", only="table", drop=1),
    Column("SOURCE", lambda one: one.source or "-", only="plain"),
)
