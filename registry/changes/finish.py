"""Finish or undo a change on disk (`disk.swap`), and then update the database from the disk.

The same code completes changes that succeeded, changes that failed, and changes of dead processes.
So normal use exercises all of this code. The code handles only changes that this user signed (see
`unfinished`). All paths are computed from the source, the skill's folder and the number of the
change.
"""

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, TypeAlias

from sqlalchemy import Connection

from registry.changes.signer import Signer, new_numbers, signed
from registry.changes.state import (
    EVENT_FILE,
    META,
    OWNER,
    RECORD,
    ChangeContext,
    open_if_there,
    open_swap,
    recorded,
    signed_entry,
)
from registry.core import Core
from registry.db.audit_context import audit_context
from registry.db.read.history import RecordedChange, stored_hashes
from registry.db.read.journal import JournalEntry
from registry.db.read.skills import StoredSkill, at_place, stored
from registry.db.versions import NewVersion
from registry.db.visibility import EVERYTHING
from registry.db.write.access import record_event
from registry.db.write.history import add_change, note_trash
from registry.db.write.journal import drop_entry, has_entry
from registry.db.write.skills import LiveVersion, delete_version, load_current, replace_version
from registry.db.write.statements import dialect_of
from registry.disk.atomic import Place, is_gone, remove_tree, rename_new, sync_folder
from registry.disk.paths import join
from registry.disk.swap import TREE, Swap, unknown_in
from registry.disk.walk import Walk
from registry.errors import SkillInaccessible
from registry.sync.installed import mark_installed
from registry.sync.reading import Previous, Reading, Recent, make_version, read_folder
from registry.text import utc_now, utc_text

Change: TypeAlias = tuple[ChangeContext, JournalEntry]


def recover(context: ChangeContext) -> int:
    """Finish or undo this user's unfinished changes in a source; return the number of changes.

    The caller must hold the lock of the source.
    """
    found = []
    for number in context.state.operations():
        # Usually there is no unfinished change. This check doesn't wait for other processes that
        # write to the database.
        entry = recorded(context.core, context.source, context.state, context.signer, number)
        if entry is not None:
            found.append(entry)
    with audit_context(command=""):  # the changes belong to the command of the dead process
        for entry in sorted(found, key=lambda one: (one.started_at, one.id)):
            finish_all([(context, entry)])
    sweep(context)
    return len(found)


def finish_all(
    changes: Sequence[Change], *, back: bool = False, is_done: bool = False
) -> list[StoredSkill | None]:
    """Finish or undo changes on disk, record the result in the database, and remove their files.

    If ``back``, roll back a group of changes. Set ``is_done`` if you know that the changes are
    visible on disk. The staged files are removed last, because a partly removed folder would look
    like an edit.
    """
    with ExitStack() as stack:
        swaps: list[Swap] = []
        done: list[bool] = []
        for context, entry in changes:
            swap = stack.enter_context(open_swap(context, entry))
            if entry.is_together:
                (swap.roll_back if back else swap.roll_forward)()
            finish_on_disk(context, swap)
            swaps.append(swap)
            done.append(is_done or _shows(swap))
        stored = store_result(changes, done)
        try:
            for (context, entry), swap in zip(changes, swaps, strict=True):
                # Move files that could not be restored to `conflict`. But the files of a deletion
                # stay in the trash.
                for place in swap.unknown() if entry.staged.startswith("ops/") else ():
                    _set_aside(context, place)
        except OSError:
            return stored  # the change is made; the next change removes the files
    for context, entry in changes:
        _clear(context, entry.id)
    return stored


def finish_on_disk(context: ChangeContext, swap: Swap) -> None:
    """Finish or undo a change on disk, and move unexpected files to the folder ``conflict``."""
    swap.finish(partial(_set_aside, context))
    # Flush the folder with the new entry before the folder that lost the entry.
    for place in swap.in_order:
        sync_folder(place.folder)


def _shows(swap: Swap) -> bool:
    with suppress(OSError):
        return swap.is_done()
    return False


def _set_aside(context: ChangeContext, place: Place) -> None:
    """Move files that may be a user's edit to the folder ``conflict``, so that they aren't lost."""
    name = f"{utc_now().replace(':', '')}-{secrets.token_hex(4)}"
    rename_new(place, Place(context.state.conflict, name))
    context.state.conflict.sync()


def _clear(context: ChangeContext, number: str) -> None:
    """Remove the folder of a change, after files that may be an edit were moved out of it."""
    with suppress(OSError):  # the next recovery removes the other files
        with context.state.ops.folder(number) as operation:
            # Remove the record first, because without it, no process takes a partly removed folder
            # for an edit.
            remove_tree(Place(operation, RECORD))
        remove_tree(Place(context.state.ops, number))


def store_result(changes: Sequence[Change], done: Sequence[bool]) -> list[StoredSkill | None]:
    """Store the state of the entries' folders on disk in the database, and delete the entries.

    If a folder can't be read, raises `SkillInaccessible`, because then it is unknown whether the
    change was made. The entries stay in that case.
    """
    readings = [_read(context, entry) for context, entry in changes]
    moment = time.time_ns()
    with changes[0][0].core.writer.transaction() as connection:
        # Record deletions first, so that a renamed skill keeps its uid.
        order = sorted(range(len(changes)), key=lambda place: not changes[place][1].deletes)
        before: LiveVersion | None = None
        for place in order:
            context, entry = changes[place]
            renamed = before if entry.kind == "create together" else None
            before = _store_result(
                connection, context, entry, readings[place], moment, done[place], renamed
            )
        places = [at_place(EVERYTHING, entry.source_id, entry.folder) for _, entry in changes]
        ask_later = dialect_of(connection).ask_later
        answers = [ask_later(connection, *place) for place in places]
    return [stored(answer()) for answer in answers]


def _store_result(
    connection: Connection,
    context: ChangeContext,
    entry: JournalEntry,
    reading: Reading | None,
    moment: int,
    is_done: bool,
    renamed: LiveVersion | None,
) -> LiveVersion | None:
    """Store the state of one folder on disk, and return the version that was current before."""
    standing = load_current(connection, entry.source_id, entry.folder, entry.uid)
    live = standing.live
    if reading is not None and reading.unread and (live is None or live.content_hash):
        # The folder was readable a moment ago, or when it was last stored, so this error may be
        # temporary.
        raise _unanswered(entry, reading.unread[0].message)
    version = None
    if reading is not None:
        previous = None if live is None else Previous(live.id, live.uid, live.created_at)
        version = make_version(reading, entry.source_id, moment, utc_text(moment), previous)
        mark_installed(version, entry.root)
        back = entry.uid if is_done and previous is None else None
        if back is not None and not standing.is_back:
            version.columns["uid"] = entry.uid
            version.columns["created_at"] = entry.created_at
    replace_version(connection, standing, version)
    change = made_change(context, entry, live, version, renamed) if is_done else None
    if change is not None:
        area, number, _ = entry.staged.split("/")
        if change.kind == "delete" and area == "trash":
            note_trash(connection, change.uid, number)
        add_change(connection, change, entry.host)
        if (event := _event(context, entry)) is not None:
            place = f"{change.source}/{change.folder}"
            facts = {"tree_hash": change.after, "by": event["by"]}
            record_event(connection, event["event"], place, **facts)
    if live is not None:
        delete_version(connection, live.id)
    drop_entry(connection, entry)
    return live


def _event(context: ChangeContext, entry: JournalEntry) -> Mapping[str, Any] | None:
    """Return the values of the audit log's row about a change; None if it gets no row."""
    operation = open_if_there(context.state.ops, entry.id)
    if operation is None:
        return None
    with operation:
        return context.signer.read(Place(operation, EVENT_FILE), "event", entry.id)


def _read(context: ChangeContext, entry: JournalEntry) -> Reading | None:
    limits = context.core.settings.limits
    walk = Walk(context.source.path, limits, context.roots)
    found = walk.one(entry.folder)
    for notice in walk.notices:
        if notice.lost and (found is None or notice.folder == found.folder):
            raise _unanswered(entry, notice.diagnostic.message)
    if found is None:
        return None
    core, recent = context.core, Recent()
    if len(found.files) > 1:  # the content of a single file is stored as the text of the skill file
        recent.note_stored(stored_hashes(core.reader, entry.source_id, entry.folder))
    # Store the files together with the version. Then other users can read them even if this process
    # dies later.
    kept = core.settings.store_files
    read = partial(read_folder, with_contents=kept, recent=recent)
    return read(entry.root, found, limits, {})


def _unanswered(entry: JournalEntry, reason: str) -> SkillInaccessible:
    return SkillInaccessible(path=join(entry.root, entry.folder), reason=reason)


def sweep(context: ChangeContext) -> None:
    """Remove files that this user staged for changes that never reached this database's journal."""
    state, signer = context.state, context.signer
    for number in state.operations():
        operation = open_if_there(state.ops, number)
        if operation is None:
            continue
        with operation:
            if signer.read(Place(operation, OWNER), "staging", number) is None:
                continue
            entry = signed_entry(context.source, context.core.host, state, signer, number)
            if entry is not None and not _is_over(context, entry):
                continue
        _clear(context, number)
    unfinished = set(state.operations())
    for number in state.trashed():
        if number in unfinished:
            continue  # files may still have to be moved into this folder
        kept = open_if_there(state.trash, number)
        if kept is None:
            continue
        with kept:
            ours = signer.read(Place(kept, META), "trash", number) is not None
            is_empty = is_gone(Place(kept, TREE))
        if ours and is_empty:
            with suppress(OSError):
                remove_tree(Place(state.trash, number))


def _is_over(context: ChangeContext, entry: JournalEntry) -> bool:
    """Tell whether a change is finished, so that the journal has no row of it.

    If its staged files may be a user's edit, they are moved to ``conflict``.
    """
    with context.core.writer.transaction() as connection:
        if has_entry(connection, entry.id):
            return False
    with open_swap(context, entry) as swap:
        if entry.staged.startswith("ops/") and swap.staged is not None:
            is_live = swap.live is not None and not is_gone(swap.live)
            for place in unknown_in(swap.staged, {entry.new, entry.base if is_live else None}):
                _set_aside(context, place)
    return True


def made_change(
    context: ChangeContext,
    entry: JournalEntry,
    live: LiveVersion | None,
    version: NewVersion | None,
    renamed: LiveVersion | None,
) -> RecordedChange | None:
    """Return the record of a change from the version ``live`` to ``version``.

    ``version`` is None if the skill was deleted. Returns None if nothing changed. The record of a
    restored skill has no former files. ``renamed`` is the version that a renamed skill had in its
    old folder.
    """
    if entry.is_rename and renamed is None:
        return None
    columns = {} if version is None else version.columns
    before, after = None if live is None else live.tree_hash, columns.get("tree_hash")
    if renamed is not None:
        kind = "rename"
        before = json.dumps({"folder": renamed.folder, "tree_hash": renamed.tree_hash})
    elif entry.uid is not None:
        kind, before = "restore", None
    elif version is None:
        kind = "delete"
    else:
        kind = "create" if live is None else "update"
    if (live is None and version is None) or (kind == "update" and before == after):
        return None
    return signed(
        context.signer,
        number=entry.id,
        kind=kind,
        uid=columns["uid"] if live is None else live.uid,
        name=columns["name"] if live is None else live.name,
        source=context.source.name,
        folder=entry.folder,
        before=before,
        after=after,
        made_at=entry.started_at,
    )


def record_edit(core: Core, before: StoredSkill, after: StoredSkill) -> None:
    """Record an edit that a user made on disk, so that `undo` can undo it.

    Raises `DatabaseProblem`, `OwnFileUnusable`.
    """
    if before.skill.tree_hash == after.skill.tree_hash:
        return
    change = signed(
        Signer.of(core, after.root),
        number=new_numbers()[0],
        kind="update",
        uid=after.uid,
        name=after.skill.name,
        source=after.skill.source,
        folder=after.folder,
        before=before.skill.tree_hash,
        after=after.skill.tree_hash,
        made_at=utc_now(),
    )
    with core.writer.transaction() as connection:
        add_change(connection, change, core.host)
