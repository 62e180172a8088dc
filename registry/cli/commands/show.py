"""`skill-registry show`."""

import os

import click

from registry.cli import complete, escape, options
from registry.cli.group import session_command
from registry.cli.listing import emit
from registry.cli.session import Session
from registry.cli.skill_view import FILES, draw_skill


@session_command(
    "skill-registry show pdf-forms",
    "skill-registry show pdf-forms --json | jq .front_matter",
    "skill-registry show pdf-forms --raw > SKILL.md",
    'cd "$(skill-registry show pdf-forms --path)"',
)
@click.argument("name", shell_complete=complete.names)
@click.option("--raw", "part", flag_value="raw", help="Print the SKILL.md as it is, byte for byte.")
@click.option("--files", "part", flag_value="files", help="List the skill's files.")
@click.option("--path", "part", flag_value="path", help="Print the path of the skill's folder.")
@click.option(
    "--revision",
    metavar="R",
    type=click.IntRange(min=1),
    help='Print the SKILL.md of an earlier revision, as "history" lists them.',
)
@options.personality_option
@options.json_option
def command(
    session: Session,
    *,
    name: str,
    part: str | None,
    revision: int | None,
    personality: str | None,
    as_json: bool,
) -> None:
    """Show one skill.

    NAME is a skill's name or ref, as "list" prints it, or the path of its folder. What is
    shown is what is on disk now. On a terminal --raw and --path show characters that would steer it
    as escapes.
    """
    console = session.console
    name = options.named(session.registry, name)
    if personality is not None:
        name = options.view_of(session.registry, personality).locate(name).stored.place
    if part == "raw" or revision is not None:
        if revision is None:
            data = session.registry.read_bytes(name)
        else:
            data = session.registry.read_revision(name, revision)
        if console.is_terminal:
            text = data.decode("utf-8", "backslashreplace")
            console.write([escape.text(text.removesuffix("\n"))])
        else:
            console.write_bytes(data)
        return
    skill = session.registry.get(name)
    if part == "path":
        if console.is_terminal:
            console.write([escape.line(skill.path)])
        else:
            console.write_bytes(os.fsencode(skill.path) + b"\n")
    elif part == "files":
        emit(console, "json" if as_json else None, skill.files, FILES)
    else:
        known = () if as_json else session.registry.sources(counted=False)
        host = next((one.host for one in known if one.name == skill.source), "")
        console.answer(skill, draw_skill(console, skill, host), as_json=as_json)
