"""Commit a change, from the staged files to the recorded result, under its source's lock.

1. Stage the new files: write them into the source's state folder, and flush each file and folder
   to disk.
2. Take the source's lock (always before the database's lock), and finish the unfinished changes of
   dead processes.
3. Compare the skill's folder with the state that the caller expects.
4. Sign the change, write it into the journal (a table of the database), and commit.
5. Publish the change by one rename, and verify the replaced files (`disk.swap`).
6. Update the database from the disk, and remove the row in the journal.

One rename can't publish several skills. So a group of changes counts as made when the transaction
that writes its rows in the journal commits. If a process finds an unpublished change in the
journal, it publishes the change. Only the process that began the changes can roll them back. To
finish one change of a group, recovery needs only the source of this change.
"""

import errno
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from typing import Any, Final, TypeAlias, TypeVar

from registry.catalog.copies import copies_of
from registry.changes.finish import Change, finish_all, recover, sweep
from registry.changes.signer import new_numbers
from registry.changes.state import EVENT_FILE, OWNER, RECORD, ChangeContext, open_swap, refusal
from registry.core import Core
from registry.db.audit_context import current_context
from registry.db.read.journal import JournalEntry, Kind
from registry.db.read.skills import StoredSkill
from registry.db.write.journal import add_entry
from registry.disk.atomic import Place, digest_of, make_folder, make_folders, sync_folder
from registry.disk.beneath import Folder
from registry.disk.paths import ROOT, is_below, join
from registry.disk.swap import TREE, Swap
from registry.errors import (
    ChangePending,
    ChangeRefused,
    DatabaseBusy,
    DatabaseProblem,
    DatabaseUnreachable,
    RegistryError,
    SkillChangedOnDisk,
    SkillExists,
    SkillInaccessible,
    UsageProblem,
)
from registry.sync.sources import is_here
from registry.text import utc_now

PAUSES: Final = (0.1, 0.5, 2.0)
"""Pauses before new attempts to reach a database server that closed the connection, in seconds."""


class CrossDevice(Exception):  # callers catch this exception, so users never see it
    """The state folder is on another file system than the source."""


@contextmanager
def new_operation(
    context: ChangeContext, number: str | None = None
) -> "Iterator[tuple[str, Folder]]":
    """Create and sign a folder in ``ops`` for a staged change; yield its number and the folder."""
    number = number or new_numbers()[0]
    with make_folder(Place(context.state.ops, number), 0o700) as operation:
        context.signer.write(Place(operation, OWNER), "staging", number, {})
        yield number, operation


def new_entry(
    context: ChangeContext, number: str, kind: Kind, folder: str, **facts: Any
) -> JournalEntry:
    """Return the journal entry of a change that is staged in the folder of its operation.

    ``facts`` replaces default values of the entry's columns.
    """
    usual = {"target": folder, "staged": f"ops/{number}/{TREE}", "base": None, "new": None}
    return JournalEntry(
        id=number,
        host=context.core.host,
        source_id=context.source.id,
        root=context.source.path,
        kind=kind,
        folder=folder,
        started_at=utc_now(),
        **(usual | facts),
    )


def commit(context: ChangeContext, entry: JournalEntry, name: str) -> StoredSkill | None:
    """Journal, publish, verify and record a staged change; return the resulting skill, if any.

    The caller must hold the lock of the state folder. Raises `SkillChangedOnDisk` or `SkillExists`
    if another process changed the folder first, `ChangeRefused` if nothing changed, `ChangePending`
    if the database can't be updated, and `CrossDevice`.
    """
    if entry.kind == "create":
        make_folders(context.root, entry.target.rpartition("/")[0]).close()
    _sign(context, entry)
    with context.core.writer.transaction(quiet=True) as connection:
        add_entry(connection, entry)
    try:
        with open_swap(context, entry) as swap:
            publish(entry, swap, name)
    except BaseException as error:
        roll_forward_or_back([(context, entry)])
        if isinstance(error, OSError) and error.errno != errno.EXDEV and _is_done(context, entry):
            # The rename succeeded, but the disk reported an error when the rename was flushed.
            path, reason = join(entry.root, entry.target), error.strerror or str(error)
            raise ChangePending(path=path, reason=reason) from error
        if isinstance(error, OSError):
            raise _refused(context, entry, error) from error
        raise
    return roll_forward_or_back([(context, entry)], is_done=True)[0]


def commit_together(changes: Sequence[Change], names: Sequence[str]) -> list[StoredSkill | None]:
    """Commit several staged changes, as `commit` does: all of them, or none.

    If this process dies after the commit of the journal rows, recovery finishes all changes. If a
    change fails while this process runs, all changes are rolled back.
    """
    for context, entry in changes:
        _sign(context, entry)
    try:
        with changes[0][0].core.writer.transaction(quiet=True) as connection:
            for _, entry in changes:
                add_entry(connection, entry)
    except DatabaseUnreachable:
        # The commit may have succeeded, and recovery would then finish the changes. Roll them back,
        # because this call reports a failure.
        roll_forward_or_back(changes, back=True)
        raise
    for (context, entry), name in zip(changes, names, strict=True):
        try:
            with open_swap(context, entry) as swap:
                publish(entry, swap, name)
        except BaseException as error:
            roll_forward_or_back(changes, back=True)
            if isinstance(error, OSError):
                raise _refused(context, entry, error) from error
            raise
    return roll_forward_or_back(changes, is_done=True)


def _sign(context: ChangeContext, entry: JournalEntry) -> None:
    """Write a signed record of the change; recovery ignores journal rows without such a record."""
    with context.state.ops.folder(entry.id) as operation:
        who = current_context()
        if who.event is not None:
            # Another process may make this change during recovery, and that process doesn't know
            # the user.
            told = {"event": who.event, "by": who.client}
            context.signer.write(Place(operation, EVENT_FILE), "event", entry.id, told)
        context.signer.write(Place(operation, RECORD), "change", entry.id, asdict(entry))
        operation.sync()
    context.state.ops.sync()


def _refused(context: ChangeContext, entry: JournalEntry, error: OSError) -> Exception:
    """Return the error to raise for a change that failed because of a disk error."""
    if error.errno == errno.EXDEV:
        return CrossDevice(context.source.path)
    reason = error.strerror or str(error)
    return ChangeRefused(path=join(entry.root, entry.target), reason=reason)


def _is_done(context: ChangeContext, entry: JournalEntry) -> bool:
    """Tell whether a change is visible on disk; if the disk can't be read, return True."""
    try:
        with open_swap(context, entry) as swap:
            return swap.is_done()
    except OSError:
        return True  # a wrong warning is better than a wrong message that nothing changed


def publish(entry: JournalEntry, swap: Swap, name: str) -> None:
    """Publish a staged change by one rename, and verify the files that the rename replaced."""
    path = join(entry.root, entry.target)
    if swap.live is None or swap.staged is None:
        # Another process has just removed the folder, or replaced it by a link.
        raise SkillChangedOnDisk(name=name, path=path)
    try:
        displaced = swap.publish()
    except FileExistsError:
        if not swap.creates:
            raise
        raise SkillExists(name=name, path=path) from None
    if displaced is not None and digest_of(displaced) != entry.base:
        # The user edited the folder between the comparison and the rename. Recovery restores the
        # edit.
        raise SkillChangedOnDisk(name=name, path=path)
    for place in swap.in_order:
        sync_folder(place.folder)


def roll_forward_or_back(
    changes: Sequence[Change], *, back: bool = False, is_done: bool = False
) -> list[StoredSkill | None]:
    """Finish or roll back changes with `finish_all`.

    If this isn't possible now, raises `ChangePending`; the next process then does it.
    """
    try:
        for pause in PAUSES:
            try:
                # If the entry is missing, an earlier COMMIT succeeded but its reply was lost.
                # Recording the state of the disk again is harmless.
                return finish_all(changes, back=back, is_done=is_done)
            except DatabaseUnreachable:
                time.sleep(pause)
        return finish_all(changes, back=back, is_done=is_done)
    except (DatabaseProblem, SkillInaccessible, OSError) as error:
        _, entry = changes[0]
        path = join(entry.root, entry.target)
        said = error.facts.get("reason") if isinstance(error, SkillInaccessible) else None
        reason = getattr(error, "strerror", None) or said or str(error).rstrip(".")
        raise ChangePending(path=path, reason=reason) from error


Result = TypeVar("Result")


def under_lock(core: Core, source_id: int, change: Callable[[ChangeContext], Result]) -> Result:
    """Run ``change`` under the source's lock, after finishing unfinished changes of the source."""
    return under_locks(core, {source_id: ""}, lambda contexts: change(contexts[source_id]))


def under_locks(
    core: Core,
    roots: Mapping[int, str],
    change: Callable[[Mapping[int, ChangeContext]], Result],
) -> Result:
    """Run ``change`` under the locks of several sources.

    ``roots`` has the sources' roots by id. The locks are taken in the order of the roots.
    """
    order = sorted(roots, key=lambda source_id: roots[source_id])
    inside: set[str] = set()
    while True:
        try:
            return _attempt(core, order, inside, change)
        except CrossDevice as error:
            # The folder beside the root may be on another file system; only the rename shows this.
            path = str(error)  # this text is the path of the source
            if path in inside:
                reason = "the folder contains a mounted file system; files can't be moved across it"
                raise ChangeRefused(path=path, reason=reason) from error
            inside.add(path)


def _attempt(
    core: Core,
    order: Sequence[int],
    inside: Collection[str],
    change: Callable[[Mapping[int, ChangeContext]], Result],
) -> Result:
    with ExitStack() as stack:
        contexts: dict[int, ChangeContext] = {}
        for source_id in order:
            locked = ChangeContext.locked(core, source_id, inside=inside)
            contexts[source_id] = stack.enter_context(locked)
        try:
            for context in contexts.values():
                recover(context)
            return change(contexts)
        except (ChangePending, DatabaseBusy):
            # Don't remove the staged files, because they may be needed to finish or undo the
            # change. To check this, the process would have to wait for the database again. The next
            # change removes the files if they are no longer needed.
            raise
        except OSError as error:
            _clear_up(contexts)
            root = contexts[order[0]].source.path
            raise refusal(root, error) from error
        except RegistryError:
            _clear_up(contexts)
            raise


def _clear_up(contexts: Mapping[int, ChangeContext]) -> None:
    for context in contexts.values():
        with suppress(OSError, RegistryError):  # the next change removes the files
            sweep(context)


Which: TypeAlias = Callable[[StoredSkill], bool]
"""A function that tells whether a copy of a skill changes together with the skill."""

MAX_TOGETHER: Final = 1000
"""Maximum number of skills in one change."""


def with_copies(
    core: Core, stored: StoredSkill, which: Which | None, *, force: bool
) -> list[StoredSkill]:
    """Return the copies that change together with a skill, and then the skill itself.

    Only copies on this machine change. Raises `UsageProblem` if ``force``, because a forced change
    is for one skill only. Raises `ChangeRefused` if one copy is inside another, if there are too
    many copies, or if one is the root of a source.
    """
    if which is None:
        return [stored]
    if force:
        message = "a forced change covers one skill only; leave out --copies"
        raise UsageProblem(message=message)
    found = [one for one in copies_of(core.reader, stored) if which(one)]
    group = [*(one for one in found if is_here(core, one.host, one.root)), stored]
    if len(group) > 1:
        _check_apart(group)
    return group


def _check_apart(group: Sequence[StoredSkill]) -> None:
    if len(group) > MAX_TOGETHER:
        reason = f"these are more than {MAX_TOGETHER:,} copies; change them one by one"
        raise ChangeRefused(path=group[-1].path, reason=reason)
    for one in group:
        if one.folder == ROOT:
            reason = "it is the source's root, which can't be changed together with its copies"
            raise ChangeRefused(path=one.root, reason=reason)
        for other in group:
            if other is not one and is_below(other.path, one.path):
                reason = f"it contains a copy, {other.path}; change them one by one"
                raise ChangeRefused(path=one.path, reason=reason)


def change_together(
    core: Core,
    group: Sequence[StoredSkill],
    stage: Callable[[ChangeContext, StoredSkill, str], JournalEntry],
) -> list[StoredSkill | None]:
    """Stage a separate change of each skill, and commit all changes together.

    The last skill of the group is the skill that the user named.
    """

    def change(contexts: Mapping[int, ChangeContext]) -> list[StoredSkill | None]:
        numbered = zip(group, new_numbers(len(group)), strict=True)
        homes = [(contexts[one.source_id], one, number) for one, number in numbered]
        staged = [(home, stage(home, one, number)) for home, one, number in homes]
        return commit_together(staged, [one.skill.ref for one in group])

    return under_locks(core, {one.source_id: one.root for one in group}, change)
