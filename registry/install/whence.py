"""Where what a lock lists comes from: a skill here, a source that no longer has it, or none."""

from functools import cached_property
from typing import Final

from registry.core import Core
from registry.db.read.sources import list_sources
from registry.disk.paths import ROOT
from registry.errors import RegistryError
from registry.install.choice import owner
from registry.install.lockfile import Locked, read_lock
from registry.install.targets import Target
from registry.model import Remote, Skill
from registry.remotes.address import meant
from registry.remotes.urls import bare

_NOT_IN_SOURCE: Final = "{url} is the source {source} here, which has no skill in {path} any more"


class Whence:
    """Tells of the entries of a lock what the registry has of them; asks for its sources once."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def skill(self, entry: Locked) -> Skill | None:
        """Return the skill that an entry was pulled from; None: the registry does not have it."""
        return owner(self._core, entry)

    def is_strange(self, entry: Locked) -> bool:
        """Tell whether an entry is from an address of which no source here has that part."""
        is_from_address = entry.origin is not None and bool(entry.origin["url"])
        return is_from_address and self._source(entry) is None

    def reason(self, entry: Locked) -> str | None:
        """Say why there is no skill for an entry; None: it is gone from where it came."""
        if entry.origin is None or not entry.origin["url"]:
            return None
        url, path = entry.origin["url"], entry.origin["path"] or ROOT
        source = self._source(entry)
        if source is None:
            return f"{url} is no source here"
        return _NOT_IN_SOURCE.format(url=url, source=source, path=path)

    def _source(self, entry: Locked) -> str | None:
        """Return the name of a source that has what lies where an entry is from."""
        origin = entry.origin or {}
        path = origin.get("path") or ROOT
        for name, remote in self._remotes.get(bare(origin.get("url") or ""), ()):
            is_below = remote.part is None or f"{path}/".startswith(f"{remote.part}/")
            named = {one.casefold() for one in (entry.name, path.rpartition("/")[2])}
            if is_below and (not remote.only or named & {one.casefold() for one in remote.only}):
                return name
        return None

    @cached_property
    def _remotes(self) -> dict[str, list[tuple[str, Remote]]]:
        """The remote sources by their addresses."""
        found: dict[str, list[tuple[str, Remote]]] = {}
        for one in list_sources(self._core.reader, counted=False):
            if one.remote is not None:
                found.setdefault(bare(one.remote.url), []).append((one.name, one.remote))
        return found


def strange_addresses(core: Core, target: Target) -> list[str]:
    """Return the addresses in a lock that are no sources here, as one would sync them.

    What a lock calls an address and is none is left out: anybody may have written it. Raises
    `LockFileInvalid`.
    """
    whence, found = Whence(core), set()
    for entry in read_lock(target.path).values():
        if entry.origin and whence.is_strange(entry):
            url, ref = entry.origin["url"], entry.origin["ref"]
            text = f"{url}#{ref}" if ref else f"{url}"
            if _is_address(core, text) and whence.skill(entry) is None:
                found.add(text)
    return sorted(found)


def _is_address(core: Core, text: str) -> bool:
    try:
        address = meant(core.settings, text)
    except RegistryError:
        return False
    return address is not None and not address.is_short
