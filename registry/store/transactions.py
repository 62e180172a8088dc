"""The write lock and the transactions under it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from registry.errors import DatabaseBusy, DatabaseProblem
from registry.locks import FileLock
from registry.sqlite import translate
from registry.store.engine import make_engine

WRITE_SECONDS = 30.0
"""How long a writer waits for its turn. Turns are short: a sync takes many."""


class Writer:
    """Writes to the SQLite file at ``path``, one transaction at a time over all processes.

    All writes and checkpoints happen under one file lock, taken before the transaction begins:
    the order is always lock, then database (RELIABILITY.md).
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._engine = make_engine(path)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run a block as one transaction: committed at its end, rolled back when it raises.

        Raises `DatabaseBusy`, `DatabaseCorrupt` or `DatabaseProblem`.
        """
        with self._turn():
            try:
                with self._engine.begin() as connection:
                    self._check_file()
                    yield connection
            except DBAPIError as error:
                raise translate(error, self.path) from error

    def close(self) -> None:
        """Give back what the engine holds."""
        self._engine.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        try:
            lock = FileLock(f"{self.path}.lock")
            taken = lock.acquire(WRITE_SECONDS)
        except OSError as error:
            reason = f"its lock file can't be opened: {error.strerror}"
            raise DatabaseProblem(path=self.path, reason=reason) from error
        if not taken:
            raise DatabaseBusy(path=self.path, seconds=WRITE_SECONDS)
        with lock:
            yield

    def _check_file(self) -> None:
        # Each transaction opens the file anew, so a path that leads nowhere now means that the
        # file was removed in this very moment; writing to it would be accepted and lost.
        if not os.path.exists(self.path):
            raise DatabaseProblem(path=self.path, reason="the file was removed meanwhile")
