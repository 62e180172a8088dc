"""Send HTTP requests to untrusted servers, outside private networks, with limited bytes and time.

A redirect, or an address in an index, may lead to a private address only if the first address is
private. So no server on the internet can make this machine send requests to its own network. The
connection uses the same IP address that was checked.

The login for the first address comes from the environment (see `own_token`), from the address, or
from ``~/.netrc`` for its host. The client sends it only to this host, and never shows it.
"""

import base64
import http.client
import ipaddress
import json
import netrc
import os
import shlex
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import cached_property
from io import BytesIO
from stat import S_ISREG
from threading import Event, Lock, Timer
from typing import Any, BinaryIO, Final, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from registry.errors import (
    RemoteInvalid,
    RemoteRefused,
    RemoteTooLarge,
    RemoteUnreachable,
    UsageProblem,
)
from registry.remotes.address import (
    PORTS,
    IPAddress,
    host_of,
    is_loopback,
    origin_of,
    place_of,
    port_of,
    redacted,
    resolved,
    split,
    stranger_reason,
)
from registry.remotes.snapshot import FetchLimits
from registry.settings import APPLICATION

OTHERS: Final = 0o077
"""The file permission bits of the group and of all other users."""


def reason_of(error: Exception) -> str | None:
    """Return why a server can't be reached; None if the response of the server is faulty."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate can't be trusted: {error.verify_message}"
        case TimeoutError():
            return "it does not answer in time"
        case ConnectionResetError() | http.client.IncompleteRead() | ssl.SSLEOFError():
            return "the connection broke off"
        case socket.gaierror():
            return "the host is unknown"
        case OSError():
            return error.strerror or str(error)
        case _:
            return None


def login_of(parts: SplitResult) -> str | None:
    """Return the Authorization header for the user and password in an address.

    Returns None if the address has no user.
    """
    if parts.username is None:
        return None
    return _basic(unquote(parts.username), unquote(parts.password or ""))


def login_at(parts: SplitResult) -> str | None:
    """Return the Authorization header for an address.

    User and password come from the address, or from ``~/.netrc`` (or `NETRC`). An unreadable netrc
    file counts as missing. Raises `RemoteInvalid` if the file has a password for this host, and
    other users can read or change the file.
    """
    own = login_of(parts)
    if own is not None:
        return own
    found = _in_netrc(parts)
    return None if found is None else _basic(*found)


def password_at(parts: SplitResult) -> str | None:
    """Return the password for an address in ``~/.netrc``; see `login_at`."""
    found = _in_netrc(parts)
    return None if found is None else found[1]


def _in_netrc(parts: SplitResult) -> tuple[str, str] | None:
    if parts.hostname is None:
        return None
    path = os.environ.get("NETRC") or os.path.expanduser("~/.netrc")
    found = facts = None
    with suppress(OSError, ValueError, netrc.NetrcParseError):
        facts = os.stat(path)
        found = netrc.netrc(path).hosts.get(parts.hostname) if S_ISREG(facts.st_mode) else None
    if facts is None or found is None or not found[2]:
        return None
    if facts.st_mode & OTHERS or facts.st_uid != os.geteuid():
        reason = f"{path} holds its password, and other users can read or change that file"
        command = f"chmod 600 {shlex.quote(path)}"
        raise RemoteInvalid(url=redacted(parts.geturl()), reason=f"{reason}: {command}")
    return found[0], found[2]


TOKEN: Final = "SKILL_REGISTRY_TOKEN"  # noqa: S105  # a name
"""Name of the environment variable that contains the token for a registry."""

HOME: Final = "SKILL_REGISTRY_URL"
"""Name of the environment variable with the address of the registry that issued the token."""


def own_token(url: str) -> str | None:
    """Return the token in the environment if it is for the registry at an address.

    Only requests to the scheme, host and port of the registry that the environment names get the
    token. An address in an index or in a lock file must not get it.
    """
    token, home = os.environ.get(TOKEN), os.environ.get(HOME)
    if not token or not home:
        return None
    own, asked = split(home), split(url)
    if own.scheme != asked.scheme or origin_of(own) != origin_of(asked):
        return None
    if not is_token(token):
        raise UsageProblem(message=f"the token in {TOKEN} has characters that no token has")
    return token


def is_token(text: str) -> bool:
    """Tell whether a text can be a token in a header."""
    return text.isascii() and text.isprintable() and " " not in text


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def tunnel(proxy: SplitResult, host: str, port: int, seconds: float) -> socket.socket:
    """Connect to a host through a proxy. Raises OSError if the proxy refuses."""
    connection = http.client.HTTPConnection(
        proxy.hostname or "", proxy.port or PORTS["http"], timeout=seconds
    )
    login = login_of(proxy)
    connection.set_tunnel(host, port, {"Proxy-Authorization": login} if login else {})
    connection.connect()
    return connection.sock


TIMEOUT: Final = 15.0
"""Timeout for a connection and for each read from it, in seconds."""

REDIRECTS: Final = 5

ATTEMPTS: Final = 3
"""Maximum number of attempts for a request to a busy server, as in the `clawhub` client."""

PAUSE: Final = 0.5
"""Pause before a new attempt if a busy server doesn't name a time, in seconds.

The pause doubles with each attempt.
"""

JSON_BYTES: Final = 8 << 20
"""Maximum size of a JSON response, in bytes.

An index of 20,000 skills is smaller than this.
"""

PACKED: Final = frozenset({"gzip", "x-gzip"})
TAPES: Final = (".tar.gz", ".tgz")
"""Endings of compressed files.

For these files, a server may declare their compression as ``Content-Encoding``.
"""

CHUNK: Final = 1 << 16
OK: Final = 200
UNCHANGED: Final = 304
CONDITIONS: Final = frozenset({"If-None-Match", "If-Modified-Since"})
"""Request headers that allow a server to answer `UNCHANGED`."""

NOT_FOUND: Final = 404
BUSY: Final = frozenset({429, 503})
MOVED: Final = frozenset({301, 302, 303, 307, 308})
SERVER_ERRORS: Final = 500


class Response(NamedTuple):
    """A server's response; ``url`` is the address after all redirects.

    ``status`` is 200, or 304 after a conditional request.
    """

    url: str
    status: int
    headers: http.client.HTTPMessage


class HttpClient:
    """HTTP client for one remote source; threads can share it.

    All its requests together have limits for bytes and time.
    """

    def __init__(self, url: str, bounds: FetchLimits) -> None:
        self._bounds = bounds
        self._until = time.monotonic() + bounds.seconds
        self._room = bounds.bytes
        self._lock = Lock()
        self._away: dict[tuple[str, int], RemoteUnreachable] = {}
        self._first_place: str | None = "public" if bounds.public else None
        self.url = resolved(url)
        self._check_plain(split(url))
        self._login = None
        if not bounds.anonymous:
            token = own_token(url)
            self._login = f"Bearer {token}" if token else login_at(split(url))

    def json(self, url: str) -> tuple[Any, Response]:
        """Return the JSON value at an address, and the server's response."""
        into = BytesIO()
        answer = self.get(url, into, JSON_BYTES, {"Accept": "application/json"})
        try:
            return _json(into.getvalue().decode()), answer
        except (ValueError, RecursionError):
            raise RemoteInvalid(url=redacted(url), reason="it is not JSON") from None

    def begins(self, url: str, size: int) -> bytes:
        """Return the first ``size`` bytes of the response from an address."""
        into = BytesIO()
        with suppress(RemoteTooLarge):
            self.get(url, into, size, {}, cut=True)
        return into.getvalue()

    def get(
        self,
        url: str,
        into: BinaryIO,
        most: int,
        headers: Mapping[str, str],
        *,
        cut: bool = False,
    ) -> Response:
        """Write a response to ``into``. Raises `RemoteTooLarge` if it has more than ``most`` bytes.

        If ``cut``, the first ``most`` bytes of a larger response are written before the error.
        """
        redirects = busy = 0
        while True:
            with self._asked(url, headers) as response:
                status = response.status
                if status == OK:
                    self._copy(response, into, most, url, cut=cut)
                if status == OK or (status == UNCHANGED and not CONDITIONS.isdisjoint(headers)):
                    return Response(url, status, response.headers)
            if status in MOVED:
                redirects += 1
                if redirects > REDIRECTS:
                    reason = f"it redirects more than {REDIRECTS} times"
                    raise RemoteInvalid(url=redacted(url), reason=reason)
                url = resolved(url, response.headers.get("Location", ""))
            elif status in BUSY and (busy := busy + 1) < ATTEMPTS:
                self._wait(url, response.headers.get("Retry-After"), PAUSE * 2 ** (busy - 1))
            elif status in BUSY or status >= SERVER_ERRORS:
                reason = f"the server answers with HTTP status {status}"
                raise RemoteUnreachable(url=redacted(url), reason=reason)
            else:
                raise RemoteRefused(url=redacted(url), status=status)

    def send(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[Response, bytes]:
        """Send a request with a body; return the response with any status, and its body.

        The client follows no redirect, because the request may contain a token. Raises
        `RemoteUnreachable`, `RemoteTooLarge`.
        """
        into = BytesIO()
        with self._asked(url, headers, method, body) as response:
            self._copy(response, into, JSON_BYTES, url, cut=False)
            return Response(url, response.status, response.headers), into.getvalue()

    @staticmethod
    def _check_plain(parts: SplitResult) -> None:
        """Raise `RemoteInvalid` for plain http to another machine; other people could read it."""
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            reason = "plain http is only used on this machine: use https"
            raise RemoteInvalid(url=redacted(parts.geturl()), reason=reason)

    def _left(self) -> float:
        return self._until - time.monotonic()

    def _wait(self, url: str, said: str | None, seconds: float) -> None:
        if said is not None:
            with suppress(ValueError, OverflowError):
                seconds = (
                    float(said)
                    if said.strip().isdecimal()
                    else parsedate_to_datetime(said).timestamp() - time.time()
                )
        if seconds > self._left():
            reason = f"the server is busy and asks to wait for {seconds:.0f} seconds"
            raise RemoteUnreachable(url=redacted(url), reason=reason)
        time.sleep(max(seconds, 0.0))

    @contextmanager
    def _asked(
        self,
        url: str,
        headers: Mapping[str, str],
        method: str = "GET",
        body: bytes | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request, and yield the response; close the connection at the deadline."""
        parts = split(url)
        self._check_plain(parts)
        host, port = host_of(parts), port_of(parts)
        own = {"Host": parts.netloc, "Accept-Encoding": "identity", "Connection": "close"}
        own["User-Agent"] = APPLICATION
        if self._login and origin_of(parts) == origin_of(split(self.url)):
            own["Authorization"] = self._login
        target = parts._replace(scheme="", netloc="").geturl()
        if (away := self._away.get((host, port))) is not None:
            raise RemoteUnreachable(url=redacted(url), reason=away.reason)
        try:
            with self._network(url):
                proxy = self._proxy(parts)
                if proxy is None:
                    held = [self._connected(url, host, port)]
                else:
                    held = [tunnel(proxy, host, port, self._patience())]
        except RemoteUnreachable as problem:
            # Store the failure, because an index may name this host many times.
            self._away[host, port] = problem
            raise
        late = Event()
        timer = _cut_off_after(min(self._left(), self._bounds.patience), held, late)
        try:
            with self._network(url), _in_time(late):
                if parts.scheme == "https":
                    tls = self._tls
                    held[0] = secured = tls.wrap_socket(
                        held[0], server_hostname=host, do_handshake_on_connect=False
                    )
                    secured.do_handshake()
                connection = http.client.HTTPConnection(host, port)
                connection.sock = held[0]
                connection.request(method, target, body, {**headers, **own})
                response = connection.getresponse()
            timer.cancel()
            timer = _cut_off_after(self._left(), held, late)
            with response:
                yield response
        finally:
            timer.cancel()
            held[0].close()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return ssl.create_default_context()

    def _patience(self) -> float:
        return max(min(TIMEOUT, self._left()), 0.001)

    def _proxy(self, parts: SplitResult) -> SplitResult | None:
        """Return the environment's proxy for an https address, or None.

        A proxy resolves host names itself.
        """
        said = getproxies().get("https")
        if parts.scheme != "https" or not said or proxy_bypass(parts.netloc):
            return None
        try:
            self._check(parts.geturl(), [ipaddress.ip_address(parts.hostname or "")])
        except ValueError:
            self._first_place = self._first_place or "public"
        return urlsplit(said if "//" in said else f"//{said}")

    def addresses(self) -> list[str]:
        """Return the permitted IP addresses of the host; an empty list if a proxy is used.

        Raises `RemoteProblem`.
        """
        parts = split(self.url)
        with self._network(self.url):
            if self._proxy(parts) is not None:
                return []
            return [str(one) for one in self._found(self.url, host_of(parts), port_of(parts))]

    def _found(self, url: str, host: str, port: int) -> list[IPAddress]:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        allowed = self._check(url, [ipaddress.ip_address(one[4][0]) for one in found])
        if split(url).scheme == "http":
            allowed = [address for address in allowed if place_of(address) == "loopback"]
        return allowed

    def _connected(self, url: str, host: str, port: int) -> socket.socket:
        """Connect to a host, at the first permitted IP address that accepts a connection."""
        problem: OSError = OSError("the host has no address")
        for address in self._found(url, host, port):
            try:
                return socket.create_connection((str(address), port), self._patience())
            except OSError as error:
                problem = error
        raise problem

    def _check(self, url: str, addresses: list[IPAddress]) -> list[IPAddress]:
        """Return the permitted addresses among ``addresses``.

        Raises `RemoteInvalid` if none is permitted.
        """
        places = {address: place_of(address) for address in addresses}
        if self._first_place is None:
            allowed = [one for one in addresses if places[one] == "public"] or addresses
            self._first_place = places[allowed[0]] if allowed else None
        ours = {"public", self._first_place}
        if self._first_place != "public":
            ours.add("private")
        allowed = [one for one in addresses if places[one] in ours or self._bounds.private]
        if addresses and not allowed:
            reason = f"it leads to a {places[addresses[0]]} address, which is not allowed"
            if self._bounds.public:
                named = self._bounds.named or self.url
                reason = stranger_reason(f"it leads to a {places[addresses[0]]} address", named)
            raise RemoteInvalid(url=redacted(url), reason=reason)
        return allowed

    def _copy(
        self,
        response: http.client.HTTPResponse,
        into: BinaryIO,
        most: int,
        url: str,
        *,
        cut: bool,
    ) -> None:
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding != "identity" and not (encoding in PACKED and split(url).path.endswith(TAPES)):
            reason = "the response has an encoding that was not requested"
            raise RemoteInvalid(url=redacted(url), reason=reason)
        expected, size = response.length, 0
        since, at_size = time.monotonic(), 0
        if expected is not None and not cut:
            self._check_size(url, expected, min(most, self._room))
        while True:
            with self._network(url):
                chunk = response.read1(min(CHUNK, most + 1))
            if not chunk:
                # The response may end early because the deadline closed the connection.
                self._check_time(url)
                break
            into.write(chunk[: most - size])
            size += len(chunk)
            self._check_size(url, size, most)
            now = time.monotonic()
            if now - since >= self._bounds.patience:
                if size - at_size < self._bounds.slowest * (now - since):
                    reason = f"it sends less than {self._bounds.slowest} bytes a second"
                    raise RemoteUnreachable(url=redacted(url), reason=reason)
                since, at_size = now, size
            with self._lock:
                self._room -= len(chunk)
            if self._room < 0:
                reason = f"all downloads together have more than {self._bounds.bytes} bytes"
                raise RemoteTooLarge(url=redacted(self.url), reason=reason)
        if expected is not None and size != expected:
            raise RemoteUnreachable(url=redacted(url), reason="the connection broke off")

    @staticmethod
    def _check_size(url: str, size: int, most: int) -> None:
        if size > most:
            reason = f"it has {size} bytes or more, and {max(most, 0)} are taken"
            raise RemoteTooLarge(url=redacted(url), reason=reason)

    @contextmanager
    def _network(self, url: str) -> Iterator[None]:
        """Convert network errors to a `RemoteProblem` with a plain message."""
        self._check_time(url)
        try:
            yield
        except (http.client.HTTPException, OSError, ValueError) as error:
            self._check_time(url)
            reason = reason_of(error)
            if reason is not None:
                raise RemoteUnreachable(url=redacted(url), reason=reason) from error
            reason = "its response is not HTTP"
            raise RemoteInvalid(url=redacted(url), reason=reason) from error

    def _check_time(self, url: str) -> None:
        if self._left() <= 0:
            reason = f"it took more than {self._bounds.seconds:g} seconds"
            raise RemoteUnreachable(url=redacted(url), reason=reason)


def _json(text: str) -> Any:
    """Parse JSON, with "?" in place of half of a surrogate pair.

    Raises ValueError, RecursionError.
    """
    found = json.loads(text)
    if "\\ud" not in text.lower():
        return found
    return json.loads(json.dumps(found, ensure_ascii=False).encode(errors="replace"))


def _cut_off_after(seconds: float, held: list[socket.socket], late: Event) -> Timer:

    def end() -> None:
        late.set()
        with suppress(OSError):  # close TCP without waiting for the end of TLS
            socket.socket.shutdown(held[0], socket.SHUT_RDWR)

    timer = Timer(max(seconds, 0.0), end)
    timer.daemon = True
    timer.start()
    return timer


@contextmanager
def _in_time(late: Event) -> Iterator[None]:
    """If the deadline closed the connection, raise TimeoutError in place of other errors."""
    try:
        yield
    except (http.client.HTTPException, OSError, ValueError) as error:
        raise (TimeoutError() if late.is_set() else error) from error
