"""Addresses of remotes: what they mean, whom they lead to, and how they are shown."""

import ipaddress
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from registry.errors import RemoteInvalid

PORTS: Final = {"http": 80, "https": 443}
NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
PLAIN: Final = "/%:=&~+!$,;'@()*[]"
"""Characters that stand in addresses as they are (as `urllib.request` takes them)."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def bare(url: str) -> str:
    """Return a repository's address as it is compared: people write it with and without .git."""
    return url.rstrip("/").removesuffix(".git")


def redacted(url: str) -> str:
    """Return an address for people, without the password, the query and the fragment."""
    try:
        parts = urlsplit(url)
        port_of(parts)  # what is no number there may be a password with a slash in it
        place = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        return "an address that can't be read"
    query = "?\N{HORIZONTAL ELLIPSIS}" if parts.query else ""
    return f"{parts.scheme}://{place}{query}" if parts.scheme else place + query


def resolved(base: str, url: str = "") -> str:
    """Return the address that ``url`` means where it stands at ``base``.

    Without user, password and fragment: those of strangers are not sent. Never from https to http,
    nor to anything else: `RemoteInvalid`.
    """
    before = split(base)
    try:
        parts = split(urljoin(base, url))
        path, query = quote(parts.path or "/", safe=PLAIN), quote(parts.query, safe=f"{PLAIN}?")
    except ValueError:
        raise RemoteInvalid(url=redacted(base), reason="it leads to what is no address") from None
    if before.scheme == "https" and parts.scheme == "http":
        raise RemoteInvalid(url=redacted(base), reason="it leads from https to http")
    netloc = parts.netloc.rpartition("@")[2]
    if not netloc.isascii():
        netloc = f"{host_of(parts)}:{port_of(parts)}"
    return parts._replace(netloc=netloc, path=path, query=query, fragment="").geturl()


def split(url: str) -> SplitResult:
    """Return the parts of an http or https address. Raises `RemoteInvalid`."""
    try:
        parts = urlsplit(url)
        host_of(parts), port_of(parts)
    except ValueError:
        reason = "it is no address"
    else:
        if parts.scheme in PORTS and parts.hostname:
            return parts
        reason = "only http and https are asked for"
    raise RemoteInvalid(url=redacted(url), reason=reason)


def host_of(parts: SplitResult) -> str:
    """Return the host as it is asked for; ValueError where it can be none."""
    return (parts.hostname or "").encode("idna").decode()


def port_of(parts: SplitResult) -> int:
    """Return the port that is asked; ValueError where it can be none."""
    return parts.port or PORTS.get(parts.scheme, 0)


def origin_of(parts: SplitResult) -> tuple[str, int | None]:
    """Return what has to be equal for two addresses to get the same password.

    From http to https it may go, both at their usual ports; never back.
    """
    port = port_of(parts)
    return host_of(parts), None if port == PORTS[parts.scheme] else port


def place_of(address: Address) -> str:
    """Return how far away an address is: public, private, loopback or link-local."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return place_of(inner)
    if address.is_loopback or address.is_unspecified:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    return "public" if address.is_global and not address.is_multicast else "private"
