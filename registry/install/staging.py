"""Replace the folder of a skill at one path, or at several paths: all of them or none.

A staging directory beside each path contains the new files (see `disk.swap`) and a record. The
staging directory stays until the lock file lists the new state. If the process is killed, the next
process finishes the recorded change.

A single rename can't change two folders. So for several paths, all staging directories are prepared
first, and one of the paths is the deciding path. A record in the lock file's folder lists all
paths. Any process that finds the record looks at the deciding path. If this path has its new state,
the process also changes the other paths to their new state. Otherwise it restores the old state of
all paths. A link is created before its target, and leads nowhere until the target exists. So after
any crash, all or none of the links and their folder are visible.
"""

import errno
import json
import os
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple, Self

from registry.disk.atomic import (
    Place,
    digest_of,
    is_gone,
    make_folder,
    make_path,
    open_named,
    remove_tree,
    sync_folder,
    write_file,
)
from registry.disk.beneath import Folder
from registry.disk.files import read_below
from registry.disk.locks import FolderLock
from registry.disk.paths import STATE_SUFFIX
from registry.disk.private import NotOurs, open_own_folder
from registry.disk.swap import PREFIX, TREE, Swap, draft_name, stage_files, unknown_in
from registry.errors import RegistryError
from registry.install.content import FileContent
from registry.install.lockfile import LockEntry, locked_from, safe_folder
from registry.sync.installed import MAX_BYTES

RECORD: Final = "note.json"
"""Name of the file in a staging directory that records the old and the new state of its path."""

GROUP: Final = "places.json"
"""Name of the file beside the lock file with the ids of the folders of a change.

The file is written before the staging directories.
"""

ENTRY: Final = "entry.json"
"""Name of the file beside the lock file with the skill's new lock entry.

The file is written after the staging directories, before the first change.
"""

LOCK_SECONDS: Final = 30.0

_UNLOCKABLE: Final = {errno.EBADF, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP}
"""Error numbers of file systems that don't support file locks; pulls then run without a lock."""

_ALSO_COPIES: Final = frozenset({errno.EDQUOT, errno.EIO, errno.ENOSPC, errno.EROFS})
"""Errors after which a copy would also fail; after other errors, a copy replaces the link."""

UNREADABLE: Final = (
    *(RegistryError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError),
)
"""Errors that occur if a record is incomplete, or if another program wrote it."""


@contextmanager
def open_exclusively(path: str, wait: float = LOCK_SECONDS) -> Iterator[Folder]:
    """Open a folder and lock it against other pulls and exports; create it if it is missing.

    Raises OSError.
    """
    make_path(path)
    with open_named(path) as folder, exclusive_lock(folder, wait):
        yield folder


@contextmanager
def exclusive_lock(folder: Folder, wait: float = LOCK_SECONDS) -> Iterator[None]:
    """Lock an open folder against other pulls and exports.

    Raises OSError, with a message for the user.
    """
    with FolderLock(folder) as lock:
        try:
            taken = lock.acquire(wait)
        except OSError as error:
            if error.errno not in _UNLOCKABLE:
                raise
            taken = True
        if not taken:
            raise OSError(errno.EBUSY, "another pull or export is writing to it", folder.path)
        yield


def staging_dirs(folder: Folder) -> list[str]:
    """Return the names of this user's staging directories of interrupted processes."""
    names = [entry.name for entry in folder.entries()]
    return [name for name in names if _is_staged(name) and is_ours(Place(folder, name))]


def stale_drafts(folder: Folder) -> list[str]:
    """Return the names of drafts (temporary files and folders) of interrupted processes."""
    entries = [entry for entry in folder.entries() if _is_staged(entry.name)]
    return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]


def _is_staged(name: str) -> bool:
    return name.startswith(PREFIX) and name.endswith(STATE_SUFFIX)


def is_ours(place: Place) -> bool:
    """Tell whether there is a folder at ``place`` and this user owns it."""
    try:
        open_own_folder(place).close()
    except (NotOurs, FileNotFoundError):
        return False
    return True


def where(folder: str, error: OSError) -> str:
    """Return the full path of the file in an OSError, which may name it relative to ``folder``."""
    name = error.filename
    return f"{folder}/{name}" if isinstance(name, str) and name[:1] != "/" else name or folder


@dataclass(frozen=True, slots=True)
class SwapRecord:
    """The record in a staging directory: the skill's folder, its old and its new digest."""

    folder: str
    base: str | None
    new: str | None


def put(to: Folder, name: str) -> bool:
    """Make the change in the record of a staging directory.

    Returns False if another process changed the path first.
    """
    with _opened(to, name) as (record, swap):
        if record is None:
            return False
        # another process may create or remove the skill's folder at this moment
        with suppress(FileExistsError, FileNotFoundError):
            swap.publish()
    return repair(to, name) is not None


def repair(to: Folder, name: str) -> SwapRecord | None:
    """Finish a change if it is incomplete, and restore an edit that the change moved aside.

    Returns the record if the path has the new state, else None.
    """
    with _opened(to, name) as (record, swap):
        if record is None:
            return None  # the record is written before any rename, so no file was renamed
        swap.finish(_leave)
        is_done = swap.is_done()
    sync_folder(to)
    return record if is_done else None


def roll_back(to: Folder, name: str) -> None:
    """Restore the state of a path from before `put`, unless the path was edited after it."""
    with _opened(to, name) as (_, swap):
        swap.finish(_leave)
        swap.roll_back()
    sync_folder(to)


def record_in_place(to: Folder, name: str) -> SwapRecord | None:
    """Return the record of a staging directory if its path has the new state, else None.

    This function changes nothing.
    """
    with _opened(to, name) as (record, swap):
        return record if record is not None and swap.is_done() else None


def clear(to: Folder, name: str) -> None:
    """Remove a staging directory after the lock file was written.

    If the directory may contain an edit, it stays.
    """
    with open_own_folder(Place(to, name)) as home:
        record = read_record(home)
        if record is not None:
            if unknown_in(Place(home, TREE), {record.base, record.new}):
                return
            # Remove the record first, because a partly removed folder would look like an edit.
            remove_tree(Place(home, RECORD))
            sync_folder(home)
    remove_tree(Place(to, name))


def record_in(to: Folder, name: str) -> SwapRecord | None:
    """Return the record of a staging directory; None if it is missing or incomplete."""
    with open_own_folder(Place(to, name)) as home:
        return read_record(home)


def read_record(home: Folder) -> SwapRecord | None:
    """Return the record in an open staging directory; None if it is missing or incomplete."""
    try:
        data = json.loads(read_below(home, RECORD, MAX_BYTES).data)
        # Check the folder's name, because other users may be able to write here, and the name must
        # not lead to another folder.
        return SwapRecord(safe_folder(data["folder"]), data["base"], data["new"])
    except UNREADABLE:
        return None  # without a complete record, no file was renamed


@contextmanager
def _opened(to: Folder, name: str) -> Iterator[tuple[SwapRecord | None, Swap]]:
    with open_own_folder(Place(to, name)) as home:
        record = read_record(home)
        if record is None:
            yield None, Swap(None, None, None, None)
        else:
            live, staged = Place(to, record.folder), Place(home, TREE)
            yield record, Swap(live, staged, record.base, record.new)


def _leave(_: Place) -> None:
    """Leave an edit in the staging directory; `clear` then doesn't remove the directory."""


def _write(to: Folder, name: str, file: str, facts: Any) -> None:
    with open_own_folder(Place(to, name)) as home:
        write_file(Place(home, file), json.dumps(facts).encode())
        sync_folder(home)


class TargetChange(NamedTuple):
    """The change of one path: the id of its parent folder, its old and its new state.

    The old state is a digest. ``link`` is the target of the new link. ``link`` is "" if the path
    gets the skill's files, and None if the path is removed.
    """

    folder_id: str
    base: str | None
    link: str | None = ""


@dataclass(frozen=True, slots=True)
class GroupSwap:
    """A change of several paths of one skill: all or none.

    The change is recorded in the folder ``anchor``, which has the lock file. ``folder`` is the name
    of the skill's folder. ``folder_ids`` are the ids of the parent folders, in the order of the
    changes. ``deciding`` is the id of the deciding folder.
    """

    anchor: Folder
    name: str
    folder: str
    folder_ids: Sequence[str]
    deciding: str
    opened: Mapping[str, Folder]

    @classmethod
    def begin(
        cls,
        anchor: Folder,
        folder: str,
        parts: Sequence[TargetChange],
        opened: Mapping[str, Folder],
    ) -> Self:
        """Record on disk which paths will change, and flush the record to disk."""
        parts = in_order(parts)
        deciding = next((one for one in parts if one.link == ""), parts[0]).folder_id
        folder_ids = [one.folder_id for one in parts]
        name = draft_name()
        make_folder(Place(anchor, name), 0o700).close()
        record = {"folder": folder, "labels": folder_ids, "deciding": deciding}
        _write(anchor, name, GROUP, record)
        anchor.sync()
        return cls(anchor, name, folder, folder_ids, deciding, opened)

    @classmethod
    def found(
        cls, anchor: Folder, name: str, known: Container[str], open_folder: Callable[[str], Folder]
    ) -> Self | None:
        """Return the group that uses the staging directory with this name.

        Returns None if the record is missing or incomplete. Also returns None if the record has
        folder ids outside ``known``, because then another user began the group. Raises OSError and
        `PullRefused` if a folder of the group can't be opened.
        """
        with open_own_folder(Place(anchor, name)) as home:
            try:
                data = json.loads(read_below(home, GROUP, MAX_BYTES).data)
                folder_ids = list(map(str, data["labels"]))
                folder, deciding = safe_folder(data["folder"]), str(data["deciding"])
            except UNREADABLE:
                return None
        if deciding not in folder_ids or not all(one in known for one in folder_ids):
            return None
        opened = {folder_id: open_folder(folder_id) for folder_id in folder_ids}
        return cls(anchor, name, folder, folder_ids, deciding, opened)

    def stage(self, parts: Sequence[TargetChange], entries: Sequence[FileContent]) -> str:
        """Prepare the new state of all paths; return the digest of the staged files.

        Returns "" if no path gets files. If a link can't be created, its path gets a copy of the
        files.
        """
        digest = ""
        files = {one.path: (one.data, one.executable) for one in entries}
        for part in parts:
            to = self.opened[part.folder_id]
            if to is not self.anchor:
                make_folder(Place(to, self.name), 0o700).close()
            new = None
            with open_own_folder(Place(to, self.name)) as home:
                tree = Place(home, TREE)
                if part.link:
                    try:
                        os.symlink(part.link, TREE, dir_fd=home.fd)
                    except OSError as error:
                        if error.errno in _ALSO_COPIES:
                            raise
                    else:
                        new = digest_of(tree)
                if part.link is not None and new is None:
                    new = digest = stage_files(tree, files)
            _write(to, self.name, RECORD, asdict(SwapRecord(self.folder, part.base, new)))
            to.sync()
        return digest

    def place(self, entry: LockEntry | None) -> bool:
        """Change all paths to their new state.

        If one of them can't be changed, returns False and leaves all paths unchanged. ``entry`` is
        the new lock entry; None means that there will be none.
        """
        _write(self.anchor, self.name, ENTRY, None if entry is None else asdict(entry))
        for number, folder_id in enumerate(self.folder_ids):
            if not put(self.opened[folder_id], self.name):
                for done in reversed(self.folder_ids[: number + 1]):
                    roll_back(self.opened[done], self.name)
                return False
        return True

    def finish(self) -> bool:
        """Finish the change of a dead process; undo it if its deciding path wasn't changed.

        Returns False if the change was undone.
        """
        staged = self._staged()
        if self.deciding not in staged:
            # either nothing has changed yet, or the lock file already has the new state
            return False
        if not self.is_decided():
            for folder_id in reversed(staged):
                roll_back(self.opened[folder_id], self.name)
            return False
        for folder_id in staged:
            to = self.opened[folder_id]
            if repair(to, self.name) is None:
                with _opened(to, self.name) as (_, swap):
                    swap.roll_forward()
                repair(to, self.name)
        return True

    def is_decided(self) -> bool:
        """Tell whether the deciding path has its new state, so that the change must be finished.

        This method changes nothing.
        """
        if self.deciding not in self._staged():
            return False
        with open_own_folder(Place(self.anchor, self.name)) as home:
            if is_gone(Place(home, ENTRY)):
                return False
        return record_in_place(self.opened[self.deciding], self.name) is not None

    def entry(self) -> LockEntry | None:
        """Return the new lock entry; None if the change removes the skill.

        Raises OSError, and the errors of `lockfile.locked_from`.
        """
        with open_own_folder(Place(self.anchor, self.name)) as home:
            data = json.loads(read_below(home, ENTRY, MAX_BYTES).data)
        return None if data is None else locked_from(data)

    def clear(self) -> None:
        """Remove the staging directories, except directories that may contain edits."""
        # Remove the deciding path's staging directory first: without its record, no process
        # finishes or undoes the change.
        for folder_id in sorted(self.folder_ids, key=lambda one: one != self.deciding):
            if is_ours(Place(self.opened[folder_id], self.name)):
                clear(self.opened[folder_id], self.name)
                self.opened[
                    folder_id
                ].sync()  # flush the removal to disk before removing the record of the group
        if is_ours(Place(self.anchor, self.name)):
            clear(self.anchor, self.name)

    def _staged(self) -> list[str]:
        """Return the ids of paths with staging directories, in the order of the changes."""
        opened = ((folder_id, self.opened[folder_id]) for folder_id in self.folder_ids)
        there = [(folder_id, one) for folder_id, one in opened if is_ours(Place(one, self.name))]
        return [folder_id for folder_id, one in there if record_in(one, self.name) is not None]


def in_order(parts: Sequence[TargetChange]) -> list[TargetChange]:
    """Return changes in the order in which they must be made.

    New links come first, because they lead nowhere yet. Then come the skill's files, then
    replacements, and last the removals (files before links).
    """

    def rank(part: TargetChange) -> int:
        if part.link is None:
            return 3
        if part.link == "":
            return 1
        return 0 if part.base is None else 2

    return sorted(parts, key=rank)
