"""Put skills of a registry into a folder, or where agents look; never over an edit made there."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from registry.core import Core
from registry.errors import LockMissing, LockNotMet, NotPulled, PullRefused, RegistryError
from registry.exchange import lockfile
from registry.exchange.choice import folders, owner
from registry.exchange.content import content_as_locked
from registry.exchange.lockfile import Locked, Mode
from registry.exchange.origins import Origins
from registry.exchange.placed import Placed
from registry.exchange.staging import alone_in, where
from registry.exchange.standing import Standing
from registry.exchange.targets import Target
from registry.exchange.told import Pulled
from registry.model import Skill


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """How skills are put into their places.

    ``agents``: the ids of those that are to have them, beside those that do; ``mode``: by links to
    one copy, or by copies; None: as it is, or as is usual. ``force``: also over what somebody else
    made; ``theirs``: over edits of what was pulled. ``dry_run``: nothing is written. ``offline``:
    of what lies elsewhere only what was fetched before counts.
    """

    agents: Sequence[str] = ()
    mode: Mode | None = None
    force: bool = False
    theirs: bool = False
    dry_run: bool = False
    offline: bool = False


PLAIN: Final = How()


def pull(core: Core, skills: Sequence[Skill], target: Target, how: How = PLAIN) -> list[Pulled]:
    """Write skills into folders of their names; what is equal is left alone.

    A folder that was edited since it was pulled, or that no pull made, is left alone, too, unless
    told otherwise, and so is one that was pulled from elsewhere. A skill that can't be had, or has
    no folder of its own there, keeps no other from coming. Raises `PullClash` where all of them
    would have one folder, `PullRefused` where a folder can't be written, `LockFileInvalid`,
    `AgentNotFound`, and `UsageProblem` for an agent that has no skills there.
    """
    target.labels(how.agents)
    places, refused = folders(skills, target.path, for_agents=bool(how.agents))
    with at_work(core, target, how) as work:
        found = [work.pull(folder, skill, how.agents, how.mode) for folder, skill in places.items()]
    return found + refused


def update(
    core: Core, target: Target, names: Sequence[str] | None = None, how: How = PLAIN
) -> list[Pulled]:
    """Bring what was pulled up to date: all that the lock lists, or these folders of it.

    What the registry has no more is told as gone, and left alone. Raises `LockMissing`, and as
    `pull`.
    """
    check_folder(target)
    with at_work(core, target, how) as work:
        check_locked(target)  # by now a killed pull is finished, or taken back
        return [
            _updated(core, target, work, folder, work.locked[folder], how)
            for folder in sorted(work.locked)
            if names is None or folder in names
        ]


def _updated(
    core: Core, target: Target, work: Standing, folder: str, entry: Locked, how: How
) -> Pulled:
    skill = owner(core, entry)
    if skill is None:
        return gone(target, folder, entry)
    return work.pull(folder, skill, entry.agents, how.mode)


def remove(core: Core, target: Target, names: Sequence[str], how: How = PLAIN) -> list[Pulled]:
    """Remove what was pulled into these folders, links included, unless it was edited there.

    Raises as `pull`.
    """
    with at_work(core, target, how) as work:
        return [work.remove(folder) for folder in names]


def put_back(core: Core, target: Target, how: How = PLAIN) -> list[Pulled]:
    """Let everything be as the lock says, to the byte, or change nothing at all.

    The files come from the registry, its skills as they are now and their revisions, else from
    where the lock says that they come from. Raises `LockNotMet` where some are not to be had, or
    are in the way of an edit, and as `pull`.
    """
    check_locked(target)
    missing: list[str] = []
    with ExitStack() as stack:
        origins = Origins(core, stack, offline=how.offline)
        with at_work(core, target, replace(how, dry_run=True)) as plan:
            for folder, entry in sorted(plan.locked.items()):
                told = _put_back(core, plan, origins, folder, entry)
                if told.state in {"edited", "failed"}:
                    missing.append(f"{folder} ({(told.reason or told.state).rstrip('.')})")
        if missing:
            raise LockNotMet(path=os.path.join(target.path, lockfile.NAME), missing=missing)
        with at_work(core, target, how) as work:
            return [_put_back(core, work, origins, *one) for one in sorted(work.locked.items())]


def _put_back(core: Core, work: Standing, origins: Origins, folder: str, entry: Locked) -> Pulled:
    # Not kept from the first time to the second: together they may be larger than the memory.
    reason = None
    entries = content_as_locked(core, entry.name, entry.tree_hash)
    if entries is None:
        try:
            entries = origins.files(entry)
        except RegistryError as error:
            reason = str(error)
    return work.put_back(folder, entry, entries, reason)


def check_locked(target: Target) -> None:
    """Raise `LockMissing` where nothing was pulled: that nothing is behind there says nothing."""
    path = os.path.join(target.path, lockfile.NAME)
    if not os.path.lexists(path):
        raise LockMissing(path=path)


def check_folder(target: Target) -> None:
    """Raise `LockMissing` where there is not even a folder for a lock."""
    if not os.path.isdir(target.path):
        check_locked(target)


def folders_of(target: Target, names: Sequence[str]) -> list[str]:
    """Return the folders that were pulled under these names. Raises `NotPulled`, `LockMissing`.

    A name is the folder's, the skill's, or the place that it came from.
    """
    check_locked(target)
    locked = lockfile.read_lock(target.path)
    known = {
        name: folder
        for folder, entry in locked.items()
        for name in (f"{entry.source}/{entry.folder}", entry.ref, entry.name, folder)
    }
    for name in names:
        if name not in known:
            near = get_close_matches(name, locked, n=3)
            path = os.path.join(target.path, lockfile.NAME)
            raise NotPulled(name=name, path=path, similar=near)
    return list(dict.fromkeys(known[name] for name in names))


def gone(target: Target, folder: str, entry: Locked) -> Pulled:
    """Tell of a skill that the registry has no more."""
    place = f"{entry.source}/{entry.folder}" if entry.source else entry.name
    laid = target.laid(entry.agents, entry.mode, folder)
    url = entry.origin and entry.origin["url"]
    reason = f"it comes from {url}, which is no source here" if url else None
    return Pulled(place, laid[0].path_of(folder), "gone", reason)


def check(core: Core, skills: Sequence[Skill] | None, target: Target) -> list[Pulled]:
    """Say how what is there differs from the registry, for these skills or (None) all of the lock.

    Raises `PullClash`, `PullRefused` and `LockFileInvalid` as `pull`.
    """
    with told_as_refused(target.path), ExitStack() as stack:
        standing = Standing(core, stack, target)
        standing.begin()
        if skills is not None:
            for_agents = any(entry.agents for entry in standing.locked.values())
            places, refused = folders(skills, target.path, for_agents=for_agents)
            return [standing.check(folder, skill) for folder, skill in places.items()] + refused
        found = []
        for folder, entry in sorted(standing.locked.items()):
            skill = owner(core, entry)
            told = gone(target, folder, entry) if skill is None else standing.check(folder, skill)
            found.append(told)
        return found


@contextmanager
def at_work(core: Core, target: Target, how: How) -> Iterator[Standing]:
    """Open what is there to be changed; what would become of it alone, for a dry run."""
    with told_as_refused(target.path), ExitStack() as stack:
        if how.dry_run:
            standing = Standing(core, stack, target, force=how.force, theirs=how.theirs)
            standing.begin()
            yield standing
            return
        anchor = stack.enter_context(alone_in(target.path))
        work = Placed(core, stack, target, anchor, force=how.force, theirs=how.theirs)
        try:
            work.begin()
            yield work
        finally:
            work.flush()


@contextmanager
def told_as_refused(path: str) -> Iterator[None]:
    """Raise `PullRefused` for what the system refuses."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise PullRefused(path=where(path, error), reason=reason) from error
