"""Fetch locked skills from their remote origins if this machine's registry doesn't have them."""

import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from typing import Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

from registry.core import Core
from registry.disk.atomic import OWN, Place, make_path, open_named
from registry.disk.locks import FileLock
from registry.disk.paths import ROOT, check_path
from registry.disk.private import open_own_folder
from registry.errors import AddressInvalid, RegistryError, RemoteInvalid, RemoteProblem
from registry.install.content import FileContent, content_below, tree_hash
from registry.install.lockfile import LockEntry
from registry.model import Remote
from registry.remotes.address import Address, normalize_url, read_address, stranger_reason
from registry.remotes.git import has_commits, open_commits
from registry.remotes.http import HttpClient
from registry.remotes.kinds import open_remote
from registry.remotes.snapshot import FetchLimits, Snapshot
from registry.remotes.sources import kind_of
from registry.settings import cache_folder
from registry.sync.sources import own_sources

LOCK_SECONDS: Final = 60.0
_WEB_KINDS: Final = frozenset({"git", "web", "archive", "site", "hub"})


class LockedOrigins:
    """The remote origins in a lock file; each origin is opened only once.

    If ``offline``, use only files from earlier fetches.
    """

    def __init__(self, core: Core, stack: ExitStack, *, offline: bool) -> None:
        self._core = core
        self._stack = stack
        self._is_offline = offline
        self._expected: dict[tuple[str, str | None], set[str]] = {}
        self._origins: dict[str, Opened | RemoteProblem] = {}
        self._trees: dict[tuple[str, str | None], Snapshot | RemoteProblem] = {}

    def expect(self, entries: Iterable[LockEntry]) -> None:
        """Announce the entries that will be read, so that each repository gets only one request."""
        for one in entries:
            if one.origin is not None and (url := one.origin["url"]) is not None:
                folders = self._expected.setdefault((url, _ref(one.origin)), set())
                folders.add(one.origin["path"] or ROOT)

    def files(self, entry: LockEntry) -> list[FileContent] | None:
        """Return the files of a locked skill from its origin; None if the entry has no address.

        Raises `AddressInvalid`, `RemoteProblem`.
        """
        origin = entry.origin
        url = None if origin is None else origin["url"]
        if origin is None or url is None:
            return None
        folder = origin["path"] or ROOT
        if folder != ROOT and check_path(folder) is not None:
            raise AddressInvalid(address=url, reason=f"{folder!r:.100} is not a folder in it")
        tree = self._tree(url, _ref(origin), origin["ref"])
        found = content_below(tree, folder, url, self._core.settings.limits.files)
        if tree_hash(found) != entry.tree_hash:
            raise RemoteInvalid(url=url, reason=f"{folder} has changed there")
        return found

    def _tree(self, url: str, ref: str | None, pin: str | None) -> Snapshot:
        """Return the snapshot of an origin at a ref; a failed request isn't repeated.

        ``pin`` is the branch, tag or commit that the entry's source was pinned to.
        """
        address = _address(self._core, url)
        named = _pinned(self._core, url, pin)
        opened = _once(self._origins, url, lambda: self._opened(address, url, named))
        expected = self._expected.get((url, ref), ())
        return _once(self._trees, (url, ref), lambda: opened(ref, expected))

    def _opened(self, address: Address, url: str, named: str) -> "Opened":
        bounds = self._bounds(address, url, named)
        state = self._stack.enter_context(_cache(url))
        if self._is_offline or has_commits(state) or (kind := kind_of(address, bounds)) == "git":
            commits = open_commits(address.url, state, bounds, offline=self._is_offline)
            return self._stack.enter_context(commits)
        kinds = self._core.settings.source_kinds
        opened = open_remote(Remote(kind, address.url), state, None, bounds, kinds)
        tree = self._stack.enter_context(opened)
        assert tree is not None  # noqa: S101  # not None, as `known` is None
        return lambda _ref, _folders: tree

    def _bounds(self, address: Address, url: str, named: str) -> FetchLimits:
        """Return the limits of a fetch from an address in a lock file.

        Another person may have written the lock file. So only addresses of this user's own sources
        may be on this machine or in its network, and only the hosts of these sources get a
        password. Messages name the address ``named``. Raises `RemoteInvalid`.
        """
        if self._is_offline or normalize_url(address.url) in self._own:
            return FetchLimits()
        if urlsplit(address.url).scheme not in {"https", "http"} or address.kind not in _WEB_KINDS:
            reason = stranger_reason("it is not an https address", named)
            raise RemoteInvalid(url=url, reason=reason)
        hosts = {_host(one) for one in self._own}
        bounds = FetchLimits(public=True, anonymous=_host(address.url) not in hosts, named=named)
        HttpClient(address.url, bounds).addresses()
        return bounds

    @cached_property
    def _own(self) -> set[str]:
        return {
            normalize_url(one.remote.url)
            for one in own_sources(self._core)
            if one.remote is not None
        }


Opened: TypeAlias = Callable[[str | None, Collection[str]], Snapshot]

Key = TypeVar("Key")
Found = TypeVar("Found")


def _once(known: dict[Key, Found | RemoteProblem], key: Key, find: Callable[[], Found]) -> Found:
    """Return the result of ``find()``, which is called only once for each key.

    If that call raised `RemoteProblem`, raise the same error again.
    """
    if key not in known:
        try:
            known[key] = find()
        except RemoteProblem as problem:
            known[key] = problem
    found = known[key]
    if isinstance(found, RemoteProblem):
        raise found
    return found


def _host(url: str) -> tuple[str, str | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.rpartition("@")[2].casefold() or None


def _ref(origin: Mapping[str, str | None]) -> str | None:
    return origin["commit"] or origin["ref"]


def _address(core: Core, url: str) -> Address:
    address = read_address(core.settings, url)
    if address is None or address.is_short:
        raise AddressInvalid(address=url, reason="a lock file must name a full address")
    return address


def _pinned(core: Core, url: str, pin: str | None) -> str:
    """Return an address with its pin; without it if the pin isn't valid."""
    with suppress(RegistryError):
        if pin and _address(core, f"{url}#{pin}").ref == pin:
            return f"{url}#{pin}"
    return url


@contextmanager
def _cache(url: str) -> Iterator[str]:
    """Lock and yield the cache folder of an address; if there is none, a temporary folder."""
    above = str(cache_folder() / "origins")
    try:
        make_path(above, OWN)
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
