"""Follow the disk by file events, and tell what became different in the catalogue.

One thread watches all sources, reads the skills anew whose files were touched, syncs a source where
skills may have come or gone, and compares what models are offered with what it was: so a change is
noticed whoever made it, this process or another.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from registry.core import Core
from registry.db.read.listing import TreeHashes
from registry.db.read.skills import by_place
from registry.disk.mounts import is_remote
from registry.errors import RegistryError, SkillNotFound, SyncRunning, Unavailable
from registry.model import Source
from registry.sync.refresh import refresh
from registry.sync.report import SyncReport
from registry.sync.run import sync
from registry.sync.sources import own_sources
from registry.sync.touched import by_source, touched_skills

SETTLE_MS: Final = 200
"""Events that come in such a time are one; an editor's save is several."""

LOOK_SECONDS: Final = 0.5
"""How often to look for changes that other processes made to the database."""

FULL_SECONDS: Final = 300.0
"""How often all sources are synced, whatever events say: the safety net."""

POLL_SECONDS: Final = 2.0
POLL_SHARE: Final = 20
"""Where events don't come, a sync every `POLL_SECONDS`, or every so many times what one takes."""

COMPARE_SHARE: Final = 100
COMPARE_SECONDS: Final = 5.0
"""What is offered is compared again after so many times what that took, or seconds: a server does
so for each process that watches, whenever anybody writes."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is offered differently now, by ref."""

    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.updated or self.removed)


class Watcher:
    """Keeps the database in line with all enabled sources until it is stopped.

    ``on_change`` is called with what is offered differently, ``on_sync`` with each sync that found
    something, ``on_note`` with words for people about what does not work; all by the thread that
    watches.
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
        self._seen: dict[str, str] = {}
        self._hashes = TreeHashes()
        self._version: object = None
        self._known: Sequence[Source] = ()
        self._known_at: object = None
        self._owed: set[str] = set()
        self._next_full = 0.0
        self._next_poll = 0.0
        self._next_compare = 0.0

    def start(self) -> None:
        """Watch in a thread of its own; what is offered now is what changes are told from."""
        self._compare()
        self._next_compare = 0.0
        self._thread = threading.Thread(target=self.run, name="watch", daemon=True)
        self._thread.start()

    def look_from(self, core: Core) -> None:
        """Tell changes as ``core`` sees them, and first what it sees otherwise."""
        self._core, self._version, self._known_at = core, None, None
        self._next_compare = 0.0

    def join(self) -> None:
        """Wait until the watching ends; not in its own thread, which would wait for itself."""
        if self._thread is not None and not self.is_own_thread:
            self._thread.join()

    @property
    def is_own_thread(self) -> bool:
        """Whether this is asked in the thread that watches: by what is told of a change."""
        return self._thread is threading.current_thread()

    def abandon(self) -> None:
        """Be one that has ended: of a forked process the child has no such thread."""
        self._stop, self._thread = threading.Event(), None
        self._stop.set()

    def stop(self) -> None:
        """End the watching, and wait for a sync that is under way."""
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
                    self._next_full = 0.0  # what was touched meanwhile is known to nobody
                self._stop.wait(LOOK_SECONDS)

    def _watch(self, sources: Sequence[Source]) -> None:
        """Watch these sources until others are registered, or the folder of one comes or goes."""
        far = [source for source in sources if is_remote(f"{source.path}/.")]
        for source in far:
            self._note(f"{source.path} is on another machine: it is looked at now and then.")
        near = [source for source in sources if source not in far]
        for touched in self._events(near):
            self._look_at(near, touched)
            if time.monotonic() >= self._next_full:
                self._owed.update(source.name for source in sources)
                self._next_full = time.monotonic() + FULL_SECONDS
            elif far and time.monotonic() >= self._next_poll:
                self._owed.update(source.name for source in far)
            self._sync()
            if self._stop.is_set():
                return
            now = self._sources()
            if changes := self._compare():
                self._on_change(changes)
            if self._stop.is_set() or now != sources:
                return

    def _sources(self) -> list[Source]:
        """Return the sources whose folders exist, without what a sync changes of them.

        The database is asked for nothing but its version as long as that stays the same.
        """
        version = self._core.reader.version()
        if version is None or version != self._known_at:
            self._known = [
                replace(one, last_sync_at=None, last_result=None, skills=0)
                for one in own_sources(self._core)
                if one.enabled
            ]
            self._known_at = version
        return [one for one in self._known if os.path.isdir(one.path)]

    def _events(self, sources: Sequence[Source]) -> Iterator[dict[str, list[str]]]:
        """Yield touched paths by their source, and nothing each `LOOK_SECONDS` without events."""
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
            return  # a source went away in this moment: the next round does without it
        except (OSError, RuntimeError) as error:
            self._note(f"Files can't be watched ({error}): the sources are looked at now and then.")
        while not self._stop.wait(LOOK_SECONDS):
            if time.monotonic() >= self._next_poll:
                self._owed.update(source.name for source in sources)
            yield {}

    def _look_at(self, sources: Sequence[Source], touched: dict[str, list[str]]) -> None:
        """Read the skills anew whose files were touched; where that is not all, owe a sync."""
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
        """Bring a skill in line with its folder; return its ref where that changed anything."""
        before = by_place(self._core.reader, source.id, folder)
        if before is None:
            raise SkillNotFound(folder)
        after = refresh(self._core, before)
        return None if after is None or after[0].id == before.id else after[0].skill.ref

    def _sync(self) -> None:
        """Sync the sources that are owed one; what fails is noted, and tried at the next event.

        Where the database is away it is tried again by itself.
        """
        if not self._owed or self._stop.is_set():
            return
        started = time.monotonic()
        owed = sorted(self._owed)
        try:
            report = sync(self._core, owed)
        except SyncRunning:
            return  # it is owed until the other one has ended
        except Unavailable as error:
            self._note(str(error))
            return  # it is owed until the database is there again
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
        """Return what is offered differently than at the last call, as `_sources` saw it last."""
        version, started = self._known_at, time.monotonic()
        is_other = version is None or version != self._version
        if not is_other or started < self._next_compare:
            return Changes()
        before = self._seen
        with suppress(RegistryError):
            self._seen, self._version = self._hashes.read(self._core.reader), version
        took = time.monotonic() - started
        self._next_compare = started + min(COMPARE_SHARE * took, COMPARE_SECONDS)
        now = self._seen
        return Changes(
            added=tuple(ref for ref in now if ref not in before),
            updated=tuple(r for r, h in now.items() if r in before and before[r] != h),
            removed=tuple(ref for ref in before if ref not in now),
        )

    def _note(self, text: str) -> None:
        """Say something once."""
        if text not in self._noted:
            self._noted.add(text)
            self._on_note(text)
