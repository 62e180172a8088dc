"""`skill-registry undo`."""

import sys
from typing import TYPE_CHECKING

import click

from registry.cli import escape, options
from registry.cli.commands.history import painted
from registry.cli.group import session_command
from registry.cli.session import Session
from registry.text import quoted

if TYPE_CHECKING:
    from registry.db.queries.changes import MadeChange

SHOWN = ("kind", "name", "source", "folder", "made_at")

_DONE = {
    "create": "Creating {name} ({place}, {when}) is taken back: it goes to the trash.",
    "restore": "Restoring {name} ({place}, {when}) is taken back: it goes to the trash again.",
    "delete": "Deleting {name} ({place}, {when}) is taken back: it comes back from the trash.",
    "update": "Updating {name} ({place}, {when}) is taken back:",
}


@session_command("skill-registry undo", "skill-registry undo --yes")
@click.option("--yes", is_flag=True, help="Don't ask.")
@options.json_option
def command(session: Session, *, yes: bool, as_json: bool) -> None:
    """Take back the last change: a create, update, delete or restore.

    It is shown before it is done. A skill that was changed since is left alone. Called again it
    takes back the change before that; the last 100 are remembered. Edits made by hand, syncs and
    pulled copies are no changes of the registry: "restore --revision" and "pull" see to them.
    """
    from registry.changes.undo import Undo

    console = session.console
    undo = Undo.of(session.registry.core)
    difference = undo.diff()
    console.note(_sentence(undo.change))
    for line in difference.splitlines():
        console.note(painted(console, line))
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("Nobody can be asked here: say --yes to do it.")
        click.confirm("Do it?", abort=True, err=True)
    undo.carry_out()
    done = {key: getattr(undo.change, key) for key in SHOWN}
    told = f"Took back: {undo.change.kind} {escape.line(undo.change.name)}"
    console.answer(done, [told], as_json=as_json)


def _sentence(change: "MadeChange") -> str:
    place = escape.line(f"{change.source}/{change.folder}")
    name = escape.line(quoted(change.name))
    return _DONE[change.kind].format(name=name, place=place, when=change.made_at)
