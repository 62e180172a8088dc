"""The operation `check`: all findings about folders or registered skills, read from disk now."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from registry.catalog.checked import Checked, Checks
from registry.catalog.codes import chooser
from registry.catalog.examine import Examiner
from registry.catalog.reading import NO_DOCUMENT
from registry.catalog.resolve import resolve
from registry.catalog.similar import imitated, look_alikes
from registry.core import Core
from registry.db.read.skills import findings as stored_findings
from registry.db.read.sources import list_sources
from registry.disk.links import LINK_KNOWN, finding, follow, is_dangling, real_path
from registry.disk.paths import ROOT, is_below, join
from registry.disk.scanned import RootMissing, RootUnreadable, ScannedFolder
from registry.disk.walk import Walk
from registry.errors import FolderMissing, SkillNotFound, SourceInvalid
from registry.model import DOCUMENT_NAMES, Diagnostic
from registry.sync.sources import check_own, is_here, own_sources, walk_of
from registry.text import is_path


def check(
    core: Core, targets: Sequence[str], *, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> Checks:
    """Check the targets; see `SkillRegistry.check`, also for what is raised."""
    wanted = chooser(select, ignore)
    alike = look_alikes(core.reader)

    def found() -> Iterator[Checked]:
        for one in _once(_all(core, targets)):
            told = _warned(one, alike) if alike else one
            yield _chosen(told, wanted) if select or ignore else told

    return Checks(found())


def _all(core: Core, targets: Sequence[str]) -> Iterator[Checked]:
    """Check the targets, or all sources of this machine."""
    if not targets:
        for source in own_sources(core):
            yield from _source(core, source.name)
    for target in targets:
        found = False
        for result in _target(core, target):
            found = True
            yield result
        if not found:
            yield _without_skill(core, target)


def _once(results: Iterable[Checked]) -> Iterator[Checked]:
    """Leave out what is told of a folder again."""
    told: set[str] = set()
    for one in results:
        if one.path not in told:
            told.add(one.path)
            yield one


def _source(core: Core, name: str) -> Iterator[Checked]:
    """Check a source among all; that it can't be read is a finding, and the others come."""
    try:
        yield from _target(core, name)
    except SourceInvalid as error:
        message = f"the source can't be read: {error.facts['reason']}"
        fix = "bring the folder back, or forget the source: source remove"
        finding = Diagnostic("source-unreadable", "error", message, fix=fix)
        yield Checked(name, str(error.facts["path"]), [finding])


def _chosen(result: Checked, wanted: Callable[[str], bool]) -> Checked:
    return replace(result, findings=[one for one in result.findings if wanted(one.code)])


def _without_skill(core: Core, target: str) -> Checked:
    """Say of a target that was named, and holds no skill, that it holds none."""
    sources = {one.name: one.path for one in list_sources(core.reader, counted=False)}
    path = sources.get(target) or os.path.abspath(os.path.expanduser(target))
    if target not in sources and not _looks_like_path(target):
        with suppress(SkillNotFound):
            path = resolve(core.reader, target).path
    return Checked(os.path.basename(path), path, _links(core, path) or [NO_DOCUMENT])


def _links(core: Core, path: str) -> list[Diagnostic]:
    """Return what is said of links in a folder to skills that are counted elsewhere."""
    walk = walk_of(core, real_path(path))
    with suppress(RootMissing, RootUnreadable):
        deque(walk, maxlen=0)
    found = (one.diagnostic for one in walk.notices if one.diagnostic.code == LINK_KNOWN)
    return sorted(found, key=lambda one: one.sort_key)


def _looks_like_path(target: str) -> bool:
    return os.sep in target or target in {".", ".."}


def _warned(result: Checked, alike: dict[str, set[tuple[str, str]]]) -> Checked:
    others = imitated(alike, result.name)
    if not others:
        return result
    message = f"the name looks like that of another skill: {', '.join(others[:3])}"
    fix = "make sure that it is not an imitation, or rename it"
    finding = Diagnostic("name-look-alike", "warning", message, fix=fix)
    findings = sorted([*result.findings, finding], key=lambda one: one.sort_key)
    return replace(result, findings=findings)


def _target(core: Core, target: str) -> Iterator[Checked]:
    for source in list_sources(core.reader, counted=False):
        if source.name == target:
            check_own(core, source.name, source.host, source.path)
            yield from check_folder(core, source.path)
            return
    path = os.path.abspath(os.path.expanduser(target.replace("\0", "\ufffd")))
    looks_like_path = _looks_like_path(target)
    if is_path(target) and not os.path.lexists(path):
        raise FolderMissing(path=path)
    if os.path.isfile(path) and os.path.basename(path) in DOCUMENT_NAMES:
        yield from check_folder(core, os.path.dirname(path), alone=True)
        return
    if looks_like_path and (os.path.isdir(path) or is_dangling(path)):
        yield from check_folder(core, path)
        return
    try:
        stored = resolve(core.reader, target)
    except SkillNotFound:
        if os.path.isdir(path) or is_dangling(path):
            yield from check_folder(core, path)
            return
        if looks_like_path and os.path.lexists(path):
            raise SourceInvalid(path=path, reason="it is neither a folder nor a SKILL.md") from None
        raise
    if not is_here(core, stored.host, stored.root):
        # Its folder is on another machine, which found this when it synced.
        findings = stored_findings(core.reader, stored.id)
        yield Checked(stored.skill.name, stored.path, findings)
    else:
        yield from _check_below(core, stored.root, stored.folder, stored.path, alone=True)


def check_folder(core: Core, path: str, *, alone: bool = False) -> Iterator[Checked]:
    """Check all skills below ``path``; ``alone``: only the one in that very folder."""
    real = real_path(path)
    # Below a source it is reached from there by handles, whatever its name stands for by then.
    sources = own_sources(core)
    if is_dangling(path):
        link = follow(path, None, [one.path for one in sources])
        yield Checked(os.path.basename(path), path, [finding(link, None, fatal=False)])
        return
    for place in (real, path):
        holding = [one.path for one in sources if is_below(place, one.path)]
        if holding:
            root = max(holding, key=len)
            yield from _check_below(core, root, os.path.relpath(place, root), path, alone=alone)
            return
    yield from _check_below(core, real, ROOT, path, alone=alone)


def _check_below(
    core: Core, root: str, folder: str, path: str, *, alone: bool
) -> Iterator[Checked]:
    sources = own_sources(core)
    roots = [source.path for source in sources]
    # What lies inside another source is checked too when its parent is asked for.
    walk = Walk(root, core.settings.limits, roots, nested=not alone)
    whole = next((one for one in sources if one.path == root and folder == ROOT), None)
    examiner = Examiner(core, root, None if alone else whole)
    try:
        for found in _found(walk, folder, alone=alone):
            if found.is_skill:
                name, findings = examiner.examine(found)
                yield Checked(name, join(root, found.folder), findings, root)
    except RootMissing:
        raise SourceInvalid(path=path, reason="there is no such folder") from None
    except RootUnreadable as error:
        raise SourceInvalid(path=path, reason=str(error)) from None
    for notice in walk.notices:
        # What can't be read of a skill is told with it.
        told = notice.lost and notice.folder == folder if alone else True
        if told and notice.diagnostic.severity != "info":
            yield Checked(notice.folder, join(root, notice.folder), [notice.diagnostic])


def _found(walk: Walk, folder: str, *, alone: bool) -> Iterable[ScannedFolder]:
    if alone:
        found = walk.one(folder)
        return [] if found is None else [found]
    return walk if folder == ROOT else walk.below(folder)
