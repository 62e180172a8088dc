"""Bring the checkouts of remote sources up to date, several at once."""

import logging
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import suppress
from dataclasses import replace
from typing import Final

from registry.core import Core
from registry.errors import RegistryError, RemoteUnreachable, SyncRunning
from registry.model import Remote, Source
from registry.remotes.checkout import Checkout, home_of
from registry.remotes.git_program import interrupt
from registry.remotes.kinds import MAX_REASON, open_remote
from registry.remotes.pins import pin_now
from registry.remotes.tree import Bounds
from registry.sync.planning import SyncOptions
from registry.sync.report import Fetched, Outcome, Progress
from registry.text import in_one_line, utc_now

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
            from registry.remotes.chosen import wanted_files

            wanted, notices = wanted_files(tree, remote, bounds, may_be_none=options.allow_prune)
            checkout.take(tree, known, wanted, bounds)
            now = replace(remote, version=tree.version, fetched_at=utc_now())
            return Fetched(now, notices=(*tree.notices, *notices))
