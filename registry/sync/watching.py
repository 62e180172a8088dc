"""Watching for a program: a callback for what changes, and what goes wrong in it told."""

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Self

from registry.core import Core
from registry.db.forks import reopen_in_child
from registry.errors import UsageProblem
from registry.sync.report import SyncReport
from registry.sync.watch import Watcher

log = logging.getLogger(__name__)


class Watching(Watcher):
    """Keeps a registry in line with its sources, in a thread, until it is stopped or closed.

    ``on_change`` is called by that thread with each report of a sync that found something. What it
    raises is logged, and keeps nobody from being told of the next change: `stop`, or the end of the
    ``with`` block, raises the first of it. A forked child watches nothing.
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
        """Whether it watches: not yet stopped, not ended by an error, and not in a forked child."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """End the watching, wait for a call that is under way, and raise what failed first.

        Called by ``on_change``, it waits for nothing and raises nothing.
        """
        self.end()
        if not self.is_own_thread:
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure

    def end(self) -> None:
        """End the watching as `stop` does, and keep what failed for who calls that."""
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

    def forked(self, *, idle: bool) -> None:  # noqa: ARG002  # nothing is closed
        """Leave to the parent what it watches; see `registry.db.forks`."""
        self.abandon()
        self._failure = None

    def _call(self, report: SyncReport) -> None:
        try:
            self._callback(report)
        except Exception as error:
            log.exception("what was to be told of a change has failed")
            self._keep(error)

    def _keep(self, failure: Exception) -> None:
        if self._failure is None:
            self._failure = failure
