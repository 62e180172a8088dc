"""The context of all operations: settings, reader and writer of the database, host, usage.

The host is this machine's name. The usage counts how often tools use each skill.
"""

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol, Self

from registry.db.interface import Backend, Reader, State, Writer
from registry.db.open import open_backend
from registry.db.scoped_reader import ScopedReader
from registry.db.write.usage import Usage
from registry.errors import (
    DatabaseBehind,
    DatabaseCorrupt,
    DatabaseProblem,
    RegistryError,
    UsageProblem,
)
from registry.settings import Settings
from registry.text import masked

UNEXPECTED: Final = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Exceptions that any operation can raise if a stored value has a wrong type."""


class Follower(Protocol):
    """An object with its own thread that uses an open database."""

    def end(self) -> None:
        """Stop the thread, and wait until it has stopped."""


@dataclass(slots=True)
class _Shared:
    """The state that all views of one open database share; see `Core.seen_from`."""

    writer: Writer | None = None
    closed: bool = False
    told_empty: bool = False
    followers: set[Follower] = field(default_factory=set)


class Core:
    """An open database with its settings; threads can share it.

    ``on_warning`` is called with a message for the user, in the thread in which the warning occurs.
    By default, the message is logged. ``folders`` are the user's working folders; they decide which
    projects' skills are visible.
    """

    reader: Reader
    """Reads the database."""

    def __init__(self, backend: Backend, settings: Settings, folders: Sequence[str] = ()) -> None:
        self.settings = settings
        self.backend = backend
        self._answers_others = False
        self.reader = self._seen_from(folders)
        self.usage = Usage(backend, enabled=settings.usage)
        self.on_warning: Callable[[str], None] = _log
        self._shared = _Shared()

    @classmethod
    def open(
        cls,
        path_or_url: str | os.PathLike[str] | None,
        settings: Settings,
        workdir: str | os.PathLike[str] | None = None,
        *,
        upgrade: bool = False,
    ) -> Self:
        """Open a database; a missing database counts as empty.

        A file with an older schema is always upgraded. A database on a server is upgraded only if
        ``upgrade``; otherwise this raises `DatabaseBehind`. ``workdir`` is the user's working
        folder (default: the working folder of the process). Raises `DatabaseProblem` and its
        subclasses.
        """
        folders = _here() if workdir is None else [os.fspath(workdir)]
        core = cls(open_backend(path_or_url, settings), settings, folders)
        try:
            state = core.reader.state()
            if state is State.BEHIND:
                if not upgrade:
                    _check_alone(core.backend)
                core.create_database()
            core.reader.empty = state is State.EMPTY
        except BaseException:
            core.backend.close()
            raise
        return core

    def close(self) -> None:
        """Stop the followers, write the usage counts, and close all connections.

        A second call does nothing.
        """
        if self.closed:
            return
        for follower in tuple(self.followers):
            follower.end()
        self._shared.closed = True
        self.usage.close()
        self.backend.close()
        if self._shared.writer is not None:
            self._shared.writer.close()

    @property
    def followers(self) -> set[Follower]:
        """The followers, which stop when the database is closed."""
        return self._shared.followers

    @property
    def closed(self) -> bool:
        """Whether the database was closed, by this view or by another view of it."""
        return self._shared.closed

    def check_open(self) -> None:
        """Raise `UsageProblem` if the database is closed."""
        if self.closed:
            raise UsageProblem(message="the registry is closed; open it again")

    def seen_from(self, *folders: str) -> Self:
        """Return a view of this database for a user who works in the given folders.

        The folders decide which projects' skills are visible.
        """
        other = copy.copy(self)
        other.reader = self._seen_from(folders)
        return other

    def _seen_from(self, folders: Sequence[str]) -> Reader:
        backend = self.backend

        def is_ours(path: str) -> bool:
            if not backend.host:
                return True
            from registry.db.adopted import is_adopted

            return is_adopted(backend, path)

        real = tuple(os.path.realpath(folder) for folder in folders)
        reader = ScopedReader(backend.reader, backend.host, real, is_ours)
        reader.semantic = self.settings.semantic
        if self._answers_others:
            reader.own_yanked = "0"
        return reader

    def answering_others(self) -> Self:
        """Return a view of this database for the requests of other users.

        The view hides yanked skills, which only the owner of their source sees.
        """
        other = copy.copy(self)
        other._answers_others = True  # noqa: SLF001  # of this class
        other.reader = copy.copy(self.reader)
        other.reader.own_yanked = "0"
        return other

    @property
    def writer(self) -> Writer:
        """The writer; its first use opens it, and creates the database if it is missing."""
        shared = self._shared
        if shared.writer is None:
            if self.reader.empty:
                self.create_database()
            shared.writer = self.backend.open_writer()
        return shared.writer

    @property
    def host(self) -> str:
        """The name of this machine in the database.

        Only the sources of this machine are synced and changed.
        """
        return self.backend.host

    def warn(self, text: str) -> None:
        """Warn the user that a secondary task failed, although the request itself succeeded."""
        self.on_warning(masked(text))

    def warn_if_empty(self) -> None:
        """If there is no database yet, warn once, because otherwise the user may not notice it."""
        if self._shared.told_empty or not self.reader.empty:
            return
        self.tell_no_more_that_it_is_empty()
        self.warn(
            f"No database at {self.backend.path}, so there are no skills. "
            "To create it, sync a folder."
        )

    def tell_no_more_that_it_is_empty(self) -> None:
        """Turn off the warning of `warn_if_empty`, because the caller prints its own message."""
        self._shared.told_empty = True

    def damage(self) -> DatabaseProblem | None:
        """Return the damage of the database; None if there is none.

        Call this method if an operation failed for an unknown reason, because a damaged or forged
        row may contain any value.
        """
        from registry.db.read.corruption import find_corruption

        def look(reader: Reader) -> tuple[str | None, bool]:
            reason = next(iter(self.backend.check()), None)
            return (reason, False) if reason else (find_corruption(reader), True)

        try:
            reason, is_row = self.reader.remembered("damage", look)
        except DatabaseProblem as error:
            return error
        if reason is None:
            return None
        return DatabaseCorrupt(path=self.backend.path, reason=reason, is_row=is_row)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """If the block fails because the database is damaged, raise `DatabaseProblem` instead."""
        try:
            yield
        except RegistryError:
            raise
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


def _check_alone(backend: Backend) -> None:
    """Raise `DatabaseBehind` if the database has an older schema and other machines use it."""
    if backend.shared:
        from registry.db.read.summary import registered

        raise DatabaseBehind(path=backend.path, revision=registered(backend.reader)[0])


def _here() -> list[str]:
    try:
        return [os.getcwd()]
    except OSError:  # the folder no longer exists, so it belongs to no project
        return []


def _log(text: str) -> None:
    import logging

    logging.getLogger("registry").warning("%s", text)
