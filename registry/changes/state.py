"""The state folder of a source: where changes are staged, and deleted skills are kept.

It lies beside the root, on the same file system, and is made at the first change: other programs
scan skills folders and must never find a staged or deleted skill there.
"""

import os
from contextlib import suppress

from registry.disk.atomic import sync_folder
from registry.disk.locks import FileLock
from registry.disk.paths import STATE_SUFFIX
from registry.errors import SkillInaccessible

_FOLDERS = ("ops", "trash", "conflict")


class StateFolder:
    """The state folder of the source at ``root``; ``inside``: where beside is not possible."""

    def __init__(self, root: str, *, inside: bool | None = None) -> None:
        self.root = root
        parent, name = os.path.split(root)
        beside = os.path.join(parent, f".{name}{STATE_SUFFIX}")
        within = os.path.join(root, STATE_SUFFIX)
        if inside is None:
            # What was chosen once is kept: recovery must look where the change was staged.
            can_write = os.access(parent, os.W_OK | os.X_OK)
            inside = os.path.isdir(within) or not (os.path.isdir(beside) or can_write)
        self.path = within if inside else beside

    def ensure(self) -> None:
        """Make the folder, and ops, trash and conflict in it. Raises `SkillInaccessible`."""
        try:
            if not os.path.isdir(self.path):
                with suppress(FileExistsError):
                    os.mkdir(self.path, 0o700)
                sync_folder(os.path.dirname(self.path))
            for folder in _FOLDERS:
                os.makedirs(self.path_of(folder), mode=0o700, exist_ok=True)
            ignore = f"{self.path}/.gitignore"
            if not os.path.exists(ignore):
                with open(ignore, "w", encoding="ascii") as file:
                    file.write("*\n")
            sync_folder(self.path)
        except OSError as error:
            raise SkillInaccessible(path=self.path, reason=error.strerror or str(error)) from error

    def path_of(self, name: str, *below: str) -> str:
        """Return the path of one of its folders (ops, trash, conflict), or of something in it."""
        return os.path.join(self.path, name, *below)

    def lock(self) -> FileLock:
        """Return the lock under which the source is changed; take it before the database's."""
        return FileLock(f"{self.path}/lock")

    @property
    def exists(self) -> bool:
        """Whether a change was ever made here."""
        return os.path.isdir(self.path)
