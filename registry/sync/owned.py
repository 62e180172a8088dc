"""Whose a source is: which this user may read from disk, sync and change."""

import os

from registry.core import Core
from registry.db.adopted import address_of, former_addresses, is_adopted
from registry.db.read.sources import is_admin, list_sources
from registry.errors import (
    AdminNeeded,
    SourceElsewhere,
    SourceNotAdopted,
    SourceNotYours,
    SourceReadOnly,
)
from registry.model import Source


def is_here(core: Core, host: str, path: str) -> bool:
    """Tell whether a source's folder is this machine's, and this user's to read and change.

    A file as the database has no hosts and needs no adoption: it indexes only into itself, but a
    path that leads to wherever one stands is none of ours. On a server the host is a claim; only
    what this user added or adopted is here.
    """
    if not core.host:
        return not host and os.path.isabs(path)
    return host == core.host and is_adopted(core.backend, path)


def check_own(core: Core, name: str, host: str, path: str) -> None:
    """Raise for a source that is not here.

    `SourceElsewhere`, `SourceNotAdopted`, or `SourceNotYours` for another role's.
    """
    if host != core.host:
        raise SourceElsewhere(name=name, host=host)
    if not is_here(core, host, path):
        raise not_adopted(core, name, path)


def not_adopted(core: Core, name: str, path: str) -> SourceNotAdopted | SourceNotYours:
    """Return the error about a source under this host's name that this user did not add here.

    Only its owner can adopt it.
    """
    for source in list_sources(core.reader, counted=False):
        if source.name == name and not source.own:
            return SourceNotYours(name=name, owner=source.owner, host=source.host)
    formerly = former_addresses(core.backend).get(path)
    address = address_of(core.backend.identity) if formerly else None
    return SourceNotAdopted(name=name, host=core.host, formerly=formerly, address=address)


def is_ours(core: Core, source: Source) -> bool:
    """Tell whether a source is here, and belongs to this user's role."""
    return is_here(core, source.host, source.path) and (source.own or not core.host)


def check_ours(core: Core, source: Source, *, as_admin: bool = False) -> None:
    """Raise, as `check_own`, for a source that is not here; `SourceNotYours` for another role's.

    ``as_admin``: instead `AdminNeeded` where who asks is none.
    """
    if as_admin:
        check_admin(core)
        return
    check_own(core, source.name, source.host, source.path)
    check_owner(core, source)


def check_owner(core: Core, source: Source) -> None:
    """Raise `SourceNotYours` for a source of another role, on a server."""
    if core.host and not source.own:
        raise SourceNotYours(name=source.name, owner=source.owner, host=source.host)


def check_admin(core: Core) -> None:
    """Raise `AdminNeeded` where a server takes this user for no admin; of a file everybody is."""
    if core.host and not is_admin(core.reader):
        raise AdminNeeded(path=core.backend.path)


def check_writable(source: Source) -> None:
    """Raise `SourceReadOnly` for a checkout of what lies elsewhere."""
    if source.remote is not None:
        raise SourceReadOnly(name=source.name, url=source.remote.url)
