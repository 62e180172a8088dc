"""The lock of a sync: a file beside the database, held by the system until this process ends."""

import errno
from typing import TYPE_CHECKING, Final

from registry.disk.locks import FileLock
from registry.errors import DatabaseProblem

if TYPE_CHECKING:
    from sqlalchemy import Connection

_UNWRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class SyncLockFile(FileLock):
    """The lock of a sync of the database file ``database``; whoever holds it is written into it."""

    def __init__(self, database: str) -> None:
        super().__init__(f"{database}.sync.lock")
        self._database = database
        self._refused: OSError | None = None

    def acquire(self, wait: float) -> bool:
        """Take the lock, trying for ``wait`` seconds; False: somebody else holds it.

        Where nothing can be written, a sync needs no lock to find that there is nothing to do.
        """
        try:
            taken = super().acquire(wait)
            if taken:
                self.sign("sync")
        except OSError as error:
            self.release()
            self._refused = error
            if error.errno not in _UNWRITABLE:
                self.now_ns()
            return True
        return taken

    def now_ns(self) -> int:
        """Return the current time; asked before anything is written, which needs the lock."""
        if self._refused is not None:
            reason = f"the lock of a sync can't be taken: {self._refused.strerror} ({self.path})"
            raise DatabaseProblem(path=self._database, reason=reason)
        return super().now_ns()

    def assert_held(self, _writing: "Connection") -> None:
        """Nothing to ask: the system keeps it until this process ends."""
