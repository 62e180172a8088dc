"""Compare a skill with its upstream, which is the skill of the remote source from which it came."""

import os
from collections.abc import Mapping
from contextlib import suppress
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from registry.catalog.reading import CurrentSkill
from registry.catalog.resolve import resolve
from registry.core import Core
from registry.db.read.skills import StoredSkill, same_name
from registry.disk.atomic import Place, open_named
from registry.disk.links import real_path
from registry.document.differing import difference
from registry.errors import NoUpstream, RegistryError, RemoteInvalid, SkillAmbiguous, SkillNotFound
from registry.install.content import content_of, local_content
from registry.install.lockfile import read_lock
from registry.install.provenance import Provenance, at_origin, origin_of, owner
from registry.install.pull import folders_of
from registry.install.targets import InstallTarget
from registry.model import Origin
from registry.remotes.fetch import commit_now
from registry.remotes.kinds import open_remote
from registry.remotes.snapshot import FetchLimits, below
from registry.sync.installed import lock_of
from registry.sync.sources import find

FilesByPath = Mapping[str, bytes]


QUARANTINED: Final = "upstream, quarantined"


class UpstreamDiff(NamedTuple):
    """A unified diff ("" without differences), and two sources that limit an installation.

    In the source ``source``, the upstream skill is quarantined. You must sync the source ``fetch``
    before `pull` can install the version in the diff. ``remote`` is the remote source that the
    skill was compared with, in the version of its pin.
    """

    text: str
    source: str | None = None
    fetch: str | None = None
    remote: str | None = None


def diff_upstream(core: Core, name: str) -> UpstreamDiff:
    """Return a unified diff from a skill to its upstream.

    For an installed skill, the diff leads from the installed copy to the version that `pull` would
    install. If that version is installed already, the diff leads to the current version of the
    remote source. For a skill of a remote source, the diff shows the changes that the next sync
    would fetch. For any other skill, the diff leads to the skill with the same name in the remote
    source of highest precedence. Raises `SkillNotFound`, `NoUpstream`, `RemoteProblem`.
    """
    installed = _installed(name)
    if installed is None:
        with suppress(SkillNotFound, SkillAmbiguous):
            stored = resolve(core.reader, name)
            installed = None if stored.remote else _installed(stored.path)
    if installed is not None and (found := _diff_installed(core, *installed)) is not None:
        return found
    return _diff_skill(core, name)


def _installed(name: str) -> tuple[InstallTarget, str] | None:
    """Return the target whose lock file lists a skill, and the skill's folder.

    Returns None if no lock file lists it. The lock file of the current project comes before the
    lock file for all projects. ``name`` is the name of a skill or the path of a folder.
    """
    path = os.path.expanduser(name)
    if os.sep in name and os.path.lexists(path):
        path = real_path(path)
        home, everywhere = lock_of(path), InstallTarget.everywhere()
        is_global = home is not None and home == real_path(everywhere.path)
        target = everywhere if is_global else InstallTarget(home or "")
        return (target, os.path.basename(path)) if home else None
    targets = [InstallTarget.everywhere()]
    with suppress(OSError):  # the current folder may have been removed
        targets.insert(0, InstallTarget.project(os.getcwd()))
    for target in targets:
        with suppress(RegistryError):
            return target, next(iter(folders_of(target, [name])))
    return None


def _diff_installed(core: Core, target: InstallTarget, folder: str) -> UpstreamDiff | None:
    """Return the diff from an installed copy to the version that `pull` would install.

    Returns None if there is no difference.
    """
    entry = read_lock(target.path)[folder]
    skill = owner(core, entry)
    there = target.install_paths(entry.agents, entry.mode, folder)[0].path
    provenance = Provenance(core)
    if skill is None and entry.origin is not None and not provenance.is_strange(entry):
        raise NoUpstream(entry.ref, provenance.reason(entry))
    if skill is None or not os.path.isdir(os.path.join(there, folder)):
        return None
    with open_named(there) as above:
        here = {one.path: one.data for one in local_content(core, Place(above, folder))}
    stored = resolve(core.reader, f"{skill.source}/{skill.folder}")
    newest = fetch = None
    if stored.remote and stored.skill.origin and entry.tree_hash == stored.skill.tree_hash:
        newest = _newest(core, stored, stored.skill.origin)
        fetch = skill.source if newest is not None else None
    if newest is None:
        newest = {one.path: one.data for one in content_of(core, skill, quarantined=True)}
    if stored.quarantined:
        return UpstreamDiff(_diff(here, newest, "here", QUARANTINED), stored.skill.source)
    text = _diff(here, newest, "here", "upstream")
    remote = stored.skill.source if stored.remote else None
    return UpstreamDiff(text, fetch=fetch, remote=remote) if text or remote else None


def _diff_skill(core: Core, name: str) -> UpstreamDiff:
    """Return the diff from a skill of the registry to its upstream."""
    stored = CurrentSkill.of_stored(core, resolve(core.reader, name)).stored
    here = {one.path: one.data for one in content_of(core, stored.skill)}
    there = _original(core, stored)
    if there is not None and there.skill.origin is not None:
        newest = _newest(core, there, there.skill.origin)
        if newest is None:
            newest = {one.path: one.data for one in content_of(core, there.skill)}
        return UpstreamDiff(_diff(here, newest, "here", "upstream"), remote=there.skill.source)
    for other in same_name(core.reader, stored.skill.name):
        if other.remote:
            theirs = {one.path: one.data for one in content_of(core, other.skill)}
            return UpstreamDiff(_diff(here, theirs, "here", other.skill.ref))
    origin = stored.skill.origin
    if origin is not None:
        reason = f"it is not a source here. To add it, run: skill-registry sync {quote(origin.url)}"
        raise RemoteInvalid(url=origin.url, reason=reason)
    raise NoUpstream(name=stored.skill.ref)


def _original(core: Core, stored: StoredSkill) -> StoredSkill | None:
    """Return the remote source's skill: ``stored`` itself; for an installed copy, its original."""
    origin = origin_of(stored.skill)
    if stored.remote or origin is None:
        return stored if stored.remote else None
    return at_origin(core, stored.skill.name, origin, stored.skill.tree_hash or "")


def _newest(core: Core, stored: StoredSkill, origin: Origin) -> FilesByPath | None:
    """Return the current files of a skill in its remote source.

    Returns None if the remote source hasn't changed since the last sync.
    """
    source = find(core, stored.skill.source)
    remote = source.remote
    if remote is None:
        raise NoUpstream(name=stored.skill.ref)
    kinds = core.settings.source_kinds
    commit = commit_now(source, FetchLimits())
    # Fetch into a temporary folder, because the source's checkout must keep the version of the last
    # sync.
    with (
        TemporaryDirectory(prefix="skill-registry-") as state,
        open_remote(remote, state, remote.version, FetchLimits(), kinds, commit=commit) as tree,
    ):
        if tree is None:
            return None
        wanted = below(tree.files, origin.path)
        data = dict(tree.read(list(wanted.values())))
        return {inside: data[path] for inside, path in wanted.items()}


def _diff(was: FilesByPath, now: FilesByPath, before: str, after: str) -> str:
    lines = (
        line
        for path in sorted({*was, *now})
        if was.get(path) != now.get(path)
        for line in difference(path, was.get(path, b""), now.get(path, b""), before, after)
    )
    return "".join(lines)
