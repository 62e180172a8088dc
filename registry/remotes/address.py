"""Parse the addresses that users type for remote sources.

The forms are those of the ``skills`` client.
"""

import ipaddress
import os
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from registry.disk.paths import ARCHIVES, check_path
from registry.errors import AddressInvalid, RemoteInvalid
from registry.settings import Settings
from registry.text import without_secrets

HOSTS: Final[Mapping[str, str]] = {
    "github": "https://github.com/",
    "gitlab": "https://gitlab.com/",
}
"""Addresses for prefixes such as ``github:owner/repo``; the setting ``hosts`` adds others."""

MAX_ADDRESS: Final = 2000

UNREADABLE: Final = "its host or port is invalid"
NO_SECRETS: Final = (
    "it holds a password or token, which would be stored: remove it from the address, and put it "
    "in ~/.netrc or in git's credential store"
)

_SHORT = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*/[\w.-]+)(?P<part>(?:/[^/@]+)*?)/?(?:@(?P<only>[^/@]+))?"
)
_SCP = re.compile(r"(?:[\w.-]+@)(?P<host>\w[\w.-]*):(?!//)(?P<path>[^-\s].*)")
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)(?P<sign>://|::)")
_PREFIX = re.compile(r"(?P<prefix>[A-Za-z][\w-]*):(?!:)(?P<rest>.+)")
_REF = re.compile(r"(?!-)(?!.*(?:\.\.|@\{|//|/\.|\.lock(?:/|$)))[^\s~^:?*\[\\\x00-\x1f\x7f]{1,250}")
_INNER = re.compile(r"(?P<url>.+?\.git)/(?P<part>[^/].*?)/?")
_TREE = re.compile(
    r"(?P<repo>.+?)(?P<dash>/-)?/(?P<what>tree|blob)/(?P<ref>[^/]+)(?:/(?P<part>.+))?"
)

_TOKEN = re.compile(r"(?:gh[a-z]_|github_pat_|gl[a-z]+-|hf_)\w{16,}[\w-]*|[\w-]{40,}")
"""Matches a user name in an address that is a token, and therefore secret.

Some hosts accept a token as the user name.
"""

GIT_SCHEMES: Final = frozenset({"ssh", "git", "git+ssh", "ssh+git"})
WEB_SCHEMES: Final = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True)
class Address:
    """An address from which skills are fetched.

    ``kind`` is git, archive, a kind that a package adds, or ``web``. The kind ``web`` is an http
    address whose real kind only the server knows. ``ref``, ``part`` and ``only`` have the same
    meaning as in `model.Remote`. ``is_short`` is True if the user typed ``owner/repo``, which looks
    like a skill's ``source/skill``.
    """

    kind: str
    url: str
    ref: str | None = None
    part: str | None = None
    only: tuple[str, ...] = ()
    is_short: bool = field(default=False, compare=False)

    @property
    def host(self) -> str:
        """The host and path of a site; they become the name of a new source."""
        return "/" + (urlsplit(self.url).hostname or "").removeprefix("www.").replace(":", "-")

    @property
    def telling(self) -> str:
        """The path that becomes the name of a new source."""
        path = unquote(urlsplit(self.url).path) if "://" in self.url else self.url
        path = path.rpartition(":")[2].rstrip("/").removesuffix(".git")
        if not path.strip("/") and "://" in self.url:
            path = urlsplit(self.url).hostname or ""
        for ending in ARCHIVES:
            path = path[: -len(ending)] if path.lower().endswith(ending) else path
        return "/" + path.strip("/")


def parse_address(
    text: str, hosts: Mapping[str, str] | None = None, kinds: Collection[str] = ()
) -> Address | None:
    """Parse a typed address; return None if the text is a folder or a name.

    ``hosts`` are used in addition to `HOSTS`. ``kinds`` are the kinds of sources that packages add.
    Raises `AddressInvalid`.
    """
    if len(text) > MAX_ADDRESS or not text.isprintable() or text != text.strip():
        return None
    # the name of an existing file may contain any character
    is_file = os.path.isfile(os.path.expanduser(text))
    bare, _, fragment = (text, "", "") if is_file else text.partition("#")
    found = _parse(bare, {**HOSTS, **(hosts or {})}, kinds)
    if found is None:
        return None
    if not is_file:
        check_secret(text, text)
        check_secret(found.url, text)
    if found.kind not in {"git", "web"} and fragment:
        found = replace(found, url=f"{found.url}#{fragment}")
    elif fragment:
        ref, _, skill = fragment.rpartition("@") if "@" in fragment else (fragment, "", "")
        found = replace(found, kind="git", ref=ref, only=(skill,) if skill else found.only)
    _check(found, text)
    return found


def read_address(settings: Settings, text: str) -> Address | None:
    """Parse a typed address with the hosts and kinds of the settings, as `parse_address` does."""
    return parse_address(text, settings.hosts, settings.source_kinds)


def _parse(text: str, hosts: Mapping[str, str], kinds: Collection[str]) -> Address | None:
    prefixed = _PREFIX.fullmatch(text)
    if prefixed and prefixed["prefix"] in kinds:
        return Address(prefixed["prefix"], prefixed["rest"])
    if prefixed and prefixed["prefix"] in hosts:
        short = _SHORT.fullmatch(prefixed["rest"])
        if short is None:
            raise AddressInvalid(address=text, reason="owner/repo must follow the colon")
        return _of_short(hosts[prefixed["prefix"]], short)
    if prefixed and _SHORT.fullmatch(prefixed["rest"]):
        near = get_close_matches(prefixed["prefix"], hosts, n=1)
        if near and not os.path.lexists(os.path.expanduser(text)):
            reason = f"the prefix {prefixed['prefix']!r} is unknown; did you mean {near[0]}?"
            raise AddressInvalid(address=text, reason=reason)
    scheme = _SCHEME.match(text)
    if scheme:
        kind = scheme["scheme"].lower()
        return _of_scheme(kind + text[len(kind) :], kind, is_url=scheme["sign"] == "://")
    if _SCP.fullmatch(text):
        return Address("git", text)
    file = os.path.abspath(os.path.expanduser(text))
    # The user mistyped the address: this file isn't an archive. Its name must not be sent to a
    # host.
    if os.path.isfile(file):
        return Address("archive", f"file://{quote(file)}") if is_archive(text) else None
    # The name of a missing archive is also a typing error, and must not be sent to a host.
    is_file = text.startswith((".", "~", "/")) or is_archive(text)
    short = None if is_file else _SHORT.fullmatch(text)
    return None if short is None else replace(_of_short(hosts["github"], short), is_short=True)


def _of_short(base: str, short: re.Match[str]) -> Address:
    only = (short["only"],) if short["only"] else ()
    repo = short["repo"].removesuffix(".git")
    return Address("git", base + repo, part=short["part"].strip("/") or None, only=only)


def _of_scheme(text: str, scheme: str, *, is_url: bool) -> Address:
    if not is_url or scheme not in {*GIT_SCHEMES, *WEB_SCHEMES, "file"}:
        reason = "it must begin with https, ssh, git or file"
        raise AddressInvalid(address=text, reason=reason)
    if scheme == "file":
        check_file_host(text, text)
        text = "file:///" + text.removeprefix("file://").partition("/")[2].replace(" ", "%20")
        return _of_file(text, _path_of(text))
    inner = _INNER.fullmatch(text)
    if scheme in GIT_SCHEMES and inner is None:
        return Address("git", text)
    return _of_web(text, scheme, inner)


def _of_web(text: str, scheme: str, inner: re.Match[str] | None) -> Address:
    parts = _parts(text, text)
    path = parts.path
    if is_archive(path):
        return Address("archive", text)
    tree = _TREE.fullmatch(f"{scheme}://{parts.netloc}{path.rstrip('/')}")
    if tree and (tree["dash"] or parts.hostname == "github.com"):
        part = unquote(tree["part"] or "")
        if tree["what"] == "blob":
            part = part.rpartition("/")[0]
        url = tree["repo"]
        return Address("git", url.removesuffix(".git"), unquote(tree["ref"]), part or None)
    if inner is not None:
        return Address("git", inner["url"], part=unquote(inner["part"]))
    is_git = path.endswith(".git") or "/_git/" in path
    if is_git or parts.hostname in {"github.com", "gitlab.com"}:
        return Address("git", text.rstrip("/"))
    return Address("web", text)


def _parts(url: str, shown: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port
    except ValueError:
        raise AddressInvalid(address=shown, reason=UNREADABLE) from None
    return parts


def _path_of(url: str) -> str:
    return unquote(_parts(url, url).path).rstrip("/")


def _of_file(text: str, path: str) -> Address:
    """Return the address of an archive, or of the git repository that contains ``path``."""
    if is_archive(path) and os.path.isfile(path):
        return Address("archive", text)
    part, above = "", path
    while above.strip("/"):
        if any(os.path.exists(os.path.join(above, one)) for one in (".git", "HEAD")):
            url = text if not part else f"file://{quote(above)}"
            return Address("git", url.rstrip("/"), part=part or None)
        above, _, name = above.rpartition("/")
        part = f"{name}/{part}".rstrip("/")
    return Address("git", text.rstrip("/"))


def file_path_of(url: str) -> str | None:
    """Return the path in a ``file:`` address, or None for any other address."""
    return _path_of(url) if url.startswith("file://") else None


def is_archive(path: str) -> bool:
    """Tell whether a path or address has the ending of an archive."""
    return path.lower().endswith(ARCHIVES)


def _check(found: Address, text: str) -> None:
    """Raise `AddressInvalid` if git or another program could misinterpret the address."""
    if found.kind in {"git", "web"}:
        check_git_url(found.url, text)
    if found.ref is not None:
        check_ref(found.ref, text)
    reason = check_path(found.part) if found.part is not None else None
    if reason is not None:
        raise AddressInvalid(address=text, reason=f"its folder is invalid: {reason}")


def check_ref(ref: str, shown: str) -> None:
    """Raise `AddressInvalid` if the text can't be the name of a branch, tag or commit."""
    if not _REF.fullmatch(ref):
        reason = f"{ref!r:.100} is not a branch, tag or commit"
        raise AddressInvalid(address=shown, reason=reason)


def check_git_url(url: str, shown: str) -> None:
    """Raise `AddressInvalid` if git or ssh could interpret ``url`` as an option or a command."""
    if not unquote(url).isprintable():
        raise AddressInvalid(address=shown, reason="it has control characters")
    if url.startswith("-") or "::" in url.partition("/")[0] or " " in url:
        raise AddressInvalid(address=shown, reason="git could mistake it for an option")
    if "://" not in url:
        if _SCP.fullmatch(url) is None:
            raise AddressInvalid(address=shown, reason="git could mistake it for an option")
        return
    parts = _parts(url, shown)
    if parts.scheme == "file":
        check_file_host(url, shown)
        return
    if (
        not parts.hostname
        or parts.hostname.startswith("-")
        or (parts.username or "").startswith("-")
    ):
        raise AddressInvalid(address=shown, reason="it has no host")


def check_file_host(url: str, shown: str) -> None:
    """Raise `AddressInvalid` for a file on another host, because git ignores the host."""
    if _parts(url, shown).netloc.lower() not in {"", "localhost"}:
        check_secret(url, shown)
        reason = "a file: address has no host; write file:///path"
        raise AddressInvalid(address=shown, reason=reason)


def check_secret(url: str, shown: str) -> None:
    """Raise `AddressInvalid` if the address has a password or token, because it would be stored."""
    parts = _parts(url, shown)
    user = parts.username or (url.partition("@")[0] if _SCP.fullmatch(url) else "")
    if parts.password is None and without_secrets(url) == url and not _TOKEN.search(user):
        return
    for secret in filter(None, (parts.password, _TOKEN.search(user) and user)):
        shown = shown.replace(secret, "***")
    raise AddressInvalid(address=shown, reason=NO_SECRETS)


def is_loopback(host: str | None) -> bool:
    """Return True if a host name or IP address (maybe in brackets) means this machine."""
    try:
        return host == "localhost" or ip_address((host or "").strip("[]")).is_loopback
    except ValueError:
        return False


PORTS: Final = {"http": 80, "https": 443}
THIS_MACHINE: Final = tuple(map(ipaddress.IPv4Network, ("127.0.0.0/8", "0.0.0.0/8")))
"""IPv4 networks whose addresses lead back to this machine."""

IPV6_LOOPBACK: Final = ipaddress.IPv6Address("::1")
IPV4_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")
CARRYING: Final = (
    IPV4_MAPPED,
    *map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96")),
)
"""Networks with an IPv4 address in their last 32 bits: mapped, compatible, translated, NAT64."""

ISATAP: Final = frozenset({0x5EFE, 0x02005EFE})
"""Values of the third 32-bit group by which an ISATAP address (RFC 5214) is recognized.

The last group of an ISATAP address is an IPv4 address.
"""

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

The standard library's list isn't used, because it depends on the Python version.
"""

PLAIN: Final = "/%:=&~+!$,;'@()*[]"
"""Characters that stay unquoted in addresses, as in `urllib.request`."""

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def normalize_url(url: str) -> str:
    """Return a repository's address in a form for comparison, without the optional ``.git``.

    All addresses of one repository have the same form.
    """
    return url.rstrip("/").removesuffix(".git")


def redacted(url: str) -> str:
    """Return an address for messages, without the password, the query and the fragment."""
    try:
        parts = urlsplit(url)
        port_of(parts)  # a ValueError means that the "port" may be part of a password with a slash
        place = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        return "an invalid address"
    query = "?\N{HORIZONTAL ELLIPSIS}" if parts.query else ""
    return f"{parts.scheme}://{place}{query}" if parts.scheme else place + query


def resolved(base: str, url: str = "") -> str:
    """Return the absolute address of ``url``, which is relative to ``base``.

    The user name and the fragment are left out. Raises `RemoteInvalid` if the result leads from
    https to http, or has another scheme.
    """
    before = split(base)
    try:
        parts = split(urljoin(base, url))
        path, query = quote(parts.path or "/", safe=PLAIN), quote(parts.query, safe=f"{PLAIN}?")
    except ValueError:
        raise RemoteInvalid(url=redacted(base), reason="it leads to an invalid address") from None
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
        reason = "the address is invalid"
    else:
        if parts.scheme in PORTS and parts.hostname:
            return parts
        reason = "only http and https are supported"
    raise RemoteInvalid(url=redacted(url), reason=reason)


def host_of(parts: SplitResult) -> str:
    """Return the host in the form that requests need. Raises ValueError if the host is invalid."""
    return (parts.hostname or "").encode("idna").decode()


def port_of(parts: SplitResult) -> int:
    """Return the port for requests. Raises ValueError if the port is invalid."""
    return parts.port or PORTS.get(parts.scheme, 0)


def origin_of(parts: SplitResult) -> tuple[str, int | None]:
    """Return the host and port of an address.

    The client sends a password only to the host and port of the address with the password. The port
    is None if it is the default of the scheme, because an http server may redirect to https on its
    host.
    """
    port = port_of(parts)
    return host_of(parts), None if port == PORTS[parts.scheme] else port


def stranger_reason(reason: str, url: str) -> str:
    """Return a message about an address in a lock file to which no request is sent.

    The message gives the reason, and tells the user how to allow the request.
    """
    command = f"skill-registry sync {shlex.quote(url)}"
    return f"{reason}, and only a lock file names it. If you trust it, run: {command}"


def place_of(address: IPAddress) -> str:
    """Return the type of network to which an IP address belongs.

    The types are "public", "private", "link-local" and "loopback". If an IPv6 address contains an
    IPv4 address that isn't public, return the type of the IPv4 address.
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
    is_reserved = any(address in net for net in RESERVED if net.version == address.version)
    return "private" if not address.is_global or is_reserved else "public"


def _carried(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    value = int(address)
    is_carrying = value >> 32 & 0xFFFFFFFF in ISATAP or any(address in net for net in CARRYING)
    return ipaddress.IPv4Address(value & 0xFFFFFFFF) if is_carrying else None
