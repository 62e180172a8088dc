"""The operation `sync`: choose the sources, hold the sync lock, plan, apply, report."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from registry.catalog.reading import keep as keep_all
from registry.db.backend import SyncLock
from registry.db.queries.detail import refs_of
from registry.errors import SyncRunning
from registry.model import Scope, Source
from registry.sync.planning import Plan, SyncOptions, add_source, finish, make_plan, report_plan
from registry.sync.report import Moved, Progress, SyncReport
from registry.sync.sources import choose
from registry.times import now

if TYPE_CHECKING:
    from registry.api import SkillRegistry

WAIT_SECONDS = 3600.0

PATIENCE_SECONDS = 1.0
"""A sync by a watcher is over in less: nobody should hear of it."""


def sync(
    registry: "SkillRegistry",
    targets: Sequence[str],
    options: SyncOptions,
    *,
    scope: Scope | None,
    name: str | None,
    wait: bool,
    progress: Progress | None,
) -> SyncReport:
    """Sync the targets; see `SkillRegistry.sync`."""
    started = time.monotonic()
    progress = progress or _silent
    if options.dry_run:
        chosen = choose(registry, targets, scope=scope, name=name, register=False)
        report = report_plan(registry.reader, _plan(registry, chosen, options, progress))
    else:
        if registry.reader.empty:
            registry.create_database()
        with registry.backend.sync_lock() as lock:
            if not lock.acquire(WAIT_SECONDS if wait else PATIENCE_SECONDS):
                raise SyncRunning(owner=lock.owner())
            chosen = choose(registry, targets, scope=scope, name=name, register=True)
            plan = _plan(registry, chosen, options, progress)
            report = _carry_out(registry, plan, lock, progress)
            if options.verify:
                keep_all(registry, None)  # also what was synced while that was switched off
    report.seconds = round(time.monotonic() - started, 3)
    return report


def _silent(_doing: str, _done: int, _total: int | None) -> None:
    pass


def _plan(
    registry: "SkillRegistry", chosen: Sequence[Source], options: SyncOptions, progress: Progress
) -> Plan:
    roots = sorted({source.path for source in [*registry.own_sources(), *chosen]})
    return make_plan(registry.reader, chosen, roots, registry.settings.limits, options, progress)


def _carry_out(
    registry: "SkillRegistry", plan: Plan, lock: SyncLock, progress: Progress
) -> SyncReport:
    report = SyncReport()
    for part in plan.sources:
        add_source(report, part)
    reader = registry.reader
    if not registry.backend.writable:
        for part in plan.sources:
            part.touches.clear()  # what they would save the next sync can't be kept
    if plan.is_idle and all(part.outcome == "ok" for part in plan.sources):
        registry.backend.mark_unchanged([part.source.id for part in plan.sources], now())
        report.invalid = sum(part.invalid_unchanged for part in plan.sources)
        return report
    from registry.sync.apply import apply_plan

    updates = {known for part in plan.sources for known in part.updates.values()}
    before = {one.id: one for one in plan.moves.values()}
    report.removed = [one.ref for one in plan.removed]
    keep = registry.settings.store_files
    live = apply_plan(
        reader, registry.writer, plan, lock.now_ns(), now(), progress, lock.assert_held, keep=keep
    )
    refs = refs_of(reader, [version.id for version in live])
    for version in live:
        ref = refs.get(version.id, "")
        if version.replaces in before:
            moved = before[version.replaces]
            report.moved.append(Moved(ref, moved.folder, version.folder))
        elif version.replaces in updates:
            report.updated.append(ref)
        elif version.status != "no_document":
            report.added.append(ref)
    report.invalid = sum(part.invalid_unchanged for part in plan.sources)
    report.invalid += sum(version.status == "invalid" for version in live)
    finish(report)
    return report
