"""One change from the staged content to the recorded result (RELIABILITY, A change)."""

import errno
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Final

from registry.changes.state import StateFolder
from registry.db.reader import Reader
from registry.db.writer import Writer
from registry.db.writes.journal import Entry, add_entry, find_entry
from registry.disk.atomic import (
    ExchangeUnsupported,
    digest_path,
    exchange,
    remove_tree,
    rename_new,
    sync_folder,
)
from registry.disk.locks import FileLock
from registry.disk.paths import join
from registry.errors import (
    ChangePending,
    ChangeRefused,
    DatabaseProblem,
    DatabaseUnreachable,
    RegistryError,
    SkillChangedOnDisk,
    SkillExists,
    SkillInaccessible,
)
from registry.model import Source
from registry.settings import Limits
from registry.times import now

LOCK_SECONDS: Final = 30.0

PAUSES: Final = (0.1, 0.5, 2.0)
"""Seconds between attempts to reach a server that ended the connection."""


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a change happens: the source, its state folder, and both lanes to the database.

    ``roots`` are the roots of all sources; ``host`` names this machine in the journal.
    """

    reader: Reader
    writer: Writer
    source: Source
    roots: tuple[str, ...]
    limits: Limits
    host: str
    state: StateFolder


class CrossDevice(Exception):  # told apart and answered, never shown
    """The state folder turned out to lie on another file system than the source."""


def locked(ground: Ground) -> FileLock:
    """Take the lock of the source's state folder.

    Raises `ChangeRefused` when it stays taken, or can't be had or signed.
    """
    lock = ground.state.lock()
    try:
        taken = lock.acquire(LOCK_SECONDS)
        if taken:
            lock.sign("change")
    except OSError as error:
        lock.release()
        raise refuse(ground.source.path, error) from error
    if not taken:
        reason = f"another process ({lock.owner()}) is changing this source"
        raise ChangeRefused(path=ground.source.path, reason=reason)
    return lock


def new_operation(ground: Ground) -> str:
    """Make a folder in ops for a change to stage in, signed with the database it belongs to."""
    operation = secrets.token_hex(8)
    path = ground.state.room("ops", operation)
    os.mkdir(path, 0o700)
    with open(f"{path}/owner", "w", encoding="utf-8") as file:
        file.write(ground.writer.path)
    return operation


def new_entry(ground: Ground, operation: str, **facts: object) -> Entry:
    """Return a journal entry with the facts that all changes share filled in."""
    return Entry(
        id=operation,
        host=ground.host,
        source_id=ground.source.id,
        root=ground.source.path,
        started_at=now(),
        **facts,  # type: ignore[arg-type]  # the remaining fields, named by the callers
    )


def carry_out(ground: Ground, entry: Entry, name: str) -> None:
    """Journal, publish, verify and record a staged change. The state lock is held.

    Raises `SkillChangedOnDisk` or `SkillExists` when somebody was faster, `ChangeRefused` when
    the disk refuses (nothing happened then), `ChangePending` when the database can't be told, and
    `CrossDevice`.
    """
    with ground.writer.transaction() as connection:
        add_entry(connection, entry)
    try:
        entry = publish(ground, entry, name)
    except BaseException as error:
        settle(ground, entry)
        if isinstance(error, OSError):
            if error.errno == errno.EXDEV:
                raise CrossDevice from error
            path = join(entry.root, entry.target)
            reason = error.strerror or str(error)
            if _is_done(entry):  # the rename went well, and then the disk did not confirm it
                raise ChangePending(path=path, reason=reason) from error
            raise ChangeRefused(path=path, reason=reason) from error
        raise
    settle(ground, entry, is_written=True)


def _is_done(entry: Entry) -> bool:
    """Tell whether the disk shows the change made, after its end was recorded."""
    try:
        return digest_path(join(entry.root, entry.target)) == entry.new
    except OSError:
        return True  # better a warning too many than "nothing was changed"


def publish(ground: Ground, entry: Entry, name: str) -> Entry:
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
        entry = _swap(ground, entry, live)
    displaced = entry.staged if entry.exchange else f"{entry.staged}.old"
    if entry.kind != "create" and digest_path(displaced) != entry.base:
        # An edit slipped in between the comparison and the rename: recovery gives it back.
        raise SkillChangedOnDisk(name=name, path=live)
    sync_folder(os.path.dirname(live))
    sync_folder(os.path.dirname(entry.staged))
    return entry


def _swap(ground: Ground, entry: Entry, live: str) -> Entry:
    try:
        exchange(entry.staged, live)
    except ExchangeUnsupported:
        from registry.db.writes.journal import drop_entry

        entry = replace(entry, exchange=0)
        with ground.writer.transaction() as connection:
            drop_entry(connection, entry.id)
            add_entry(connection, entry)
        rename_new(live, f"{entry.staged}.old")
        rename_new(entry.staged, live)
    return entry


def settle(ground: Ground, entry: Entry, *, is_written: bool = False) -> None:
    """Bring disk and database to one of both ends of a change, and say when that must wait.

    ``is_written``: the journal has the entry as it is given.
    """
    from registry.changes.recovery import finish

    try:
        for pause in (*PAUSES, None):
            try:
                if not is_written:
                    with ground.writer.transaction() as connection:
                        entry = find_entry(connection, entry.id) or entry
                # Where the entry is struck out, a COMMIT arrived whose answer was lost: writing
                # down once more what the disk says changes nothing.
                finish(ground, entry)
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


def discard(ground: Ground, path: str, known: str | None) -> None:
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
    keep(ground, path)


def keep(ground: Ground, path: str) -> str:
    """Move something that nobody may lose to ``conflict``; return where it is now."""
    target = ground.state.room("conflict", f"{now().replace(':', '')}-{secrets.token_hex(4)}")
    rename_new(path, target)
    sync_folder(os.path.dirname(target))
    return target


def _make_parents(root: str, target: str) -> None:
    """Make the folders between the root and the target, durably."""
    parents = list(PurePosixPath(target).parents)[:-1]
    for parent in reversed(parents):
        path = join(root, str(parent))
        if not os.path.isdir(path):
            os.mkdir(path)
            sync_folder(os.path.dirname(path))


def refuse(path: str, error: OSError) -> RegistryError:
    """Return the error for a disk that refused before anything was published."""
    return ChangeRefused(path=path, reason=error.strerror or str(error))
