"""Take back the last change: only one that this user signed, and only while it is still there."""

from dataclasses import dataclass
from typing import Self

from registry.catalog.reading import CurrentSkill
from registry.changes import trash
from registry.changes.history import History
from registry.changes.signed import Seal
from registry.changes.trash import list_trash
from registry.core import Core
from registry.db.queries.changes import MadeChange, facts_of, last_changes
from registry.db.queries.skills import StoredSkill, by_place
from registry.db.writes.changes import drop_changes
from registry.errors import ChangeNotUndone, NothingToUndo, SkillMissing
from registry.model import Source
from registry.sync.sources import own_sources


@dataclass(frozen=True, slots=True)
class Undo:
    """The last change, to be shown and then taken back.

    Of a creation and a restore the skill goes to the trash, of a deletion it comes back, of an
    update every file becomes what it was.
    """

    core: Core
    change: MadeChange
    source: Source

    @classmethod
    def of(cls, core: Core) -> Self:
        """Find the last change that this user made here. Raises `NothingToUndo`."""
        known = {source.name: source for source in own_sources(core)}
        seals: dict[str, Seal | None] = {}
        for change in last_changes(core.reader, core.host):
            source = known.get(change.source)
            if source is None:
                continue
            if source.name not in seals:
                seals[source.name] = Seal.known(core, source)
            seal, facts = seals[source.name], facts_of(change)
            if seal is not None and seal.signed("undo", change.number, facts, change.signature):
                return cls(core, change, source)
        raise NothingToUndo

    def diff(self) -> str:
        """Return what will be different in the files of an updated skill, empty for all else.

        Raises as `carry_out`, where that can be known before.
        """
        if self.change.kind != "update":
            return ""
        history, number = self._updated()
        return history.diff(history.current.number, number)

    def carry_out(self) -> None:
        """Take the change back, as one change, and forget it.

        Raises `ChangeNotUndone` where the skill is not as the change left it, and what changes
        raise.
        """
        if self.change.kind == "delete":
            for trashed in list_trash(self.core):
                if trashed.uid == self.change.uid:
                    trash.restore(self.core, trashed)
                    break
            else:
                raise self._refused("the trash holds it no more")
        elif self.change.kind == "update":
            history, number = self._updated()
            history.restore(number)
        else:
            trash.delete(self.core, self._current())
        with self.core.writer.transaction() as connection:
            drop_changes(connection, self.change)

    def _current(self) -> StoredSkill:
        """Return the skill as it is, which must be as the change left it."""
        stored = by_place(self.core.reader, self.source.id, self.change.folder)
        try:
            if stored is not None:
                stored = CurrentSkill.of_stored(self.core, stored).stored
        except SkillMissing:
            stored = None
        if stored is None or stored.uid != self.change.uid:
            raise self._refused("it is not there any more")
        if stored.skill.tree_hash != self.change.after:
            raise self._refused("it was changed since")
        return stored

    def _updated(self) -> tuple[History, int]:
        """Return the history of an updated skill, and which revision it had before."""
        history = History.of(self.core, self._current().place)
        for one in history.revisions:
            if one.tree_hash == self.change.before:
                return history, one.number
        raise self._refused("what it was before is not kept")

    def _refused(self, reason: str) -> ChangeNotUndone:
        return ChangeNotUndone(kind=self.change.kind, name=self.change.name, reason=reason)
