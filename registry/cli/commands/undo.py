"""`skill-registry undo`."""

import sys
from typing import TYPE_CHECKING

import click

from registry.cli import escape, options, words
from registry.cli.commands.history import painted
from registry.cli.copied import named
from registry.cli.group import session_command
from registry.cli.pulled import tell_pulled
from registry.cli.session import Session
from registry.errors import NothingToUndo
from registry.text import quoted

if TYPE_CHECKING:
    from registry.changes.undo import Undo

SHOWN = ("kind", "name", "source", "folder", "made_at")

_DONE = {
    "create": "Creating {name} ({place}, {when}) is taken back: it goes to the trash{more}.",
    "restore": (
        "Restoring {name} ({place}, {when}) is taken back: it goes to the trash again{more}."
    ),
    "delete": (
        "Deleting {name} ({place}, {when}) is taken back: it comes back from the trash{more}."
    ),
    "update": "Updating {name} ({place}, {when}) is taken back{more}:",
}


@session_command("skill-registry undo", "skill-registry undo --yes", "skill-registry undo --skip")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.option(
    "--skip",
    is_flag=True,
    help="Instead: forget the last change, which stays made, and show the one before it.",
)
@options.json_option
def command(session: Session, *, yes: bool, skip: bool) -> None:
    """Take back the last change: a create, update, delete or restore.

    It is shown before it is done. A skill that was changed since is left alone: go on with --skip.
    What was changed together with its copies (--copies) is taken back together, and what can never
    be is passed over. Called again it takes back the change before that; the last 100 are
    remembered. Edits made by hand, syncs and pulled copies are no changes of the registry: "restore
    --revision" and "pull --remove" see to them.
    """
    from registry.changes.undo import Undo

    console = session.console
    try:
        undo = Undo.of(session.registry.core)
    except NothingToUndo:
        tell_pulled(session, "")
        raise
    if skip:
        undo.forget()
        _answer(session, undo, "Forgot")
        _show_next(session)
        return
    difference = undo.diff()
    console.note(_sentence(undo))
    tell_pulled(session, undo.change.made_at)
    for line in difference.splitlines():
        console.note(painted(console, line))
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Nobody can be asked here: say --yes to do it.")
        click.confirm("Do it?", abort=True, err=True)
    undo.carry_out()
    _answer(session, undo, "Took back")


def _answer(session: Session, undo: "Undo", done: str) -> None:
    change = undo.change
    told = f"{done}: {change.kind} {escape.line(change.name)}"
    if undo.changes[1:]:
        told += f" and {words.count(len(undo.changes) - 1, 'copy', 'copies')} of it"
    session.answer({key: getattr(change, key) for key in SHOWN}, [told])


def _show_next(session: Session) -> None:
    """Say which change is the last one now."""
    from registry.changes.undo import Undo

    try:
        last = Undo.of(session.registry.core)
    except NothingToUndo as error:
        session.console.note(str(error))
        return
    change = last.change
    place = escape.line(f"{change.source}/{change.folder}")
    session.console.note(
        f"'skill-registry undo' takes back: {change.kind} {escape.line(change.name)} ({place}, "
        f"{change.made_at})"
    )


def _sentence(undo: "Undo") -> str:
    change, others = undo.change, [f"{one.source}/{one.folder}" for one in undo.changes[1:]]
    more = ""
    if others:
        more = f", with {words.count(len(others), 'copy', 'copies')} of it: {named(others)}"
    place = escape.line(f"{change.source}/{change.folder}")
    name = escape.line(quoted(change.name))
    return _DONE[change.kind].format(name=name, place=place, when=change.made_at, more=more)
