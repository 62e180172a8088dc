"""The plan of a whole sync: what to do in each source, what moved, what is held back."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from registry.db.interface import Reader
from registry.db.read.skills import RemovedSkill, removed_skills
from registry.disk.walk import ScannedFolder
from registry.model import Diagnostic, Source
from registry.settings import Limits
from registry.sync.hashing import content_now
from registry.sync.report import Progress
from registry.sync.scan import SourcePlan, plan_source

BRAKE: Final = 10
"""A source may lose this many skills, or half of what it had, before its rows are held."""

Moves: TypeAlias = dict[tuple[int, str], RemovedSkill]
"""The version that went to (source id, folder)."""


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How a sync is run; see DESIGN.md, The command line."""

    dry_run: bool = False
    verify: bool = False
    allow_prune: bool = False


@dataclass(slots=True)
class Plan:
    """What a sync has to do."""

    sources: list[SourcePlan]
    moves: Moves
    removed: list[RemovedSkill]
    settled: list[int]
    """Versions that stood for links out of every source, which lead into one by now."""
    notices: list[tuple[int, str, Diagnostic]] = field(default_factory=list)
    """What those are by now, of sources that are not synced (source id, folder, notice)."""

    @property
    def touched(self) -> Iterator[tuple[int, ScannedFolder, str]]:
        """The versions whose content is unchanged, with their folders and the rules of reading."""
        for part in self.sources:
            for folder, version in part.touches.items():
                found = part.look(folder)
                if found is not None:
                    yield version, found, part.mark

    @property
    def is_idle(self) -> bool:
        """Whether nothing has to be written but times."""
        work = self.moves, self.removed, self.settled
        return not any(work) and all(part.is_idle for part in self.sources)


def make_plan(
    reader: Reader,
    targets: Sequence[Source],
    roots: Sequence[str],
    limits: Limits,
    options: SyncOptions,
    progress: Progress,
    mark: str,
) -> Plan:
    """Scan the targets and decide what has to be done. Nothing is written."""
    parts = [
        plan_source(
            reader, source, roots, limits, mark=mark, verify=options.verify, progress=progress
        )
        for source in targets
    ]
    leaving = {part.source.id: removed_skills(reader, part.gone) for part in parts}
    moves = _find_moves(parts, [one for some in leaving.values() for one in some])
    moved = {one.id for one in moves.values()}
    removed: list[RemovedSkill] = []
    settled: list[int] = []
    for part in parts:
        lost = [one for one in leaving[part.source.id] if one.id not in moved]
        # Where a link to a known skill is now, nothing is lost: it is counted where it lies.
        linked = part.links
        settled += [one.id for one in lost if one.folder in linked and not one.file_count]
        removed += [one for one in lost if one.folder in linked and one.file_count]
        lost = [one for one in lost if one.folder not in linked]
        # What another source inside this one has is not lost either, if it is there.
        theirs = {one.id for one in lost if part.outcome == "ok" and part.walk.leaves(one.folder)}
        removed += [one for one in lost if one.id in theirs]
        lost = [one for one in lost if one.id not in theirs]
        had = len(leaving[part.source.id]) - len(theirs)
        if _is_held(part, lost, had, prune=options.allow_prune):
            part.kept, part.gone_placeholders = len(lost), []
        else:
            removed += lost
    return Plan(parts, moves, removed, settled)


def _is_held(part: SourcePlan, lost: Sequence[RemovedSkill], leaving: int, *, prune: bool) -> bool:
    """Decide whether a source keeps the rows of the skills it lost, and note why.

    That a folder can't be read never proves that its skills are gone; anything else that looks
    like an unmounted drive or a mishap waits until it is confirmed (``prune``).
    """
    if part.outcome == "ok" and lost and not prune:
        had = part.unchanged + len(part.updates) + leaving
        if part.seen == 0 and not part.links:
            part.outcome, part.message = "empty", "the folder holds no skills any more"
        elif len(lost) > BRAKE and len(lost) > had / 2:
            part.outcome = "shrunk"
            part.message = f"{len(lost)} of {had} skills are gone from the folder"
    return part.outcome == "unreadable" or (part.outcome != "ok" and not prune)


def _find_moves(parts: Sequence[SourcePlan], leaving: Sequence[RemovedSkill]) -> Moves:
    # Only a folder with as many files and bytes as one that left is worth reading.
    shapes = {(one.file_count, one.bytes) for one in leaving if one.tree_hash}
    added: list[tuple[int, str, str]] = []
    for part in parts if shapes else ():
        for folder in part.new:
            found = part.look(folder)
            if found is None or (len(found.files), sum(f.size for f in found.files)) not in shapes:
                continue
            tree = content_now(part.source.path, found, part.walk.limits)
            if tree:
                added.append((part.source.id, folder, tree))
    return pair_moves(added, leaving)


def pair_moves(added: Iterable[tuple[int, str, str]], leaving: Iterable[RemovedSkill]) -> Moves:
    """Pair new folders (source id, folder, tree hash) with gone versions of the same content.

    Among several of the same content the one whose last folder is the same is preferred, then
    order.
    """
    by_hash: dict[str | None, list[RemovedSkill]] = {}
    for one in leaving:
        by_hash.setdefault(one.tree_hash, []).append(one)
    moves: Moves = {}
    for source_id, folder, tree in added:
        candidates = by_hash.get(tree)
        if candidates:
            name = os.path.basename(folder)
            namesakes = (one for one in candidates if os.path.basename(one.folder) == name)
            moves[source_id, folder] = best = next(namesakes, candidates[0])
            candidates.remove(best)
    return moves
