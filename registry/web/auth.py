"""Authentication: by token, by cookie, by a trusted proxy, or as a local user."""

import asyncio
import logging
import re
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from registry.errors import DatabaseProblem
from registry.mcp.fairness import Network, caller, is_from
from registry.remotes.address import is_loopback
from registry.web.addresses import JSON
from registry.web.rendering import refused, sign_in
from registry.web.state import AppState, Visitor

log = logging.getLogger(__name__)

INVALID: Final = "This token is unknown or no longer valid"
NEEDED: Final = "This request needs a token"
COOKIE: Final = "skill_registry"
MAX_FORM: Final = 32 << 10
"""Maximum size of the sign-in form, in bytes."""

MAX_PARAMETERS: Final = 100
"""Maximum number of query parameters in a URL."""

OPEN: Final = frozenset({"/healthz", "/robots.txt", "/favicon.ico"})
"""Paths that need no token, in addition to static files.

The responses contain no data about skills.
"""

STATIC: Final = "/static/"

GIT: Final = "/git/"
"""Prefix of the paths of the git server."""

WITH_PASSWORD: Final = (GIT, "/changes.atom", "/.well-known/agent-skills/", "/artifacts/", "/s/")
"""Prefixes of paths for which the password of Basic authentication may be the token.

Programs such as git, feed readers and `sync` of another machine send no bearer token. All answers
at these paths only read, because browsers repeat a password without asking the user.
"""

FORWARDED: Final = (
    *("via", "forwarded", "x-forward", "x-real-", "x-original-", "x-proxy", "proxy-", "x-via"),
    *("client-ip", "x-client-ip", "x-cluster-client-ip", "true-client-", "x-remote-", "remote-"),
    *("cf-", "cdn-", "fastly-", "fly-", "x-amzn-", "x-amz-", "x-azure-", "x-arr-", "x-ms-client-"),
    *("x-goog-", "x-cloud-trace-", "x-appengine-", "x-vercel-", "x-nf-", "akamai-", "x-akamai-"),
    *("x-envoy-", "x-varnish", "x-auth-request-", "x-scheme", "x-url-scheme", "front-end-https"),
    *("tailscale-", "ngrok-"),
)
"""Prefixes of headers that proxies, tunnels and content delivery networks add to requests."""

OLD_HTTP: Final = frozenset({"0.9", "1.0"})
"""Versions of HTTP that only proxies still use."""

SIGNING: Final = ("/login", "/logout")

_OWN_PATH: Final = re.compile(r"/(?![/\\])[!-~]*")
"""Matches a path that no browser interprets as an address on another host."""


@dataclass(frozen=True, slots=True)
class Trusted:
    """A header in which trusted proxies name the user.

    All users of these proxies get the same personality.
    """

    header: str
    networks: Sequence[Network]
    personality: str | None = None


class Auth:
    """ASGI middleware that finds the visitor of each request, or refuses the request.

    If ``is_open``, a request from this machine needs no token, unless it shows signs of a proxy. If
    ``secure``, browsers connect over TLS, so cookies are sent only over TLS.
    """

    look_again = 5.0
    """Interval at which the access of a client with an open stream is checked again, in seconds."""

    def __init__(
        self,
        app: Any,
        state: AppState,
        *,
        is_open: bool,
        trusted: Trusted | None = None,
        secure: bool = False,
    ) -> None:
        self._app = app
        self._state = state
        self._is_open = is_open and trusted is None
        self._trusted = trusted
        self._secure = secure

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse a request without access, or pass the request on with its visitor."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        if scope["query_string"].count(b"&") >= MAX_PARAMETERS:
            message = f"A URL can have {MAX_PARAMETERS} parameters at most"
            await refused(request.headers, 400, message, {})(scope, receive, send)
            return
        try:
            answer = await self._answer(request)
        except DatabaseProblem as error:
            log.warning("Can't identify the sender of a request: %s", error)
            # the message doesn't name the error, because it may contain secrets
            message = "The server can't check who you are at the moment"
            answer = refused(request.headers, 503, message, {"cache-control": "no-store"})
        if answer is not None:
            await answer(scope, receive, send)
        elif scope["path"] == "/mcp":
            await self._while_allowed(request, send)
        else:
            await self._app(scope, receive, send)

    async def _while_allowed(self, request: Request, send: Any) -> None:
        """Pass a request on; when the visitor loses access, end the stream of the response."""
        visitor, is_open = request.scope["visitor"], False

        async def noted(message: Any) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        answering = asyncio.ensure_future(self._app(request.scope, request.receive, noted))
        try:
            while not (await asyncio.wait({answering}, timeout=self.look_again))[0]:
                with suppress(DatabaseProblem):  # the next request checks the access again
                    if is_open and await self._visitor(request) != visitor:
                        answering.cancel()
                        await asyncio.wait({answering})
                        await send({"type": "http.response.body", "body": b""})
                        return
            await answering
        finally:
            answering.cancel()

    async def _answer(self, request: Request) -> Response | None:
        """Return the response that refuses a request; None if its visitor has access."""
        path, method = request.scope["path"], request.method
        if path == "/login" and method == "POST":
            return await self._signed_in(request)
        if path == "/logout" and method == "POST":
            left = RedirectResponse("/login", 303)
            left.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=self._secure)
            return left
        is_open = path in OPEN or path.startswith(STATIC)
        visitor = None if is_open else await self._visitor(request)
        request.scope["visitor"] = visitor
        return None if is_open or visitor is not None else self._refusal(request)

    async def _visitor(self, request: Request) -> Visitor | None:
        headers = request.headers
        given = [one.partition(" ") for one in headers.getlist("authorization")]
        if any(scheme.lower() == "bearer" for scheme, _, _ in given):
            return await self._of_token(given[0][2].strip()) if len(given) == 1 else None
        if len(given) == 1 and request.scope["path"].startswith(WITH_PASSWORD):
            known = await self._of_token(_password(given[0]))
            if known is not None:
                return known
        peer = request.client.host if request.client else ""
        if self._trusted is not None:
            named = headers.getlist(self._trusted.header)
            if len(named) == 1 and named[0] and is_from(peer, self._trusted.networks):
                visitor = Visitor(named[0][:200], personality=self._trusted.personality)
                caller().who = f"{visitor.name} at {caller().address}"
                return visitor
        token = _cookie(headers)
        if token and (known := await self._of_token(token)) is not None:
            return known
        # If a browser sends an Authorization header, it may be for a proxy that passes it on.
        if self._is_open and not given and is_loopback(peer) and not _is_forwarded(request):
            return Visitor("local", is_local=True)
        return None

    async def _of_token(self, token: str) -> Visitor | None:
        """Return the visitor of a token.

        Record the use of the token, and the visitor as the caller.
        """
        visitor = await self._state.visitor_of(token)
        if visitor is not None:
            caller().who = f"token {visitor.name}"
        return visitor

    async def _signed_in(self, request: Request) -> Response:
        """Set a browser's cookie to the token that the user typed on the sign-in page."""
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_FORM:
                return sign_in("This is not a token.", "/")
        form = dict(parse_qsl(body.decode("utf-8", "replace")))
        token, wanted = form.get("token", "").strip(), _own_page(form.get("wanted", "/"))
        if await self._state.visitor_of(token) is None:
            return sign_in(f"{INVALID}.", wanted)
        entered = RedirectResponse(wanted, 303)
        # A browser sends this cookie if the user follows a link from another site, but not with
        # other requests from that site. The cookie is safe, because a request that changes data
        # also needs a value from one of this server's pages.
        entered.set_cookie(
            COOKIE, token, httponly=True, samesite="lax", secure=self._secure, path="/"
        )
        return entered

    def _refusal(self, request: Request) -> Response:
        is_page = "text/html" in request.headers.get("accept", "")
        if (
            is_page
            and request.method == "GET"
            and not request.url.path.startswith(("/api/", "/mcp"))
        ):
            return sign_in("", _own_page(_requested(request)))
        message, how, path = NEEDED, "Bearer", request.scope["path"]
        if path.startswith(WITH_PASSWORD):
            how = 'Basic realm="skill-registry", charset="UTF-8"'
        elif request.headers.get("authorization", "").lower().startswith("bearer "):
            message, how = INVALID, 'Bearer error="invalid_token"'
        headers = {"www-authenticate": how, "cache-control": "no-store"}
        return refused(
            request.headers, 401, message, headers, "token_needed", as_json=path.endswith(JSON)
        )


def _password(given: tuple[str, str, str]) -> str:
    """Return the password of an Authorization header; empty if it has none."""
    scheme, _, value = given
    if scheme.lower() != "basic":
        return ""
    try:
        return b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def _is_forwarded(request: Request) -> bool:
    """Tell whether a request shows signs of a proxy; some proxies show no signs."""
    if request.scope.get("http_version") in OLD_HTTP:
        return True
    return any(name.lower().startswith(FORWARDED) for name in request.headers)


def _requested(request: Request) -> str:
    """Return the requested address; the path in it is still percent-encoded."""
    path, query = request.scope["raw_path"].decode("latin-1"), request.url.query
    return f"{path}?{query}" if query else path


def _own_page(address: str) -> str:
    """Return an address if it is a page of this server; otherwise, return the start page."""
    is_ours = _OWN_PATH.fullmatch(address) and not address.startswith(SIGNING)
    return address if is_ours else "/"


def _cookie(headers: Headers) -> str:
    try:
        jar = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return ""
    return jar[COOKIE].value if COOKIE in jar else ""
