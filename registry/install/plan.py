"""Compare installed skills with the lock file, and plan and make the changes of a pull."""

import errno
import os
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import cached_property
from stat import S_ISDIR
from typing import Final

from registry.core import Core
from registry.db.read.skills import quarantined
from registry.disk.agents import agents
from registry.disk.atomic import (
    Place,
    digest_of,
    digest_of_link,
    missing_folders,
    open_named,
    remove_tree,
)
from registry.disk.beneath import Folder
from registry.disk.links import real_path
from registry.errors import DatabaseProblem, PullRefused, RegistryError, UsageProblem
from registry.install import lockfile, staging
from registry.install.content import (
    FileContent,
    content_as_locked,
    content_of,
    diff_summary,
    edit_summary,
    same_files,
    tree_hash_at,
)
from registry.install.lockfile import LockEntry, Mode
from registry.install.provenance import Provenance, is_taken, lock_entry, overlap_reason
from registry.install.pull_records import InstallRecord, keep_edit
from registry.install.staging import (
    GroupSwap,
    TargetChange,
    exclusive_lock,
    staging_dirs,
    stale_drafts,
)
from registry.install.targets import (
    LOCK_DIR,
    PLAIN,
    InstallOptions,
    InstallPath,
    InstallResult,
    InstallTarget,
    State,
)
from registry.model import Skill
from registry.sync.installed import forget_removed
from registry.sync.sources import own_sources


def known_digests(entry: LockEntry, one: InstallPath) -> set[str]:
    """Return the digests that a folder or link at a path may have if a pull installed it."""
    return {entry.digest, *({digest_of_link(one.link)} if one.link else ())}


def _missing(places: Sequence[InstallPath], folder: str) -> list[str]:
    """Return the folder ids of the install paths that don't exist on disk."""
    gone = (one for one in places if not os.path.lexists(os.path.join(one.path, folder)))
    return list(dict.fromkeys(one.folder_id for one in gone))


_UNWRITABLE_NAME: Final = {errno.EILSEQ, errno.EINVAL, errno.ENAMETOOLONG}
"""Error numbers of file systems that can't store certain file names."""

_NOT_SO: Final = "the registry does not have this version"

EQUAL: Final = "its files are equal, but it was not installed by pull"
"""Reason in a result: the folder has equal files.

The folder stays unchanged, because no pull created it.
"""

FOREIGN: Final = "it was not installed by pull"

ADOPTED: Final = "its files are equal, and it counts as installed by pull now"
"""Reason in a result of ``--adopt``: a folder with equal files is in the lock file now.

The folder itself is unchanged.
"""

KEPT: Final = "your edits stay, and count as edits of this version"
"""Reason in a result: an edited skill keeps its edits, because of the option ``keep``."""

BEHIND_TOO: Final = "an update is available"
"""Added to the reason if there is a newer version of an edited skill."""

QUARANTINED: Final = "it has security errors and is quarantined now"
UPDATE_QUARANTINED: Final = "the update has security errors and is quarantined"

_ELSEWHERE: Final = "It was pulled {there}: remove it first."


class Edited(Exception):
    """The folder at ``path`` has files that no pull wrote; ``reason`` tells how they differ."""

    def __init__(self, path: str, reason: str | None = None) -> None:
        super().__init__(path)
        self.path = path
        self.reason = reason


class InstallPlan:
    """Plans changes to the installed skills of a target, without writing.

    ``anchor`` is the folder of the lock file, if it exists.
    """

    def __init__(
        self,
        core: Core,
        stack: ExitStack,
        target: InstallTarget,
        anchor: Folder | None = None,
        options: InstallOptions = PLAIN,
    ) -> None:
        self._core = core
        self._stack = stack
        self._target = target
        self._options = options
        self._provenance = Provenance(core)
        self._own = {source.name for source in own_sources(core)}
        self._bases: dict[tuple[tuple[str, ...], Mode], list[InstallPath]] = {}
        self.locked = lockfile.read_lock(target.path)
        if anchor is None and os.path.isdir(target.path):
            anchor = stack.enter_context(open_named(target.path))
        self._opened = {} if anchor is None else {LOCK_DIR: anchor}
        self._by_path = {} if anchor is None else {real_path(target.path): anchor}

    def path(self, folder: str) -> str:
        """Return the path of the folder of a skill in the lock file, for messages."""
        return self._known_paths(self.locked[folder], folder)[0].path_of(folder)

    def _known_paths(self, entry: LockEntry | None, folder: str) -> list[InstallPath]:
        if entry is None:
            return self._paths((), "copy", folder)
        return self._paths(entry.agents, entry.mode, folder)

    def _paths(self, ids: tuple[str, ...], mode: Mode, folder: str) -> list[InstallPath]:
        """Return `InstallTarget.install_paths`; compute it once for each set of agents and mode."""
        if (ids, mode) not in self._bases:
            self._bases[ids, mode] = self._target.install_paths(ids, mode, "")
        bases = self._bases[ids, mode]
        return [one._replace(link=one.link + folder) if one.link else one for one in bases]

    def found(self, one: InstallPath, folder: str) -> str | None:
        """Return the digest of a skill's folder or link at an install path.

        Returns None if the path doesn't exist.
        """
        if not os.path.lexists(os.path.join(one.path, folder)):
            return None  # to open the parent folder would create it
        try:
            return digest_of(Place(self.folder_at(one.folder_id), folder))
        except FileNotFoundError:
            return None

    def folder_at(self, folder_id: str) -> Folder:
        """Open the folder with an id; it stays open until the plan ends. Raises OSError."""
        if folder_id not in self._opened:
            real = real_path(self._target.path_of(folder_id))
            if real not in self._by_path:
                self._by_path[real] = self._open(folder_id)
            self._opened[folder_id] = self._by_path[real]
        return self._opened[folder_id]

    def _open(self, folder_id: str) -> Folder:
        anchor = self._opened.get(LOCK_DIR)
        return self._stack.enter_context(self._target.open(folder_id, anchor, make=False))

    def _holds_files(self, known: LockEntry, folder: str, one: InstallPath) -> bool:
        """Tell whether an install path has the files that a pull wrote, and isn't a link."""
        known_paths = self._known_paths(known, folder)
        were_files = {each.folder_id for each in known_paths if not each.is_link}
        mode = self.folder_at(one.folder_id).lstat(folder).st_mode
        return one.folder_id in were_files and S_ISDIR(mode)

    def pull(
        self,
        folder: str,
        skill: Skill,
        ids: Sequence[str] = (),
        mode: Mode | None = None,
        entries: Sequence[FileContent] | None = None,
    ) -> InstallResult:
        """Install a skill for these agents, and update it for the agents that have it already.

        Raises `DatabaseProblem`, OSError.
        """
        known = self.locked.get(folder)
        path = os.path.join(self._target.path, folder)
        try:
            if known is not None and bool(known.agents) != bool(ids):
                there = "for agents" if known.agents else f"into {self._target.path} itself"
                return InstallResult(skill.ref, path, "failed", _ELSEWHERE.format(there=there))
            ids = self._agents_without_it(skill, sorted({*ids, *(known.agents if known else ())}))
            if not ids:
                mode = "copy"
            mode = mode or self._mode(known, ids)
            install_paths = self._paths(tuple(ids), mode, folder)
            path = install_paths[0].path_of(folder)
            if reason := self._refusal(known, skill, install_paths):
                return InstallResult(skill.ref, path, "failed", reason)
            entries = content_of(self._core, skill) if entries is None else entries
            entry = self._with_known_origin(known, lock_entry(skill, entries, tuple(ids), mode))
            state, lost = self._install(folder, entry, entries, install_paths)
        except (DatabaseProblem, PullRefused):
            raise
        except Edited as edited:
            return self._result_of_edited(folder, skill, entry, edited)
        except RegistryError as error:
            return InstallResult(skill.ref, path, "failed", str(error))
        except OSError as error:
            if error.errno not in _UNWRITABLE_NAME:
                raise
            return InstallResult(skill.ref, path, "failed", error.strerror)
        return InstallResult(skill.ref, path, state, lost)

    def _result_of_edited(
        self, folder: str, skill: Skill, entry: LockEntry, edited: Edited
    ) -> InstallResult:
        """Return the result for a folder that stays unchanged because it was edited.

        ``entry`` is the new entry of the lock file.
        """
        known, reason = self.locked.get(folder), edited.reason
        is_edit = known is not None and reason != EQUAL
        if is_edit and self._options.keep:
            self.note(folder, replace(entry, digest=""))
            return InstallResult(skill.ref, edited.path, "unchanged", KEPT)
        if reason and is_edit and known and known.tree_hash != skill.tree_hash:
            reason = f"{reason}; {BEHIND_TOO}"
        return InstallResult(skill.ref, edited.path, "edited", reason)

    def restore(
        self,
        folder: str,
        entry: LockEntry,
        entries: Sequence[FileContent] | None,
        reason: str | None = None,
        *,
        skipped_folder_ids: Collection[str] = (),
    ) -> InstallResult:
        """Restore the files of a lock entry, except in the folders with ``skipped_folder_ids``.

        In those folders, the installed copy or link is removed. If ``entries`` is None, the files
        aren't available, and ``reason`` tells why.
        """
        install_paths = self._known_paths(entry, folder)
        path = install_paths[0].path_of(folder)
        if entries is None:
            return InstallResult(entry.ref, path, "failed", reason or _NOT_SO)
        try:
            wanted = [one for one in install_paths if one.folder_id not in skipped_folder_ids]
            state, lost = self._install(folder, entry, entries, wanted)
        except Edited as edited:
            return InstallResult(entry.ref, edited.path, "edited", edited.reason)
        return InstallResult(entry.ref, path, state, lost)

    def is_as_locked(self, folder: str) -> bool:
        """Hash a skill's files at all install paths, and tell whether they match the lock file."""
        entry = self.locked[folder]
        for one in self._known_paths(entry, folder):
            found = self.found(one, folder)
            if found is None or (one.link and found == digest_of_link(one.link)):
                if found is None:
                    return False
                continue
            if tree_hash_at(Place(self.folder_at(one.folder_id), folder)) != entry.tree_hash:
                return False
        return True

    def check(self, folder: str, skill: Skill | None) -> InstallResult:
        """Compare the installed copy of a skill with the skill's current hashes in the registry.

        The method doesn't read the files of the skill. If ``skill`` is None, compare the installed
        copy only with the lock file.
        """
        entry = self.locked.get(folder)
        install_paths = self._known_paths(entry, folder)
        ref = skill.ref if skill is not None else self.locked[folder].ref
        states: set[State] = set()
        told = []
        for one in install_paths:
            found = self.found(one, folder)
            if found is None:
                states.add("missing")
            elif entry is None or found not in known_digests(entry, one):
                states.add("edited")
                told += [] if entry is None else [self._edits(folder, entry, one)]
        path = install_paths[0].path_of(folder)
        is_behind = entry is not None and skill is not None and entry.tree_hash != skill.tree_hash
        is_held = skill is not None and (skill.source, skill.folder) in self._quarantined
        if is_behind and not states:
            return InstallResult(ref, path, "behind", UPDATE_QUARANTINED if is_held else None)
        if is_held and not states:
            return InstallResult(ref, path, "failed", QUARANTINED)
        if told and is_behind:
            told.append(BEHIND_TOO)
        if entry is None and "edited" in states:
            told.append(FOREIGN)
        state: State = "edited" if "edited" in states else "missing" if states else "unchanged"
        return InstallResult(ref, path, state, "; ".join(told) or None)

    def compare(self, folder: str, skill: Skill | None) -> InstallResult:
        """Compare the installed copy of a lock entry with the registry's skill.

        ``skill`` is None if the registry doesn't have the skill.
        """
        entry = self.locked[folder]
        if skill is not None:
            return self.check(folder, skill)
        reason = self._provenance.reason(entry)
        if self._provenance.is_strange(entry):
            told = self.check(folder, None)
            return replace(told, reason=told.reason or reason)
        place = f"{entry.source}/{entry.folder}" if entry.source else entry.name
        return InstallResult(place, self.path(folder), "gone", reason)

    @cached_property
    def _quarantined(self) -> Collection[tuple[str, str]]:
        return quarantined(self._core.reader)

    def remove(self, folder: str, ids: Collection[str] = ()) -> InstallResult:
        """Remove the folders and links of an installed skill, except edited folders.

        If there are ``ids``, remove it only for these agents; other agents keep it. Raises
        `UsageProblem` if the skill isn't installed for one of them, or if another agent reads the
        same folder.
        """
        entry = self.locked[folder]
        now = self.entry_without(folder, ids) if ids else None
        stay = [] if now is None else self._known_paths(now, folder)
        install_paths = self._known_paths(entry, folder)
        gone = [one for one in install_paths if one.path not in {each.path for each in stay}]
        path = (gone or install_paths)[0].path_of(folder)
        parts = []
        lost = []
        edits: dict[str, str] = {}
        for one in gone:
            found = self.found(one, folder)
            if found is not None and found not in known_digests(entry, one):
                told = self._edits(folder, entry, one)
                if not self._options.force:
                    return InstallResult(entry.ref, one.path_of(folder), "edited", told)
                lost.append(told)
                edits[one.folder_id] = found
            if found is not None:
                parts.append(TargetChange(one.folder_id, found, None))
        entries: Sequence[FileContent] | None = ()
        for one in stay:  # a link to a folder that is removed becomes a copy
            found = self.found(one, folder)
            if not one.is_link and one.link and found == digest_of_link(one.link):
                entries = content_as_locked(self._core, entry.name, entry.tree_hash)
                parts.append(TargetChange(one.folder_id, found, ""))
        if entries is None:
            return InstallResult(entry.ref, path, "failed", _NOT_SO)
        edits = self._keep_edits(folder, edits)
        missing = _missing(install_paths, folder)
        if not parts:
            self.note(folder, now)
        elif not self._swap_all(folder, parts, entries, now):
            return InstallResult(entry.ref, path, "edited")
        self._record_replaced(folder, entry, edits, missing, is_kept=len(lost) == len(edits))
        return InstallResult(entry.ref, path, "removed", "; ".join(lost) or None)

    def entry_without(self, folder: str, ids: Collection[str]) -> LockEntry | None:
        """Return the lock entry of a skill without these agents; None if no other agent has it.

        Raises the errors of `remove`.
        """
        entry = self.locked[folder]
        names = {one.id: one.name for one in agents().values()}
        if strange := [names[one] for one in ids if one not in entry.agents]:
            have = ", ".join(names[one] for one in entry.agents)
            where = f"; it is installed for {have}" if have else ""
            message = f"{entry.name} is not installed for {', '.join(strange)}{where}"
            raise UsageProblem(message=message)
        left = tuple(one for one in entry.agents if one not in ids)
        if not left:
            return None
        folder_ids = self._target.folder_ids(ids)
        for folder_id in folder_ids:
            if sharing := [one for one in left if self._target.folder_ids([one]) == [folder_id]]:
                there = [one for one in ids if self._target.folder_ids([one]) == [folder_id]]
                together = [*there, *sharing]
                also, reading = self._also_read(entry, there, together)
                everywhere = ["--global"] if self._target.is_global else []
                every = [f"--agent={one}" for one in dict.fromkeys([*ids, *sharing, *reading])]
                words = ["skill-registry", "pull", *everywhere, "--remove", folder, *every]
                message = (
                    f"{' and '.join(names[one] for one in together)} read the same folder, "
                    f"{folder_id}, so they have {entry.name} together. {also}To remove it for "
                    f"{'all' if together[2:] or reading else 'both'} of them, run: "
                    f"{shlex.join(words)}"
                )
                raise UsageProblem(message=message)
        is_copy = self._target.shared in folder_ids or self._target.usual_mode(left) == "copy"
        return replace(entry, agents=left, mode="copy" if is_copy else entry.mode)

    def _also_read(
        self, entry: LockEntry, ids: Collection[str], skipped: Collection[str]
    ) -> tuple[str, list[str]]:
        """Return which other agents have the skill in a folder that the agents ``ids`` also read.

        Return sentences and the ids of the other agents. Leave out the agents ``skipped``.
        """
        told, found = "", []
        for one in (agents()[each] for each in ids):
            places = one.personal_places if self._target.is_global else one.project_places
            for other in entry.agents:
                for folder_id in self._target.folder_ids([other]) if other not in skipped else ():
                    if folder_id in places:
                        found.append(other)
                        told += (
                            f"{one.name} also reads {folder_id}, so it keeps {entry.name} as long "
                            f"as {agents()[other].name} has it. "
                        )
        return told, found

    def begin(self) -> None:
        """Add the changes on disk of an interrupted pull to the lock entries.

        The interrupted pull may not have written them into the lock file.
        """
        anchor = self._opened.get(LOCK_DIR)
        if anchor is None:
            return
        for name in staging_dirs(anchor):
            group = None
            # If a folder is missing or can't be opened, ignore the unfinished change in that
            # folder.
            with suppress(OSError, PullRefused):
                known = self._target.known_folder_ids()
                group = GroupSwap.found(anchor, name, known, self.folder_at)
            if group is not None and group.is_decided():
                self.note(group.folder, group.entry())

    def _swap_all(
        self,
        folder: str,
        parts: Sequence[TargetChange],
        entries: Sequence[FileContent],
        entry: LockEntry | None,
        *,
        is_edit: bool = False,
    ) -> bool:
        """Change all install paths of a skill, or none of them.

        Returns False if another process changed one of the paths first. ``is_edit`` is True if the
        new files aren't those of the lock entry.
        """
        del parts, entries, is_edit
        self.note(folder, entry)
        return True

    def _record_replaced(
        self,
        folder: str,
        entry: LockEntry | None,
        edits: Mapping[str, str],
        missing: Sequence[str],
        *,
        is_kept: bool,
    ) -> None:
        """Record the lock entry from before a change for `InstallRecord`; None if there was none.

        Call this method after the change of the lock entry.
        """

    def _keep_edits(self, folder: str, edits: dict[str, str]) -> dict[str, str]:
        """Copy the edits that the pull will replace; return the copies that `undo` can restore."""
        del folder
        return edits

    def put_edit(self, folder: str, folder_id: str, entries: Sequence[FileContent]) -> None:
        """Restore an edit that a pull replaced; the lock entry stays unchanged."""
        path = os.path.join(self._target.path_of(folder_id), folder)
        is_there = os.path.lexists(path)
        base = digest_of(Place(self.folder_at(folder_id), folder)) if is_there else None
        part = TargetChange(folder_id, base, "")
        if not self._swap_all(folder, [part], entries, self.locked.get(folder), is_edit=True):
            raise Edited(path)

    def note(self, folder: str, entry: LockEntry | None) -> None:
        """Set the lock entry of a folder; if ``entry`` is None, remove the lock entry."""
        if entry is None:
            self.locked.pop(folder, None)
        else:
            self.locked[folder] = entry

    def _refusal(
        self, known: LockEntry | None, skill: Skill, install_paths: Sequence[InstallPath]
    ) -> str | None:
        if skill.source in self._own and (
            reason := overlap_reason(skill, [one.path for one in install_paths])
        ):
            return reason
        if reason := self._provenance.unfetched(skill):
            return reason
        return None if self._options.force else is_taken(self._core, known, skill)

    def _agents_without_it(self, skill: Skill, ids: list[str]) -> list[str]:
        """Return the agents that don't read the skill's own folder.

        If all agents read that folder, return ``ids``.
        """
        if skill.source not in self._own:
            return ids
        folders = {one: [each.path for each in self._paths((one,), "copy", "")] for one in ids}
        return [one for one in ids if not overlap_reason(skill, folders[one])] or ids

    def _mode(self, known: LockEntry | None, ids: Sequence[str]) -> Mode:
        """Return the default mode; for an installed skill, this is its mode.

        A skill in the shared folder gets no second copy in the folder of another agent.
        """
        if known is None or self._target.folder_ids(known.agents) == [self._target.shared]:
            return self._target.usual_mode(ids)
        return known.mode

    def _edits(self, folder: str, known: LockEntry, one: InstallPath) -> str:
        return edit_summary(self._core, Place(self.folder_at(one.folder_id), folder), known)

    def _install(
        self,
        folder: str,
        entry: LockEntry,
        entries: Sequence[FileContent],
        install_paths: Sequence[InstallPath],
    ) -> tuple[State, str | None]:
        """Install a skill; return its new state, and a summary of the replaced edits."""
        known = self.locked.get(folder)
        parts: list[TargetChange] = []
        kept = None
        lost: list[str] = []
        edits: dict[str, str] = {}
        for one in install_paths:
            found = self.found(one, folder)
            if one.is_link and found == digest_of_link(one.link):
                continue
            # If the file system can't store links, a path for a link may have files.
            may_be_files = not one.is_link or (known is not None and known.mode == "link")
            if may_be_files and self._has_wanted_files(one, folder, found, entry, entries):
                if not (
                    self._options.adopt
                    or self._options.force
                    or self._was_installed(known, folder, one)
                ):
                    raise Edited(one.path_of(folder), EQUAL)
                kept = found
                continue
            if found is not None and (known is None or found not in known_digests(known, one)):
                place = Place(self.folder_at(one.folder_id), folder)
                was_pulled = known is not None and self._holds_files(known, folder, one)
                told = self._edits(folder, known, one) if known else diff_summary(place, entries)
                if not (self._options.force or (self._options.theirs and was_pulled)):
                    raise Edited(one.path_of(folder), told)
                lost.append(told)
                edits[one.folder_id] = found
            parts.append(TargetChange(one.folder_id, found, one.link if one.is_link else ""))
        entry = replace(entry, digest=kept or entry.digest)
        left = self._unused_paths(known, folder, install_paths) if known else []
        if not parts and not left:
            self.locked[folder] = entry
            if known is not None and known != entry:
                self._record_replaced(folder, known, {}, (), is_kept=True)
            return "unchanged", None if known is not None else ADOPTED
        edits = self._keep_edits(folder, edits)
        places = [*install_paths, *(self._known_paths(known, folder) if known else ())]
        missing = _missing(places, folder)
        if not self._swap_all(folder, [*parts, *left], entries, entry):
            raise Edited(places[0].path_of(folder))
        before = {None, *edits.values()}
        was_free = kept is None and all(part.base in before for part in [*parts, *left])
        is_new = was_free and not edits
        is_kept = len(lost) == len(edits) and (known is not None or was_free)
        self._record_replaced(folder, known, edits, missing, is_kept=is_kept)
        return "added" if is_new else "updated", "; ".join(lost) or None

    def _was_installed(self, known: LockEntry | None, folder: str, one: InstallPath) -> bool:
        return known is not None and any(
            one.path == it.path for it in self._known_paths(known, folder)
        )

    def _has_wanted_files(
        self,
        one: InstallPath,
        folder: str,
        found: str | None,
        entry: LockEntry,
        entries: Sequence[FileContent],
    ) -> bool:
        known = self.locked.get(folder)
        if found is None:
            return False
        if known is not None and found == known.digest:
            return known.tree_hash == entry.tree_hash
        return same_files(entries, Place(self.folder_at(one.folder_id), folder))

    def _unused_paths(
        self, known: LockEntry, folder: str, install_paths: Sequence[InstallPath]
    ) -> list[TargetChange]:
        """Return the changes that remove folders and links which the new plan doesn't use."""
        paths = {one.path for one in install_paths}
        found = []
        for one in self._known_paths(known, folder):
            there = None if one.path in paths else self.found(one, folder)
            if there is not None and there in known_digests(known, one):
                found.append(TargetChange(one.folder_id, there, None))
        return found

    def _with_known_origin(self, known: LockEntry | None, entry: LockEntry) -> LockEntry:
        """Return ``entry`` with the ref and the origin of the known entry, if the files are equal.

        The known origin stays even if its address isn't a source on this machine. The ref depends
        on the other sources of this machine. But users commit lock files, so the ref must not
        change without reason.
        """
        if known is None or known.tree_hash != entry.tree_hash:
            return entry
        if known.origin is not None and entry.origin is None and not self._options.force:
            return replace(known, agents=entry.agents, mode=entry.mode, pin=entry.pin)
        before = known.source, known.folder, known.origin
        is_same = before == (entry.source, entry.folder, entry.origin)
        return replace(entry, ref=known.ref) if is_same else entry


BATCH: Final = 100
"""Number of changed skills after which the lock file is written again.

Until then, only the staging directories (folders with the prepared new state) record the changes.
"""


class InstallTransaction(InstallPlan):
    """An install plan that makes its changes, and locks its folders against other pulls."""

    def __init__(
        self,
        core: Core,
        stack: ExitStack,
        target: InstallTarget,
        anchor: Folder,
        options: InstallOptions,
    ) -> None:
        super().__init__(core, stack, target, anchor, options)
        self._anchor = anchor
        self._written = dict(self.locked)
        self._behind: list[Callable[[], None]] = []
        self.changed: dict[str, InstallRecord] = {}
        """The changes so far, by the folder of the skill."""
        self.made: list[str] = []
        """The created paths that `changed` doesn't contain yet."""
        self._removed: list[str] = []

    def begin(self) -> None:
        """Finish or undo interrupted pulls."""
        self._recover()
        for address in lockfile.has_secrets(self._target.path):
            self._written = {}  # write the lock file again, without the password
            self._core.warn(
                f"{self._target.path}/{lockfile.NAME} held a password or token in '{address}'. "
                "It is removed. Revoke it: old copies of the file still contain it. "
                "Put the new one into ~/.netrc."
            )
        self.flush()

    def flush(self) -> None:
        """Write the lock file, then remove the staging directories of the changes in the file."""
        if self.locked != self._written:
            lockfile.write_lock(self._anchor, self.locked)
            self._written = dict(self.locked)
        while self._behind:
            self._behind.pop()()
        with suppress(RegistryError):  # after this, the next sync finds that they are removed
            forget_removed(self._core, self._removed)
        self._removed.clear()

    def _record_replaced(
        self,
        folder: str,
        entry: LockEntry | None,
        edits: Mapping[str, str],
        missing: Sequence[str],
        *,
        is_kept: bool,
    ) -> None:
        now, made = self.locked.get(folder), tuple(self.made)
        self.changed[folder] = InstallRecord.of(entry, now, edits, missing, made, is_kept=is_kept)
        self.made.clear()

    def _keep_edits(self, folder: str, edits: dict[str, str]) -> dict[str, str]:
        return {
            folder_id: digest
            for folder_id, digest in edits.items()
            if keep_edit(Place(self.folder_at(folder_id), folder), digest)
        }

    def _recover(self) -> None:
        for draft in stale_drafts(self._anchor):
            remove_tree(Place(self._anchor, draft))
        for name in staging_dirs(self._anchor):
            known = self._target.known_folder_ids()
            group = GroupSwap.found(self._anchor, name, known, self.folder_at)
            if group is not None:
                if group.finish():
                    self.note(group.folder, group.entry())
                self._behind.append(group.clear)
            elif staging.record_in(self._anchor, name) is None:  # else it began in another folder
                self._behind.append(lambda name=name: staging.clear(self._anchor, name))  # type: ignore[misc]

    def _swap_all(
        self,
        folder: str,
        parts: Sequence[TargetChange],
        entries: Sequence[FileContent],
        entry: LockEntry | None,
        *,
        is_edit: bool = False,
    ) -> bool:
        opened = {one.folder_id: self.folder_at(one.folder_id) for one in parts}
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
        gone = [self._target.path_of(one.folder_id) for one in parts if one.link is None]
        self._removed += [os.path.join(real_path(path), folder) for path in gone]
        if len(self._behind) >= BATCH:
            self.flush()
        return True

    def _open(self, folder_id: str) -> Folder:
        self.made += missing_folders(real_path(self._target.path_of(folder_id)))
        found = self._stack.enter_context(self._target.open(folder_id, self._anchor, make=True))
        self._stack.enter_context(exclusive_lock(found))
        return found
