"""The state of the web application: one registry, its threads, and cached responses."""

import asyncio
import hashlib
import logging
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from starlette.responses import Response

from registry.errors import NotFound, SourceNotFound
from registry.mcp.fairness import FairThreads, Turns
from registry.web.repositories import Repositories
from registry.web.uploads import Uploads

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.catalog.browse import Browse


T = TypeVar("T")

log = logging.getLogger(__name__)

LATE: Final = " This server reads the settings only when it starts."
"""Text for the log if a token names a personality that the server doesn't know."""


class Cache(Generic[T]):
    """An LRU cache with a limited size, which many threads can use at once.

    ``most`` is the maximum total weight of all values; by default, a value has the weight 1. A
    value with more than a sixteenth of ``most`` is not cached.
    """

    def __init__(self, most: int, weigh: Callable[[T], int] = lambda _: 1) -> None:
        self._most = most
        self._weigh = weigh
        self._values: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        """Return the cached value of a key, or None."""
        entry = self._entry(key)
        return None if entry is None else entry[0]

    def put(self, key: Hashable, value: T) -> None:
        """Store a value; if the cache is full, remove the least recently used values."""
        weight = self._weigh(value)
        if weight * 16 > self._most:
            return
        with self._lock:
            _, before = self._values.pop(key, (None, 0))
            self._values[key] = value, weight
            self._weight += weight - before
            while self._weight > self._most:
                _, (_, freed) = self._values.popitem(last=False)
                self._weight -= freed

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the cached value of a key; if there is none, compute the value and cache it."""
        entry = self._entry(key)
        if entry is not None:
            return entry[0]
        made = make()
        self.put(key, made)
        return made

    def _entry(self, key: Hashable) -> tuple[T, int] | None:
        """Return a value with its weight.

        Returns None if nothing is cached for the key; a cached value may itself be None.
        """
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)


WORKERS: Final = 4
"""Number of threads that answer requests; each has a connection to the database."""

FACTS: Final = 64
"""Maximum number of cached query results.

Most results have at most 100 KB. Whole pages are cached as responses, so these results only serve
other pages with the same filters, and facts that many pages show.
"""

ANSWERS: Final = 16 << 20
"""Maximum size of all cached responses, in bytes."""

TEXTS: Final = 16 << 20
"""Maximum size of all cached HTML of skill files, in bytes of memory.

A text with an emoji takes four bytes for each of its characters.
"""

DIGESTS: Final = 10_000
"""Maximum number of cached digests of archives.

To compute the digest of a skill with several files, the server must pack them.
"""


RECEIVED: Final = 8
"""Maximum number of archives that are received at the same time; each of them is in memory."""

RECEIVED_OF_ONE: Final = 2
"""Maximum number of archives that are received from one client at the same time."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """The sender of a request.

    ``personality`` and ``source`` limit the visible skills; ``write`` allows changes. ``is_local``
    means a user of this machine, who may see the paths of its folders. ``token`` is the number of
    the token with which the visitor signed in; ``publish`` and ``approve`` are its rights.
    """

    name: str
    personality: str | None = None
    source: str | None = None
    write: bool = False
    is_local: bool = False
    token: str | None = None
    publish: bool = False
    approve: bool = False

    @property
    def is_admin(self) -> bool:
        """Whether the visitor has a token with all rights and without limits."""
        has_all = self.write and self.publish and self.approve
        return has_all and self.token is not None and not self.is_narrowed

    @property
    def is_narrowed(self) -> bool:
        """Whether the visitor sees only some skills of the registry."""
        return self.personality is not None or self.source is not None


@dataclass(frozen=True, slots=True)
class Edition:
    """The version of the database.

    ``skills`` changes if skills or sources change. ``instant`` changes with each write.
    """

    skills: str
    instant: str


class AppState:
    """One registry for all visitors of a server.

    ``base`` is the server's public address, such as ``http://127.0.0.1:8765``. If it is None, the
    address of the request is used.
    """

    def __init__(self, registry: "SkillRegistry", base: str | None = None) -> None:
        self.registry = registry.answering_others()
        self.base = base
        self.turns = FairThreads(WORKERS, "page")
        # The change counter is comparable only with earlier values of the same connection, so one
        # thread reads it.
        self._clock = ThreadPoolExecutor(1, thread_name_prefix="version")
        self._begun = secrets.token_hex(4)
        self._edition: Edition | None = None
        self._views: dict[tuple[str | None, str | None], Browse] = {}
        self.facts: Cache[Any] = Cache(FACTS)
        self.answers: Cache[Response] = Cache(ANSWERS, lambda answer: len(answer.body))
        self.texts: Cache[str | None] = Cache(TEXTS, getsizeof)
        self.digests: Cache[str] = Cache(DIGESTS)
        self.uploads = Uploads()
        self.receiving = Turns(RECEIVED, RECEIVED_OF_ONE)
        self.repositories = Repositories()
        self._refused: set[str] = set()

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run a function that reads the database or the disk in a thread.

        If all threads are busy, visitors wait in fair turns.
        """
        return await self.turns.run(work, *arguments)

    async def visitor_of(self, token: str) -> Visitor | None:
        """Return the visitor of a token.

        Returns None if the token is unknown or its limits no longer exist.
        """
        return await self.run(self._visitor_of, token)

    def _visitor_of(self, shown: str) -> Visitor | None:
        token = self.registry.tokens().known(shown)
        if token is None:
            return None
        try:
            self.registry.browse(token.personality, token.source)
        except NotFound as error:
            if token.number not in self._refused:
                self._refused.add(token.number)
                late = "" if isinstance(error, SourceNotFound) else LATE
                log.warning(
                    "The token %s (%s) is refused: %s%s", token.name, token.number, error, late
                )
            return None
        return Visitor(
            token.name,
            token.personality,
            token.source,
            token.write,
            token=token.number,
            publish=token.publish,
            approve=token.approve,
        )

    async def edition(self) -> Edition:
        """Return the current version of the database; it has a meaning only in this process."""
        return await asyncio.get_running_loop().run_in_executor(self._clock, self._read_edition)

    def _read_edition(self) -> Edition:
        """Return the version of the database; its content is hashed only after a write."""
        browse = self.registry.browse()
        instant = f"{self._begun}-{browse.version}"
        if self._edition is None or self._edition.instant != instant:
            state = hashlib.sha256(browse.state.encode("utf-8", "replace")).hexdigest()
            self._edition = Edition(f"{self._begun}-{state}", instant)
        return self._edition

    def view_of(self, visitor: Visitor) -> "Browse":
        """Return the visitor's view of the registry.

        Raises the errors of `SkillRegistry.browse`.
        """
        return self.view(visitor.personality, visitor.source)

    def view(self, personality: str | None, source: str | None) -> "Browse":
        """Return a view with these limits. Raises the errors of `SkillRegistry.browse`."""
        limits = personality, source
        if limits not in self._views:
            self._views[limits] = self.registry.browse(*limits)
        return self._views[limits]

    def close(self) -> None:
        """End the threads."""
        self.turns.close()
        self._clock.shutdown(wait=True, cancel_futures=True)
