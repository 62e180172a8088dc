"""Run a sync: choose the sources, take the sync lock, plan, apply and report."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from registry.core import Core
from registry.db.interface import NO_UPDATES, SyncLock
from registry.db.read.findings import links_outside
from registry.db.read.skills import RemovedSkill, refs_of
from registry.db.read.sources import list_sources
from registry.disk.links import Leads, follow, known
from registry.disk.paths import is_safe_relative, join, storable
from registry.errors import SyncRunning
from registry.model import Scope, Source
from registry.sync.contents import store_contents
from registry.sync.installed import record_installed
from registry.sync.plan import Plan, SyncOptions, make_plan
from registry.sync.reading import stamps_of
from registry.sync.report import Fetched, Moved, Progress, SyncReport
from registry.sync.sources import choose, own_sources
from registry.text import utc_now

WAIT_SECONDS = 3600.0

PATIENCE_SECONDS = 1.0
"""Time to wait for another sync, in seconds.

The sync of a process that watches takes less time. So if it runs at the same moment, this sync
doesn't fail.
"""

MAX_TOUCHED = 400
"""Maximum number of skills for which new file times are stored without `apply_plan`."""


def sync(
    core: Core,
    targets: Sequence[str] = (),
    options: SyncOptions = SyncOptions(),  # noqa: B008  # a value that never changes
    *,
    scope: Scope | None = None,
    name: str | None = None,
    wait: bool = False,
    progress: Progress | None = None,
    fetched: Mapping[str, Fetched] = MappingProxyType({}),
) -> SyncReport:
    """Sync the targets; see `SkillRegistry.sync`.

    ``fetched`` maps the paths of remote sources to the results of their fetches before this call.
    """
    started = time.monotonic()
    progress = progress or (lambda _doing, _done, _total: None)
    if options.dry_run:
        every = list_sources(core.reader, counted=False)
        chosen = choose(core, every, targets, scope=scope, name=name, register=False)
        report = _foretell(core, _plan(core, every, chosen, options, progress, fetched))
    else:
        if core.reader.empty:
            core.create_database()
        with core.backend.sync_lock() as lock:
            if not lock.acquire(WAIT_SECONDS if wait else PATIENCE_SECONDS):
                raise SyncRunning(owner=lock.owner())
            every = list_sources(core.reader, counted=False)
            chosen = choose(core, every, targets, scope=scope, name=name, register=True)
            plan = _plan(core, every, chosen, options, progress, fetched)
            report = _carry_out(core, plan, lock, progress)
            record_installed(core, chosen)
            if options.verify:
                # this includes files that were synced while file storage was off
                store_contents(core)
    return replace(
        report,
        added=tuple(sorted(report.added)),
        updated=tuple(sorted(report.updated)),
        moved=tuple(sorted(report.moved, key=lambda move: move.ref)),
        removed=tuple(sorted(report.removed)),
        seconds=round(time.monotonic() - started, 3),
    )


def _plan(
    core: Core,
    every: Sequence[Source],
    chosen: Sequence[Source],
    options: SyncOptions,
    progress: Progress,
    fetched: Mapping[str, Fetched],
) -> Plan:
    own = own_sources(core, every)
    roots = sorted({source.path for source in [*own, *chosen]})
    plan = make_plan(core.reader, chosen, roots, core.settings.limits, options, progress)
    for part in plan.sources:
        if part.source.path in fetched:
            part.take(fetched[part.source.path])
    if any(source.last_sync_at is None for source in chosen):
        _settle_links(core, plan, own, roots)
    return plan


def _settle_links(core: Core, plan: Plan, own: Sequence[Source], roots: Sequence[str]) -> None:
    """Plan to drop versions of links that now lead into a source; this sync skips their sources.

    Before, these links led outside all sources, so they were stored as skills. Now the folder to
    which a link leads is stored as the skill instead.
    """
    synced = {part.source.id for part in plan.sources}
    homes = {one.id: one.path for one in own if one.id not in synced}
    for version, source_id, folder in links_outside(core.reader):
        if source_id in homes and is_safe_relative(folder):
            link = follow(join(homes[source_id], folder), None, roots)
            if link.leads is Leads.KNOWN and link.is_folder:
                plan.became_links.append(version)
                plan.notices.append((source_id, folder, known(storable(link.target))))


def _report(plan: Plan, *, dry_run: bool = False) -> SyncReport:
    """Return the part of the report that is known before the changes are stored."""
    return SyncReport(
        removed=tuple(one.ref for one in plan.removed),
        unchanged=sum(part.unchanged for part in plan.sources),
        invalid=sum(part.invalid_unchanged for part in plan.sources),
        sources=tuple(part.report() for part in plan.sources),
        dry_run=dry_run,
    )


def _moved(ref: str, before: RemovedSkill, source: str, folder: str) -> Moved:
    if before.source == source:
        return Moved(ref, before.folder, folder)
    return Moved(ref, f"{before.source}/{before.folder}", f"{source}/{folder}")


def _foretell(core: Core, plan: Plan) -> SyncReport:
    """Return the report of a dry run.

    If a skill isn't stored yet, it has no ref, so its name in the report is ``source/folder``.
    """
    added: list[str] = []
    updated: list[str] = []
    moved: list[Moved] = []
    for part in plan.sources:
        changed = [known for folder, known in part.updates.items() if folder not in part.rechecked]
        updated += refs_of(core.reader, changed).values()
        for folder in part.new:
            place = f"{part.source.name}/{folder}"
            before = plan.moves.get((part.source.id, folder))
            if before is None:
                added.append(place)
            else:
                moved.append(_moved(place, before, part.source.name, folder))
    report = _report(plan, dry_run=True)
    return replace(
        report,
        added=tuple(added),
        updated=tuple(updated),
        moved=tuple(moved),
        unchanged=report.unchanged + sum(len(part.rechecked) for part in plan.sources),
    )


def _carry_out(core: Core, plan: Plan, lock: SyncLock, progress: Progress) -> SyncReport:
    report = _report(plan)
    if not core.backend.writable:
        for part in plan.sources:
            part.touches.clear()  # the database is read-only, so new file times can't be stored
    touched = sum(len(part.touches) for part in plan.sources)
    # If a first import was interrupted, all its versions may be stored but not published.
    is_ok = all(part.outcome == "ok" and part.source.last_sync_at for part in plan.sources)
    if plan.is_idle and is_ok and touched <= MAX_TOUCHED:
        stats = stamps_of(plan.touched, lock.now_ns()) if touched else NO_UPDATES
        ids = [part.source.id for part in plan.sources]
        core.backend.mark_unchanged(ids, utc_now(), stats)
        return report
    from registry.sync.apply import apply_plan

    updates = {known for part in plan.sources for known in part.updates.values()}
    rechecked = {part.updates[folder] for part in plan.sources for folder in part.rechecked}
    names = {part.source.id: part.source.name for part in plan.sources}
    before = {one.id: (one, names[source_id]) for (source_id, _), one in plan.moves.items()}
    live = apply_plan(core, plan, lock, progress)
    refs = refs_of(core.reader, [version.id for version in live])
    added: list[str] = []
    updated: list[str] = []
    moves: list[Moved] = []
    unchanged = 0
    for version in live:
        ref = refs.get(version.id, "")
        if version.replaces in before:
            moves.append(_moved(ref, *before[version.replaces], version.folder))
        elif version.replaces in rechecked:
            unchanged += 1
        elif version.replaces in updates:
            updated.append(ref)
        elif version.status != "no_document":
            added.append(ref)
    return replace(
        report,
        added=tuple(added),
        updated=tuple(updated),
        moved=tuple(moves),
        sources=tuple(part.report() for part in plan.sources),
        unchanged=report.unchanged + unchanged,
        invalid=report.invalid + sum(version.status == "invalid" for version in live),
    )
