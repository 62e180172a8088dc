"""Transactions that write: one at a time over all processes, on either database."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from registry.errors import RegistryError

WRITE_SECONDS = 30.0
"""How long a writer waits for its turn. Turns are short: a sync takes many."""


class Writer(ABC):
    """Writes to the database that ``path`` names; ``host`` is the machine whose sources are ours.

    Whoever writes holds a lock until the end of the transaction: SQLite's file lock, or an
    advisory lock of PostgreSQL. So a transaction sees what all earlier ones did.
    """

    def __init__(self, path: str, host: str, engine: Engine) -> None:
        self.path = path
        self.host = host
        self._engine = engine

    @contextmanager
    def transaction(self, wait: float | None = None) -> Iterator[Connection]:
        """Run a block as one transaction: committed at its end, rolled back when it raises.

        ``wait``: seconds to wait for other writers, `WRITE_SECONDS` by default.

        Raises `DatabaseProblem` and its subclasses.
        """
        wait = WRITE_SECONDS if wait is None else wait
        with self._turn(wait):
            try:
                with self._engine.begin() as connection:
                    self._begin(connection, wait)
                    yield connection
            except DBAPIError as error:
                raise self._translate(error, wait) from error

    def tidy(self) -> None:  # noqa: B027  # a file has nothing to do
        """Let the database take note that much is different now."""

    def close(self) -> None:
        """Give back what the engine holds."""
        self._engine.dispose()

    @abstractmethod
    @contextmanager
    def _turn(self, wait: float) -> Iterator[None]:
        """Wait for what must be held before a transaction begins."""

    @abstractmethod
    def _begin(self, connection: Connection, wait: float) -> None:
        """Do what must come first in a transaction."""

    @abstractmethod
    def _translate(self, error: DBAPIError, wait: float) -> RegistryError:
        """Turn an error of the driver into ours."""
