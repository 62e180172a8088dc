"""A pull in progress: its staged changes, recovery of killed pulls, and writing the lock."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Final

from registry.core import Core
from registry.disk.atomic import Place, remove_tree
from registry.disk.beneath import Folder
from registry.disk.links import real_path
from registry.errors import RegistryError
from registry.install import lockfile, staging
from registry.install.content import Entry
from registry.install.history import InstallRecord, keep_edit
from registry.install.lockfile import Locked
from registry.install.plan import InstallPlan
from registry.install.staging import (
    GroupSwap,
    TargetChange,
    exclusive_lock,
    staging_dirs,
    stale_drafts,
)
from registry.install.targets import LOCK_DIR, InstallOptions, Target
from registry.sync.installed import forget_removed

BATCH: Final = 100
"""Skills after which the lock file is written; until then staging directories tell the state."""


class InstallTransaction(InstallPlan):
    """The plan of an exclusively locked folder, which can be carried out."""

    def __init__(
        self, core: Core, stack: ExitStack, target: Target, anchor: Folder, how: InstallOptions
    ) -> None:
        super().__init__(core, stack, target, anchor, how)
        self._anchor = anchor
        self._written = dict(self.locked)
        self._behind: list[Callable[[], None]] = []
        self.changed: dict[str, InstallRecord] = {}
        """The changes so far, by folder."""
        self._removed: list[str] = []

    def begin(self) -> None:
        """Finish or undo interrupted pulls."""
        self._recover()
        for address in lockfile.has_secrets(self._target.path):
            self._written = {}  # so that the lock is written again without it
            self._core.warn(
                f"{self._target.path}/{lockfile.NAME} held a password or token in '{address}'. "
                "It is removed. Revoke it: old copies of the file still contain it. "
                "Put the new one into ~/.netrc."
            )
        self.flush()

    def flush(self) -> None:
        """Write down what is in place, and clear up behind it."""
        if self.locked != self._written:
            lockfile.write_lock(self._anchor, self.locked)
            self._written = dict(self.locked)
        while self._behind:
            self._behind.pop()()
        with suppress(RegistryError):  # then the next sync finds that they are gone
            forget_removed(self._core, self._removed)
        self._removed.clear()

    def _displaced(
        self, folder: str, entry: Locked | None, edits: Mapping[str, str], *, is_kept: bool
    ) -> None:
        now = self.locked.get(folder)
        self.changed[folder] = InstallRecord.of(entry, now, edits, is_kept=is_kept)

    def _keep(self, folder: str, edits: dict[str, str]) -> dict[str, str]:
        return {
            label: digest
            for label, digest in edits.items()
            if keep_edit(Place(self.folder_at(label), folder), digest)
        }

    def _recover(self) -> None:
        for draft in stale_drafts(self._anchor):
            remove_tree(Place(self._anchor, draft))
        for name in staging_dirs(self._anchor):
            known = self._target.known_labels()
            group = GroupSwap.found(self._anchor, name, known, self.folder_at)
            if group is not None:
                if group.finish():
                    self.note(group.folder, group.entry())
                self._behind.append(group.clear)
                continue
            note = staging.record_in(self._anchor, name)
            if note is not None and note.entry is None:
                continue  # part of a change that begins in another folder
            if note is not None and staging.repair(self._anchor, name) is not None:
                self.note(note.folder, note.entry)
            self._behind.append(lambda name=name: staging.clear(self._anchor, name))  # type: ignore[misc]

    def _carry_out(
        self,
        folder: str,
        parts: Sequence[TargetChange],
        entries: Sequence[Entry],
        entry: Locked | None,
        *,
        is_edit: bool = False,
    ) -> bool:
        """Change all places of a skill, or none; False: another process was faster."""
        if not is_edit and entry is not None and [one.label for one in parts] == [LOCK_DIR]:
            placed = self._change_here(folder, parts[0], entries, entry)
        else:
            placed = self._change_group(folder, parts, entries, entry, is_edit=is_edit)
        if len(self._behind) >= BATCH:
            self.flush()
        return placed

    def _change_group(
        self,
        folder: str,
        parts: Sequence[TargetChange],
        entries: Sequence[Entry],
        entry: Locked | None,
        *,
        is_edit: bool,
    ) -> bool:
        opened = {one.label: self.folder_at(one.label) for one in parts}
        group = GroupSwap.begin(self._anchor, folder, parts, opened)
        try:
            made = group.stage(parts, entries)
            if entry is not None and made and not is_edit:
                entry = replace(entry, digest=made)
            placed = group.place(entry)
        except BaseException:
            with suppress(OSError):
                if not group.finish():
                    group.clear()
            raise
        if not placed:
            group.clear()
            return False
        self.note(folder, entry)
        self._behind.append(group.clear)
        gone = [self._target.path_of(one.label) for one in parts if one.link is None]
        self._removed += [os.path.join(real_path(path), folder) for path in gone]
        return True

    def _change_here(
        self, folder: str, part: TargetChange, entries: Sequence[Entry], entry: Locked
    ) -> bool:
        """Put a skill into the folder of the lock itself: one rename is all."""
        name, new = staging.stage(self._anchor, entries)
        note = staging.SwapRecord(folder, part.base, new, replace(entry, digest=new))
        try:
            placed = staging.place(self._anchor, name, note)
        except BaseException:
            with suppress(OSError):
                staging.roll_back(self._anchor, name)
                staging.clear(self._anchor, name)
            raise
        if not placed:
            staging.clear(self._anchor, name)
            return False
        self.note(folder, note.entry)
        self._behind.append(lambda: staging.clear(self._anchor, name))
        return True

    def _open(self, label: str) -> Folder:
        found = self._stack.enter_context(self._target.open(label, self._anchor, make=True))
        self._stack.enter_context(exclusive_lock(found))
        return found
