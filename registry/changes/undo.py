"""Take back the last change: only one that this user signed, and only while it is still there."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from registry.catalog.copies import copies_of
from registry.catalog.reading import CurrentSkill
from registry.changes import trash
from registry.changes.copied import Which
from registry.changes.history import History
from registry.changes.signed import Seal
from registry.changes.state import StateFolder, is_together, new_numbers
from registry.changes.trashed import Trashed, list_trash
from registry.core import Core
from registry.db.queries.changes import MadeChange, facts_of, is_elsewhere, last_changes
from registry.db.queries.gone import latest_gone
from registry.db.queries.revisions import revisions
from registry.db.queries.skills import StoredSkill, by_place
from registry.db.writes.changes import drop_change, drop_changes
from registry.disk.paths import join
from registry.errors import ChangeNotUndone, NothingToUndo, RegistryError, SkillMissing
from registry.model import Source
from registry.sync.sources import own_sources
from registry.text import quoted


@dataclass(frozen=True, slots=True)
class Undo:
    """The last change, to be shown and then taken back; ``changes`` were made together.

    Of a creation and a restore the skill goes to the trash, of a deletion it comes back, of an
    update every file becomes what it was. The first of the ``changes`` is that of the skill that
    was named, the others are those of its copies.
    """

    core: Core
    changes: Sequence[MadeChange]
    sources: Mapping[str, Source]

    @classmethod
    def of(cls, core: Core, *, after: int = 0) -> Self:
        """Find the last change that this user made here. Raises `NothingToUndo`.

        What can never be taken back is passed over, forgotten, and told as a warning. ``after``:
        what was written down up to the change with this ``id`` is not looked at.
        """
        known = {source.name: source for source in own_sources(core)}
        left = [one for one in _signed(core, known) if one.id > after]
        held = _held(core) if left else {}
        while left:
            some = [one for one in left if is_together(one.number, left[0].number)]
            left = [one for one in left if one not in some]
            found = cls(core, some, known)
            lost = {one: reason for one in some if (reason := found._never(one, held)) is not None}
            for one, reason in lost.items():
                core.warn(
                    f"The {one.kind} of {quoted(one.name)} ({one.made_at}) can never be taken "
                    f"back, and is forgotten: {reason}."
                )
            if lost:
                cls(core, list(lost), known).forget()
            if some := [one for one in some if one not in lost]:
                return cls(core, some, known)
        raise NothingToUndo

    @property
    def change(self) -> MadeChange:
        """The change of the skill that was named."""
        return self.changes[0]

    def forget(self) -> None:
        """Forget the change, which stays made."""
        with self.core.writer.transaction() as connection:
            for one in self.changes:
                drop_change(connection, one)

    def diff(self) -> str:
        """Return what will be different in the files of an updated skill, empty for all else.

        Raises as `carry_out`, where that can be known before.
        """
        if self.change.kind != "update":
            return ""
        history, number = self._updated(self.change)
        return history.diff(history.current.number, number)

    def carry_out(self) -> None:
        """Take the change back, as one change, and forget it.

        Of changes that were made together all are taken back, or none where one is not as it was
        left. Raises `ChangeNotUndone` where a skill is not as the change left it, and what changes
        raise.
        """
        if self.change.kind == "delete":
            self._restore()
        else:
            there = [self._current(one) for one in self.changes]
            which, alone = self._copies(there)
            if self.change.kind == "update":
                found = [self._updated(one) for one in self.changes]
                for place in [0, *alone]:
                    history, number = found[place]
                    history.restore(number, copies=None if place else which)
            else:
                for place in [0, *alone]:
                    trash.delete(self.core, there[place], copies=None if place else which)
        with self.core.writer.transaction() as connection:
            for one in self.changes:
                drop_changes(connection, one)

    def _copies(self, there: Sequence[StoredSkill]) -> tuple[Which | None, list[int]]:
        """Return which copies of the first skill are changed with it, and which of all are none."""
        known = {one.uid for one in copies_of(self.core.reader, there[0])}
        wanted = {one.uid for one in there[1:]} & known
        alone = [place for place, one in enumerate(there) if place and one.uid not in wanted]
        return (lambda one: one.uid in wanted) if wanted else None, alone

    def _restore(self) -> None:
        held = _held(self.core)
        found: list[Trashed] = []
        for one in self.changes:
            if one.uid not in held:
                raise self._refused(one, "the trash holds it no more")
            place = join(self.sources[one.source].path, held[one.uid].folder)
            if os.path.lexists(place):
                raise self._refused(one, f"something is at {place} now")
            found.append(held[one.uid])
        for trashed, number in zip(reversed(found), new_numbers(len(found)), strict=True):
            trash.restore(self.core, trashed, number)

    def _current(self, change: MadeChange) -> StoredSkill:
        """Return the skill as it is, which must be as the change left it."""
        stored = self._there(change)
        if stored is None:
            raise self._refused(change, "it is not there any more")
        if stored.skill.tree_hash != change.after:
            raise self._refused(change, "it was changed since")
        return stored

    def _there(self, change: MadeChange) -> StoredSkill | None:
        """Return the skill as it is; None: it is not where the change left it."""
        stored = by_place(self.core.reader, self.sources[change.source].id, change.folder)
        try:
            if stored is not None:
                stored = CurrentSkill.of_stored(self.core, stored).stored
        except SkillMissing:
            return None
        return stored if stored is not None and stored.uid == change.uid else None

    def _updated(self, change: MadeChange) -> tuple[History, int]:
        """Return the history of an updated skill, and which revision it had before."""
        history = History.of(self.core, self._current(change).place)
        number = self._before(change)
        if number is None:
            raise self._refused(change, "what it was before is not kept")
        return history, number

    def _before(self, change: MadeChange) -> int | None:
        """Return which revision a skill had before a change; None: it is not kept."""
        for one in revisions(self.core.reader, change.uid):
            if one.tree_hash == change.before:
                return one.number
        return None

    def _never(self, change: MadeChange, held: Mapping[str, Trashed]) -> str | None:
        """Return why a change can never be taken back; None: it can, or may once more.

        ``held``: what the trash holds, by uid.

        Where there is no state folder, what the source is on may only be away.
        """
        path = self.sources[change.source].path
        if not _has_state(path):
            return None
        is_held = change.uid in held
        if change.kind == "delete":
            return None if is_held else "the trash holds it no more"
        if change.kind == "update" and self._before(change) is None:
            return "what it was before is not kept"
        is_there = os.path.lexists(join(path, change.folder))
        may_come = is_there or is_elsewhere(self.core.reader, change)
        if change.kind == "update":
            is_gone = is_held or latest_gone(self.core.reader, change.uid) is not None
            may_come = may_come or is_gone or self._is_stored(change)
        return None if may_come else "it is not there any more"

    def _is_stored(self, change: MadeChange) -> bool:
        """Tell whether the skill counts as live, since no sync saw yet that it is gone."""
        stored = by_place(self.core.reader, self.sources[change.source].id, change.folder)
        return stored is not None and stored.uid == change.uid

    def _refused(self, change: MadeChange, reason: str) -> ChangeNotUndone:
        return ChangeNotUndone(
            kind=change.kind,
            name=change.name,
            reason=reason,
            place=f"{change.source}/{change.folder}",
            revision=self._before(change) if change.kind == "update" else None,
        )


def _has_state(path: str) -> bool:
    """Tell whether a source has a state folder that can be used."""
    with suppress(RegistryError):
        state = StateFolder.open(path)
        if state is not None:
            state.close()
            return True
    return False


def _held(core: Core) -> dict[str, Trashed]:
    """Return what the trash holds of each skill (by uid), the last of it."""
    return {one.uid: one for one in reversed(list_trash(core))}


def _signed(core: Core, known: Mapping[str, Source]) -> list[MadeChange]:
    """Return the changes that this user made in known sources, the latest first."""
    found: list[MadeChange] = []
    seals = {name: Seal.known(core, source.path) for name, source in known.items()}
    for change in last_changes(core.reader, core.host):
        seal, facts = seals.get(change.source), facts_of(change)
        if seal is not None and seal.signed("undo", change.number, facts, change.signature):
            found.append(change)
    return found
