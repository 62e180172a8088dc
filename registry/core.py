"""Open a registry, make or upgrade its database when needed, close it again."""

import os
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from registry.db.backend import Backend, DatabaseInfo
from registry.db.open import file_path, open_backend
from registry.db.queries.sources import list_sources
from registry.db.sqlite.dialect import State
from registry.db.usage import Usage
from registry.model import Source
from registry.settings import Settings, load_settings

if TYPE_CHECKING:
    from registry.db.writer import Writer


class OpenRegistry:
    """A registry that is open: its settings and both lanes to its database."""

    def __init__(self, backend: Backend, settings: Settings) -> None:
        self.settings = settings
        self.backend = backend
        self.reader = backend.reader
        self.usage = Usage(backend, enabled=settings.usage)
        self._writer: Writer | None = None

    @classmethod
    def open(
        cls, path_or_url: str | os.PathLike[str] | None = None, *, settings: Settings | None = None
    ) -> Self:
        """Open the registry at a path or URL; None: the platform's default.

        A URL is ``sqlite:///PATH`` or ``postgresql+psycopg://…``. An older database is upgraded
        (of a file, a copy is kept). A missing one is created by the first operation that writes. A
        change that a dead process left unfinished is finished or undone. Raises `DatabaseProblem`
        and its subclasses.
        """
        settings = settings if settings is not None else load_settings(None)
        backend = open_backend(path_or_url, settings)
        registry = cls(backend, settings)
        try:
            state = backend.state()
            if state is State.BEHIND:
                registry.create_database()
            registry.reader.empty = state is State.EMPTY
            if registry.reader.rows("SELECT 1 FROM journal LIMIT 1") and backend.writable:
                registry.finish_changes()
        except BaseException:
            backend.close()
            raise
        return registry

    def close(self) -> None:
        """Write down what was counted, and close all connections."""
        self.usage.close()
        self.backend.close()
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
        """The database as it is shown: a file, or an address without its password."""
        return self.backend.path

    @property
    def writer(self) -> "Writer":
        """The writing lane, opened (and the database created) when first needed."""
        if self._writer is None:
            if self.reader.empty:
                self.create_database()
            self._writer = self.backend.open_writer()
        return self._writer

    def create_database(self) -> None:
        """Create or upgrade the database."""
        self.reader.close()
        self.backend.make_current()
        self.reader.empty = False

    def sources(self, *, counted: bool = True) -> Sequence[Source]:
        """Return all sources, the strongest first; ``counted``: with how many skills they have."""
        return list_sources(self.reader, counted=counted)

    def own_sources(self) -> Sequence[Source]:
        """Return the sources whose folders are on this machine, their skills not counted."""
        known = self.sources(counted=False)
        return [source for source in known if source.host == self.backend.host]

    def database_info(self) -> DatabaseInfo:
        """Say what the database is like."""
        return self.backend.info()

    def check_database(self) -> Sequence[str]:
        """Return what is wrong with the database, nothing where it is sound."""
        return self.backend.check()

    def backup(self, target: str, *, overwrite: bool = False) -> None:
        """Write a consistent copy of the database to the file ``target``, which must not exist."""
        self.backend.backup(file_path(target), overwrite=overwrite)

    def finish_changes(self) -> None:
        """Finish or undo what a dead process left unfinished; opening does so."""
        raise NotImplementedError
