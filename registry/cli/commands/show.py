"""`skill-registry show`."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from registry.cli import completion, escape, options
from registry.cli.group import session_command
from registry.cli.listing import emit
from registry.cli.session import Console, Session
from registry.cli.skill_view import FILES, draw_skill
from registry.model import SkillDetail, record

if TYPE_CHECKING:
    from registry.catalog.links import LinkTo


@session_command(
    "skill-registry show pdf-forms",
    "skill-registry show ~/.claude/skills/pdf-forms",
    "skill-registry show pdf-forms --json | jq .front_matter",
    "skill-registry show pdf-forms --raw > SKILL.md",
    'cd "$(skill-registry show pdf-forms --path)"',
)
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.names
)
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
    names: tuple[str, ...],
    part: str | None,
    revision: int | None,
    personality: str | None,
) -> None:
    """Show one skill, or several.

    NAME is a skill's name or ref, as "list" prints it, or the path of its folder. What is shown is
    what is on disk now. On a terminal the Markdown is rendered, with HTML as it is written, and
    what is longer than the screen goes through $PAGER; characters that would steer the terminal
    are shown as escapes, also by --raw and --path. JSON of several skills is an array.
    """
    console, registry = session.console, session.registry
    if revision is not None and len(names) > 1:
        raise click.UsageError("--revision goes with a single NAME.")
    found = [options.named(registry, name) for name in names]
    if personality is not None:
        view = options.view_of(registry, personality)
        found = [view.locate(name).stored.place for name in found]
    if revision is not None:
        _write(console, registry.read_revision(found[0], revision))
    elif part == "raw":
        for name in found:
            _write(console, registry.read_bytes(name))
    else:
        skills = [registry.get(name) for name in found]
        if part == "path":
            for skill in skills:
                _write(console, os.fsencode(skill.path) + b"\n")
        elif part == "files":
            files = [file for skill in skills for file in skill.files]
            emit(session, files, FILES)
        elif session.as_json:
            told = [
                record(
                    replace(skill, diagnostics=(*skill.diagnostics, *(one.notice for one in links)))
                )
                for skill, links in _linked(session, skills)
            ]
            console.json(told if names[1:] else told[0])
        else:
            console.page(_pages(session, skills))


def _pages(session: Session, skills: Sequence[SkillDetail]) -> Iterator[str]:
    sources = {one.name: one for one in session.registry.sources(counted=False)}
    for index, (skill, links) in enumerate(_linked(session, skills)):
        if index:
            yield ""
        yield from draw_skill(session.console, skill, sources.get(skill.source), links)


def _linked(
    session: Session, skills: Sequence[SkillDetail]
) -> "Iterator[tuple[SkillDetail, Sequence[LinkTo]]]":
    """Yield each skill with the links to it."""
    for skill in skills:
        yield skill, session.registry.links(f"{skill.source}/{skill.folder}")


def _write(console: Console, data: bytes) -> None:
    if console.is_terminal:
        text = data.decode("utf-8", "backslashreplace")
        console.write([escape.text(text.removesuffix("\n"))])
    else:
        console.write_bytes(data)
