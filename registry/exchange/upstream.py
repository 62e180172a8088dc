"""How a skill differs from what it comes from."""

from collections.abc import Mapping
from tempfile import TemporaryDirectory

from registry.catalog.resolve import resolve
from registry.core import Core
from registry.db.queries.skills import StoredSkill, namesakes
from registry.document.differing import difference
from registry.errors import NoUpstream
from registry.exchange.content import content_of
from registry.exchange.remote.chosen import below
from registry.exchange.remote.kinds import open_remote
from registry.exchange.remote.pins import commit_now
from registry.exchange.remote.tree import Bounds
from registry.model import Origin
from registry.sync.sources import find

FilesByPath = Mapping[str, bytes]


def diff_upstream(core: Core, name: str) -> str:
    """Return a unified diff of a skill and what it comes from.

    Of a skill of a remote source that is what the next sync would bring; of another, what is
    different in the skill of its name that the strongest remote source has. Empty: nothing is.
    Raises `SkillNotFound`, `NoUpstream`, `RemoteProblem`.
    """
    stored = resolve(core.reader, name)
    here = {one.path: one.data for one in content_of(core, stored.skill)}
    if stored.skill.origin is not None:
        newest = _newest(core, stored, stored.skill.origin)
        return "" if newest is None else _diff(here, newest, "here", "upstream")
    for other in namesakes(core.reader, stored.skill.name):
        if other.skill.origin is not None:
            theirs = {one.path: one.data for one in content_of(core, other.skill)}
            return _diff(theirs, here, other.skill.ref, "here")
    raise NoUpstream(name=stored.skill.ref)


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
