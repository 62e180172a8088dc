"""What a sync did, or would do, as values."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from registry.model import Diagnostic

Outcome = Literal["ok", "missing", "unreadable", "empty", "shrunk"]

Progress = Callable[[str, int, int | None], None]
"""Told (what is being done, how many are done, of how many or None)."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A skill found again in another folder; ``before`` and ``after`` are ``source/folder``."""

    ref: str
    before: str
    after: str


@dataclass(slots=True)
class SourceReport:
    """How the sync of one source went.

    Unless ``outcome`` is ``ok``, rows were kept although their folders are gone: ``kept`` of them.
    ``notices`` are findings about places that are not skills, with their folders.
    """

    name: str
    path: str
    outcome: Outcome = "ok"
    message: str | None = None
    skills: int = 0
    kept: int = 0
    notices: list[tuple[str, Diagnostic]] = field(default_factory=list)


@dataclass(slots=True)
class SyncReport:
    """What changed, by ref.

    ``unchanged`` counts skills left as they were, ``invalid`` those that can't be used as of now,
    changed or not. ``dry_run``: nothing was written.
    """

    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    moved: list[Moved] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unchanged: int = 0
    invalid: int = 0
    sources: list[SourceReport] = field(default_factory=list)
    seconds: float = 0.0
    dry_run: bool = False

    @property
    def complete(self) -> bool:
        """Whether every source could be brought in line."""
        return all(source.outcome == "ok" for source in self.sources)
