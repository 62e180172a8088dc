"""Bring a change to one of its ends: the table of RELIABILITY, then the database follows the disk.

The same code ends a change that went well, one that failed, and one whose process died, so each
of its branches is used every day.
"""

import json
import os
import secrets
import time
from contextlib import suppress
from typing import TypeAlias

from registry.changes.context import ChangeContext
from registry.db.queries.journal import waiting_sources
from registry.db.writes.journal import Entry, drop_entry, entries
from registry.db.writes.versions import delete_retired, live_version, publish, stage
from registry.disk.atomic import (
    digest_path,
    exchange,
    is_gone,
    remove_tree,
    rename_new,
    sync_folder,
)
from registry.disk.paths import join
from registry.disk.walk import Walk
from registry.errors import SkillInaccessible
from registry.sync.folder import Previous, Reading, make_version, read_folder
from registry.text import utc_now, utc_text

Leftover: TypeAlias = tuple[str, str | None]
"""A path that may be removed, and the digest that it must have for that."""


def recover(context: ChangeContext) -> int:
    """Finish or undo everything unfinished in a source; return how much that was.

    The state lock is held, so whoever began it is dead.
    """
    core, source = context.core, context.source
    found = []
    # Nearly always there is nothing, and that is seen without waiting for other writers.
    if source.id in waiting_sources(core.reader, core.host):
        with core.writer.transaction() as connection:
            found = entries(connection, source.id, core.host)
    for entry in found:
        finish(context, entry)
    sweep(context)
    return len(found)


def finish(context: ChangeContext, entry: Entry) -> None:
    """Bring one change to an end on disk, write down what the disk says, then clear up.

    Clearing up comes last: a tree that is removed by half would look like an edit made by hand.
    """
    left = repair(context, entry)
    record(context, entry)
    for path, known in left:
        _discard(context, path, known)
    with suppress(OSError):
        remove_tree(context.state.path_of("ops", entry.id))


def repair(context: ChangeContext, entry: Entry) -> list[Leftover]:
    """Bring the disk to one of both ends of a change (RELIABILITY, Recovery).

    Returns what may be removed once the end is written down. What holds somebody's edit is live
    again afterwards, or in ``conflict``.
    """
    live = join(entry.root, entry.target)
    if entry.kind == "create":
        # A skill that could not be restored simply stays in the trash.
        left = [(entry.staged, entry.new)] if entry.uid is None else []
    elif entry.kind == "delete":
        left = _end_delete(context, entry, live)
    elif entry.exchange:
        left = _end_exchange(context, entry, live)
    else:
        left = _end_two_renames(entry, live)
    for folder in {os.path.dirname(live), os.path.dirname(entry.staged)}:
        with suppress(FileNotFoundError, NotADirectoryError):
            sync_folder(folder)
    return left


def _end_delete(context: ChangeContext, entry: Entry, live: str) -> list[Leftover]:
    staged = digest_path(entry.staged)
    if staged not in {None, entry.base}:
        if os.path.lexists(live):
            _set_aside(context, entry.staged)
        else:
            rename_new(entry.staged, live)
    return []


def _end_exchange(context: ChangeContext, entry: Entry, live: str) -> list[Leftover]:
    staged = digest_path(entry.staged)
    if staged is None:
        return []
    if staged in {entry.base, entry.new}:
        return [(entry.staged, staged)]
    if digest_path(live) == entry.new:
        exchange(entry.staged, live)  # the edit made by hand wins
        return [(entry.staged, entry.new)]
    _set_aside(context, entry.staged)
    return []


def _end_two_renames(entry: Entry, live: str) -> list[Leftover]:
    old = f"{entry.staged}.old"
    if not os.path.lexists(live):
        if digest_path(old) == entry.base and digest_path(entry.staged) == entry.new:
            rename_new(entry.staged, live)
        elif os.path.lexists(old):
            rename_new(old, live)
    elif digest_path(old) not in {None, entry.base} and digest_path(live) == entry.new:
        rename_new(live, f"{entry.staged}.new")
        rename_new(old, live)  # the edit made by hand wins
    return [(entry.staged, entry.new), (old, entry.base), (f"{entry.staged}.new", entry.new)]


def _discard(context: ChangeContext, path: str, known: str | None) -> None:
    """Remove what a change left over, after making sure that its digest is ``known``.

    Anything else holds somebody's edit and goes to ``conflict``.
    """
    found = digest_path(path)
    if found is None:
        return
    if found == known:
        with suppress(OSError):  # what can't be removed now is removed when recovery comes by
            remove_tree(path)
        return
    _set_aside(context, path)


def _set_aside(context: ChangeContext, path: str) -> None:
    """Move something that nobody may lose to ``conflict``."""
    name = f"{utc_now().replace(':', '')}-{secrets.token_hex(4)}"
    target = context.state.path_of("conflict", name)
    rename_new(path, target)
    sync_folder(os.path.dirname(target))


def record(context: ChangeContext, entry: Entry) -> None:
    """Make the database say what the disk says of the entry's folder, and strike the entry out.

    Raises `SkillInaccessible` where the disk does not answer: that a folder can't be read proves
    neither that it is gone nor what is in it, so the entry stays.
    """
    reading = _read(context, entry)
    moment = time.time_ns()
    with context.core.writer.transaction() as connection:
        live = live_version(connection, entry.source_id, entry.folder)
        if reading is not None and reading.unread and (live is None or live.content_hash):
            # It was readable a moment ago, or when it was stored last.
            raise _unanswered(entry, reading.unread[0].message)
        if reading is not None:
            previous = None if live is None else Previous(live.id, live.uid, live.created_at)
            version = make_version(reading, entry.source_id, moment, utc_text(moment), previous)
            if previous is None and entry.uid is not None:
                version.columns["uid"] = entry.uid
                version.columns["created_at"] = entry.created_at
            publish(connection, stage(connection, [version]), [])
        elif live is not None:
            publish(connection, [], [live.id])
        if live is not None:
            delete_retired(connection, version=live.id)
        drop_entry(connection, entry.id)


def _read(context: ChangeContext, entry: Entry) -> Reading | None:
    limits = context.core.settings.limits
    walk = Walk(entry.root, limits, context.roots)
    found = walk.one(entry.folder)
    for notice in walk.notices:
        if notice.lost and (found is None or notice.folder == found.folder):
            raise _unanswered(entry, notice.diagnostic.message)
    if found is None or not found.is_skill:
        return None
    return read_folder(entry.root, found, limits, {})


def _unanswered(entry: Entry, reason: str) -> SkillInaccessible:
    return SkillInaccessible(path=join(entry.root, entry.folder), reason=reason)


def sweep(context: ChangeContext) -> None:
    """Clear away what changes of this database staged and never wrote down."""
    database = context.core.writer.path
    for name, note in (("ops", "owner"), ("trash", "meta.json")):
        with os.scandir(context.state.path_of(name)) as listing:
            left = [entry.path for entry in listing]
        for path in left:
            is_kept = name == "trash" and not is_gone(f"{path}/tree")
            if _owner(f"{path}/{note}") == database and not is_kept:
                with suppress(OSError):
                    remove_tree(path)


def _owner(note: str) -> object:
    """Return the database that a note names, if it can be read."""
    with suppress(OSError, ValueError, AttributeError), open(note, encoding="utf-8") as file:
        text = file.read()
        return json.loads(text).get("database") if note.endswith(".json") else text
    return None
