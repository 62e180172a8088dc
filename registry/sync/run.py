"""The operation `sync`: choose the sources, hold the sync lock, plan, apply, report."""

import time
from collections.abc import Sequence

from registry.core import Core
from registry.db.interface import SyncLock
from registry.db.queries.skills import refs_of
from registry.errors import SyncRunning
from registry.model import Scope, Source
from registry.sync.planning import Plan, SyncOptions, add_source, finish, make_plan, report_plan
from registry.sync.refresh import store_contents
from registry.sync.report import Moved, Progress, SyncReport
from registry.sync.sources import choose, own_sources
from registry.text import utc_now

WAIT_SECONDS = 3600.0

PATIENCE_SECONDS = 1.0
"""A sync by a watcher is over in less: nobody should hear of it."""


def sync(
    core: Core,
    targets: Sequence[str] = (),
    options: SyncOptions = SyncOptions(),  # noqa: B008  # a frozen value
    *,
    scope: Scope | None = None,
    name: str | None = None,
    wait: bool = False,
    progress: Progress | None = None,
) -> SyncReport:
    """Sync the targets; see `SkillRegistry.sync`."""
    started = time.monotonic()
    progress = progress or (lambda _doing, _done, _total: None)
    if options.dry_run:
        chosen = choose(core, targets, scope=scope, name=name, register=False)
        report = report_plan(core.reader, _plan(core, chosen, options, progress))
    else:
        if core.reader.empty:
            core.create_database()
        with core.backend.sync_lock() as lock:
            if not lock.acquire(WAIT_SECONDS if wait else PATIENCE_SECONDS):
                raise SyncRunning(owner=lock.owner())
            chosen = choose(core, targets, scope=scope, name=name, register=True)
            plan = _plan(core, chosen, options, progress)
            report = _carry_out(core, plan, lock, progress)
            if options.verify:
                store_contents(core, None)  # also what was synced while that was switched off
    report.seconds = round(time.monotonic() - started, 3)
    return report


def _plan(core: Core, chosen: Sequence[Source], options: SyncOptions, progress: Progress) -> Plan:
    roots = sorted({source.path for source in [*own_sources(core), *chosen]})
    return make_plan(core.reader, chosen, roots, core.settings.limits, options, progress)


def _carry_out(core: Core, plan: Plan, lock: SyncLock, progress: Progress) -> SyncReport:
    report = SyncReport()
    for part in plan.sources:
        add_source(report, part)
    reader = core.reader
    if not core.backend.writable:
        for part in plan.sources:
            part.touches.clear()  # what they would save the next sync can't be kept
    if plan.is_idle and all(part.outcome == "ok" for part in plan.sources):
        core.backend.mark_unchanged([part.source.id for part in plan.sources], utc_now())
        report.invalid = sum(part.invalid_unchanged for part in plan.sources)
        return report
    from registry.sync.apply import apply_plan

    updates = {known for part in plan.sources for known in part.updates.values()}
    before = {one.id: one for one in plan.moves.values()}
    report.removed = [one.ref for one in plan.removed]
    keep = core.settings.store_files
    live = apply_plan(
        reader, core.writer, plan, lock.now_ns(), utc_now(), progress, lock.assert_held, keep=keep
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
