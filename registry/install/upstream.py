"""How a skill differs from what it comes from."""

from collections.abc import Mapping
from shlex import quote
from tempfile import TemporaryDirectory

from registry.catalog.reading import CurrentSkill
from registry.catalog.resolve import resolve
from registry.core import Core
from registry.db.read.skills import StoredSkill, same_name
from registry.document.differing import difference
from registry.errors import NoUpstream, RemoteInvalid
from registry.install.content import content_of
from registry.install.provenance import at_origin, origin_of
from registry.model import Origin
from registry.remotes.fetch import commit_now
from registry.remotes.kinds import open_remote
from registry.remotes.snapshot import Bounds, below
from registry.sync.sources import find

FilesByPath = Mapping[str, bytes]


def diff_upstream(core: Core, name: str) -> str:
    """Return a unified diff from a skill to what it comes from.

    Of a skill of a remote source that is what the next sync would bring, and of an installed copy
    what the pull after it would; of another, what is different in the skill of its name that the
    strongest remote source has. Empty: nothing is. Raises `SkillNotFound`, `NoUpstream`,
    `RemoteProblem`.
    """
    stored = CurrentSkill.of_stored(core, resolve(core.reader, name)).stored
    here = {one.path: one.data for one in content_of(core, stored.skill)}
    there = _original(core, stored)
    if there is not None and there.skill.origin is not None:
        newest = _newest(core, there, there.skill.origin)
        if newest is None:
            newest = {one.path: one.data for one in content_of(core, there.skill)}
        return _diff(here, newest, "here", "upstream")
    for other in same_name(core.reader, stored.skill.name):
        if other.remote:
            theirs = {one.path: one.data for one in content_of(core, other.skill)}
            return _diff(here, theirs, "here", other.skill.ref)
    origin = stored.skill.origin
    if origin is not None:
        reason = f"it is not a source here. To add it, run: skill-registry sync {quote(origin.url)}"
        raise RemoteInvalid(url=origin.url, reason=reason)
    raise NoUpstream(name=stored.skill.ref)


def _original(core: Core, stored: StoredSkill) -> StoredSkill | None:
    """Return the skill of a remote source that this one is, or is an installed copy of."""
    origin = origin_of(stored.skill)
    if stored.remote or origin is None:
        return stored if stored.remote else None
    return at_origin(core, stored.skill.name, origin, stored.skill.tree_hash or "")


def _newest(core: Core, stored: StoredSkill, origin: Origin) -> FilesByPath | None:
    """Return the files of a skill as its remote has them now; None: as they are here."""
    source = find(core, stored.skill.source)
    remote = source.remote
    if remote is None:
        raise NoUpstream(name=stored.skill.ref)
    kinds = core.settings.source_kinds
    commit = commit_now(source, Bounds())
    # Not in the checkout: what is looked at here is not what the source has read last.
    with (
        TemporaryDirectory(prefix="skill-registry-") as state,
        open_remote(remote, state, remote.version, Bounds(), kinds, commit=commit) as tree,
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
