"""The report of a sync, or of a dry run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any, Final, Literal

from registry.model import Diagnostic, Remote, RemoteState, Value, record

Outcome = Literal["ok", "missing", "unreadable", "empty", "shrunk", "offline", "refused"]

Progress = Callable[[str, int, int | None], None]
"""A function that gets the current step, the number of finished items, and the total or None."""


@dataclass(frozen=True, slots=True)
class Moved(Value):
    """A skill that moved from the folder ``before`` to the folder ``after``.

    If the skill also moved to another source, both values have the form ``source/folder``.
    """

    ref: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a fetch from a remote source before its sync.

    ``remote`` is the remote source after the fetch, with the last fetched version. If ``outcome``
    isn't ``ok``, nothing was fetched, and ``message`` has the reason. ``notices`` holds findings
    about the fetched files. ``newer`` are newer tags than the pin, the newest first. ``states`` are
    the states of versions that the remote source tells; None if nothing was fetched.
    """

    remote: Remote
    outcome: Outcome = "ok"
    message: str | None = None
    notices: tuple[str, ...] = ()
    newer: Sequence[str] = ()
    states: tuple[RemoteState, ...] | None = None


_SHOWN: Final = 5
"""Maximum number of newer tags that a message names."""


def newer_notice(name: str, pin: str, newer: Sequence[str]) -> str:
    """Return the end of a sentence about the source ``name``: newer tags than its pin."""
    more = f" and {len(newer) - _SHOWN:,} more" if len(newer) > _SHOWN else ""
    shown = ", ".join(newer[:_SHOWN]) + more
    way = f"skill-registry source update {quote(name)} --ref {quote(newer[0])}"
    return f"pinned to {pin}; newer tags: {shown}. To move to the newest, run: {way}"


@dataclass(frozen=True, slots=True)
class SourceReport(Value):
    """The result of a sync of one source.

    If ``outcome`` isn't ``ok``, ``kept`` is the number of skills that stay in the catalogue
    although their folders are missing. For a remote source, the outcomes ``offline`` and
    ``refused`` mean that nothing new was fetched.

    ``notices`` holds findings about paths that aren't skills, with their folders. ``remote`` is the
    remote source after the sync, with the last fetched version. ``fetched`` holds findings about
    the fetched files.
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
        """Return the report as JSON data; each notice contains its folder."""
        notices = [{"folder": folder, **notice.to_dict()} for folder, notice in self.notices]
        made: dict[str, Any] = record(self)
        return made | {"notices": notices}


@dataclass(frozen=True, slots=True)
class SyncReport(Value):
    """The changes that a sync made; each skill is named by its ref.

    ``unchanged`` is the number of skills that didn't change. ``invalid`` is the number of all
    currently invalid skills, even those that didn't change. If ``dry_run``, nothing was written.
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
        """Whether all sources were synced completely."""
        return all(source.outcome == "ok" for source in self.sources)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON data; moved skills are named by ref."""
        made: dict[str, Any] = record(self)
        sources = [source.to_dict() for source in self.sources]
        return made | {"moved": [move.ref for move in self.moved], "sources": sources}


def joined(first: SyncReport, later: SyncReport) -> SyncReport:
    """Combine the reports of two syncs that covered different sources."""
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
