"""What stands between the network and the server: Host, Origin, token, rate and size of requests.

The SDK checks hosts only for loopback addresses, and knows no static token and no rate.
"""

import hmac
import ipaddress
import json
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

import anyio
from starlette.datastructures import Headers
from starlette.responses import Response

from registry.mcp.turns import asking
from registry.remotes.address import is_loopback

MAX_BYTES: Final = 4 << 20
"""Of one request's body; the largest is a skill that is created with its files."""

RATE: Final = 500.0
BURST: Final = 2000.0
"""Requests a second, and at once, from one address."""

_NONE: Final[Mapping[str, str]] = MappingProxyType({})

MAX_PEERS: Final = 4096

PATIENCE: Final = 5.0
"""Seconds for the rest of a refused request to come."""

Scope = MutableMapping[str, Any]
Refusing = Callable[[Headers, int, str, Mapping[str, str]], Response]
App = Callable[[Scope, Any, Any], Awaitable[None]]


def allowed_hosts(host: str, port: int) -> list[str] | None:
    """Return what the Host header of a request to this address may say; None: anything.

    An address that stands for all of a machine's has no name of its own. It needs a token, which
    no web page can know, so that rebinding a name to it gains nothing.
    """
    with suppress(ValueError):
        if ipaddress.ip_address(host.strip("[]")).is_unspecified:
            return None
    if is_loopback(host):
        return [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    bare = host.strip("[]")
    return [f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"]


def _error(_asked: Headers, status: int, text: str, headers: Mapping[str, str]) -> Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": text}}
    return Response(json.dumps(error), status, headers, media_type="application/json")


class Guard:
    """An ASGI application around another that turns away what should not reach it.

    ``hosts``: what `allowed_hosts` returns; a web page may only ask the host it came from, or come
    from one of ``origins``, as which a proxy shows it.
    ``token``: what clients have to send as a bearer token, compared in constant time. ``refuse``
    makes the answer of who is turned away: of what was asked, a status, a sentence and headers.
    """

    def __init__(
        self,
        app: App,
        *,
        hosts: Iterable[str] | None,
        origins: Iterable[str] = (),
        token: str | None = None,
        rate: float = RATE,
        burst: float = BURST,
        refuse: Refusing = _error,
    ) -> None:
        self._app = app
        self._hosts = None if hosts is None else {host.lower() for host in hosts}
        self._origins = {origin.lower() for origin in origins}
        self._token = None if token is None else token.encode()
        self._rate, self._burst = rate, burst
        self._refuse = refuse
        self._peers: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refusal = self._refusal(scope)
            if refusal is None:
                await self._app(scope, receive, send)
            else:
                await _drain(receive)
                await refusal(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or (self._hosts is not None and hosts[0].lower() not in self._hosts):
            return self._refused(headers, 421, "This host name is not served")
        own = {scheme + hosts[0].lower() for scheme in ("http://", "https://")}
        if not self._origins.union(own).issuperset(map(str.lower, headers.getlist("origin"))):
            return self._refused(headers, 403, "This origin is not allowed")
        wait = self._wait(asking().who or (scope.get("client") or ("",))[0])
        if wait:
            later = {"retry-after": str(int(wait + 1))}
            return self._refused(headers, 429, "Too many requests", later)
        given = headers.getlist("authorization")
        if not self._is_known(given):
            told, how = "A bearer token is required", "Bearer"
            if any(one.lower().startswith("bearer ") for one in given):
                told, how = "The token is not valid", 'Bearer error="invalid_token"'
            return self._refused(headers, 401, told, {"www-authenticate": how})
        length = headers.get("content-length", "0")
        # The SDK bounds bodies that come in chunks.
        if not length.isdecimal() or int(length) > MAX_BYTES:
            return self._refused(headers, 413, "The request is too large")
        return None

    def _refused(
        self, asked: Headers, status: int, text: str, more: Mapping[str, str] = _NONE
    ) -> Response:
        return self._refuse(asked, status, text, {"connection": "close", **more})

    def _wait(self, peer: str) -> float:
        """Return 0 where an address may ask now, else the seconds it has to wait."""
        now = time.monotonic()
        level, then = self._peers.pop(peer, (self._burst, now))
        level = min(self._burst, level + (now - then) * self._rate)
        wait = 0.0 if level >= 1 else (1 - level) / self._rate
        self._peers[peer] = (level if wait else level - 1, now)
        while len(self._peers) > MAX_PEERS:
            self._peers.popitem(last=False)
        return wait

    def _is_known(self, given: list[str]) -> bool:
        if self._token is None:
            return True
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        same = hmac.compare_digest(token.encode("latin-1").strip(), self._token)
        return same and scheme.lower() == "bearer"


async def _drain(receive: Any) -> None:
    """Read a refused body away: an answer before its end resets the connection."""
    left = MAX_BYTES
    with anyio.move_on_after(PATIENCE):
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body"):
                return
