"""What every operation is given: the settings, both lanes to the database, this host, usage."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Self

from registry.db.interface import Backend, Reader, State, Writer
from registry.db.open import open_backend
from registry.db.usage import Usage
from registry.errors import DatabaseCorrupt, DatabaseProblem
from registry.settings import Settings

UNEXPECTED: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What a value of a wrong kind brings about, wherever it came from."""


class Core:
    """An open database with the settings it was opened with; safe for many threads.

    ``on_warning`` is called with words for people, by the thread that has something to say; by
    default they are logged.
    """

    def __init__(self, backend: Backend, settings: Settings) -> None:
        self.settings = settings
        self.backend = backend
        self.usage = Usage(backend, enabled=settings.usage)
        self.on_warning: Callable[[str], None] = _log
        self.closed = False
        self._writer: Writer | None = None

    @classmethod
    def open(cls, path_or_url: str | os.PathLike[str] | None, settings: Settings) -> Self:
        """Open a database, and upgrade it where it is older; a missing one counts as empty.

        Raises `DatabaseProblem` and its subclasses.
        """
        core = cls(open_backend(path_or_url, settings), settings)
        try:
            state = core.reader.state()
            if state is State.BEHIND:
                core.create_database()
            core.reader.empty = state is State.EMPTY
        except BaseException:
            core.backend.close()
            raise
        return core

    def close(self) -> None:
        """Write down what was counted, and close all connections."""
        self.closed = True
        self.usage.close()
        self.backend.close()
        if self._writer is not None:
            self._writer.close()

    @property
    def reader(self) -> Reader:
        """The reading lane."""
        return self.backend.reader

    @property
    def writer(self) -> Writer:
        """The writing lane, opened (and the database created) when first needed."""
        if self._writer is None:
            if self.reader.empty:
                self.create_database()
            self._writer = self.backend.open_writer()
        return self._writer

    @property
    def host(self) -> str:
        """What this machine is called in the database: its sources are ours to sync and change."""
        return self.backend.host

    def warn(self, text: str) -> None:
        """Tell people that something beside what was asked for, and done, did not work."""
        self.on_warning(text)

    def damage(self) -> DatabaseProblem | None:
        """Return what is wrong with the database; asked when something failed for no other reason.

        A damaged row may hold anything in the place of a name, and so may one of a stranger.
        """
        from registry.db.queries.damage import find_damage

        try:
            reason = next(iter(self.backend.check()), None) or find_damage(self.reader)
        except DatabaseProblem as error:
            return error
        return DatabaseCorrupt(path=self.backend.path, reason=reason) if reason else None

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Raise `DatabaseProblem` for what fails in a block because the database is damaged."""
        try:
            yield
        except UNEXPECTED as error:
            damage = self.damage()
            if damage is None:
                raise
            raise damage from error

    def create_database(self) -> None:
        """Create or upgrade the database."""
        self.reader.close()
        self.backend.make_current()
        self.reader.empty = False


def _log(text: str) -> None:
    import logging

    logging.getLogger("registry").warning("%s", text)
