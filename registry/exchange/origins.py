"""Bring what a lock names from where it came from, on a machine that never had it."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from hashlib import sha256
from typing import Final, TypeAlias

from registry.core import Core
from registry.disk.atomic import Place, make_path, open_named
from registry.disk.locks import FileLock
from registry.disk.paths import ROOT, check_path
from registry.disk.private import open_own_folder
from registry.errors import AddressInvalid, RemoteInvalid, RemoteProblem, RemoteTooLarge
from registry.exchange.content import Entry, tree_hash
from registry.exchange.lockfile import Locked
from registry.exchange.remote.address import Address, meant
from registry.exchange.remote.chosen import below
from registry.exchange.remote.git import open_kept
from registry.exchange.remote.kinds import open_remote
from registry.exchange.remote.sources import kind_of
from registry.exchange.remote.tree import Bounds, Tree
from registry.model import Remote
from registry.settings import cache_folder

LOCK_SECONDS: Final = 60.0


class Origins:
    """What the origins of a lock hold, each opened once; until the stack ends.

    ``offline``: only what was fetched before is looked at.
    """

    def __init__(self, core: Core, stack: ExitStack, *, offline: bool) -> None:
        self._core = core
        self._stack = stack
        self._ways = [_kept] if offline else [_kept, _fetched]
        self._states: dict[str, str] = {}
        self._trees: dict[tuple[Way, str, str | None], Tree] = {}

    def files(self, entry: Locked) -> list[Entry] | None:
        """Return the files of a locked skill as its origin has them; None: it has none.

        Raises `AddressInvalid`, `RemoteProblem` where they are not to be had, or are others.
        """
        origin = entry.origin
        url = None if origin is None else origin["url"]
        if origin is None or url is None:
            return None
        folder = origin["path"] or ROOT
        if folder != ROOT and check_path(folder) is not None:
            raise AddressInvalid(address=url, reason=f"{folder!r:.100} is no folder in it")
        problem: RemoteProblem = RemoteInvalid(url=url, reason="it was never fetched here")
        for way in self._ways:
            try:
                tree = self._tree(way, url, origin["commit"])
                found = _below(tree, folder, url, self._core.settings.limits.files)
            except RemoteProblem as error:
                problem = error
                continue
            if tree_hash(found) == entry.tree_hash:
                return found
            problem = RemoteInvalid(url=url, reason=f"{folder} is not the same there any more")
        raise problem

    def _tree(self, way: "Way", url: str, commit: str | None) -> Tree:
        if url not in self._states:
            self._states[url] = self._stack.enter_context(_cache(url))
        key = way, url, commit
        if key not in self._trees:
            opened = way(self._core, url, commit, self._states[url])
            self._trees[key] = self._stack.enter_context(opened)
        return self._trees[key]


Way: TypeAlias = Callable[[Core, str, str | None, str], AbstractContextManager[Tree]]


def _kept(core: Core, url: str, commit: str | None, state: str) -> AbstractContextManager[Tree]:
    """Open what was fetched of a repository before."""
    return open_kept(_address(core, url).url, commit or "", state, Bounds())


@contextmanager
def _fetched(core: Core, url: str, commit: str | None, state: str) -> Iterator[Tree]:
    """Open what an address holds, at a commit where it is a repository."""
    address = _address(core, url)
    kind = kind_of(address)
    is_git = kind == "git"
    remote = Remote(kind, address.url, commit if is_git else None)
    known = "" if is_git else None  # what is here already is not fetched again
    with open_remote(remote, state, known, Bounds(), core.settings.source_kinds) as tree:
        if tree is None:
            raise RemoteInvalid(url=url, reason="it holds nothing")
        yield tree


def _address(core: Core, url: str) -> Address:
    address = meant(core.settings, url)
    if address is None:
        raise AddressInvalid(address=url, reason="it is none")
    return address


@contextmanager
def _cache(url: str) -> Iterator[str]:
    """Give the folder in which what was fetched of an address is kept, locked.

    Where it can't be had, one that is gone afterwards.
    """
    above = str(cache_folder() / "origins")
    try:
        make_path(above)
        with open_named(above) as parent:
            name = sha256(url.encode()).hexdigest()[:32]
            opened = open_own_folder(Place(parent, name), make=True)
    except OSError:
        with tempfile.TemporaryDirectory(prefix="skill-registry-") as folder:
            yield folder
        return
    with opened as home, FileLock("lock", folder=home) as lock:
        if not lock.acquire(LOCK_SECONDS):
            raise RemoteInvalid(url=url, reason=f"it is being fetched by {lock.owner()}")
        yield os.path.join(above, name)


def _below(tree: Tree, folder: str, url: str, most: int) -> list[Entry]:
    """Return the files of a folder of a tree, sorted by their paths."""
    wanted = below(tree.files, folder)
    if len(wanted) > most:
        raise RemoteTooLarge(url=url, reason=f"{folder} has more than {most} files")
    data = dict(tree.read(list(wanted.values())))
    return [
        Entry(inside, data[path], tree.files[path].executable)
        for inside, path in sorted(wanted.items())
    ]
