"""Undo the last command that changed skills, if this user signed its changes."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

from registry.catalog.copies import copies_of
from registry.catalog.reading import CurrentSkill
from registry.changes import trash
from registry.changes.commit import Which
from registry.changes.history import History
from registry.changes.signer import Signer, new_numbers
from registry.changes.state import StateFolder
from registry.changes.trashed import Trashed, list_trash
from registry.changes.update import Edits, move
from registry.core import Core
from registry.db.read.history import (
    GROUP_DIGITS,
    RecordedChange,
    facts_of,
    last_changes,
    latest_tombstone,
    revisions,
    was_moved,
)
from registry.db.read.skills import StoredSkill, by_place
from registry.db.write.history import drop_change, drop_changes
from registry.disk.paths import join
from registry.errors import ChangeNotUndone, NothingToUndo, RegistryError, SkillMissing
from registry.model import Source
from registry.sync.sources import own_sources
from registry.text import quoted

MAX_NAMED: Final = 10
"""Maximum number of skills in a warning."""


@dataclass(frozen=True, slots=True)
class Undo:
    """The changes of one command, the latest first, with methods that show and undo them."""

    core: Core
    changes: Sequence[RecordedChange]
    sources: Mapping[str, Source]

    @classmethod
    def of(cls, core: Core, *, after: int = 0) -> Self:
        """Return this user's last command that changed skills. Raises `NothingToUndo`.

        Deletes the records of changes that can never be undone, with a warning. If ``after`` is
        given, consider only changes with a higher ``id``.
        """
        while (found := next(iter(cls.all_of(core, after=after)), None)) is not None:
            lost = found.lost()
            for one, reason in lost.items():
                core.warn(
                    f"Can't undo the {one.kind} of {quoted(one.name)} ({one.made_at}): {reason}. "
                    "It is no longer listed."
                )
            if not lost:
                return found
            cls(core, list(lost), found.sources).forget()
        raise NothingToUndo

    @classmethod
    def all_of(cls, core: Core, *, after: int = 0) -> list[Self]:
        """Return this user's commands with an id above ``after``, the latest first.

        This method doesn't read the disk.
        """
        known = {source.name: source for source in own_sources(core)}
        commands: dict[str, list[RecordedChange]] = {}
        for one in _signed(core, known):
            if one.id > after:
                commands.setdefault(one.command or one.number[:GROUP_DIGITS], []).append(one)
        return [cls(core, some, known) for some in commands.values()]

    @property
    def change(self) -> RecordedChange:
        """The change of the skill that the user named first."""
        return self.steps[-1][0]

    @property
    def steps(self) -> list[list[RecordedChange]]:
        """The changes in groups, the latest first.

        A group has the changes of a skill and of its copies that changed together with it.
        """
        found: dict[str, list[RecordedChange]] = {}
        for one in self.changes:
            found.setdefault(one.number[:GROUP_DIGITS], []).append(one)
        return list(found.values())

    def lost(self) -> dict[RecordedChange, str]:
        """Return the changes that can never be undone, each with the reason."""
        in_trash = _trash_by_uid(self.core)
        return {one: why for one in self.changes if (why := self._never(one, in_trash))}

    def forget(self) -> None:
        """Delete the records of these changes without undoing the changes."""
        with self.core.writer.transaction() as connection:
            for one in self.changes:
                drop_change(connection, one)

    def diff(self) -> str:
        """Return a unified diff from the updated skills to their earlier files.

        The skills are in the order in which the command changed them. Returns "" if the command
        updated no skill. Raises the errors of `carry_out`.
        """
        self._check()
        seen: set[str] = set()
        found: list[tuple[History, int]] = []
        for step in self.steps:  # the latest first
            # If the command changed a skill twice, the disk has only the later version.
            if step[0].kind == "update" and step[0].uid not in seen:
                found.append(self._updated(step[0]))
            seen |= {one.uid for one in step}
        named = len(found) > 1
        return "".join(
            history.diff(history.current.number, number, named=named)
            for history, number in reversed(found)
        )

    def carry_out(self) -> None:
        """Undo all changes, the latest first, and delete their records.

        If a skill has changed since the command, raises `ChangeNotUndone` and undoes nothing. If
        the undo of one change fails, this method warns, and the changes that are already undone
        stay undone.
        """
        self._check()
        done: list[RecordedChange] = []
        try:
            for step in self.steps:
                self._undo_step(step)
                with self.core.writer.transaction() as connection:
                    for one in step:
                        drop_changes(connection, one)
                done.append(step[0])
        finally:
            if 0 < len(done) < len(self.steps):
                names = ", ".join(quoted(one.name) for one in done[:MAX_NAMED])
                left = len(self.steps) - len(done)
                self.core.warn(f"Undone: {names}. {left} more changes could not be undone.")

    def _check(self) -> None:
        """Raise `ChangeNotUndone` if a skill was changed after the command."""
        in_trash: Mapping[str, Trashed] | None = None
        seen: set[str] = set()
        for one in self.changes:
            # Check only the last change of the command to each skill.
            if one.uid in seen:
                continue
            seen.add(one.uid)
            if one.kind == "delete":
                in_trash = _trash_by_uid(self.core) if in_trash is None else in_trash
                self._trashed(one, in_trash)
            elif one.kind == "update":
                self._updated(one)
            elif one.kind == "rename":
                self._renamed(one)
            else:
                self._current(one)

    def _undo_step(self, step: Sequence[RecordedChange]) -> None:
        """Undo the change of a skill and of the copies that changed together with it."""
        if step[0].kind == "delete":
            self._restore(step)
            return
        if step[0].kind == "rename":
            move(self.core, *self._renamed(step[0]))
            return
        there = [self._current(one) for one in step]
        which, alone = self._copies(there)
        if step[0].kind == "update":
            found = [self._updated(one) for one in step]
            for place in [0, *alone]:
                history, number = found[place]
                history.restore(number, copies=None if place else which)
        else:
            for place in [0, *alone]:
                trash.delete(self.core, there[place], copies=None if place else which)
            for one in there:
                _remove_empty(one.root, one.folder)

    def _copies(self, there: Sequence[StoredSkill]) -> tuple[Which | None, list[int]]:
        """Return how to choose the copies of the first skill, and the skills to change separately.

        The chosen copies change together with the first skill. If a skill is no longer a copy of
        the first skill, it must change separately. Such skills are returned as indexes in
        ``there``.
        """
        known = {one.uid for one in copies_of(self.core.reader, there[0])}
        wanted = {one.uid for one in there[1:]} & known
        alone = [place for place, one in enumerate(there) if place and one.uid not in wanted]
        return (lambda one: one.uid in wanted) if wanted else None, alone

    def _restore(self, step: Sequence[RecordedChange]) -> None:
        in_trash = _trash_by_uid(self.core)
        found = [self._trashed(one, in_trash) for one in step]
        for trashed, number in zip(reversed(found), new_numbers(len(found)), strict=True):
            trash.restore(self.core, trashed, number)

    def _trashed(self, change: RecordedChange, in_trash: Mapping[str, Trashed]) -> Trashed:
        """Return the deleted skill in the trash.

        Raises `ChangeNotUndone` if the skill isn't in the trash or its former folder exists again.
        """
        if change.uid not in in_trash:
            raise self._refused(change, "it is no longer in the trash")
        place = join(self.sources[change.source].path, in_trash[change.uid].folder)
        if os.path.lexists(place):
            raise self._refused(change, f"{place} exists again")
        return in_trash[change.uid]

    def _current(self, change: RecordedChange) -> StoredSkill:
        """Return the changed skill. Raises `ChangeNotUndone` if it was changed again or removed."""
        stored = self._there(change)
        if stored is None:
            raise self._refused(change, "it no longer exists")
        if stored.skill.tree_hash != change.after:
            raise self._refused(change, "it was changed since")
        return stored

    def _there(self, change: RecordedChange) -> StoredSkill | None:
        """Return the changed skill; None if it isn't in the folder that the change recorded."""
        stored = by_place(self.core.reader, self.sources[change.source].id, change.folder)
        try:
            if stored is not None:
                stored = CurrentSkill.of_stored(self.core, stored).stored
        except SkillMissing:
            return None
        return stored if stored is not None and stored.uid == change.uid else None

    def _updated(self, change: RecordedChange) -> tuple[History, int]:
        """Return the history of an updated skill, and the number of its revision before the update.

        Raises `ChangeNotUndone`.
        """
        history = History.of(self.core, self._current(change).place)
        number = self._before(change)
        if number is None:
            raise self._refused(change, "its former content is not stored")
        return history, number

    def _renamed(self, change: RecordedChange) -> tuple[StoredSkill, str, Edits]:
        """Return a renamed skill, its former folder, and its SKILL.md from before the rename.

        Raises `ChangeNotUndone`.
        """
        stored = self._current(change)
        folder = json.loads(change.before or "{}")["folder"]
        place = join(self.sources[change.source].path, folder)
        if os.path.lexists(place):
            raise self._refused(change, f"{place} exists again")
        number, history = self._before(change), History.of(self.core, stored.place)
        if number is None or stored.document is None:
            raise self._refused(change, "its former content is not stored")
        return stored, folder, {stored.document: history.read(number)}

    def _before(self, change: RecordedChange) -> int | None:
        """Return the number of the revision that a skill had before a change.

        Returns None if that revision isn't stored.
        """
        before = change.before
        if change.kind == "rename":
            before = json.loads(before or "{}").get("tree_hash")
        for one in revisions(self.core.reader, change.uid):
            if one.tree_hash == before:
                return one.number
        return None

    def _never(self, change: RecordedChange, in_trash: Mapping[str, Trashed]) -> str | None:
        """Return the reason why a change can never be undone; None if an undo may be possible.

        If the disk of the source isn't mounted now, an undo may be possible later.
        """
        path = self.sources[change.source].path
        if not _has_state(path):
            return None
        is_in_trash = change.uid in in_trash
        if change.kind == "delete":
            return None if is_in_trash else "it is no longer in the trash"
        if change.kind in {"update", "rename"} and self._before(change) is None:
            return "its former content is not stored"
        is_there = os.path.lexists(join(path, change.folder))
        may_come = is_there or was_moved(self.core.reader, change)
        if change.kind in {"update", "rename"}:
            stored = by_place(self.core.reader, self.sources[change.source].id, change.folder)
            # The folder is missing, but no sync has noticed this yet.
            is_stored = stored is not None and stored.uid == change.uid
            is_gone = is_in_trash or latest_tombstone(self.core.reader, change.uid) is not None
            may_come = may_come or is_gone or is_stored
        return None if may_come else "it no longer exists"

    def _refused(self, change: RecordedChange, reason: str) -> ChangeNotUndone:
        return ChangeNotUndone(
            kind=change.kind,
            name=change.name,
            reason=reason,
            place=f"{change.source}/{change.folder}",
            revision=self._before(change) if change.kind == "update" else None,
        )


def _remove_empty(root: str, folder: str) -> None:
    with suppress(OSError):
        while folder := os.path.dirname(folder):
            os.rmdir(join(root, folder))


def _has_state(path: str) -> bool:
    with suppress(RegistryError):
        state = StateFolder.open(path)
        if state is not None:
            state.close()
            return True
    return False


def _trash_by_uid(core: Core) -> dict[str, Trashed]:
    """Return the skills in the trash by uid.

    If the trash has several skills with the same uid, the last deleted one is returned.
    """
    return {one.uid: one for one in reversed(list_trash(core))}


def _signed(core: Core, known: Mapping[str, Source]) -> list[RecordedChange]:
    """Return the changes that this user signed in known sources, the latest first."""
    found: list[RecordedChange] = []
    signers = {name: Signer.known(core, source.path) for name, source in known.items()}
    for change in last_changes(core.reader, core.host):
        signer, facts = signers.get(change.source), facts_of(change)
        if signer is not None and signer.signed("undo", change.number, facts, change.signature):
            found.append(change)
    return found
