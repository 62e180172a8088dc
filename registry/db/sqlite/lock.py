"""The locks of a file: files beside the database, held by the system until this process ends."""

import errno
import os
from typing import TYPE_CHECKING, Final

from registry.disk.locks import FileLock, NotALock
from registry.errors import DatabaseProblem

if TYPE_CHECKING:
    from sqlalchemy import Connection

_UNWRITABLE: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def is_shared(database: str) -> bool:
    """Tell whether a database is another user's, whose locks then may be, too."""
    try:
        return os.stat(database).st_uid != os.geteuid()
    except OSError:
        return False


class WriterLock(FileLock):
    """The lock under which the database file ``database`` is written."""

    def __init__(self, database: str) -> None:
        super().__init__(f"{database}.lock", shared=is_shared(database))
        self._database = database

    def acquire(self, wait: float) -> bool:
        """Take the lock, trying for ``wait`` seconds; False: somebody else holds it.

        Raises `DatabaseProblem` where it can't be had at all.
        """
        try:
            return super().acquire(wait)
        except OSError as error:
            reason = f"its lock file can't be opened: {error.strerror or error} ({self.path})"
            raise DatabaseProblem(path=self._database, reason=reason) from error


class SyncLockFile(FileLock):
    """The lock of a sync of the database file ``database``; whoever holds it is written into it."""

    def __init__(self, database: str) -> None:
        super().__init__(f"{database}.sync.lock", shared=is_shared(database))
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
            if error.errno not in _UNWRITABLE or isinstance(error, NotALock):
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
