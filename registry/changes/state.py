"""The state folder of a source: where changes are staged, and deleted skills are kept.

It lies beside the root, on the same file system, and is made at the first change: other programs
scan skills folders and must never find a staged or deleted skill there. Whoever can write around a
source can put something of that name there, too: only what is this user's alone is used, opened by
handles without following a link.
"""

import errno
import os
import re
import secrets
from contextlib import ExitStack, suppress
from stat import S_ISDIR
from typing import Final, Self

from registry.db.read.history import GROUP_DIGITS
from registry.disk.atomic import Place, is_gone, open_named, write_file
from registry.disk.beneath import Folder
from registry.disk.locks import FileLock
from registry.disk.paths import STATE_SUFFIX
from registry.disk.private import NotOurs, open_own_folder
from registry.errors import ChangeRefused, SkillInaccessible

NUMBER: Final = re.compile("[0-9a-f]{16}")
"""What operations are called, and what they put into the trash."""

OWNER: Final = "owner"
"""In a folder of ops: whose it is."""

RECORD: Final = "record"
"""In a folder of ops: what the change is about to do."""

META: Final = "meta.json"
"""In a folder of the trash: what was deleted."""

_UNWRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT})


class StateFolder:
    """The open state folder of a source, with ``ops``, ``trash`` and ``conflict`` in it."""

    def __init__(self, home: Folder, ops: Folder, trash: Folder, conflict: Folder) -> None:
        self.home, self.ops, self.trash, self.conflict = home, ops, trash, conflict

    @classmethod
    def open(cls, root: str) -> Self | None:
        """Open the state folder of the source at ``root``; None: no change was ever made here.

        Raises `ChangeRefused` for what is not this user's own, `SkillInaccessible`.
        """
        return cls._open(root, inside=None, make=False)

    @classmethod
    def make(cls, root: str, *, inside: bool | None = None) -> Self:
        """Open it, and make what is missing; ``inside``: in the root, where beside can't be.

        Raises as `open`.
        """
        made = cls._open(root, inside=inside, make=True)
        assert made is not None  # noqa: S101  # it was made
        return made

    @classmethod
    def _open(cls, root: str, *, inside: bool | None, make: bool) -> Self | None:
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
                    reason = f"the folder for changes can't be made there: {reason}"
                    raise ChangeRefused(path=path, reason=reason) from error
                raise SkillInaccessible(path=path, reason=reason) from error
            stack.pop_all()
        return cls(home, *folders)

    def lock(self) -> FileLock:
        """Return the lock under which the source is changed; take it before the database's."""
        return FileLock("lock", folder=self.home)

    def operations(self) -> list[str]:
        """Return the numbers of the changes that left something in ops."""
        return _numbers(self.ops)

    def trashed(self) -> list[str]:
        """Return the numbers of what was put into the trash."""
        return _numbers(self.trash)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its folders."""
        for folder in (self.conflict, self.trash, self.ops, self.home):
            folder.close()


def new_numbers(count: int = 1) -> list[str]:
    """Return numbers for changes that are made together, in their order; see `is_together`.

    A number is part of what is signed, so nobody else adds to those that belong together.
    """
    group = secrets.token_hex(GROUP_DIGITS // 2)
    if count == 1:
        return [group + secrets.token_hex(2)]
    return [f"{group}{place:04x}" for place in range(count)]


def is_together(number: str, other: str) -> bool:
    """Tell whether two changes were made together."""
    return number[:GROUP_DIGITS] == other[:GROUP_DIGITS]


def _numbers(folder: Folder) -> list[str]:
    return [one.name for one in folder.entries() if NUMBER.fullmatch(one.name)]


def open_if_there(folder: Folder, path: str) -> Folder | None:
    """Open a folder below another; None: it is gone, or something else or a link is there now."""
    try:
        return folder.folder(path)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
            return None
        raise


def open_place(stack: ExitStack, folder: Folder, path: str) -> Place | None:
    """Open the folder that holds ``path`` until the stack ends; None as `open_if_there`."""
    above, _, name = path.rpartition("/")
    holder = open_if_there(folder, above or ".")
    return None if holder is None else Place(stack.enter_context(holder), name)


def _make_sure(above: Folder, home: Folder) -> None:
    """Make sure once that the folders are on the disk, whoever made them and died then."""
    ignore = Place(home, ".gitignore")
    if is_gone(ignore):
        above.sync()
        home.sync()
        with suppress(FileExistsError):  # another process was faster
            write_file(ignore, b"*\n")


def state_path(root: str, *, inside: bool | None = None) -> str:
    """Return the path of the state folder of the source at ``root``."""
    parent, name = os.path.split(root)
    beside = os.path.join(parent, f".{name}{STATE_SUFFIX}")
    within = os.path.join(root, STATE_SUFFIX)
    if inside is None:
        # What was chosen once is kept: recovery must look where the change was staged.
        can_write = os.access(parent, os.W_OK | os.X_OK)
        inside = _may_be_ours(within) or not (os.path.lexists(beside) or can_write)
    return within if inside else beside


def _may_be_ours(path: str) -> bool:
    try:
        facts = os.lstat(path)
    except OSError:
        return False
    return S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o077
