"""The folders below that of a lock into which skills are put, opened once each."""

import os
from contextlib import ExitStack
from stat import S_ISDIR

from registry.disk.atomic import Place, digest_of, digest_of_link, open_named
from registry.disk.beneath import Folder
from registry.disk.links import real_path
from registry.install import lockfile
from registry.install.lockfile import Locked, Mode
from registry.install.targets import HERE, Laid, Target


class Places:
    """What the lock in a folder lists, and where that lies.

    ``anchor`` is that folder, open; None: there is none yet.
    """

    def __init__(self, stack: ExitStack, target: Target, anchor: Folder | None) -> None:
        self._stack = stack
        self._target = target
        self._bases: dict[tuple[tuple[str, ...], Mode], list[Laid]] = {}
        self.locked = lockfile.read_lock(target.path)
        if anchor is None and os.path.isdir(target.path):
            anchor = stack.enter_context(open_named(target.path))
        self._opened = {} if anchor is None else {HERE: anchor}
        self._by_path = {} if anchor is None else {real_path(target.path): anchor}

    def path(self, folder: str) -> str:
        """Return the path of a skill's folder that the lock lists, for messages."""
        return self._laid(self.locked[folder], folder)[0].path_of(folder)

    def _laid(self, entry: Locked | None, folder: str) -> list[Laid]:
        """Return where a skill was put; as yet unlocked ones are in the folder of the lock."""
        if entry is None:
            return self._places((), "copy", folder)
        return self._places(entry.agents, entry.mode, folder)

    def _places(self, ids: tuple[str, ...], mode: Mode, folder: str) -> list[Laid]:
        """Return `Target.laid`, which looks at the disk once for all skills of the same agents."""
        if (ids, mode) not in self._bases:
            self._bases[ids, mode] = self._target.laid(ids, mode, "")
        bases = self._bases[ids, mode]
        return [one._replace(link=one.link + folder) if one.link else one for one in bases]

    def found(self, one: Laid, folder: str) -> str | None:
        """Return the digest of what is in a place; None: nothing."""
        if not os.path.lexists(os.path.join(one.path, folder)):
            return None  # and no folder is made to look into it
        try:
            return digest_of(Place(self.folder_at(one.label), folder))
        except FileNotFoundError:
            return None

    def folder_at(self, label: str) -> Folder:
        """Open the folder of a label, once. Raises OSError."""
        if label not in self._opened:
            real = real_path(self._target.path_of(label))
            if real not in self._by_path:
                self._by_path[real] = self._open(label)
            self._opened[label] = self._by_path[real]
        return self._opened[label]

    def _open(self, label: str) -> Folder:
        anchor = self._opened.get(HERE)
        return self._stack.enter_context(self._target.open(label, anchor, make=False))

    def _holds_files(self, known: Locked, folder: str, one: Laid) -> bool:
        """Tell whether a pull put a skill's files into a place, and no link: a folder is there."""
        were_files = {laid.label for laid in self._laid(known, folder) if not laid.is_link}
        mode = self.folder_at(one.label).lstat(folder).st_mode
        return one.label in were_files and S_ISDIR(mode)


def made(entry: Locked, one: Laid) -> set[str]:
    """Return the digests of what a pull may have put into a place."""
    return {entry.digest, *({digest_of_link(one.link)} if one.link else ())}
