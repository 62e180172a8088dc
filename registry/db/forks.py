"""Fork safety: a fork waits for running database calls, and the child opens its own connections.

SQLite stores a process's file locks in memory. A forked child inherits this memory but not the
locks. The child would read and write without locks, and lose its writes
(https://sqlite.org/howtocorrupt.html, 2.6). So the child closes each inherited connection before it
opens a new connection. Closing them is safe if no other thread was inside the database at the fork.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from weakref import WeakSet

WAIT_SECONDS: Final = 10.0
"""Maximum time that a fork or a close waits for database calls of other threads, in seconds."""


class DatabaseActivity:
    """Counts the threads that are using any database of this process.

    A thread can enter its ``with`` block several times.
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
        """Let no more threads enter a database, and wait for the threads that are inside."""
        self.idle_at_fork = self._shut() and not self._depth

    def open(self) -> None:
        """After the fork, let threads enter again."""
        with self._changed:
            self._is_shut = False
            self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Let no other thread enter any database during the ``with`` block.

        Yields False if other threads were still inside after `WAIT_SECONDS`.
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
    """Call ``one.forked(idle=...)`` in each child of a later fork.

    ``idle`` is True if no thread was inside a database at the fork. Only then may the child close
    the inherited connections.
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
