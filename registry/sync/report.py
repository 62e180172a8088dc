"""What a sync did, or would do, as values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from registry.model import Diagnostic, Remote, Value, record

Outcome = Literal["ok", "missing", "unreadable", "empty", "shrunk", "offline", "refused"]

Progress = Callable[[str, int, int | None], None]
"""Told (what is being done, how many are done, of how many or None)."""


@dataclass(frozen=True, slots=True)
class Moved(Value):
    """A skill found again in another folder, ``after``.

    Both are ``source/folder`` if that is in another source, too.
    """

    ref: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """What became of a remote source before it is synced: ``remote`` is as it is by now.

    Unless ``outcome`` is ``ok`` nothing was fetched, and ``message`` says why. ``notices``: what
    is to be known of what was.
    """

    remote: Remote
    outcome: Outcome = "ok"
    message: str | None = None
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourceReport(Value):
    """How the sync of one source went.

    Unless ``outcome`` is ``ok``, rows were kept although their folders are gone: ``kept`` of them;
    of a remote source, ``offline`` and ``refused`` say that nothing new was fetched. ``notices``
    are findings about places that are not skills, with their folders. ``remote``: what a remote
    source holds by now, and ``fetched``: what is to be known of what was fetched.
    """

    name: str
    path: str
    outcome: Outcome = "ok"
    message: str | None = None
    skills: int = 0
    kept: int = 0
    notices: tuple[tuple[str, Diagnostic], ...] = ()
    remote: Remote | None = None
    fetched: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON: each notice with its folder."""
        notices = [{"folder": folder, **notice.to_dict()} for folder, notice in self.notices]
        made: dict[str, Any] = record(self)
        return made | {"notices": notices}


@dataclass(frozen=True, slots=True)
class SyncReport(Value):
    """What changed, by ref.

    ``unchanged`` counts skills left as they were, ``invalid`` those that can't be used as of now,
    changed or not. ``dry_run``: nothing was written.
    """

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    moved: tuple[Moved, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    invalid: int = 0
    sources: tuple[SourceReport, ...] = ()
    seconds: float = 0.0
    dry_run: bool = False

    @property
    def complete(self) -> bool:
        """Whether every source could be brought in line."""
        return all(source.outcome == "ok" for source in self.sources)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON: moved skills by ref."""
        made: dict[str, Any] = record(self)
        sources = [source.to_dict() for source in self.sources]
        return made | {"moved": [move.ref for move in self.moved], "sources": sources}


def joined(first: SyncReport, later: SyncReport) -> SyncReport:
    """Return one report of two syncs of different sources."""
    return SyncReport(
        added=tuple(sorted({*first.added, *later.added})),
        updated=tuple(sorted({*first.updated, *later.updated})),
        moved=tuple(sorted((*first.moved, *later.moved), key=lambda move: move.ref)),
        removed=tuple(sorted({*first.removed, *later.removed})),
        unchanged=first.unchanged + later.unchanged,
        invalid=first.invalid + later.invalid,
        sources=(*first.sources, *later.sources),
        seconds=round(first.seconds + later.seconds, 3),
        dry_run=first.dry_run,
    )
