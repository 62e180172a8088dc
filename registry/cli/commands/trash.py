"""`skill-registry delete`, `restore` and `trash`."""

import os
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from registry.cli import completion, escape, formatting, options
from registry.cli.batch import copies_option, each, each_of, report_copies
from registry.cli.group import Group, session_command
from registry.cli.listing import Column, emit, skill_line
from registry.cli.prompts import confirm
from registry.cli.session import Session, Status
from registry.errors import NotInTrash, RegistryError, SkillNotFound

if TYPE_CHECKING:
    from registry.changes.trashed import Trashed
    from registry.core import Core
    from registry.model import SkillDetail


@session_command(
    "skill-registry delete release-notes",
    "skill-registry delete old-notes ~/.claude/skills/draft",
    "skill-registry restore release-notes",
)
@click.argument(
    "names", metavar="NAME...", nargs=-1, required=True, shell_complete=completion.names
)
@copies_option
@click.option(
    "-y",
    "--yes",
    is_flag=True,
    expose_value=False,
    help='Has no effect: "delete" does not ask, because "restore" undoes it.',
)
@options.guard_options
@options.json_option
def delete(
    session: Session, *, names: tuple[str, ...], copies: bool, if_hash: str | None, force: bool
) -> None:
    """Move skills to the trash.

    The whole folder is moved; "restore" moves it back. A skill that was edited by hand since the
    last sync is not deleted without --force. If you name several skills, none is deleted unless all
    names are found. Copies of a skill stay without --copies; they are listed. Links to the skill
    also stay and are listed.
    """
    from registry.changes.trash import warn_of_successor
    from registry.cli.hints import check_meant, naming_what_helps, removal
    from registry.sync.installed import lock_of

    if copies and force:
        raise click.UsageError("--copies and --force can't be combined.")
    if if_hash and names[1:]:
        raise click.UsageError("--if-hash requires a single NAME.")
    registry = session.registry
    for name in names:
        check_meant(registry, name)
    visible: set[str] = set()

    def remove(name: str) -> "Trashed":
        known = registry.resolve(name)
        lock = lock_of(known.path)
        with (
            naming_what_helps(registry, name),
            report_copies(session, name, "deletes", copies=copies),
        ):
            trashed = registry.delete(name, if_hash=if_hash, force=force, copies=copies)
        if not known.shadowed:
            visible.add(known.name)
        if lock is not None:
            way = removal(os.path.basename(known.path), lock)
            message = (
                f"{escape.line(known.ref)} was installed by 'pull'; the next 'pull' installs it "
                "again, unless you run"
            )
            session.console.note(f"{message}: {way}")
        return trashed

    gone, is_complete = each(session, names, remove, copies=copies)
    for name in sorted(visible):
        warn_of_successor(registry.core, name)
    if gone[1:]:
        lines = [f"Deleted {escape.line(one.name)}." for one in gone]
        lines.append("To undo, run: skill-registry undo")
    else:
        lines = [
            f"Deleted {escape.line(one.name)}. To restore it, run: skill-registry restore {one.id}"
            for one in gone
        ]
    session.answer(gone if names[1:] else gone[0], lines)
    if not is_complete:
        raise click.exceptions.Exit(Status.FAILED)


@session_command(
    "skill-registry restore release-notes",
    "skill-registry restore release-notes old-notes",
    "skill-registry restore release-notes --revision 2",
    "skill-registry restore release-notes@1.2",
    "skill-registry restore --source claude --missing",
    "skill-registry trash list",
)
@click.argument("names", metavar="NAME...", nargs=-1)
@options.source_option(
    help=(
        "Only skills from this source. For a skill that isn't in the trash: the source to write to."
    )
)
@click.option(
    "--revision",
    metavar="R",
    type=click.IntRange(min=1),
    help="Change a skill, current or removed, back to revision R.",
)
@click.option(
    "--missing",
    is_flag=True,
    help="Write all listed skills of the source to disk again if their folders are missing.",
)
@copies_option
@options.json_option
def restore(
    session: Session,
    *,
    names: tuple[str, ...],
    source: str | None,
    revision: int | None,
    missing: bool,
    copies: bool,
) -> None:
    """Restore deleted skills, or an earlier revision of a skill.

    NAME is the skill's name, its source/folder, or the id from "trash list". If several match, the
    one deleted last is restored, with the same bytes and times. A skill that was removed by hand or
    with its source is restored from the database. With --revision, a current or removed skill gets
    the files of that revision, as "history" lists them. NAME@LABEL gives a skill the files of that
    version. Copies don't change without --copies; they
    are listed. For a skill in the trash, --copies restores the copies that were deleted with it. If
    you name several skills, none is restored unless all can be.

    With --missing, the listed skills of --source whose folders are missing are written from the
    database, for example after "db restore" on another machine. Existing folders don't change.
    """
    registry = session.registry
    if missing:
        if source is None or names or revision is not None or copies:
            raise click.UsageError(
                "--missing requires --source, and can't be combined with a NAME, --revision or "
                "--copies."
            )
        _restore_missing(session, source)
        return
    if not names:
        raise click.UsageError("Missing argument 'NAME...'.")
    _refuse_number(registry.core, names)
    if revision is None and not names[1:]:
        names, revision = _meant(registry.core, names[0])
    if revision is not None and (source is not None or names[1:]):
        raise click.UsageError(
            "A revision or version requires a single NAME and can't be combined with --source."
        )
    done = "Restored"
    if revision is not None:
        with suppress(RegistryError):  # the skill doesn't exist any more
            before = registry.resolve(names[0]).tree_hash
            done = "Nothing to restore in" if before == _tree(session, names[0], revision) else done
        with report_copies(session, names[0], "changes", copies=copies):
            made = registry.restore_revision(names[0], revision, copies=copies)
        back, is_complete = [made], True
    else:
        back, is_complete = _restored(session, names, source, copies=copies)
    lines = (line for one in back for line in skill_line(done, one))
    session.answer(back if names[1:] or copies else back[0], lines)
    if not is_complete:
        raise click.exceptions.Exit(Status.FAILED)


_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")


def _refuse_number(core: "Core", names: Sequence[str]) -> None:
    """Raise UsageError for NAME and the number of a revision, unless a skill has this name."""
    from registry.changes.trash import find_deleted

    if names[2:] or not _NUMBER.fullmatch(names[-1]) or not names[1:]:
        return
    name, number = names
    try:
        find_deleted(core, number)
    except NotInTrash:
        raise click.UsageError(
            f"{number!r} is not a skill. To go back to revision {number}, run: skill-registry "
            f"restore {shlex.quote(escape.line(name))} --revision {number}"
        ) from None


def _restore_missing(session: Session, source: str) -> None:
    """Write the missing skills of a source to disk again, and report the others."""
    from registry.changes.create import detail_after
    from registry.changes.trash import find_missing, restore_one

    core = session.registry.core
    found, on_disk, lost = find_missing(core, source)
    back, is_complete = each_of(
        session, found, lambda one: detail_after(core, restore_one(core, one))
    )
    session.answer(back, (line for one in back for line in skill_line("Restored", one)))
    if not found:
        session.console.note("No folder of a skill is missing.")
    if on_disk:
        exist = "exists" if on_disk == 1 else "exist"
        session.console.note(
            f"{formatting.count(on_disk, 'skill')} of {escape.line(source)} {exist} on disk and "
            "didn't change."
        )
    if lost:
        refs = formatting.some_refs(lost)
        session.console.note(f"The database has no files of: {refs}", "yellow")
    if lost or not is_complete:
        raise click.exceptions.Exit(Status.FAILED)


def _meant(core: "Core", name: str) -> tuple[tuple[str], int | None]:
    """Convert NAME@LABEL of an existing skill to the skill's ref and the number of the revision."""
    from registry.catalog.resolve import split_label
    from registry.changes.history import chosen

    if split_label(core.reader, name) is not None:
        with suppress(SkillNotFound):  # the trash may have a skill with this name
            history, wanted, _ = chosen(core, name)
            return (history.name,), wanted.number
    return (name,), None


def _tree(session: Session, name: str, number: int) -> str | None:
    """Return the tree hash of a revision."""
    from registry.changes.history import History

    return History.of(session.registry.core, name).revision(number).tree_hash


def _restored(
    session: Session, names: Sequence[str], source: str | None, *, copies: bool
) -> tuple[list["SkillDetail"], bool]:
    """Check all skills, then restore them.

    Return the restored skills, and whether these are all.
    """
    from registry.changes import trash
    from registry.changes.create import detail_after

    core = session.registry.core
    if copies:
        some = trash.with_deleted_copies(core, trash.find_all_deleted(core, names, source=source))
        return [
            detail_after(core, one) for one in trash.restore_all(core, some, source=source)
        ], True
    if not names[1:]:
        return [session.registry.restore(names[0], source=source)], True
    found = trash.find_all_deleted(core, names, source=source)
    return each_of(
        session,
        found,
        lambda one: detail_after(core, trash.restore_one(core, one, source=source)),
    )


@click.group(cls=Group, examples=("skill-registry trash list", "skill-registry trash empty --yes"))
def trash() -> None:
    """List the deleted skills, or remove them permanently."""


@session_command("skill-registry trash list", group=trash)
@options.format_options
def list_(session: Session) -> None:
    """List the deleted skills that can be restored, the latest first."""
    found = session.registry.trash()
    emit(session, found, COLUMNS, name=lambda one: one.name, nothing="The trash is empty.")
    _report_foreign(session)


def _report_foreign(session: Session) -> None:
    """Print the folders in the trash that the list leaves out.

    It leaves them out because this user did not delete them on this machine.
    """
    from registry.changes.trashed import foreign_trash

    if left := foreign_trash(session.registry.core):
        held = formatting.count(len(left), "folder")
        session.console.note(
            f"{held} in the trash can't be restored by this registry: another user deleted it, "
            "or\n"
            "a version that did not sign yet. Look at the folder yourself:"
        )
        for place in sorted({os.path.dirname(path) for path in left}):
            session.console.note(f"  {escape.line(place)}")


@session_command("skill-registry trash empty --yes", group=trash)
@options.yes_option
def empty(session: Session, *, yes: bool) -> None:
    """Remove all deleted skills permanently.

    They can't be restored, and no name finds them. The next "db prune" frees their stored files.
    """
    found = session.registry.trash()
    held = formatting.count(len(found), "deleted skill")
    confirm(session, f"Remove {held} permanently?", yes=yes or not found)
    session.registry.empty_trash(found)
    session.console.write([f"Removed {held} permanently."])


COLUMNS: Final[Sequence[Column["Trashed"]]] = (
    Column("ID", lambda one: one.id),
    Column("SKILL", lambda one: one.name),
    Column("DELETED", lambda one: one.deleted_at, time=True),
    Column("SOURCE", lambda one: one.source),
)
