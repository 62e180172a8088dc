"""The lock of a sync: a file beside the database, held by the system until this process ends."""

from typing import TYPE_CHECKING

from registry.disk.locks import FileLock

if TYPE_CHECKING:
    from sqlalchemy import Connection


class SyncLockFile(FileLock):
    """The lock of a sync; whoever holds it is written into it."""

    def acquire(self, wait: float) -> bool:
        """Take the lock, trying for ``wait`` seconds; False: somebody else holds it."""
        taken = super().acquire(wait)
        if taken:
            self.sign("sync")
        return taken

    def assert_held(self, _writing: "Connection") -> None:
        """Nothing to ask: the system keeps it until this process ends."""
