"""Open a registry, make or upgrade its database when needed, close it again."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from registry.catalog.connection import Reader
from registry.catalog.sources import list_sources
from registry.errors import DatabaseProblem
from registry.model import Source
from registry.settings import Settings, default_database, load_settings
from registry.sqlite import State
from registry.usage import Usage

if TYPE_CHECKING:
    from registry.database import DatabaseInfo
    from registry.store.transactions import Writer


class OpenRegistry:
    """A registry that is open: its settings and both lanes to its database."""

    def __init__(self, reader: Reader, settings: Settings) -> None:
        self.settings = settings
        self.reader = reader
        self.usage = Usage(reader, enabled=settings.usage)
        self._writer: Writer | None = None

    @classmethod
    def open(
        cls, path_or_url: str | os.PathLike[str] | None = None, *, settings: Settings | None = None
    ) -> Self:
        """Open the registry at a path (or ``sqlite:///`` URL); None: the platform's default.

        An older database is upgraded, after a copy of it was made. A missing one is created by
        the first operation that writes. A change that a dead process left unfinished is finished
        or undone. Raises `DatabaseProblem` and its subclasses.
        """
        reader = Reader(database_path(path_or_url))
        registry = cls(reader, settings if settings is not None else load_settings(None))
        state = reader.state()
        if state is State.BEHIND:
            registry.create_database()
        reader.empty = state is State.EMPTY
        if reader.rows("SELECT 1 FROM journal LIMIT 1"):
            registry.finish_changes()
        return registry

    def close(self) -> None:
        """Write down what was counted, and close all connections."""
        self.usage.close()
        self.reader.close()
        if self._writer is not None:
            self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def path(self) -> str:
        """The database file."""
        return self.reader.path

    @property
    def writer(self) -> "Writer":
        """The writing lane, opened (and the database created) when first needed."""
        if self._writer is None:
            from registry.store.transactions import Writer

            if self.reader.empty:
                self.create_database()
            self._writer = Writer(self.path)
        return self._writer

    def create_database(self) -> None:
        """Create or upgrade the database file."""
        from registry.store.migrate import ensure_current

        self.reader.close()
        ensure_current(self.path)
        self.reader.empty = False

    def sources(self) -> Sequence[Source]:
        """Return all sources, the strongest first."""
        return list_sources(self.reader)

    def database_info(self) -> "DatabaseInfo":
        """Say what the database file is like."""
        from registry.database import info

        return info(self)

    def check_database(self) -> Sequence[str]:
        """Return what is wrong with the database, nothing where it is sound."""
        from registry.database import check

        return check(self)

    def backup(self, target: str, *, overwrite: bool = False) -> None:
        """Write a consistent copy of the database to ``target``, which must not exist."""
        from registry.database import backup

        backup(self, target, overwrite=overwrite)

    def finish_changes(self) -> None:
        """Finish or undo what a dead process left unfinished; opening does so."""
        raise NotImplementedError


def database_path(
    path_or_url: str | os.PathLike[str] | None, environ: Mapping[str, str] = os.environ
) -> str:
    """Return the absolute path of the database file that is meant."""
    if path_or_url is None:
        path_or_url = environ.get("SKILL_REGISTRY_DB") or default_database()
    given = os.fspath(path_or_url)
    if given.startswith("sqlite:///"):
        given = given.removeprefix("sqlite:///")
    elif "://" in given:
        reason = "only SQLite files are supported: give a path, or sqlite:///PATH"
        raise DatabaseProblem(path=given.split("://", maxsplit=1)[0] + "://", reason=reason)
    if not given or "\0" in given:
        raise DatabaseProblem(path=given, reason="it is no path")
    path = Path(given)
    with suppress(RuntimeError):  # a ~user that does not exist is an ordinary name
        path = path.expanduser()
    return os.path.abspath(path)
