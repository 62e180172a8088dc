"""Sources under review: a change through tools or over HTTP becomes a proposal.

A caller that must not change a source under review runs in a `proposing` block. Every function of
this package that begins a change first calls `propose_if_needed`. So no tool can bypass the review.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, Literal, NoReturn, TypeAlias

from registry.changes.trashed import Trashed
from registry.core import Core
from registry.db.read.skills import StoredSkill
from registry.db.read.sources import is_under_review, list_sources
from registry.errors import ChangeRefused
from registry.model import Source

ProposalKind: TypeAlias = Literal["create", "update", "rename", "delete", "restore"]


@dataclass(frozen=True, slots=True)
class Intent:
    """A change that a tool or a request wants to make.

    ``folder`` is the skill's folder after the change, and ``base`` is the version before the
    change. ``edits`` has the new bytes of changed files by path, or None for removed files; for a
    new skill, it has all files. ``trashed`` is the deleted skill that a restore takes from the
    trash.
    """

    kind: ProposalKind
    name: str
    folder: str
    base: StoredSkill | None = None
    uid: str | None = None
    edits: Mapping[str, bytes | None] = field(default_factory=dict)
    executable: Mapping[str, bool] = field(default_factory=dict)
    trashed: Trashed | None = None


Propose: TypeAlias = Callable[[Core, Source, Intent], NoReturn]
"""A function that stores a proposal and raises `SkillProposed`."""

_PROPOSE: Final[ContextVar[Propose | None]] = ContextVar("propose", default=None)


@contextmanager
def proposing(propose: Propose) -> Iterator[None]:
    """In a ``with`` block, call ``propose`` for each change of a source under review."""
    token = _PROPOSE.set(propose)
    try:
        yield
    finally:
        _PROPOSE.reset(token)


def propose_if_needed(core: Core, source_id: int, intent: Callable[[], Intent]) -> None:
    """If the caller must propose this change, store the proposal and raise `SkillProposed`."""
    propose = _PROPOSE.get()
    if propose is None:
        return
    if is_under_review(core.reader, source_id):
        known = list_sources(core.reader, counted=False)
        propose(core, next(one for one in known if one.id == source_id), intent())


def propose_together(
    core: Core, group: Sequence[StoredSkill], intent: Callable[[StoredSkill], Intent]
) -> None:
    """Call `propose_if_needed` for a change of a skill, which is the last of ``group``.

    The other skills of ``group`` are copies, which change together with the last skill. A proposal
    can change only one skill. So if there are several skills and one of them is in a source under
    review, raises `ChangeRefused`.
    """
    *copies, skill = group
    if not copies:
        propose_if_needed(core, skill.source_id, lambda: intent(skill))
        return
    for one in group if _PROPOSE.get() is not None else ():
        if is_under_review(core.reader, one.source_id):
            reason = "its source is under review; change each copy by itself"
            raise ChangeRefused(path=one.path, reason=reason)
