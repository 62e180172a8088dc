"""`skill-registry undo`."""

from typing import TYPE_CHECKING

import click

from registry.cli import escape, options, words
from registry.cli.commands.history import painted
from registry.cli.confirm import confirm
from registry.cli.copied import named
from registry.cli.group import session_command
from registry.cli.pulled import tell_pulled
from registry.cli.session import Session
from registry.errors import NothingToUndo
from registry.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from registry.changes.undo import Undo
    from registry.exchange.taken_back import PullUndo

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
    "pull": "Pulling {name} ({place}, {when}) is taken back{more}:",
}
_FATES = {
    "removed": "is removed from",
    "replaced": "becomes what it was before, in",
    "returned": "comes back, in",
}


@session_command("skill-registry undo", "skill-registry undo --yes", "skill-registry undo --skip")
@options.yes_option
@click.option(
    "--skip",
    is_flag=True,
    help="Instead: forget the last change, which stays made, and show the one before it.",
)
@options.json_option
def command(session: Session, *, yes: bool, skip: bool) -> None:
    """Take back the last change: a create, update, delete, restore or pull.

    It is shown before it is done. A skill that was changed since is left alone: go on with --skip.
    What was changed together with its copies (--copies), or came or went by one pull, is taken back
    together, and what can never be is passed over. Called again it takes back the change before
    that; the last 100 are remembered. Edits made by hand and syncs are no changes of the registry
    ("restore --revision" sees to them), nor are "pull --frozen" and "--adopt".
    """
    from registry.exchange.taken_back import last_change

    console = session.console
    try:
        undo = last_change(session.registry.core)
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
    for line in _pulled(undo):
        console.note(line)
    tell_pulled(session, undo.change.made_at)
    for line in difference.splitlines():
        console.note(painted(console, line))
    confirm(session, "Do it?", yes=yes)
    undo.carry_out()
    _answer(session, undo, "Took back")


def _answer(session: Session, undo: "Undo | PullUndo", done: str) -> None:
    change = undo.change
    told = f"{done}: {change.kind} {escape.line(change.name)}"
    if undo.changes[1:]:
        told += f" and {words.count(len(undo.changes) - 1, 'copy', 'copies')} of it"
    session.answer({key: getattr(change, key) or None for key in SHOWN}, [told])


def _show_next(session: Session) -> None:
    """Say which change is the last one now."""
    from registry.exchange.taken_back import last_change

    try:
        last = last_change(session.registry.core)
    except NothingToUndo as error:
        session.console.note(str(error))
        return
    change, place = last.change, _place(last)
    session.console.note(
        f"'skill-registry undo' takes back: {change.kind} {escape.line(change.name)} ({place}, "
        f"{change.made_at})"
    )


def _place(undo: "Undo | PullUndo") -> str:
    change = undo.change
    return escape.line(f"{change.source}/{change.folder}" if change.source else change.folder)


def _pulled(undo: "Undo | PullUndo") -> "Iterator[str]":
    """Yield what becomes of the skills of a pull."""
    from registry.exchange.taken_back import PullUndo

    if not isinstance(undo, PullUndo):
        return
    if not (taken := undo.taken):
        yield "All is as it was before already."
    for one in taken:
        places = words.count(one.places, "place")
        yield f"{escape.line(one.name)} {_FATES[one.fate]} {places}."


def _sentence(undo: "Undo | PullUndo") -> str:
    change, others = undo.change, [f"{one.source}/{one.folder}" for one in undo.changes[1:]]
    more = ""
    if others:
        more = f", with {words.count(len(others), 'copy', 'copies')} of it: {named(others)}"
    # Of a pull it is several names.
    name = escape.line(change.name if change.kind == "pull" else quoted(change.name))
    when = change.made_at
    return _DONE[change.kind].format(name=name, place=_place(undo), when=when, more=more)
