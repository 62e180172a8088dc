"""Addresses of remotes: what they mean, whom they lead to, and how they are shown."""

import ipaddress
import shlex
from typing import Final
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from registry.errors import RemoteInvalid

PORTS: Final = {"http": 80, "https": 443}
THIS_MACHINE: Final = tuple(map(ipaddress.IPv4Network, ("127.0.0.0/8", "0.0.0.0/8")))
"""IPv4 networks by which a machine reaches itself."""

IPV6_LOOPBACK: Final = ipaddress.IPv6Address("::1")
IPV4_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")
CARRYING: Final = (
    IPV4_MAPPED,
    *map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")),
)
"""Networks whose last 32 bits are an IPv4 address: mapped, compatible, translated, NAT64."""

ISATAP: Final = frozenset({0x5EFE, 0x02005EFE})
"""The third quarter of an IPv6 address whose last quarter is an IPv4 address (RFC 5214)."""

RESERVED: Final = tuple(
    map(
        ipaddress.ip_network,
        "10.0.0.0/8 100.64.0.0/10 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 "
        "192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 "
        "::/96 ::ffff:0:0:0/96 64:ff9b:1::/48 100::/64 2001::/23 2001:db8::/32 2002::/16 "
        "3fff::/20 5f00::/16 fc00::/7 fec0::/10 ff00::/8".split(),
    )
)
"""Networks that are private, deprecated or for special use.

The standard library's own list depends on its version.
"""

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


def stranger_reason(reason: str, url: str) -> str:
    """Return why an address that only a lock file names is not asked, and what allows it."""
    command = f"skill-registry sync {shlex.quote(url)}"
    return f"{reason}, and only a lock file names it. If you trust it, run: {command}"


def place_of(address: Address) -> str:
    """Return how far away an address is: public, private, loopback or link-local.

    An IPv6 address that carries an IPv4 address is as far away as that address, or farther.
    """
    if isinstance(address, ipaddress.IPv6Address):
        if address == IPV6_LOOPBACK:
            return "loopback"
        carried = _carried(address)
        place = "public" if carried is None else place_of(carried)
        if place != "public" or address in IPV4_MAPPED:
            return place
    elif any(address in net for net in THIS_MACHINE):
        return "loopback"
    if address.is_link_local or getattr(address, "scope_id", None) is not None:
        return "link-local"
    return "private" if not address.is_global or _is_reserved(address) else "public"


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that is the end of an IPv6 address, if it has one."""
    value = int(address)
    is_carrying = value >> 32 & 0xFFFFFFFF in ISATAP or any(address in net for net in CARRYING)
    return ipaddress.IPv4Address(value & 0xFFFFFFFF) if is_carrying else None


def _is_reserved(address: Address) -> bool:
    return any(address in net for net in RESERVED if net.version == address.version)
