"""The operation `check`: all findings about folders or registered skills, read from disk now."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from registry.catalog import resolve
from registry.db.queries import detail
from registry.db.queries.filters import FROM, VISIBLE
from registry.disk.found import Found, RootMissing, RootUnreadable
from registry.disk.paths import ROOT, join
from registry.disk.walk import Walk
from registry.errors import SkillNotFound, SourceElsewhere, SourceInvalid
from registry.model import DOCUMENT_NAMES, Diagnostic
from registry.sync.folder import read_folder
from registry.text import name_key

if TYPE_CHECKING:
    from registry.core import OpenRegistry


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings about one skill, the worst first; ``path`` is its folder."""

    name: str
    path: str
    findings: Sequence[Diagnostic]


def check(registry: "OpenRegistry", targets: Sequence[str]) -> list[Checked]:
    """Check the targets; see `SkillRegistry.check`. Raises `SkillNotFound`, `SourceInvalid`."""
    results: dict[str, Checked] = {}
    for target in targets or [source.name for source in registry.own_sources()]:
        for result in _target(registry, target):
            results.setdefault(result.path, result)
    alike = _look_alikes(registry)
    checked = [_warned(result, alike) for result in results.values()] if alike else results.values()
    return sorted(checked, key=lambda result: (result.name, result.path))


def _look_alikes(registry: "OpenRegistry") -> dict[str, set[tuple[str, str]]]:
    """Return the visible (name, source) pairs of each key that several different names share."""
    rows = registry.reader.rows(
        f"SELECT s.name_key, s.name, src.name FROM {FROM} WHERE {VISIBLE} AND s.name_key IN ("
        f"SELECT s.name_key FROM {FROM} WHERE {VISIBLE} GROUP BY s.name_key "
        "HAVING count(DISTINCT s.name) > 1 AND count(DISTINCT s.source_id) > 1)"
    )
    alike: dict[str, set[tuple[str, str]]] = {}
    for key, name, source in rows:
        alike.setdefault(key, set()).add((name, source))
    return alike


def _warned(result: Checked, alike: dict[str, set[tuple[str, str]]]) -> Checked:
    others = sorted(
        f"{source}/{name}"
        for name, source in alike.get(name_key(result.name), ())
        if name != result.name
    )
    if not others:
        return result
    message = f"the name looks like that of another skill: {', '.join(others[:3])}"
    fix = "make sure that it is no imitation, or rename it"
    finding = Diagnostic("name-look-alike", "warning", message, fix=fix)
    findings = sorted([*result.findings, finding], key=lambda one: one.sort_key)
    return Checked(result.name, result.path, findings)


def _target(registry: "OpenRegistry", target: str) -> Iterator[Checked]:
    for source in registry.sources(counted=False):
        if source.name == target:
            if source.host != registry.backend.host:
                raise SourceElsewhere(name=source.name, host=source.host)
            yield from check_folder(registry, source.path)
            return
    path = os.path.abspath(os.path.expanduser(target.replace("\0", "\ufffd")))
    looks_like_path = os.sep in target or target in {".", ".."}
    if os.path.isfile(path) and os.path.basename(path) in DOCUMENT_NAMES:
        yield from check_folder(registry, os.path.dirname(path), alone=True)
        return
    if os.path.isdir(path) and (looks_like_path or not _is_registered(registry, target)):
        yield from check_folder(registry, path)
        return
    try:
        skill_id, row = resolve.find(registry.reader, target)
    except SkillNotFound:
        if looks_like_path and "/" in target and os.path.lexists(path):
            raise SourceInvalid(path=path, reason="it is neither a folder nor a SKILL.md") from None
        raise
    version = detail.version(registry.reader, skill_id)
    if version is not None and version.host != registry.backend.host:
        # Its folder is on another machine, which found this when it synced.
        path = join(version.root, version.folder)
        yield Checked(row[1], path, detail.findings(registry.reader, skill_id))
    elif version is not None:
        yield from check_folder(registry, join(version.root, version.folder), alone=True)


def _is_registered(registry: "OpenRegistry", name: str) -> bool:
    try:
        resolve.find(registry.reader, name)
    except SkillNotFound:
        return False
    return True


def check_folder(registry: "OpenRegistry", path: str, *, alone: bool = False) -> Iterator[Checked]:
    """Check all skills below ``path``; ``alone``: only the one in that very folder."""
    root = os.path.realpath(path)
    # What lies inside another source is checked too when its parent is asked for.
    roots = [source.path for source in registry.own_sources()] if alone else []
    walk = Walk(root, registry.settings.limits, roots)
    try:
        for found in _found(walk, alone=alone):
            if found.is_skill:
                reading = read_folder(root, found, registry.settings.limits, {})
                name = reading.document.name if reading.document else found.name
                yield Checked(name, join(root, found.folder), reading.findings)
    except RootMissing:
        raise SourceInvalid(path=path, reason="there is no such folder") from None
    except RootUnreadable as error:
        raise SourceInvalid(path=path, reason=str(error)) from None
    for notice in walk.notices:
        if notice.diagnostic.severity != "info" and not alone:
            yield Checked(notice.folder, join(root, notice.folder), [notice.diagnostic])


def _found(walk: Walk, *, alone: bool) -> Iterator[Found]:
    if not alone:
        yield from walk
        return
    found = walk.one(ROOT)
    if found is not None:
        yield found
