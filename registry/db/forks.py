"""What a process owes a child that it forks: no thread amid a call, and all begun anew there.

A child inherits what SQLite remembers of the locks of its process, but not the locks: it would read
and write without them, and lose what it wrote (https://sqlite.org/howtocorrupt.html, 2.6). So the
child closes every connection it inherited before it opens one, which is safe as long as no other
thread was inside the database: a fork waits for that moment.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, Protocol
from weakref import WeakSet

LEAVE_SECONDS: Final = 10.0
"""How long a fork, or a close, waits for calls and writes of other threads to end."""


class Forkable(Protocol):
    """Something that a child must begin anew."""

    def forked(self, *, idle: bool) -> None:
        """Forget in the child what was the parent's.

        ``idle``: no thread was amid a call, so what was inherited may be closed.
        """


class Busy:
    """Entered by a thread for as long as it is inside a database; may be nested."""

    def __init__(self) -> None:
        self._own = threading.local()
        self.forked()

    def forked(self) -> None:
        """Begin anew: of all threads that were inside, at most this one is in this process."""
        self._changed = threading.Condition(threading.Lock())
        self._inside = int(self._depth > 0)
        self._shut_out = False
        self._idle = True

    @property
    def _depth(self) -> int:
        """How many times this thread has entered."""
        return getattr(self._own, "depth", 0)

    def __enter__(self) -> None:
        if not self._depth:
            with self._changed:
                while self._shut_out:
                    self._changed.wait()
                self._inside += 1
        self._own.depth = self._depth + 1

    def __exit__(self, *_: object) -> None:
        self._own.depth = self._depth - 1
        if not self._depth:
            with self._changed:
                self._inside -= 1
                if self._shut_out:
                    self._changed.notify_all()

    def before_fork(self) -> None:
        """Keep other threads out, and wait until all that are inside have left."""
        self._idle = self._shut() and not self._depth

    def after_fork(self) -> None:
        """Let the parent's threads in again."""
        with self._changed:
            self._shut_out = False
            self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[bool]:
        """Be the only thread inside; False: others did not leave in time."""
        left = self._shut()
        try:
            yield left
        finally:
            self.after_fork()

    def _shut(self) -> bool:
        """Keep other threads out until `after_fork`; False: some did not leave in time."""
        mine = int(self._depth > 0)
        with self._changed:
            while self._shut_out:  # by another thread
                self._changed.wait()
            self._shut_out = True
            return self._changed.wait_for(lambda: self._inside == mine, LEAVE_SECONDS)

    @property
    def idle(self) -> bool:
        """Whether nobody was inside when the process forked."""
        return self._idle


busy: Final = Busy()
"""Of all databases of this process."""

_known: WeakSet[Forkable] = WeakSet()


def begin_anew(one: Forkable) -> None:
    """Have ``one`` told in each forked child, before anything else happens there."""
    _known.add(one)


def _in_child() -> None:
    idle = busy.idle
    busy.forked()
    for one in list(_known):
        with suppress(Exception):  # each is told
            one.forked(idle=idle)


os.register_at_fork(
    before=busy.before_fork, after_in_parent=busy.after_fork, after_in_child=_in_child
)
