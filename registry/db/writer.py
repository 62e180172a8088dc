"""The writing lane: SQLAlchemy, one writer after the other. See `registry.db.interface`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from registry.errors import RegistryError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine
    from sqlalchemy.exc import DBAPIError

WRITE_SECONDS = 30.0
"""How long a writer waits for its turn. Turns are short: a sync takes many."""


class Writer(ABC):
    """Writes to the database that ``path`` names; ``host`` is the machine whose sources are ours.

    Whoever writes holds a lock until the end of the transaction: SQLite's file lock, or an
    advisory lock of PostgreSQL. So a transaction sees what all earlier ones did.
    """

    def __init__(self, path: str, host: str, engine: "Engine") -> None:
        self.path = path
        self.host = host
        self._engine = engine

    @contextmanager
    def transaction(
        self, wait: float | None = None, *, quiet: bool = False
    ) -> "Iterator[Connection]":
        """Run a block as one transaction: committed at its end, rolled back when it raises.

        ``wait``: seconds to wait for other writers, `WRITE_SECONDS` by default. ``quiet``: on a
        server writers take no turns, and readers are not told: for rows that none of them looks at.

        Raises `DatabaseProblem` and its subclasses.
        """
        from sqlalchemy.exc import DBAPIError

        wait = WRITE_SECONDS if wait is None else wait
        try:
            with self._begun(wait, quiet=quiet) as connection:
                yield connection
        except DBAPIError as error:
            raise self._translate(error, wait) from error

    def reserve(self, count: int) -> int | None:  # noqa: ARG002
        """Return the first of so many numbers of versions; None: staging them takes turns, too."""
        return None

    def update_statistics(self) -> None:  # noqa: B027  # a file has nothing to do
        """Let the database take note that much is different now."""

    def close(self) -> None:
        """Give back what the engine holds."""
        self._engine.dispose()

    @abstractmethod
    def _begun(self, wait: float, *, quiet: bool) -> "AbstractContextManager[Connection]":
        """Return a transaction, begun after what must be held and done before."""

    @abstractmethod
    def _translate(self, error: "DBAPIError", wait: float) -> RegistryError:
        """Turn an error of the driver into ours."""
