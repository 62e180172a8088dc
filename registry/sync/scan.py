"""Scan a source and work out what a sync has to do there."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from registry.db.interface import Reader
from registry.db.queries.known import (
    StoredFingerprint,
    fingerprints,
    known_hashes,
    notice_digest,
)
from registry.db.queries.skills import findings
from registry.disk.found import WALK_CODES, Found, RootMissing, RootUnreadable
from registry.disk.paths import ROOT
from registry.disk.walk import Walk
from registry.model import Diagnostic, Source
from registry.settings import Limits
from registry.sync.hashing import hash_files
from registry.sync.plan import Difference, compare
from registry.sync.report import Outcome, Progress

PROGRESS_EVERY = 200
REMEMBERED = 20_000


@dataclass(slots=True)
class SourcePlan:
    """What is to be done for one source, as folders and version ids; contents are read later.

    ``updates`` and ``touches`` map folders to the version they are about; a touch is a folder
    whose content is unchanged though stat says otherwise. ``kept`` counts rows that stay although
    their folders are gone, for the reason in ``outcome``.
    """

    source: Source
    walk: Walk
    new: list[str] = field(default_factory=list)
    placeholders: list[str] = field(default_factory=list)
    updates: dict[str, int] = field(default_factory=dict)
    touches: dict[str, int] = field(default_factory=dict)
    gone: list[int] = field(default_factory=list)
    gone_placeholders: list[int] = field(default_factory=list)
    unchanged: int = 0
    invalid_unchanged: int = 0
    seen: int = 0
    seen_folders: dict[str, Found] = field(default_factory=dict)
    outcome: Outcome = "ok"
    message: str | None = None
    kept: int = 0
    notices: list[tuple[str, Diagnostic]] = field(default_factory=list)
    notices_changed: bool = False

    def keep(self, found: Found) -> None:
        """Remember what the scan saw of a folder, up to a number, so that memory stays flat."""
        if len(self.seen_folders) < REMEMBERED:
            self.seen_folders[found.folder] = found

    def look(self, folder: str) -> Found | None:
        """Return what the scan saw of a folder, else look again; None: it is gone.

        A file that changed since the scan does no harm: the fingerprint that is stored with its
        new content is the old one, so the next sync reads it again.
        """
        return self.seen_folders.get(folder) or self.walk.one(folder)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to write, but for skills that went."""
        work = (self.new, self.placeholders, self.updates, self.touches, self.gone_placeholders)
        return not any(work) and not self.notices_changed


def plan_source(
    reader: Reader,
    source: Source,
    roots: Sequence[str],
    limits: Limits,
    *,
    verify: bool,
    progress: Progress,
) -> SourcePlan:
    """Walk one source and compare it with the database. Nothing is written."""
    plan = SourcePlan(source, Walk(source.path, limits, roots))
    gone: list[StoredFingerprint] = []
    suspects: list[tuple[Found, StoredFingerprint]] = []
    try:
        for difference in compare(plan.walk, fingerprints(reader, source.id), verify=verify):
            _sort_in(plan, difference, suspects, gone)
            if plan.seen % PROGRESS_EVERY == 0:
                progress(f"scanning {source.name}", plan.seen, None)
    except (RootMissing, RootUnreadable) as error:
        return _without_root(plan, reader, error)
    for number, (found, row) in enumerate(suspects):
        progress(f"reading {source.name}", number, len(suspects))
        _examine(plan, reader, found, row, verify=verify)
    lost = [notice.folder for notice in plan.walk.notices if notice.lost]
    for row in gone:
        if any(place in (row.folder, ROOT) or row.folder.startswith(f"{place}/") for place in lost):
            plan.unchanged += row.status != "no_document"
        else:
            (plan.gone_placeholders if row.status == "no_document" else plan.gone).append(row.id)
    plan.notices = sorted(
        ((notice.folder, notice.diagnostic) for notice in plan.walk.notices),
        key=lambda entry: (entry[0], entry[1].code),
    )
    stored = notice_digest(reader, source.id)
    plan.notices_changed = [(folder, d.code) for folder, d in plan.notices] != stored
    return plan


def _sort_in(
    plan: SourcePlan,
    difference: Difference,
    suspects: list[tuple[Found, StoredFingerprint]],
    gone: list[StoredFingerprint],
) -> None:
    kind, found, row = difference
    plan.seen += found is not None and found.is_skill
    if found is None:
        if row is not None:
            gone.append(row)
    elif row is None:
        (plan.new if found.is_skill else plan.placeholders).append(found.folder)
        plan.keep(found)
    elif kind == "suspect":
        suspects.append((found, row))
        plan.keep(found)
    elif row.status != "no_document":
        plan.unchanged += 1
        plan.invalid_unchanged += row.status == "invalid"


def _without_root(
    plan: SourcePlan, reader: Reader, error: RootMissing | RootUnreadable
) -> SourcePlan:
    rows = list(fingerprints(reader, plan.source.id))
    fresh = SourcePlan(plan.source, plan.walk)
    fresh.gone = [row.id for row in rows if row.status != "no_document"]
    fresh.gone_placeholders = [row.id for row in rows if row.status == "no_document"]
    if isinstance(error, RootMissing):
        fresh.outcome, fresh.message = "missing", "the folder is not there"
    else:
        fresh.outcome, fresh.message = "unreadable", f"the folder can't be read: {error}"
    return fresh


def _examine(
    plan: SourcePlan, reader: Reader, found: Found, row: StoredFingerprint, *, verify: bool
) -> None:
    """Find out whether a folder whose stat facts moved really has another content."""
    if not found.is_skill or row.status == "no_document":
        if found.is_skill or row.status != "no_document":
            plan.updates[found.folder] = row.id
        return
    before = known_hashes(reader, row.id)
    # Equal stat facts stand for an equal file only where they were old when they were taken.
    trusted = {} if verify or row.racy else before
    hashes, _, _, transient = hash_files(plan.source.path, found, trusted, plan.walk.limits)
    same = hashes == {path: content for path, (_, content) in before.items()}
    modes = {file.path: file.mode & 0o100 for file in found.files}
    same = same and modes == {path: facts[0] & 0o100 for path, (facts, _) in before.items()}
    if same:
        codes = {finding.code for finding in findings(reader, row.id)} & WALK_CODES
        same = codes == {problem.code for problem in found.problems}
    if not same and not transient:
        plan.updates[found.folder] = row.id
        return
    plan.unchanged += 1
    plan.invalid_unchanged += row.status == "invalid"
    if not transient:
        plan.touches[found.folder] = row.id
