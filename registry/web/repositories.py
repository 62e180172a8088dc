"""The built git repositories of all visitors; they stay until skills change."""

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from registry.catalog.browse import Browse
from registry.errors import NotFound
from registry.mcp.fairness import Turns
from registry.publish.git.objects import OID
from registry.publish.git.repository import Repository, build
from registry.web import addresses

KEPT: Final = 64
"""Maximum number of stored repositories."""

KEPT_BYTES: Final = 1 << 30
"""Maximum total size of the stored packs on disk, in bytes; the newest pack is always stored."""

EARLIER: Final = 8
"""Number of earlier states of a repository from which a client can fetch only the difference."""

Run = Callable[..., Awaitable[Any]]
See = Callable[[str | None, str | None], Browse]


class Address(NamedTuple):
    """Identifies the repository that a visitor requests.

    ``kind`` and ``name`` are as in `build`.
    """

    kind: str
    name: str
    personality: str | None
    source: str | None

    @classmethod
    def of(cls, path: str, personality: str | None, source: str | None) -> "Address | None":
        """Return the repository for a path without ``.git``.

        Returns None if there is no such repository.
        """
        kind, slash, name = path.partition("/")
        if kind == "catalogue" and not slash:
            return cls(kind, "", personality, source)
        if kind not in {"source", "tag", "personality", "skill"} or not name:
            return None
        if kind == "personality":
            if personality not in {None, name}:
                return None
            personality = name
        if kind == "skill":
            name = addresses.ref_of(name)
        return cls(kind, name, personality, source)


@dataclass(slots=True)
class Kept:
    """A repository, the state of the database at which it was built, and its earlier states.

    ``earlier`` maps the commit of each earlier state to the sorted ids of that state's objects.
    ``index`` is the answer of `older_index`; it is None until a client requests the index.
    """

    repository: Repository
    edition: str
    earlier: OrderedDict[bytes, bytes]
    index: bytes | None = None

    def objects_at(self, commit: bytes) -> frozenset[bytes] | None:
        """Return the ids of the objects of an earlier state; None if it is unknown."""
        oids = self.earlier.get(commit)
        if oids is None:
            return None
        return frozenset(oids[at : at + OID] for at in range(0, len(oids), OID))


class Repositories:
    """The repositories of all visitors, within limits."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Address, Kept] = OrderedDict()
        self._lock = threading.Lock()
        # Only one repository is built at a time, to limit the memory.
        self._turns = Turns(1, 1)

    async def get(self, run: Run, see: See, address: Address, edition: str) -> Kept:
        """Return a repository; build it if there is none, or if ``edition`` has changed.

        ``run`` runs a function in a thread. ``see`` returns the view of a personality and a source.
        Raises the errors of `build`, and `NotFound` if no skill has the tag.
        """
        found = self._current(address, edition)
        if found is None:
            async with self._turns.turn():
                found = self._current(address, edition)
                if found is None:
                    found = await run(self._build, see, address, edition)
        return found

    def _current(self, address: Address, edition: str) -> Kept | None:
        with self._lock:
            found = self._kept.get(address)
            if found is None or found.edition != edition:
                return None
            self._kept.move_to_end(address)
            return found

    def _build(self, see: See, address: Address, edition: str) -> Kept:
        view = see(address.personality, address.source)
        with self._lock:
            before = self._kept.get(address)
        old = None if before is None else before.repository
        new = build(view, address.kind, address.name, old)
        if address.kind in {"tag", "skill"} and not new.entries and len(new.refs) == 1:
            raise NotFound
        earlier = OrderedDict() if before is None else before.earlier.copy()
        if old is not None and old.head != new.head:
            earlier[old.head] = old.pack.oids
            while len(earlier) > EARLIER:
                earlier.popitem(last=False)
        kept = Kept(new, edition, earlier)
        with self._lock:
            self._kept[address] = kept
            self._kept.move_to_end(address)
            total = sum(one.repository.pack.size for one in self._kept.values())
            while len(self._kept) > 1 and (len(self._kept) > KEPT or total > KEPT_BYTES):
                _, gone = self._kept.popitem(last=False)
                total -= gone.repository.pack.size
        return kept
