"""What the catalogue reads from: SELECTs in, tuples out, on whichever database there is.

Queries are written once, for both databases: ``?`` marks a value, and the few things they say in
different words are attributes of the reader.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")

MOST_REMEMBERED = 100
"""Answers that a thread keeps (`Reader.remembered`)."""


class Reader(ABC):
    """Runs SELECTs; safe for many threads and across a fork, and unable to write.

    ``path`` names the database in messages. While ``empty``, the database is not made yet, and
    every SELECT finds nothing.
    """

    among: ClassVar[str]
    """The set of the numbers in a parameter that is a JSON array."""

    has_fts5: ClassVar[bool]
    """Which of both full-text indexes there is: SQLite's, or PostgreSQL's ``tsvector``."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.empty = False
        self._local = threading.local()

    @staticmethod
    @abstractmethod
    def each(column: str) -> str:
        """Return the table of the elements of a JSON array; call it ``e``."""

    @staticmethod
    @abstractmethod
    def item(number: int) -> str:
        """Return an element, as text, of the array that ``e`` is at."""

    @abstractmethod
    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""

    @abstractmethod
    def stream(self, sql: str, parameters: Sequence[object] = ()) -> Iterable[tuple[Any, ...]]:
        """Yield the rows of a SELECT, without holding them all where that can be avoided."""

    @abstractmethod
    def version(self) -> int | None:
        """Return a number that is another one when the database has changed.

        It means something only beside numbers that the same thread got. None: there is no database.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[object]:
        """Return a context in which this thread's reads all see one state of the database.

        A nested one joins the outer.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the connections of all threads."""

    def remembered(self, name: str, load: "Callable[[Reader], T]") -> T:
        """Return what ``load`` made of the database, made anew when the database has changed.

        Each thread has its own: on SQLite only its own connection can tell it of a change.
        """
        if self.empty:
            return load(self)
        version = self.version()
        memory: dict[str, tuple[object, T]] = self._local.__dict__.setdefault("memory", {})
        if name not in memory or memory[name][0] != version:
            if len(memory) >= MOST_REMEMBERED:
                memory.clear()
            memory[name] = version, load(self)
        return memory[name][1]


def storable(parameters: Sequence[object]) -> list[object]:
    """Replace what no stored text holds, so that it just finds nothing."""
    return [_clean(value) for value in parameters]


def _clean(value: object) -> object:
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
