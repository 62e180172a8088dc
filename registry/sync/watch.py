"""Watch the folders of the sources, and sync when files change."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

from registry.core import Core
from registry.db.forks import reopen_in_child
from registry.db.interface import Reader
from registry.db.read.listing import TreeHashes
from registry.db.read.skills import by_place, has_below, innermost
from registry.disk.mounts import is_remote
from registry.disk.paths import ROOT, is_below, is_ignored
from registry.errors import RegistryError, SkillNotFound, SyncRunning, Unavailable, UsageProblem
from registry.model import DOCUMENT_NAMES, Source
from registry.sync.refresh import refresh
from registry.sync.report import SyncReport
from registry.sync.run import sync
from registry.sync.sources import own_sources

MAX_SKILLS: Final = 20
"""Maximum number of changed skills that are refreshed separately.

If more skills change, their source is synced.
"""


def by_source(paths: Iterable[str], sources: Sequence[Source]) -> dict[str, list[str]]:
    """Group paths by the name of the source that contains them.

    If sources are nested, the innermost source counts. Paths in excluded folders are left out.
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        holding = [source for source in sources if is_below(path, source.path)]
        if holding:
            source = max(holding, key=lambda one: len(one.path))
            folders = os.path.relpath(os.path.dirname(path), source.path).split(os.sep)
            if not any(is_ignored(folder) for folder in folders):
                found.setdefault(source.name, []).append(path)
    return found


def touched_skills(reader: Reader, source: Source, paths: Sequence[str]) -> list[str] | None:
    """Return the folders of the skills to which these changed paths belong.

    Returns None if the whole source must be scanned: a skill may have been added, removed or moved,
    or more than `MAX_SKILLS` skills changed.
    """
    folders: dict[str, None] = {}
    for path in paths:
        below = os.path.relpath(path, source.path)
        folder = innermost(reader, source.id, below)
        if folder is None or _may_be_more(reader, source, folder, path, below):
            return None
        folders[folder] = None
        if len(folders) > MAX_SKILLS:
            return None
    return list(folders)


def _may_be_more(reader: Reader, source: Source, folder: str, path: str, below: str) -> bool:
    """Tell whether a change at this path may affect other skills than the one in ``folder``."""
    name = os.path.basename(path)
    inside = os.path.dirname(below) or ROOT
    if os.path.isdir(path) or os.path.islink(path) or (name in DOCUMENT_NAMES and inside != folder):
        return True
    if name in DOCUMENT_NAMES and not os.path.lexists(path):
        return True
    # The removed path may have been a folder that contained other skills.
    return not os.path.lexists(path) and has_below(reader, source.id, below)


SETTLE_MS: Final = 200
"""Time in which several file events count as one event, in milliseconds.

An editor causes several events when it saves a file.
"""

LOOK_SECONDS: Final = 0.5
"""Time between checks for changes of the database by other processes, in seconds."""

IDLE_SHARE: Final = 12
IDLE_LOOK_SECONDS: Final = 15.0
"""Maximum time between these checks on a server, in seconds.

If the database has been unchanged for t seconds, the next check is after t / `IDLE_SHARE` seconds,
or at a change of the watched folders.
"""

FULL_SECONDS: Final = 300.0
"""Time between syncs of all sources, in seconds, because file events may get lost."""

POLL_SECONDS: Final = 2.0
POLL_SHARE: Final = 20
"""Factor for the time between syncs if there are no file events.

If a sync took t seconds, the next sync starts after `POLL_SHARE` * t seconds, but not before
`POLL_SECONDS`.
"""

COMPARE_SHARE: Final = 100
COMPARE_SECONDS: Final = 5.0
"""Maximum pause between two comparisons of the list of skills, in seconds.

If a comparison took t seconds, the pause after it is `COMPARE_SHARE` * t seconds, but at most
`COMPARE_SECONDS`. The pause limits the work for a large SQLite file, because each comparison reads
the whole list.
"""


@dataclass(frozen=True, slots=True)
class Changes:
    """The refs of skills that were added to, updated in or removed from the list of skills."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.updated or self.removed)


class Watcher:
    """Keeps the database in line with all enabled sources until it is stopped.

    ``on_change`` is called with the changes in the list of skills. ``on_sync`` is called with the
    report of each sync that found a change. ``on_note`` is called with a message for users about a
    problem. The watching thread makes all these calls.
    """

    def __init__(
        self,
        core: Core,
        *,
        on_change: Callable[[Changes], None] = lambda _: None,
        on_sync: Callable[[SyncReport], None] = lambda _: None,
        on_note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._core = core
        self._on_change, self._on_sync, self._on_note = on_change, on_sync, on_note
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._noted: set[str] = set()
        self._hashes = TreeHashes()
        self._version: object = None
        self._known: Sequence[Source] = ()
        self._known_at: object = None
        self._changed_at = time.monotonic()
        self._next_look = 0.0
        self._owed: set[str] = set()
        self._next_full = 0.0
        self._next_poll = 0.0
        self._next_compare = 0.0

    def start(self) -> None:
        """Start watching in a new thread.

        The thread reports changes since the list of skills at this moment.
        """
        self._compare()
        self._next_compare = 0.0
        self._thread = threading.Thread(target=self.run, name="watch", daemon=True)
        self._thread.start()

    def look_from(self, core: Core) -> None:
        """From now on, watch the catalogue in the view of ``core``.

        The next report contains the differences between the lists of skills in the old and the new
        view.
        """
        self._core, self._version, self._known_at = core, None, None
        self._next_compare = self._next_look = 0.0

    def join(self) -> None:
        """Wait until the watching ends; in the watching thread itself, return immediately."""
        if self._thread is not None and not self.is_own_thread:
            self._thread.join()

    @property
    def is_own_thread(self) -> bool:
        """Whether the caller runs in the watching thread, for example in a callback."""
        return self._thread is threading.current_thread()

    def abandon(self) -> None:
        """Record that the watching has ended, because a forked child doesn't have the thread."""
        self._stop, self._thread = threading.Event(), None
        self._stop.set()

    def stop(self) -> None:
        """Stop watching, and wait until a running sync ends."""
        self._stop.set()
        self.join()

    def run(self) -> None:
        """Watch until `stop` is called."""
        while not self._stop.is_set():
            try:
                self._watch(self._sources())
            except RegistryError as error:
                self._note(str(error))
                if isinstance(error, Unavailable):
                    # changes during the outage are unknown, so sync all sources
                    self._next_full = 0.0
                self._stop.wait(LOOK_SECONDS)

    def _watch(self, sources: Sequence[Source]) -> None:
        """Watch these sources until `_sources` returns a different list.

        The list changes if a source is added, changed or removed, or if its folder appears or
        disappears.
        """
        far = [source for source in sources if is_remote(f"{source.path}/.")]
        for source in far:
            self._note(
                f"{source.path} is on another machine: it is only searched every few seconds."
            )
        near = [source for source in sources if source not in far]
        for touched in self._events(near):
            self._look_at(near, touched)
            if time.monotonic() >= self._next_full:
                self._owed.update(source.name for source in sources)
                self._next_full = time.monotonic() + FULL_SECONDS
            elif far and time.monotonic() >= self._next_poll:
                self._owed.update(source.name for source in far)
            if touched or self._owed:
                self._next_look = 0.0
            self._sync()
            if self._stop.is_set():
                return
            now = self._sources()
            if changes := self._compare():
                self._on_change(changes)
            if self._stop.is_set() or now != sources:
                return

    def _sources(self) -> list[Source]:
        """Return the enabled sources whose folders exist; leave out the values that a sync changes.

        If the version of the database is the same, the list of sources isn't read again. On a
        server without changes, the version is read less and less often (`IDLE_LOOK_SECONDS`).
        """
        now = time.monotonic()
        if now >= self._next_look:
            version = self._core.reader.version()
            if version is None or version != self._known_at:
                self._known = [
                    replace(one, last_sync_at=None, last_result=None, skills=0)
                    for one in own_sources(self._core)
                    if one.enabled
                ]
                self._known_at, self._changed_at = version, now
            elif self._core.host:
                pause = (now - self._changed_at) / IDLE_SHARE
                self._next_look = now + min(pause, IDLE_LOOK_SECONDS)
        return [one for one in self._known if os.path.isdir(one.path)]

    def _events(self, sources: Sequence[Source]) -> Iterator[dict[str, list[str]]]:
        """Yield the changed paths by source name.

        Each time that `LOOK_SECONDS` pass without events, yield an empty dict.
        """
        from watchfiles import watch

        try:
            if sources:
                for events in watch(
                    *[source.path for source in sources],
                    watch_filter=None,
                    debounce=SETTLE_MS,
                    step=SETTLE_MS // 4,
                    stop_event=self._stop,
                    rust_timeout=int(LOOK_SECONDS * 1000),
                    yield_on_timeout=True,
                    raise_interrupt=False,
                    ignore_permission_denied=True,
                ):
                    yield by_source([path for _, path in events], sources)
                return
        except FileNotFoundError:
            self._stop.wait(LOOK_SECONDS)
            return  # the folder of a source was removed; the next call leaves this source out
        except (OSError, RuntimeError) as error:
            self._note(
                f"No file events ({error}): the sources are only searched every few seconds."
            )
        while not self._stop.wait(LOOK_SECONDS):
            if time.monotonic() >= self._next_poll:
                self._owed.update(source.name for source in sources)
            yield {}

    def _look_at(self, sources: Sequence[Source], touched: dict[str, list[str]]) -> None:
        """Refresh the skills that contain the changed paths.

        If other skills may also have changed, or a refresh fails, mark the source for a sync.
        """
        for source in sources:
            if source.name not in touched or source.name in self._owed:
                continue
            folders = touched_skills(self._core.reader, source, touched[source.name])
            for folder in folders or ():
                if self._stop.is_set():
                    return
                try:
                    changed = self._refresh(source, folder)
                except RegistryError:
                    folders = None
                    break
                if changed is not None:
                    self._on_sync(SyncReport(updated=(changed,)))
            if folders is None:
                self._owed.add(source.name)

    def _refresh(self, source: Source, folder: str) -> str | None:
        """Compare a skill with its folder, and store it again if it changed.

        Returns the ref of the skill if it changed, else None.
        """
        before = by_place(self._core.reader, source.id, folder)
        if before is None:
            raise SkillNotFound(folder)
        after = refresh(self._core, before)
        return None if after is None or after[0].id == before.id else after[0].skill.ref

    def _sync(self) -> None:
        """Sync the sources that are marked for a sync.

        If the sync fails, report the failure, and repeat the sync at the next file event. If the
        database is unreachable, repeat the sync without an event.
        """
        if not self._owed or self._stop.is_set():
            return
        started = time.monotonic()
        owed = sorted(self._owed)
        try:
            report = sync(self._core, owed)
        except SyncRunning:
            return  # the sources stay marked until the other sync has ended
        except Unavailable as error:
            self._note(str(error))
            return  # the sources stay marked until the database is available
        except RegistryError as error:
            self._note(str(error))
        else:
            for part in report.sources:
                if part.outcome != "ok":
                    self._note(f"{part.name}: {part.message or part.outcome}")
            if report.added or report.updated or report.moved or report.removed:
                self._on_sync(report)
        self._owed.clear()
        took = time.monotonic() - started
        self._next_poll = time.monotonic() + max(POLL_SECONDS, POLL_SHARE * took)

    def _compare(self) -> Changes:
        """Return the changes in the list of skills since the last call.

        The lists are compared only if `_sources` saw a new version of the database.
        """
        version, started = self._known_at, time.monotonic()
        is_other = version is None or version != self._version
        if not is_other or started < self._next_compare:
            return Changes()
        before: dict[str, str] = {}
        now: dict[str, str] = {}
        with suppress(RegistryError):
            before, now = self._hashes.read(self._core.reader)
            self._version = version
        took = time.monotonic() - started
        self._next_compare = started + min(COMPARE_SHARE * took, COMPARE_SECONDS)
        return Changes(
            added=tuple(sorted(now.keys() - before.keys())),
            updated=tuple(sorted(r for r, h in now.items() if before.get(r, h) != h)),
            removed=tuple(sorted(before.keys() - now.keys())),
        )

    def _note(self, text: str) -> None:
        """Pass a message to ``on_note``, but only at its first occurrence."""
        if text not in self._noted:
            self._noted.add(text)
            self._on_note(text)


log = logging.getLogger(__name__)


class Watching(Watcher):
    """Keeps a registry in line with its sources, in a thread, until it is stopped or closed.

    The thread calls ``on_change`` with the report of each sync that found a change. If the callback
    fails, its exception is logged, and the calls continue. `stop`, or the end of the ``with``
    block, raises the first exception. A forked child watches nothing.
    """

    def __init__(self, core: Core, on_change: Callable[[SyncReport], object]) -> None:
        if not callable(on_change):
            raise UsageProblem(message="on_change must be a function that takes a report")
        super().__init__(core, on_sync=self._call, on_note=core.warn)
        self._callback = on_change
        self._failure: Exception | None = None
        self._followers = core.followers
        self._followers.add(self)
        reopen_in_child(self)
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.stop()
        else:
            self.end()

    @property
    def running(self) -> bool:
        """Whether the watching thread runs.

        The thread doesn't run after `stop`, after an error, and in a forked child.
        """
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Stop watching, wait for a running call, and raise the first error.

        If ``on_change`` itself calls this method, the method doesn't wait and raises nothing.
        """
        self.end()
        if not self.is_own_thread:
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure

    def end(self) -> None:
        """Stop watching as `stop` does, but raise no error.

        A later call of `stop` raises the first error.
        """
        super().stop()
        if not self.is_own_thread:
            self._followers.discard(self)

    def run(self) -> None:
        """Watch until `stop` is called; see `Watcher`."""
        try:
            super().run()
        except Exception as error:
            log.exception("the watching has ended")
            self._keep(error)

    def forked(self, *, idle: bool) -> None:  # noqa: ARG002  # a watcher has nothing to close
        """Stop using the watcher in a forked child, because only the parent process watches.

        See `registry.db.forks`.
        """
        self.abandon()
        self._failure = None

    def _call(self, report: SyncReport) -> None:
        try:
            self._callback(report)
        except Exception as error:
            log.exception("the callback for a change failed")
            self._keep(error)

    def _keep(self, failure: Exception) -> None:
        if self._failure is None:
            self._failure = failure
