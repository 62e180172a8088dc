"""Bring the checkouts of remote sources up to date, several at once.

A pin stays what it was: a tag that moved is not followed, and no branch takes its place. By
convention tags never move, so a tag that moved is a mistake or an attack. A branch moves, and is
followed. The checkout remembers which of the two a pin is, and the commit of a tag. It keeps its
files until the user pins the source again.
"""

import logging
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from dataclasses import replace
from shlex import quote
from typing import Final, NamedTuple

from registry.core import Core
from registry.errors import PinMoved, RegistryError, RemoteUnreachable, SourceInvalid, SyncRunning
from registry.model import Remote, Source
from registry.remotes.checkout import Checkout, home_of
from registry.remotes.git import COMMIT, TAG, Git, interrupt
from registry.remotes.kinds import MAX_REASON, open_remote
from registry.remotes.snapshot import Bounds
from registry.sync.plan import SyncOptions
from registry.sync.report import Fetched, Outcome, Progress
from registry.text import in_one_line, utc_now

SHOWN: Final = 12
"""Characters of a commit in a message."""


class Pin(NamedTuple):
    """A branch or a tag (``kind``, as `Git.refs` names them), and its commit."""

    kind: str
    commit: str


def pin_now(checkout: Checkout, remote: Remote, name: str, bounds: Bounds) -> Pin | None:
    """Ask the remote what the pin of the source ``name`` means now; None: it follows no name.

    Raises `PinMoved`, `RemoteProblem`.
    """
    ref = remote.ref
    if remote.kind != "git" or ref is None or COMMIT.fullmatch(ref):
        return None
    found = Git(remote.url, "", bounds).refs(ref)
    before = _before(checkout, found)
    if before is None:
        reason = f"{ref} is a tag and a branch there, and it is unknown which of them is meant"
    elif before.kind not in found:
        reason = f"the {before.kind} {ref} is gone, and a {min(found)} has its name"
    elif before.kind == TAG and before.commit != found[TAG]:
        reason = f"the tag {ref} moved from {before.commit[:SHOWN]} to {found[TAG][:SHOWN]}"
    else:
        return Pin(before.kind, found[before.kind])
    way = f"skill-registry source update {quote(name)} --ref {quote(ref)}"
    raise PinMoved(url=remote.url, reason=reason, way=way, commit=next(iter(found.values())))


def commit_now(source: Source, bounds: Bounds) -> str | None:
    """Return the commit of a source's pin now, also if it moved; None: nothing tells what it was.

    Raises `RemoteProblem`.
    """
    if source.remote is not None:
        with suppress(SourceInvalid):
            checkout = Checkout(home_of(source.path, source.name))
            if checkout.is_of(source.remote):
                try:
                    pin = pin_now(checkout, source.remote, source.name, bounds)
                except PinMoved as moved:
                    return moved.commit
                return None if pin is None else pin.commit
    return None


def _before(checkout: Checkout, found: Mapping[str, str]) -> Pin | None:
    """Return what the pin was so far; None: nothing tells."""
    if checkout.pin is not None:
        return Pin(*checkout.pin)
    version = checkout.version
    if version is None or checkout.is_pinned_anew:
        return Pin(*next(iter(found.items())))
    # The checkout was made before pins were remembered.
    same = [kind for kind, commit in found.items() if commit == version]
    kinds = same or list(found)
    return Pin(kinds[0], version) if len(kinds) == 1 or same else None


log = logging.getLogger(__name__)

PLAIN: Final = SyncOptions()
AT_ONCE: Final = 4

TOGETHER: Final = 3.0
"""Seconds within which sources that are fetched are stored together."""

WINK: Final = 0.05
"""Seconds between two looks at whether what is interrupted has ended."""


def fetch_sources(
    core: Core,
    sources: Sequence[Source],
    progress: Progress,
    options: SyncOptions = PLAIN,
) -> Generator[Mapping[str, Fetched]]:
    """Fetch remote sources, and yield the results by the source's path as they come.

    The first result comes within `TOGETHER` seconds, and may be empty, so a slow server holds up
    only its own source. A source that can't be fetched keeps its files and says why. Any error
    marks its own source only.
    """
    with ThreadPoolExecutor(min(AT_ONCE, len(sources)) or 1, "registry-fetch") as pool:
        jobs = {pool.submit(_fetched, core, one, options): one for one in sources}
        left = set(jobs)
        try:
            progress("fetching", 0, len(jobs))
            while left:
                ready: dict[str, Fetched] = {}
                with suppress(TimeoutError):
                    for job in as_completed(frozenset(left), TOGETHER):
                        left.remove(job)
                        ready[jobs[job].path] = job.result()
                        progress("fetching", len(jobs) - len(left), len(jobs))
                yield ready
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while wait(jobs, WINK).not_done:
                interrupt()
            raise


def _fetched(core: Core, source: Source, options: SyncOptions) -> Fetched:
    assert source.remote is not None  # noqa: S101  # only such are given
    try:
        home = home_of(source.path, source.name)
        return fetch(core, source.remote, home, source.name, options)
    except RegistryError as error:
        outcome: Outcome = (
            "offline" if isinstance(error, RemoteUnreachable | SyncRunning) else "refused"
        )
        return Fetched(source.remote, outcome, str(error))
    except OSError as error:
        return Fetched(source.remote, "refused", f"{error.strerror or error} ({source.path})")
    except Exception as error:  # a server's answer must not stop other sources
        log.debug("The fetch of %s failed", source.name, exc_info=True)
        return Fetched(source.remote, "refused", internal(error))


def internal(error: Exception) -> str:
    """Return how an unexpected error is reported. Its traceback is logged, at level DEBUG."""
    return f"Internal error ({in_one_line(error)[:MAX_REASON]})"


def fetch(
    core: Core, remote: Remote, home: str, name: str, options: SyncOptions = PLAIN
) -> Fetched:
    """Bring one checkout up to date; see `fetch_sources`.

    Raises `RemoteProblem`, `SourceInvalid`, OSError.
    """
    bounds = Bounds()
    with Checkout.locked(home) as checkout:
        checkout.check_asked(remote, name)
        known = checkout.known(verify=options.verify)
        kinds = core.settings.source_kinds
        pin = pin_now(checkout, remote, name, bounds)
        if pin is not None:
            checkout.note_pin(*pin)
        commit = None if pin is None else pin.commit
        with open_remote(remote, checkout.state, known, bounds, kinds, commit=commit) as tree:
            if tree is None:
                return Fetched(replace(remote, version=known))
            from registry.remotes.discovery import wanted_files

            wanted, notices = wanted_files(tree, remote, bounds, may_be_none=options.allow_prune)
            checkout.take(tree, known, wanted, bounds)
            now = replace(remote, version=tree.version, fetched_at=utc_now())
            return Fetched(now, notices=(*tree.notices, *notices))
