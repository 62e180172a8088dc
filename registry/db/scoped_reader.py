"""A reader for users who work in certain folders.

The reader shows all skills outside projects, and the skills of the projects that contain these
folders.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from registry.db.interface import Reader, Select
from registry.db.visibility import EVERYTHING, ProjectSource, Visibility, visibility_of
from registry.disk.paths import is_below

T = TypeVar("T")

_SOURCES = (
    "SELECT id, host, path, project, strength, enabled, scope FROM sources "
    "WHERE host = ? OR id = (SELECT min(id) FROM sources WHERE scope = 'project') "
    "ORDER BY strength, id"
)
"""SELECT for the sources of a host.

The result also has one source of a project, on any host, if there is one.
"""


def _forwarded(name: str) -> Any:
    """Return a method that calls the method ``name`` of the wrapped reader."""

    def call(self: "ScopedReader", *arguments: Any, **more: Any) -> Any:
        return getattr(self._reader, name)(*arguments, **more)

    return call


class ScopedReader(Reader):
    """A reader with the `visibility` of a user who works in ``folders`` on ``host``.

    ``folders`` are absolute paths without links. ``is_ours`` tells whether this user added or
    adopted the source at a path. The reader checks it, so that forged sources don't shadow skills.
    All other methods call the wrapped reader.
    """

    def __init__(
        self, reader: Reader, host: str, folders: tuple[str, ...], is_ours: Callable[[str], bool]
    ) -> None:
        self._reader = reader
        self._host = host
        self._sources = (_SOURCES, (host,))
        self._local = threading.local()  # holds the visibility of the current snapshot
        # On a server: the rows of the sources from the last reading by any thread.
        self._known: list[tuple[Any, ...]] | None = None
        self._folders = folders
        self._is_ours = is_ours
        self.path = reader.path
        self.in_json_array, self.index = reader.in_json_array, reader.index
        self.json_each, self.json_item = reader.json_each, reader.json_item
        self.own, self.own_yanked = reader.own, reader.own_yanked
        self.listed, self.counted = reader.listed, reader.counted
        self.semantic = reader.semantic

    @property
    def empty(self) -> bool:
        return self._reader.empty

    @empty.setter
    def empty(self, value: bool) -> None:
        self._reader.empty = value

    @property
    def visibility(self) -> Visibility:
        if self._host:  # on a server, a check for changes takes as long as another reading
            kept: list[Visibility] | None = getattr(self._local, "kept", None)
            if kept:
                return kept[0]
            rows = self._known = self._reader.rows(*self._sources)
            seen = self._seen(rows)
            if kept is not None:
                kept.append(seen)
            return seen

        def load(reader: Reader) -> list[tuple[ProjectSource, str]] | None:
            return self._around(reader.rows(*self._sources))

        name = f"projects around {self._folders}"
        return self._sight(self._reader.remembered(name, load))

    def last_visibility(self) -> Visibility:
        """Return the `visibility` from the last reading.

        Without a reading, return the visibility of a registry without projects.
        """
        if not self._host:
            return self.visibility
        return EVERYTHING if self._known is None else self._seen(self._known)

    def last_roots(self) -> list[str] | None:
        known = self._known
        return None if known is None else [row[2] for row in known if row[1] == self._host]

    def _seen(self, rows: Sequence[tuple[Any, ...]]) -> Visibility:
        return self._sight(self._around(rows))

    def _sight(self, here: list[tuple[ProjectSource, str]] | None) -> Visibility:
        if here is None:
            return EVERYTHING
        return visibility_of(tuple(source for source, path in here if self._is_ours(path)))

    def _around(self, rows: Sequence[tuple[Any, ...]]) -> list[tuple[ProjectSource, str]] | None:
        """Return the sources of the projects that contain one of the user's folders.

        Each source comes with its path. The project of the first folder comes first. If several
        projects contain a folder, the innermost project comes first. Returns None if no source
        belongs to a project.
        """
        projects = [row for row in rows if row[-1] == "project"]
        if not projects:
            return None
        around = {}
        for number, host, path, project, strength, enabled, _ in projects:
            # Another program may have forged the row, and its numbers become part of an SQL
            # statement.
            sound = isinstance(number, int) and isinstance(strength, int)
            is_folder = isinstance(project, str) and project.startswith(os.sep)
            if sound and is_folder and (host, enabled) == (self._host, 1):
                holding = [n for n, one in enumerate(self._folders) if is_below(one, project)]
                if holding:
                    around[number] = (holding[0], -len(project), project), strength, path
        order = sorted({rank for rank, _, _ in around.values()})
        return [
            (ProjectSource(number, order.index(rank), strength), path)
            for number, (rank, strength, path) in around.items()
        ]

    state, rows, stream = _forwarded("state"), _forwarded("rows"), _forwarded("stream")
    many, page, version = _forwarded("many"), _forwarded("page"), _forwarded("version")
    pipeline, finish = _forwarded("pipeline"), _forwarded("finish")
    recalls, close = _forwarded("recalls"), _forwarded("close")
    changes_since = _forwarded("changes_since")

    def query_visible(self, question: Callable[[Visibility], Select]) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT that ``question`` builds from the `visibility`.

        On a server, one round trip reads the sources and runs the SELECT with the last known
        visibility. If the sources show that the visibility has changed, the SELECT runs again.
        """
        if not self._host:
            return super().query_visible(question)
        guess = self.last_visibility()
        now, found = self._reader.many([self._sources, question(guess)])
        self._known, seen = now, self._seen(now)
        return found if seen == guess else self._reader.rows(*question(seen))

    def stream_visible(self, question: Callable[[Visibility], Select]) -> Iterable[tuple[Any, ...]]:
        return self.query_visible(question) if self._host else super().stream_visible(question)

    def paged(
        self, question: Callable[[Visibility], tuple[Select, Select]]
    ) -> tuple[list[tuple[Any, ...]], int]:
        if not self._host:
            return super().paged(question)
        guess = self.last_visibility()
        rows, total, now = self._reader.page(*question(guess), self._sources)
        self._known, seen = now, self._seen(now)
        return (rows, total) if seen == guess else self._reader.page(*question(seen))[:2]

    @property
    def keeps_writers_out(self) -> bool:
        return self._reader.keeps_writers_out

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._reader.snapshot():
            is_outer = getattr(self._local, "kept", None) is None
            if is_outer:
                self._local.kept = []
            try:
                yield
            finally:
                if is_outer:
                    self._local.kept = None

    def remembered(self, name: str, load: Callable[[Reader], T]) -> T:
        """Return the cached result of ``load``.

        ``name`` must be different for each `visibility`.
        """
        return self._reader.remembered(name, lambda _: load(self))
