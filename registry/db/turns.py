"""What a sync holds while it runs."""

from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    from sqlalchemy import Connection


class SyncLock(Protocol):
    """Held for as long as a sync runs; another sync of the same sources waits or gives up."""

    def acquire(self, wait: float) -> bool:
        """Take the lock, trying for ``wait`` seconds; False: somebody else holds it."""

    def owner(self) -> str:
        """Say who holds it, in words."""

    def now_ns(self) -> int:
        """Return the current time, by the clock that stamps files where that can be told."""

    def assert_held(self, writing: "Connection", /) -> None:
        """Raise `DatabaseProblem` where the lock was lost; asked in a transaction that writes."""

    def __enter__(self) -> Self:
        """Return the lock; `acquire` takes it."""

    def __exit__(self, *_: object) -> None:
        """Give the lock back."""
