"""The state folder of a source, for staged changes and deleted skills.

The state folder is beside the source's root, on the same file system. The first change creates it.
The state folder isn't inside the root, because other programs search skills folders and must never
find a staged or deleted skill. Other users with write access to the parent folder could create a
folder with this name. So the state folder is used only if it belongs to this user and no other user
can write to it. It is opened without following links.

This module also defines the context of a change: its source, open folders, lock and signer.
"""

import errno
import os
import re
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from stat import S_ISDIR
from typing import Final, Self, get_args

from registry.changes.signer import Signer
from registry.core import Core
from registry.db.read import journal
from registry.db.read.journal import JournalEntry, Kind
from registry.db.read.sources import list_sources
from registry.disk.atomic import Place, is_gone, open_named, write_file
from registry.disk.beneath import Folder
from registry.disk.locks import FileLock
from registry.disk.paths import ROOT, STATE_SUFFIX, is_safe_relative
from registry.disk.private import NotOurs, open_own_folder
from registry.disk.swap import TREE, Swap
from registry.errors import ChangeRefused, RegistryError, RootMissing, SkillInaccessible
from registry.model import Source
from registry.sync.sources import check_ours, check_writable, is_here

NUMBER: Final = re.compile("[0-9a-f]{16}")
"""Matches the number of an operation; a deleted skill's folder in the trash also has this form."""

OWNER: Final = "owner"
"""Name of the file in an operation's folder that records its owner."""

RECORD: Final = "record"
"""Name of the file in an operation's folder that records the planned change."""

EVENT_FILE: Final = "event"
"""Name of the file in an operation's folder with the values for the audit log."""

META: Final = "meta.json"
"""Name of the file with the record of a deleted skill, in the skill's folder in the trash."""

_UNWRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT})


class StateFolder:
    """The open state folder of a source, with its folders ``ops``, ``trash`` and ``conflict``."""

    def __init__(self, home: Folder, ops: Folder, trash: Folder, conflict: Folder) -> None:
        self.home, self.ops, self.trash, self.conflict = home, ops, trash, conflict

    @classmethod
    def make(cls, root: str, *, inside: bool | None = None) -> Self:
        """Open the state folder of a source; create it if it is missing.

        ``inside`` is True if the state folder is in the root, and False if it is beside the root.
        If ``inside`` is None, `state_path` chooses the place.
        """
        made = cls.open(root, inside=inside, make=True)
        assert made is not None  # noqa: S101  # `open` created it
        return made

    @classmethod
    def open(cls, root: str, *, inside: bool | None = None, make: bool = False) -> Self | None:
        """Open the state folder of a source; return None if it doesn't exist.

        Raises `ChangeRefused` if the folder or a subfolder doesn't belong to this user, and
        `SkillInaccessible` if it can't be opened.
        """
        path = state_path(root, inside=inside)
        parent, name = os.path.split(path)
        with ExitStack() as stack:
            try:
                with open_named(parent) as above:
                    home = stack.enter_context(open_own_folder(Place(above, name), make=make))
                    folders = [
                        stack.enter_context(open_own_folder(Place(home, each), make=make))
                        for each in ("ops", "trash", "conflict")
                    ]
                    if make:
                        _make_sure(above, home)
            except NotOurs as error:
                raise ChangeRefused(path=error.filename, reason=error.strerror) from error
            except OSError as error:
                if not make and isinstance(error, FileNotFoundError):
                    return None
                reason = error.strerror or str(error)
                if make and error.errno in _UNWRITABLE:
                    reason = f"the folder for unfinished changes can't be created there: {reason}"
                    raise ChangeRefused(path=path, reason=reason) from error
                raise SkillInaccessible(path=path, reason=reason) from error
            stack.pop_all()
        return cls(home, *folders)

    def lock(self) -> FileLock:
        """Return the lock for changes of the source; take it before the lock of the database."""
        return FileLock("lock", folder=self.home)

    def operations(self) -> list[str]:
        """Return the numbers of the changes with a folder in ``ops``."""
        return _numbers(self.ops)

    def trashed(self) -> list[str]:
        """Return the numbers of the deleted skills in the trash."""
        return _numbers(self.trash)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all folders that this object opened."""
        for folder in (self.conflict, self.trash, self.ops, self.home):
            folder.close()


def _numbers(folder: Folder) -> list[str]:
    return [one.name for one in folder.entries() if NUMBER.fullmatch(one.name)]


def open_if_there(folder: Folder, path: str) -> Folder | None:
    """Open a folder in ``folder``; return None if it is missing, a link or not a folder."""
    try:
        return folder.folder(path)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            return None
        raise


def open_place(stack: ExitStack, folder: Folder, path: str) -> Place | None:
    """Open the folder that contains ``path``, and return the place of ``path`` in this folder.

    The folder stays open until the stack is closed. Returns None if the folder is missing, a link
    or not a folder.
    """
    above, _, name = path.rpartition("/")
    holder = open_if_there(folder, above or ".")
    return None if holder is None else Place(stack.enter_context(holder), name)


def _make_sure(above: Folder, home: Folder) -> None:
    """Flush new folders to disk.

    If the process that created the folders died before this, the next process flushes them.
    """
    ignore = Place(home, ".gitignore")
    if is_gone(ignore):
        above.sync()
        home.sync()
        with suppress(FileExistsError):  # another process created the file first
            write_file(ignore, b"*\n")


def state_path(root: str, *, inside: bool | None = None) -> str:
    """Return the path of the state folder of the source at ``root``."""
    parent, name = os.path.split(root)
    beside = os.path.join(parent, f".{name}{STATE_SUFFIX}")
    within = os.path.join(root, STATE_SUFFIX)
    if inside is None:
        # Always use the path that was chosen first, because recovery must find the staged files.
        can_write = os.access(parent, os.W_OK | os.X_OK)
        inside = _may_be_ours(within) or not (os.path.lexists(beside) or can_write)
    return within if inside else beside


def _may_be_ours(path: str) -> bool:
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    return S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077


LOCK_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """The source of a change, its open folders and signer, and the roots of all sources."""

    core: Core
    source: Source
    roots: tuple[str, ...]
    root: Folder
    state: StateFolder
    signer: Signer

    @classmethod
    @contextmanager
    def locked(
        cls, core: Core, source_id: int, *, inside: Collection[str] = ()
    ) -> "Iterator[Self]":
        """Open a source for a change, under the lock of its state folder.

        ``inside`` has the roots of the sources that contain their state folder. Raises
        `SourceElsewhere`, `SourceNotYours`, `OwnFileUnusable`, `SkillInaccessible`,
        `ChangeRefused`.
        """
        known = list_sources(core.reader, counted=False)
        source = next(one for one in known if one.id == source_id)
        check_ours(core, source)
        check_writable(source)
        roots = tuple(one.path for one in known if is_here(core, one.host, one.path))
        signer = Signer.of(core, source.path)
        try:
            root = Folder.open(source.path)
        except FileNotFoundError as error:
            # Don't create a missing root. The root may be on an unmounted disk, which would later
            # hide the new folder.
            reason = "the source's folder does not exist"
            raise RootMissing(path=source.path, reason=reason) from error
        except OSError as error:
            raise refusal(source.path, error) from error
        within = True if source.path in inside else None
        with root, StateFolder.make(source.path, inside=within) as state, state.lock() as lock:
            try:
                taken = lock.acquire(LOCK_SECONDS)
                if taken:
                    lock.sign("change")
            except OSError as error:
                raise refusal(error.filename or source.path, error) from error
            if not taken:
                reason = f"another process ({lock.owner()}) is changing this source"
                raise ChangeRefused(path=source.path, reason=reason)
            yield cls(core, source, roots, root, state, signer)


def refusal(path: str, error: OSError) -> RegistryError:
    """Return the error to raise for an OSError that occurred before a change was published."""
    return ChangeRefused(path=path, reason=error.strerror or str(error))


@contextmanager
def open_swap(context: ChangeContext, entry: JournalEntry) -> Iterator[Swap]:
    """Open the folders between which a change moves files; close them at the end of the block."""
    area, number, tree = entry.staged.split("/")
    home = {"ops": context.state.ops, "trash": context.state.trash}[area]
    with ExitStack() as stack:
        live = open_place(stack, context.root, entry.target)
        staged = open_place(stack, home, f"{number}/{tree}")
        yield Swap(live, staged, entry.base, entry.new)


def recorded(
    core: Core, source: Source, state: StateFolder, signer: Signer, number: str
) -> JournalEntry | None:
    """Return the change with this number if this user signed it and the journal agrees."""
    entry = signed_entry(source, core.host, state, signer, number)
    return entry if entry is not None and journal.is_journalled(core.reader, entry) else None


def signed_entry(
    source: Source, host: str, state: StateFolder, signer: Signer, number: str
) -> JournalEntry | None:
    """Return the signed record of a change; None if it is missing or its signature is invalid."""
    operation = open_if_there(state.ops, number)
    if operation is None:
        return None
    with operation:
        facts = signer.read(Place(operation, RECORD), "change", number)
    if facts is None or facts.keys() != {field.name for field in fields(JournalEntry)}:
        return None
    entry = JournalEntry(**facts)
    return entry if _is_whole(entry, source, host, number) else None


def _is_whole(entry: JournalEntry, source: Source, host: str, number: str) -> bool:
    area, _, rest = entry.staged.partition("/")
    kept, _, tree = rest.partition("/")
    return (
        (entry.id, entry.host, entry.source_id, entry.root)
        == (number, host, source.id, source.path)
        and entry.kind in get_args(Kind)
        and (entry.folder == ROOT or is_safe_relative(entry.folder))
        and is_safe_relative(entry.target)
        and area in {"ops", "trash"}
        and NUMBER.fullmatch(kept) is not None
        and (area == "trash" or kept == number)
        and tree == TREE
    )
