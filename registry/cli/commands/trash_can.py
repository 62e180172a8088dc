"""`skill-registry delete`, `restore` and `trash`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from registry.cli import complete, escape, options, words
from registry.cli.column import Column
from registry.cli.group import Group, session_command
from registry.cli.listing import emit, skill_line
from registry.cli.session import Session

if TYPE_CHECKING:
    from registry.changes.trash import Trashed


@session_command("skill-registry delete release-notes", "skill-registry restore release-notes")
@click.argument("name", shell_complete=complete.names)
@options.guard_options
@options.json_option
def delete(session: Session, *, name: str, if_hash: str | None, force: bool, as_json: bool) -> None:
    """Move a skill to the trash.

    The whole folder goes, and "restore" brings it back. A skill that was edited by hand since the
    last sync is left alone.
    """
    name = options.named(session.registry, name)
    gone = session.registry.delete(name, if_hash=if_hash, force=force)
    done = f"Deleted {escape.line(gone.name)}; 'skill-registry restore {gone.id}' brings it back."
    session.console.answer(gone, [done], as_json=as_json)


@session_command(
    "skill-registry restore release-notes",
    "skill-registry restore release-notes --revision 2",
    "skill-registry trash list",
)
@click.argument("name")
@options.source_option(help="Only from this source.")
@click.option(
    "--revision",
    metavar="R",
    type=click.IntRange(min=1),
    help="Instead: make a skill that is there what it was in this revision.",
)
@options.json_option
def restore(
    session: Session, *, name: str, source: str | None, revision: int | None, as_json: bool
) -> None:
    """Bring a deleted skill back.

    NAME is the skill's name, its source/folder, or the id that "trash list" shows; of several the
    one that was deleted last comes back, byte for byte and as old as it was. With --revision NAME
    is a skill that is there, and "history" lists what it was.
    """
    if revision is not None and source is not None:
        raise click.UsageError("--revision and --source exclude each other.")
    if revision is None:
        back = session.registry.restore(name, source=source)
    else:
        back = session.registry.restore_revision(name, revision)
    session.console.answer(back, skill_line("Restored", back), as_json=as_json)


@click.group(cls=Group, examples=("skill-registry trash list", "skill-registry trash empty --yes"))
def trash() -> None:
    """List what was deleted, or end it for good."""


@session_command("skill-registry trash list", group=trash)
@options.format_options
def list_(session: Session, *, style: str | None) -> None:
    """List the deleted skills that can be restored, the latest first."""
    found = session.registry.trash()
    emit(session.console, style, found, COLUMNS, name=lambda one: one.name)
    if not found:
        session.console.note("The trash is empty.")


@session_command("skill-registry trash empty --yes", group=trash)
@click.option("--yes", is_flag=True, help="Don't ask.")
def empty(session: Session, *, yes: bool) -> None:
    """Remove all deleted skills for good."""
    found = session.registry.trash()
    held = words.count(len(found), "deleted skill")
    if found and not yes:
        click.confirm(f"Remove {held} for good?", abort=True, err=True)
    session.registry.empty_trash(found)
    session.console.write([f"Removed {held} for good."])


COLUMNS: Final[Sequence[Column["Trashed"]]] = (
    Column("ID", lambda one: one.id),
    Column("SKILL", lambda one: one.name),
    Column("DELETED", lambda one: one.deleted_at, time=True),
    Column("SOURCE", lambda one: one.source),
)
