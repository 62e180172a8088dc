"""What became of the skills that were pulled, or would become of them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from registry.model import Value

State: TypeAlias = Literal[
    "added", "updated", "unchanged", "behind", "missing", "edited", "gone", "failed", "removed"
]


@dataclass(frozen=True, slots=True)
class Pulled(Value):
    """What became of one skill, or by ``check`` would: ``path`` is its folder.

    ``edited``: it was changed there, or made by somebody else, and was left alone; ``gone``: the
    registry has it no more; ``failed``: it can't be had. ``reason`` says why, what was edited, or
    what was lost with what was replaced or removed. What came from an address that is no source
    here is compared with the lock alone, and ``reason`` says so.
    """

    ref: str
    path: str
    state: State
    reason: str | None = None
