"""`skill-registry source`: register, list and remove the folders that hold skills."""

import os
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from registry.cli import complete, escape, options, words
from registry.cli.console import Console
from registry.cli.group import Group
from registry.cli.listing import Listing, draw, emit
from registry.cli.session import Session
from registry.cli.table import Column
from registry.model import SCOPES, Scope, Source, record

if TYPE_CHECKING:
    from registry.sync.sources import Discovered


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


@command.command(
    "list",
    examples=("skill-registry source list", "skill-registry source list --json | jq -r '.[].path'"),
)
@options.format_options
@click.pass_obj
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


@command.command(
    "add",
    examples=(
        "skill-registry source add ~/.claude/skills",
        "skill-registry source add ~/work/skills --scope team --priority 10",
    ),
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
@click.pass_obj
def add(
    session: Session, *, folder: str, scope: Scope, name: str | None, priority: int, as_json: bool
) -> None:
    """Register a folder without reading it yet.

    The next sync reads its skills.
    """
    source = session.registry.add_source(folder, name=name, scope=scope, priority=priority)
    if as_json:
        session.console.json(record(source))
        return
    shown, path = escape.line(source.name), escape.line(source.path)
    session.console.write([f"Registered the source {shown} ({source.scope}): {path}"])
    session.console.note(f"Now read its skills: skill-registry sync {shlex.quote(shown)}")


@command.command("remove", examples=("skill-registry source remove work",))
@click.argument("name", shell_complete=complete.sources)
@options.json_option
@click.pass_obj
def remove(session: Session, *, name: str, as_json: bool) -> None:
    """Forget a source and its skills.

    The folder and the skills in it stay as they are. NAME is the source's name or path.
    """
    source = session.registry.remove_source(name)
    if as_json:
        session.console.json(record(source))
        return
    name, path = escape.line(source.name), escape.line(source.path)
    held = words.count(source.skills, "skill")
    session.console.write([f"Forgot the source {name} and its {held}; {path} stays as it is."])


@command.command(
    "discover",
    examples=("skill-registry source discover", "skill-registry source discover ~/work/project"),
)
@click.argument("project", type=click.Path(), default=".", required=False)
@options.format_options
@click.pass_obj
def discover(session: Session, *, project: str, style: str | None) -> None:
    """Find the well-known skill folders of agents on this machine.

    Looks below your home folder and below PROJECT, by default the current folder. Nothing is
    registered. In a pipe each line is a path, the scope, and the source or a hyphen.
    """
    from registry.sync.sources import discover as find

    home = os.path.expanduser("~")
    found = list(find(session.registry, home, os.path.expanduser(project)))
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


def _draw_sources(console: Console, sources: Sequence[Source]) -> Iterator[str]:
    return draw(
        console,
        [
            Column(
                "SOURCE",
                [escape.line(source.name) for source in sources],
                paint=lambda cell, _text: console.style(cell, "bold"),
            ),
            Column("SCOPE", [source.scope for source in sources], drop=1),
            Column("PRIORITY", [str(s.priority or "") for s in sources], drop=5, right=True),
            Column("SKILLS", [f"{source.skills:,}" for source in sources], drop=2, right=True),
            *_hosts(sources),
            Column("SYNCED", [_last(source) for source in sources], drop=4),
            Column("FOLDER", [escape.line(s.path) for s in sources], flexible=True, cut="start"),
        ],
    )


def _hosts(sources: Sequence[Source]) -> Iterator[Column]:
    """Yield a column with the machines that have the folders, on a database of several."""
    if any(source.host for source in sources):
        yield Column("HOST", [escape.line(source.host) for source in sources], drop=3)


def _last(source: Source) -> str:
    if not source.enabled:
        return "off"
    result = source.last_result
    when = words.moment(source.last_sync_at)
    return when if result in {None, "ok"} else f"{when} ({escape.line(str(result))})"


def _draw_discovered(console: Console, found: "Sequence[Discovered]") -> Iterator[str]:
    return draw(
        console,
        [
            Column("FOLDER", [escape.line(one.path) for one in found], most=1000, cut="start"),
            Column("SCOPE", [one.scope for one in found], drop=2),
            Column("SOURCE", [escape.line(one.source or "(new)") for one in found], drop=1),
        ],
    )


SOURCES: Final = Listing(
    record=record,
    name=lambda source: escape.line(source.name),
    plain=lambda source: (
        escape.line(source.name),
        source.scope,
        str(source.skills),
        escape.line(source.path),
    ),
    draw=_draw_sources,
)

DISCOVERED: Final = Listing(
    record=record,
    name=lambda one: escape.line(one.path),
    plain=lambda one: (escape.line(one.path), one.scope, escape.line(one.source or "-")),
    draw=_draw_discovered,
)
