"""How skills are pulled, and what became of them, or would."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from registry.install.lockfile import Mode
from registry.model import Value
from registry.sync.report import Progress

State: TypeAlias = Literal[
    "added", "updated", "unchanged", "behind", "missing", "edited", "gone", "failed", "removed"
]


@dataclass(frozen=True, slots=True)
class Pulled(Value):
    """What became of one skill, or by ``check`` would: ``path`` is its folder.

    ``edited``: it was changed there, or made by somebody else, and was left alone; ``gone``: the
    registry no longer has it; ``failed``: it can't be had. ``reason`` says why, what was edited, or
    what was lost with what was replaced or removed. What came from an address that is no source
    here is compared with the lock alone, and ``reason`` says so.
    """

    ref: str
    path: str
    state: State
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How skills are put into their places.

    ``agents``: the ids of those that are to have them, beside those that do; ``mode``: by links to
    one copy, or by copies; None: as it is, or as is usual. ``force``: also replace folders that no
    pull made; ``theirs``: replace edits of installed skills; ``adopt``: record folders that no pull
    made as installed if their files are equal. ``dry_run``: nothing is written. ``offline``:
    of what lies elsewhere only what was fetched before counts. ``progress`` is told how far it is.
    """

    agents: Sequence[str] = ()
    mode: Mode | None = None
    force: bool = False
    theirs: bool = False
    adopt: bool = False
    dry_run: bool = False
    offline: bool = False
    progress: Progress | None = None

    def told(self, names: Collection[str]) -> Iterator[str]:
        """Yield the names of what is pulled, and tell how far it is."""
        for number, name in enumerate(names):
            if self.progress is not None:
                self.progress("pulling", number, len(names))
            yield name


PLAIN: Final = How()
