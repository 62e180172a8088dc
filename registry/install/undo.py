"""Undo a pull: remove the added skills, and restore the replaced and removed skills.

An undo restores all skills or none.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, Self, TypeAlias

from registry.catalog.resolve import trust_command
from registry.changes.undo import Undo
from registry.core import Core
from registry.db.read.history import RecordedChange
from registry.db.read.skills import same_files
from registry.db.write.history import drop_change
from registry.disk.atomic import Place, digest_of, open_named
from registry.disk.files import digest
from registry.disk.links import real_path
from registry.errors import ChangeNotUndone, NothingToUndo, RegistryError
from registry.install.content import FileContent, content_as_locked
from registry.install.lockfile import NAME, LockEntry, locked_from, read_lock
from registry.install.plan import InstallPlan
from registry.install.pull import is_locked, open_transaction
from registry.install.pull_records import (
    InstallRecord,
    kept_edit,
    records_of,
    remembered_pulls,
    state_of,
)
from registry.install.restore import LockedOrigins
from registry.install.staging import open_exclusively
from registry.install.targets import InstallOptions, InstallPath, InstallResult, InstallTarget
from registry.sync.sources import own_sources

Fate: TypeAlias = Literal["removed", "replaced", "returned"]

_DRY: Final = InstallOptions(dry_run=True)


class UndoEffect(NamedTuple):
    """The effect on a skill if a pull is undone, and the number of folders with this effect.

    ``places`` is 0 if only the skill's entry in the lock file changes.
    """

    name: str
    fate: Fate
    places: int


def all_changes(core: Core) -> "list[Undo | PullUndo]":
    """Return the changes that `undo` can undo, one for each command, the latest first."""
    found: list[Undo | PullUndo] = [*Undo.all_of(core)]
    found += [PullUndo.of(core, one) for one in remembered_pulls(core)]
    return sorted(found, key=lambda one: one.change.id, reverse=True)


def last_change(core: Core) -> "Undo | PullUndo":
    """Return this user's last command that `undo` can undo. Raises `NothingToUndo`."""
    pull = next(iter(remembered_pulls(core)), None)
    if pull is None:
        return Undo.of(core)
    try:
        return Undo.of(core, after=pull.id)
    except NothingToUndo:
        return PullUndo.of(core, pull)


@dataclass(frozen=True, slots=True)
class PullUndo:
    """A pull from `remembered_pulls`, with methods that show it and undo it."""

    core: Core
    change: RecordedChange
    target: InstallTarget
    records: dict[str, InstallRecord]

    @classmethod
    def of(cls, core: Core, change: RecordedChange) -> Self:
        """Return a `PullUndo` for a recorded pull."""
        everywhere = InstallTarget.everywhere()
        target = everywhere if everywhere.path == change.folder else InstallTarget(change.folder)
        return cls(core, change, target, records_of(change))

    @property
    def changes(self) -> Sequence[RecordedChange]:
        """The record of the pull, as a list.

        A pull is one change, for any number of skills.
        """
        return [self.change]

    @property
    def is_removal(self) -> bool:
        """Whether the command was ``pull --remove``: the skills have fewer agents, or are gone."""
        return all(
            one.left is None or (one.state is not None and set(one.left[1]) < set(one.state[1]))
            for one in self.records.values()
        )

    @property
    def agents(self) -> list[str]:
        """The ids of the agents for which the pull added, changed or removed a skill."""
        found: set[str] = set()
        for one in self.records.values():
            before, after = (set(state[1]) if state else set() for state in (one.state, one.left))
            found |= before ^ after or after
        return sorted(found)

    @property
    def effects(self) -> list[UndoEffect]:
        """The skills that the undo still has to restore, each with the effect on it.

        A skill occurs several times if the undo removes it from one folder and restores it in
        another folder.
        """
        found: list[UndoEffect] = []
        locked = read_lock(self.target.path)
        for folder, one in self.records.items():
            if self._is_as_before(locked.get(folder), folder) and not one.edits:
                continue
            fates: Counter[Fate] = Counter(self._fates(folder))
            fates = fates or Counter({"replaced": 0})
            found += [UndoEffect(one.name, fate, places) for fate, places in sorted(fates.items())]
        return found

    def _fates(self, folder: str) -> Iterator[Fate]:
        """Yield what the undo does to a skill, for each folder that it changes."""
        one = self.records[folder]
        before, after = self._places(one.state, folder), self._places(one.left, folder)
        is_new = (one.state or [])[:1] != (one.left or [])[:1]
        changed = {*one.edits, *(before if is_new else ())} - {*one.missing}
        files = next((folder_id for folder_id, place in before.items() if not place.link), None)
        for folder_id in dict.fromkeys([*after, *before]):
            was, now = before.get(folder_id), after.get(folder_id)
            if was is None or folder_id in one.missing:
                if now is not None:
                    yield "replaced" if folder_id in one.edits else "removed"
            elif now is None:
                yield "returned"
            elif (files if was.is_link else folder_id) in changed or was.is_link != now.is_link:
                yield "replaced"

    def _places(self, state: Sequence[Any] | None, folder: str) -> dict[str, InstallPath]:
        """Return the install paths for a result of `state_of`, by their folder ids."""
        if state is None:
            return {}
        _, agents, mode = state
        return {one.folder_id: one for one in self.target.install_paths(agents, mode, folder)}

    def forget(self) -> None:
        """Delete the record of the pull without undoing it; afterwards it can't be undone."""
        with self.core.writer.transaction() as connection:
            drop_change(connection, self.change)

    def diff(self) -> str:
        """Return an empty diff, because `effects` shows the differences.

        Raises the errors of `carry_out`.
        """
        self._planned()
        return ""

    def carry_out(self) -> None:
        """Undo the pull, and delete its record.

        Raises `ChangeNotUndone` if a skill has changed since the pull, and the errors of
        `pull.pull`. After an error nothing has changed, unless another process edited a skill at
        that moment. If you call the method again, it skips the skills that are already restored.
        """
        self._check_lock()  # to open the lock file would create its folder
        with open_transaction(self.core, self.target, remembers=False) as work:
            for folder in self._planned():
                self._undo_skill(work, folder)
        self.forget()
        self._remove_made()

    def _remove_made(self) -> None:
        """Remove the folders and the lock file that the pull created, if they are empty now.

        The folders of sources stay, because a sync would report them as missing.
        """
        made = {path for one in self.records.values() for path in one.made}
        made -= {real_path(one.path) for one in own_sources(self.core)}
        lock = os.path.join(real_path(self.target.path), NAME)
        # If another pull is running, they stay, because it may write into them.
        with (
            suppress(RegistryError, OSError),
            open_exclusively(self.target.path, wait=0) as anchor,
            open_named("/") as root,
        ):
            if lock in made and not read_lock(self.target.path):
                os.unlink(NAME, dir_fd=anchor.fd)
            for path in sorted(made - {lock}, key=len, reverse=True):
                with suppress(OSError):  # the folder isn't empty, or a link replaced a folder
                    above, name = root.parent(path.removeprefix("/"))
                    with above:
                        os.rmdir(name, dir_fd=above.fd)

    def _check_lock(self) -> None:
        if not is_locked(self.target):
            raise self._refused(f"there is no lock in {self.target.path} any more")

    def _planned(self) -> list[str]:
        """Return the folders that the undo must restore.

        An interrupted undo may have restored some of the pull's folders already.
        """
        self._check_lock()
        found = []
        with open_transaction(self.core, self.target, _DRY) as plan:
            for folder, one in self.records.items():
                now = plan.locked.get(folder)
                if not one.is_kept:
                    raise self._refused(f"the replaced files of {one.name} are not kept")
                if one.is_changed and not self._is_back(plan, folder):
                    if state_of(now) != one.state or one.state == one.left:
                        if state_of(now) != one.left:
                            raise self._refused(f"{one.name} was pulled or removed there since")
                        if now is not None:
                            self._check(plan.check(folder, None))
                    self._undo_skill(plan, folder)
                elif one.is_changed or state_of(now) != one.left:
                    continue  # the skill is already restored, or a later pull replaced the entry
                found.append(folder)
        return found

    def _is_back(self, plan: InstallPlan, folder: str) -> bool:
        one = self.records[folder]
        return self._is_as_before(plan.locked.get(folder), folder) and all(
            self._is_there(folder_id, folder)
            and digest_of(Place(plan.folder_at(folder_id), folder)) == kept
            for folder_id, kept in one.edits.items()
        )

    def _is_as_before(self, now: LockEntry | None, folder: str) -> bool:
        """Tell whether a skill has its state from before the pull, apart from its edits."""
        one = self.records[folder]
        # If the pull only restored missing files, the lock entry doesn't show whether the files
        # exist.
        missing = one.missing if one.state == one.left else ()
        return state_of(now) == one.state and not any(
            self._is_there(folder_id, folder) for folder_id in missing
        )

    def _is_there(self, folder_id: str, folder: str) -> bool:
        return os.path.lexists(os.path.join(self.target.path_of(folder_id), folder))

    def _undo_skill(self, work: InstallPlan, folder: str) -> None:
        one, edits = self.records[folder], {}
        for folder_id, kept in one.edits.items():
            entries = kept_edit(self.core, kept)
            if entries is None:
                raise self._refused(f"the replaced files of {one.name} are not kept")
            edits[folder_id] = entries
        self._undo_installed(work, folder)
        for folder_id, entries in edits.items():
            work.put_edit(folder, folder_id, entries)

    def _undo_installed(self, work: InstallPlan, folder: str) -> None:
        one, now = self.records[folder], work.locked.get(folder)
        before = one.before
        if before is None:
            self._check(work.remove(folder))
            return
        if now is not None and not one.is_changed:
            work.note(folder, locked_from({**before, "files": now.files, "digest": now.digest}))
            return
        entry = locked_from({"digest": "", **before, "files": {}})
        entries = self._content(entry)
        files = {one.path: digest(one.data) for one in entries or ()}
        is_same = now is not None and state_of(now) == one.state
        if entries is None and is_same and work.check(folder, None).state == "unchanged":
            # The undo only removes copies and links, so it doesn't need the files.
            entries, files = [], dict(work.locked[folder].files)
        if entries is None:
            waiting = same_files(self.core.reader, entry.name, entry.tree_hash)
            if held := next((one for one in waiting if one.quarantined), None):
                way = trust_command(held.skill.source, held.skill.ref)
                raise self._refused(f"{entry.name} is quarantined; to accept it, run: {way}")
            raise self._refused(f"the files that {entry.name} had before are not kept")
        entry = replace(entry, files=files)
        self._check(work.restore(folder, entry, entries, skipped_folder_ids=one.missing))

    def _content(self, entry: LockEntry) -> list[FileContent] | None:
        """Return the files of a lock entry without network access.

        Returns None if the files are quarantined or aren't stored.
        """
        entries = content_as_locked(self.core, entry.name, entry.tree_hash)
        if entries is None:
            with ExitStack() as stack, suppress(RegistryError):
                entries = LockedOrigins(self.core, stack, offline=True).files(entry)
        return entries

    def _check(self, told: InstallResult) -> None:
        if told.state in {"edited", "failed"}:
            more = f" ({told.reason})" if told.reason else ""
            raise self._refused(f"{told.path} was edited since{more}")

    def _refused(self, reason: str) -> ChangeNotUndone:
        change = self.change
        return ChangeNotUndone(
            kind=change.kind, name=change.name, reason=reason, place=change.folder, revision=None
        )
