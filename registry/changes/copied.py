"""Copies of a skill that are changed together with it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from registry.catalog.copies import copies_of
from registry.changes.context import ChangeContext
from registry.changes.locking import under_locks
from registry.changes.protocol import carry_out_together
from registry.changes.state import new_numbers
from registry.core import Core
from registry.db.read.journal import JournalEntry
from registry.db.read.skills import StoredSkill
from registry.disk.paths import ROOT, is_below
from registry.errors import ChangeRefused, UsageProblem
from registry.sync.sources import is_here

Which: TypeAlias = Callable[[StoredSkill], bool]
"""Tells which of a skill's copies are changed with it."""

MAX_TOGETHER: Final = 1000
"""Skills that are changed together."""


def with_copies(
    core: Core, stored: StoredSkill, which: Which | None, *, force: bool
) -> list[StoredSkill]:
    """Return those of a skill's copies on this machine that are changed with it, and itself last.

    Raises `UsageProblem` with ``force``: an edit made by hand to a copy makes it none. Raises
    `ChangeRefused` where one lies in another.
    """
    if which is None:
        return [stored]
    if force:
        message = "a change that is forced is one of a single skill: leave its copies out"
        raise UsageProblem(message=message)
    found = [one for one in copies_of(core.reader, stored) if which(one)]
    group = [*(one for one in found if is_here(core, one.host, one.root)), stored]
    if len(group) > 1:
        _check_apart(group)
    return group


def _check_apart(group: Sequence[StoredSkill]) -> None:
    if len(group) > MAX_TOGETHER:
        reason = f"these are more than {MAX_TOGETHER:,} copies; change them one by one"
        raise ChangeRefused(path=group[-1].path, reason=reason)
    for one in group:
        if one.folder == ROOT:
            reason = "it is the source's root, which can't be changed together with its copies"
            raise ChangeRefused(path=one.root, reason=reason)
        for other in group:
            if other is not one and is_below(other.path, one.path):
                reason = f"a copy lies in it: {other.path}; change them one by one"
                raise ChangeRefused(path=one.path, reason=reason)


def change_together(
    core: Core,
    group: Sequence[StoredSkill],
    stage: Callable[[ChangeContext, StoredSkill, str], JournalEntry],
) -> list[StoredSkill | None]:
    """Stage a change of each skill and carry all out; raises as `protocol.carry_out_together`.

    ``stage`` is given the number of the change; that of the last skill is the last one.
    """

    def change(contexts: Mapping[int, ChangeContext]) -> list[StoredSkill | None]:
        numbered = zip(group, new_numbers(len(group)), strict=True)
        homes = [(contexts[one.source_id], one, number) for one, number in numbered]
        staged = [(home, stage(home, one, number)) for home, one, number in homes]
        return carry_out_together(staged, [one.skill.ref for one in group])

    return under_locks(core, {one.source_id: one.root for one in group}, change)
