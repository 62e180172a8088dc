"""One change from the staged content to the recorded result (RELIABILITY, A change)."""

import errno
import os
import secrets
import time
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from registry.changes.context import ChangeContext
from registry.changes.recovery import finish
from registry.db.writes.journal import Entry, Kind, add_entry, drop_entry, find_entry
from registry.disk.atomic import (
    ExchangeUnsupported,
    digest_path,
    exchange,
    rename_new,
    sync_folder,
)
from registry.disk.paths import join
from registry.errors import (
    ChangePending,
    ChangeRefused,
    DatabaseProblem,
    DatabaseUnreachable,
    SkillChangedOnDisk,
    SkillExists,
    SkillInaccessible,
)
from registry.text import utc_now

PAUSES: Final = (0.1, 0.5, 2.0)
"""Seconds between attempts to reach a server that ended the connection."""


class CrossDevice(Exception):  # told apart and answered, never shown
    """The state folder turned out to lie on another file system than the source."""


def new_operation(context: ChangeContext) -> str:
    """Make a folder in ops for a change to stage in, signed with the database it belongs to."""
    operation = secrets.token_hex(8)
    path = context.state.path_of("ops", operation)
    os.mkdir(path, 0o700)
    with open(f"{path}/owner", "w", encoding="utf-8") as file:
        file.write(context.core.writer.path)
    return operation


def new_entry(
    context: ChangeContext,
    operation: str,
    kind: Kind,
    folder: str,
    staged: str,
    *,
    target: str | None = None,
    base: str | None = None,
    uid: str | None = None,
    created_at: str | None = None,
) -> Entry:
    """Return the journal entry of a change of a skill's folder, or of ``target`` in it.

    What is ``staged`` is complete; for a deletion nothing is.
    """
    return Entry(
        id=operation,
        host=context.core.host,
        source_id=context.source.id,
        root=context.source.path,
        kind=kind,
        folder=folder,
        target=target or folder,
        staged=staged,
        base=base,
        new=digest_path(staged),
        uid=uid,
        created_at=created_at,
        started_at=utc_now(),
    )


def carry_out(context: ChangeContext, entry: Entry, name: str) -> None:
    """Journal, publish, verify and record a staged change. The state lock is held.

    Raises `SkillChangedOnDisk` or `SkillExists` when somebody was faster, `ChangeRefused` when
    the disk refuses (nothing happened then), `ChangePending` when the database can't be told, and
    `CrossDevice`.
    """
    with context.core.writer.transaction() as connection:
        add_entry(connection, entry)
    try:
        entry = publish(context, entry, name)
    except BaseException as error:
        roll_forward_or_back(context, entry)
        if isinstance(error, OSError):
            if error.errno == errno.EXDEV:
                raise CrossDevice from error
            path = join(entry.root, entry.target)
            reason = error.strerror or str(error)
            if _is_done(entry):  # the rename went well, and then the disk did not confirm it
                raise ChangePending(path=path, reason=reason) from error
            raise ChangeRefused(path=path, reason=reason) from error
        raise
    roll_forward_or_back(context, entry, is_written=True)


def _is_done(entry: Entry) -> bool:
    """Tell whether the disk shows the change made, after its end was recorded."""
    try:
        return digest_path(join(entry.root, entry.target)) == entry.new
    except OSError:
        return True  # better a warning too many than "nothing was changed"


def publish(context: ChangeContext, entry: Entry, name: str) -> Entry:
    """Do the rename that is the commit point, and verify what it displaced.

    Returns the entry as it is in the journal now.
    """
    live = join(entry.root, entry.target)
    if entry.kind == "create":
        _make_parents(entry.root, entry.target)
        try:
            rename_new(entry.staged, live)
        except FileExistsError:
            raise SkillExists(name=name, path=live) from None
    elif entry.kind == "delete":
        rename_new(live, entry.staged)
    else:
        entry = _swap(context, entry, live)
    displaced = entry.staged if entry.exchange else f"{entry.staged}.old"
    if entry.kind != "create" and digest_path(displaced) != entry.base:
        # An edit slipped in between the comparison and the rename: recovery gives it back.
        raise SkillChangedOnDisk(name=name, path=live)
    sync_folder(os.path.dirname(live))
    sync_folder(os.path.dirname(entry.staged))
    return entry


def _swap(context: ChangeContext, entry: Entry, live: str) -> Entry:
    try:
        exchange(entry.staged, live)
    except ExchangeUnsupported:
        entry = replace(entry, exchange=0)
        with context.core.writer.transaction() as connection:
            drop_entry(connection, entry.id)
            add_entry(connection, entry)
        rename_new(live, f"{entry.staged}.old")
        rename_new(entry.staged, live)
    return entry


def roll_forward_or_back(context: ChangeContext, entry: Entry, *, is_written: bool = False) -> None:
    """Roll a change forward or back, on disk and in the database, and say when that must wait.

    ``is_written``: the journal has the entry as it is given.
    """
    try:
        for pause in (*PAUSES, None):
            try:
                if not is_written:
                    with context.core.writer.transaction() as connection:
                        entry = find_entry(connection, entry.id) or entry
                # Where the entry is struck out, a COMMIT arrived whose answer was lost: writing
                # down once more what the disk says changes nothing.
                finish(context, entry)
            except DatabaseUnreachable:
                if pause is None:
                    raise
                is_written = False
                time.sleep(pause)
            else:
                return
    except (DatabaseProblem, SkillInaccessible, OSError) as error:
        path = join(entry.root, entry.target)
        said = error.facts.get("reason") if isinstance(error, SkillInaccessible) else None
        reason = getattr(error, "strerror", None) or said or str(error).rstrip(".")
        raise ChangePending(path=path, reason=reason) from error


def _make_parents(root: str, target: str) -> None:
    """Make the folders between the root and the target, durably."""
    parents = list(PurePosixPath(target).parents)[:-1]
    for parent in reversed(parents):
        path = join(root, str(parent))
        if not os.path.isdir(path):
            os.mkdir(path)
            sync_folder(os.path.dirname(path))
