"""Finish or undo what a change left: the table of RELIABILITY, then the database follows the disk.

The same code ends a change that went well, one that failed, and one whose process died, so each
of its branches is used every day.
"""

import json
import os
from contextlib import suppress
from typing import TypeAlias

from sqlalchemy import select

from registry.changes.protocol import Ground, discard, keep
from registry.db.schema import skills
from registry.db.writes.journal import Entry, drop_entry, entries
from registry.db.writes.versions import bury, publish, stage
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
from registry.times import from_ns, now_ns

Leftover: TypeAlias = tuple[str, str | None]
"""A path that may be removed, and the digest that it must have for that."""


def recover(ground: Ground) -> int:
    """Finish or undo everything unfinished in a source; return how much that was.

    The state lock is held, so whoever began it is dead.
    """
    found = []
    # Nearly always there is nothing, and that is seen without waiting for other writers.
    waiting = "SELECT 1 FROM journal WHERE source_id = ? AND host = ? LIMIT 1"
    if ground.reader.rows(waiting, (ground.source.id, ground.host)):
        with ground.writer.transaction() as connection:
            found = entries(connection, ground.source.id, ground.host)
    for entry in found:
        finish(ground, entry)
    sweep(ground)
    return len(found)


def finish(ground: Ground, entry: Entry) -> None:
    """Bring one change to an end on disk, write down what the disk says, then clear up.

    Clearing up comes last: a tree that is removed by half would look like an edit made by hand.
    """
    left = mend(ground, entry)
    record(ground, entry)
    for path, known in left:
        discard(ground, path, known)
    with suppress(OSError):
        remove_tree(ground.state.room("ops", entry.id))


def mend(ground: Ground, entry: Entry) -> list[Leftover]:
    """Bring the disk to one of both ends of a change (RELIABILITY, Recovery).

    Returns what may be removed once the end is written down. What holds somebody's edit is live
    again afterwards, or in ``conflict``.
    """
    live = join(entry.root, entry.target)
    if entry.kind == "create":
        # A skill that could not be restored simply stays in the trash.
        left = [(entry.staged, entry.new)] if entry.uid is None else []
    elif entry.kind == "delete":
        left = _mend_delete(ground, entry, live)
    elif entry.exchange:
        left = _mend_exchange(ground, entry, live)
    else:
        left = _mend_two_renames(entry, live)
    for folder in {os.path.dirname(live), os.path.dirname(entry.staged)}:
        with suppress(FileNotFoundError, NotADirectoryError):
            sync_folder(folder)
    return left


def _mend_delete(ground: Ground, entry: Entry, live: str) -> list[Leftover]:
    staged = digest_path(entry.staged)
    if staged not in {None, entry.base}:
        if os.path.lexists(live):
            keep(ground, entry.staged)
        else:
            rename_new(entry.staged, live)
    return []


def _mend_exchange(ground: Ground, entry: Entry, live: str) -> list[Leftover]:
    staged = digest_path(entry.staged)
    if staged is None:
        return []
    if staged in {entry.base, entry.new}:
        return [(entry.staged, staged)]
    if digest_path(live) == entry.new:
        exchange(entry.staged, live)  # the edit made by hand wins
        return [(entry.staged, entry.new)]
    keep(ground, entry.staged)
    return []


def _mend_two_renames(entry: Entry, live: str) -> list[Leftover]:
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


def record(ground: Ground, entry: Entry) -> None:
    """Make the database say what the disk says of the entry's folder, and strike the entry out.

    Raises `SkillInaccessible` where the disk does not answer: that a folder can't be read proves
    neither that it is gone nor what is in it, so the entry stays.
    """
    reading = _read(ground, entry)
    moment = now_ns()
    with ground.writer.transaction() as connection:
        live = connection.execute(
            select(skills.c.id, skills.c.uid, skills.c.created_at, skills.c.content_hash).where(
                skills.c.source_id == entry.source_id,
                skills.c.folder == entry.folder,
                skills.c.live == 1,
            )
        ).first()
        removed = [] if live is None else [live.id]
        if reading is not None and reading.transient and (live is None or live.content_hash):
            # It was readable a moment ago, or when it was stored last.
            raise _unanswered(entry, reading.findings[0].message)
        if reading is not None:
            previous = None if live is None else Previous(live.id, live.uid, live.created_at)
            version = make_version(reading, entry.source_id, moment, from_ns(moment), previous)
            if previous is None and entry.uid is not None:
                version.columns["uid"] = entry.uid
                version.columns["created_at"] = entry.created_at
            publish(connection, stage(connection, [version]), [])
        elif removed:
            publish(connection, [], removed)
        for dead in removed:
            bury(connection, version=dead)
        drop_entry(connection, entry.id)


def _read(ground: Ground, entry: Entry) -> Reading | None:
    walk = Walk(entry.root, ground.limits, ground.roots)
    found = walk.one(entry.folder)
    for notice in walk.notices:
        if notice.lost and (found is None or notice.folder == found.folder):
            raise _unanswered(entry, notice.diagnostic.message)
    if found is None or not found.is_skill:
        return None
    return read_folder(entry.root, found, ground.limits, {})


def _unanswered(entry: Entry, reason: str) -> SkillInaccessible:
    return SkillInaccessible(path=join(entry.root, entry.folder), reason=reason)


def sweep(ground: Ground) -> None:
    """Clear away what changes of this database staged and never wrote down."""
    for room, note in (("ops", "owner"), ("trash", "meta.json")):
        with os.scandir(ground.state.room(room)) as listing:
            left = [entry.path for entry in listing]
        for path in left:
            if _is_ours(f"{path}/{note}", ground.writer.path) and (
                room == "ops" or is_gone(f"{path}/tree")
            ):
                with suppress(OSError):
                    remove_tree(path)


def _is_ours(note: str, database: str) -> bool:
    try:
        with open(note, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError):
        return False
    if not note.endswith(".json"):
        return text == database
    try:
        return bool(json.loads(text).get("database") == database)
    except (ValueError, AttributeError):
        return False
