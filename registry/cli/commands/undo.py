"""`skill-registry undo`."""

from time import time
from typing import TYPE_CHECKING

import click

from registry.cli import escape, formatting, options
from registry.cli.formatting import some_refs
from registry.cli.group import session_command
from registry.cli.install_messages import report_pulled
from registry.cli.prompts import confirm
from registry.cli.session import Session
from registry.errors import NothingToUndo
from registry.text import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from registry.changes.undo import Undo
    from registry.db.read.history import RecordedChange
    from registry.install.undo import PullUndo

SHOWN = ("kind", "name", "source", "folder", "made_at")

_UNDONE = {
    "create": "Undo {typed}: {name} moves to the trash ({place}, {when}){more}",
    "restore": "Undo {typed}: {name} moves back to the trash ({place}, {when}){more}",
    "delete": "Undo {typed}: {name} comes back from the trash ({place}, {when}){more}",
    "update": "Undo {typed}: {name} gets its earlier version ({place}, {when}){more}",
    "rename": "Undo {typed}: {name} gets its earlier name ({place}, {when}){more}",
    "pull": "Undo {typed}: {name} ({place}, {when}){more}",
}
_TYPED = {
    ("check", "update"): "check --fix",
    ("edit", "update"): "edit",
    ("rename", "update"): "rename",
    ("restore", "update"): "restore --revision",
    ("import", "create"): "import",
}
"""Maps a recorded command and its type of change to the command that the user typed.

If an entry is missing, the command has the same name as the type of change.
"""

_FATES = {
    "removed": "is removed from",
    "replaced": "gets its earlier version in",
    "returned": "comes back in",
}
_ENTRY = "gets its earlier entry in the lock file"


@session_command(
    "skill-registry undo",
    "skill-registry undo --yes",
    "skill-registry undo --list",
    "skill-registry undo --skip",
)
@options.yes_option
@click.option(
    "--list", "lists", is_flag=True, help="List the commands that can be undone; change nothing."
)
@click.option(
    "--skip",
    is_flag=True,
    help="Drop the last command from the list and keep its changes.",
)
@options.json_option
def command(session: Session, *, yes: bool, lists: bool, skip: bool) -> None:
    """Undo the last command that changed skills.

    These commands can be undone: create, import, update, edit, delete, restore, rename, check --fix
    and pull. The skills that the command changed are shown, and are restored together. If one of
    them has changed since, nothing is undone; --skip drops such a command from the list. Run undo
    again to undo the command before it, up to 100 commands.

    Syncs, edits by hand, "pull --adopt" and "pull --keep" can't be undone. After an edit by hand,
    restore an earlier revision with "restore NAME --revision N".
    """
    from registry.install.undo import last_change

    if lists:
        if yes or skip:
            raise click.UsageError("--list can't be combined with --yes or --skip.")
        _list(session)
        return
    console = session.console
    try:
        undo = last_change(session.registry.core)
    except NothingToUndo:
        report_pulled(session, "")
        raise
    if skip:
        undo.forget()
        _answer(session, undo, "Skipped")
        _show_next(session)
        return
    difference = undo.diff()
    for line in _sentences(undo):
        console.note(line)
    for line in _pulled(undo):
        console.note(line)
    report_pulled(session, undo.change.made_at)
    for line in difference.splitlines():
        console.note(console.paint_diff(line))
    confirm(session, "Undo this?", yes=yes)
    undo.carry_out()
    _answer(session, undo, "Undone")


def _list(session: Session) -> None:
    """Print the commands that can be undone, the latest first."""
    from registry.install.undo import all_changes

    found = all_changes(session.registry.core)
    rows = [_facts(one) for one in found]
    if not found:
        session.console.note("Nothing to undo.")
    now = time() if session.console.is_terminal else None

    def when(one: "Undo | PullUndo") -> str:
        return one.change.made_at if now is None else formatting.ago(one.change.made_at, now)

    lines = (f"{when(one)}\t{_short(one)}\t{_place_and_agents(one)}" for one in found)
    session.answer(rows, lines)


def _facts(undo: "Undo | PullUndo") -> dict[str, object]:
    """Return a command as JSON: its first change and all its changes."""
    every = [{key: getattr(one, key) or None for key in SHOWN} for one in undo.changes]
    first = {key: getattr(undo.change, key) or None for key in SHOWN}
    return {**first, "command": undo.change.tool, "changes": every}


def _short(undo: "Undo | PullUndo") -> str:
    """Return a short description of a command."""
    change = undo.change
    message = f"{_typed(undo)} {escape.line(_name(change))}"
    if others := undo.changes[1:]:
        are_copies = len(undo.changes) == len(_steps(undo)[0])
        message += (
            f" and {formatting.count(len(others), 'copy', 'copies')} of it"
            if are_copies
            else f" and {formatting.count(len(others), 'more skill')}"
        )
    return message


def _typed(undo: "Undo | PullUndo") -> str:
    """Return the command as the user typed it, without the names of skills."""
    from registry.install.undo import PullUndo

    change = undo.change
    if isinstance(undo, PullUndo):
        return "pull --remove" if undo.is_removal else "pull"
    return _TYPED.get((change.tool or "", change.kind), change.kind)


def _steps(undo: "Undo | PullUndo") -> "Sequence[Sequence[RecordedChange]]":
    """Return the changes in groups; a group is a skill and the copies that changed with it."""
    from registry.install.undo import PullUndo

    return [undo.changes] if isinstance(undo, PullUndo) else undo.steps


def _answer(session: Session, undo: "Undo | PullUndo", done: str) -> None:
    session.answer(_facts(undo), [f"{done}: {_short(undo)}"])


def _show_next(session: Session) -> None:
    """Print the command that another `undo` would undo."""
    from registry.install.undo import last_change

    try:
        last = last_change(session.registry.core)
    except NothingToUndo as error:
        session.console.note(str(error))
        return
    place, when = _place(last.change), last.change.made_at
    session.console.note(f"Next to undo: {_short(last)} ({place}, {when})")


def _place(change: "RecordedChange") -> str:
    return escape.line(f"{change.source}/{change.folder}" if change.source else change.folder)


def _place_and_agents(undo: "Undo | PullUndo") -> str:
    """Return the place of a command's first change; for a pull, the project and the agents."""
    from registry.install.undo import PullUndo

    place = _place(undo.change)
    if not isinstance(undo, PullUndo):
        return place
    place = "all projects" if undo.target.is_global else place
    return f"{place} ({', '.join(undo.agents)})" if undo.agents else place


def _name(change: "RecordedChange") -> str:
    """Return the name of a changed skill; after a rename, the new name.

    A rename that keeps the folder is recorded as an update of the old name, but the folder has the
    new name.
    """
    is_rename = (change.tool, change.kind) == ("rename", "update")
    return change.folder.rpartition("/")[2] if is_rename else change.name


def _pulled(undo: "Undo | PullUndo") -> "Iterator[str]":
    """Yield lines about what the undo of a pull does to each skill."""
    from registry.install.undo import PullUndo

    if not isinstance(undo, PullUndo):
        return
    if not (taken := undo.effects):
        yield "Nothing to undo: all skills already have their earlier version."
    for one in taken:
        places = formatting.count(one.places, "place")
        does = f"{_FATES[one.fate]} {places}" if one.places else _ENTRY
        yield f"{escape.line(one.name)} {does}."


def _sentences(undo: "Undo | PullUndo") -> "Iterator[str]":
    """Yield a line for each skill that is restored, in the order of the changes."""
    steps = _steps(undo)
    if len(steps) > 1:
        tool = escape.line(undo.change.tool or "command")
        yield f"The last command ({tool}) changed {formatting.count(len(steps), 'skill')}:"
    for change, *copies in reversed(steps):
        more = ""
        if copies:
            places = some_refs([f"{one.source}/{one.folder}" for one in copies])
            more = f", with {formatting.count(len(copies), 'copy', 'copies')} of it: {places}"
        # For a pull, ``name`` is already a list of names.
        name = escape.line(change.name if change.kind == "pull" else quoted(_name(change)))
        place, when = _place(change), change.made_at
        facts = {"typed": _typed(undo), "place": place, "when": when, "more": more}
        kind = "rename" if facts["typed"] == "rename" else change.kind
        yield _UNDONE[kind].format(name=name, **facts)
