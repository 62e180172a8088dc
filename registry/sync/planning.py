"""The plan of a whole sync: what to do in each source, what moved, what is held back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from registry.db.interface import Reader
from registry.db.queries.known import RemovedSkill, removed_skills
from registry.db.queries.skills import refs_of
from registry.model import Source
from registry.settings import Limits
from registry.sync.hashing import hash_files, tree_hash
from registry.sync.plan import pair_moves
from registry.sync.report import Moved, Progress, SourceReport, SyncReport
from registry.sync.scan import SourcePlan, plan_source

BRAKE: Final = 10
"""A source may lose this many skills, or half of what it had, before its rows are held."""


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How a sync is run; see DESIGN.md, The command line."""

    dry_run: bool = False
    verify: bool = False
    allow_prune: bool = False


@dataclass(slots=True)
class Plan:
    """What a sync has to do. ``moves``: the version that went to (source id, folder)."""

    sources: list[SourcePlan]
    moves: dict[tuple[int, str], RemovedSkill]
    removed: list[RemovedSkill]

    @property
    def is_idle(self) -> bool:
        """Whether nothing has to be written but the time."""
        return not self.moves and not self.removed and all(part.is_idle for part in self.sources)


def make_plan(
    reader: Reader,
    targets: Sequence[Source],
    roots: Sequence[str],
    limits: Limits,
    options: SyncOptions,
    progress: Progress,
) -> Plan:
    """Scan the targets and decide what has to be done. Nothing is written."""
    parts = [
        plan_source(reader, source, roots, limits, verify=options.verify, progress=progress)
        for source in targets
    ]
    leaving = {part.source.id: removed_skills(reader, part.gone) for part in parts}
    moves = _find_moves(parts, [one for some in leaving.values() for one in some])
    moved = {one.id for one in moves.values()}
    removed: list[RemovedSkill] = []
    for part in parts:
        lost = [one for one in leaving[part.source.id] if one.id not in moved]
        if _is_held(part, lost, len(leaving[part.source.id]), prune=options.allow_prune):
            part.kept, part.gone_placeholders = len(lost), []
        else:
            removed += lost
    return Plan(parts, moves, removed)


def _is_held(part: SourcePlan, lost: Sequence[RemovedSkill], leaving: int, *, prune: bool) -> bool:
    """Decide whether a source keeps the rows of the skills it lost, and note why.

    That a folder can't be read never proves that its skills are gone; anything else that looks
    like an unmounted drive or a mishap waits until it is confirmed (``prune``).
    """
    if part.outcome == "ok" and lost:
        had = part.unchanged + len(part.updates) + leaving
        if part.seen == 0:
            part.outcome, part.message = "empty", "the folder holds no skills any more"
        elif len(lost) > BRAKE and len(lost) > had / 2:
            part.outcome = "shrunk"
            part.message = f"{len(lost)} of {had} skills are gone from the folder"
    if part.outcome in {"empty", "shrunk"} and prune:
        part.outcome, part.message = "ok", None
    return part.outcome == "unreadable" or (part.outcome != "ok" and not prune)


def _find_moves(
    parts: Sequence[SourcePlan], leaving: Sequence[RemovedSkill]
) -> dict[tuple[int, str], RemovedSkill]:
    candidates = {one.id: one for one in leaving if one.tree_hash}
    if not candidates:
        return {}
    # Only a folder with as many files and bytes as one that left is worth reading.
    shapes = {(one.file_count, one.bytes) for one in candidates.values()}
    added: list[tuple[int, str, str]] = []
    for part in parts:
        for folder in part.new:
            found = part.look(folder)
            if found is None or (len(found.files), sum(f.size for f in found.files)) not in shapes:
                continue
            hashes = hash_files(part.source.path, found, {}, part.walk.limits)[0]
            tree = tree_hash(found, hashes)
            if tree:
                added.append((part.source.id, folder, tree))
    left = [(one.id, one.folder, one.tree_hash or "") for one in candidates.values()]
    return {place: candidates[version] for place, version in pair_moves(added, left).items()}


def report_plan(reader: Reader, plan: Plan) -> SyncReport:
    """Say what a dry run would do; skills that are not stored yet are named source/folder."""
    report = SyncReport(dry_run=True)
    for part in plan.sources:
        add_source(report, part)
        refs = refs_of(reader, list(part.updates.values()))
        report.updated += refs.values()
        for folder in part.new:
            place = f"{part.source.name}/{folder}"
            before = plan.moves.get((part.source.id, folder))
            if before is None:
                report.added.append(place)
            else:
                report.moved.append(Moved(place, before.folder, folder))
    report.removed = [one.ref for one in plan.removed]
    finish(report)
    report.invalid = sum(part.invalid_unchanged for part in plan.sources)
    return report


def add_source(report: SyncReport, part: SourcePlan) -> None:
    """Add how the sync of one source went."""
    report.unchanged += part.unchanged
    skills = part.unchanged + len(part.new) + len(part.updates) + part.kept
    report.sources.append(
        SourceReport(
            name=part.source.name,
            path=part.source.path,
            outcome=part.outcome,
            message=part.message,
            skills=skills,
            kept=part.kept,
            notices=part.notices,
        )
    )


def finish(report: SyncReport) -> None:
    """Put the lists of a report in order."""
    report.added.sort()
    report.updated.sort()
    report.moved.sort(key=lambda move: move.ref)
    report.removed.sort()
