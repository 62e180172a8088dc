"""Fork safety: a fork waits for calls in progress, and the child opens its own connections.

A forked child has a copy of SQLite's notes about its parent's locks, but it doesn't hold these
locks. It would read and write without locks, and lose its writes
(https://sqlite.org/howtocorrupt.html, 2.6). So the child closes each inherited connection before it
opens a new connection. This is safe if no other thread was inside the database when the process
forked.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from weakref import WeakSet

WAIT_SECONDS: Final = 10.0
"""Maximum seconds that a fork or a close waits for calls and writes of other threads."""


class DatabaseActivity:
    """Counts the threads that are using any database of this process.

    A thread can nest its ``with`` blocks.
    """

    def __init__(self) -> None:
        self._own = threading.local()
        self.idle_at_fork = True
        self.restart()

    def restart(self) -> None:
        """Reset the counts in a forked child, in which only this thread exists."""
        self._changed = threading.Condition()
        self._inside = int(self._depth > 0)
        self._is_shut = False

    @property
    def _depth(self) -> int:
        return getattr(self._own, "depth", 0)

    def __enter__(self) -> None:
        if not self._depth:
            with self._changed:
                self._changed.wait_for(lambda: not self._is_shut)
                self._inside += 1
        self._own.depth = self._depth + 1

    def __exit__(self, *_: object) -> None:
        self._own.depth = self._depth - 1
        if not self._depth:
            with self._changed:
                self._inside -= 1
                if self._is_shut:
                    self._changed.notify_all()

    def before_fork(self) -> None:
        """Keep new threads out of the databases, and wait for the threads inside."""
        self.idle_at_fork = self._shut() and not self._depth

    def open(self) -> None:
        """Let threads in again after the fork."""
        with self._changed:
            self._is_shut = False
            self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Keep other threads out of all databases during the ``with`` block.

        Yields False if threads were still inside after `WAIT_SECONDS`.
        """
        try:
            yield self._shut()
        finally:
            self.open()

    def _shut(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_shut)
            self._is_shut = True
            mine = int(self._depth > 0)
            return self._changed.wait_for(lambda: self._inside == mine, WAIT_SECONDS)


activity: Final = DatabaseActivity()

_reopening: WeakSet[Any] = WeakSet()


def reopen_in_child(one: Any) -> None:
    """Arrange that each forked child calls ``one.forked(idle=...)``.

    ``idle`` is True if no thread was inside a database at the fork, so inherited connections may be
    closed.
    """
    _reopening.add(one)


def _in_child() -> None:
    activity.restart()
    for one in list(_reopening):
        with suppress(Exception):  # call the other objects even if this one fails
            one.forked(idle=activity.idle_at_fork)


os.register_at_fork(
    before=activity.before_fork, after_in_parent=activity.open, after_in_child=_in_child
)
