"""Serve clients over HTTP with limits: Host, Origin, token, rate, connections, sessions."""

import asyncio
import errno
import hmac
import ipaddress
import json
import logging
import resource
import signal
import socket
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeVar

import anyio
import h11
import uvicorn
from starlette.datastructures import Headers
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from registry.errors import UsageProblem
from registry.mcp.fairness import PART, App, FairRequests, Scope, caller
from registry.remotes.address import is_loopback

if TYPE_CHECKING:
    from registry.mcp.server import SkillServer


SPARE_FILES: Final = 200
"""Number of open files that are reserved for other purposes than counted connections.

The purposes are databases, watched folders, and connections that are accepted but not counted yet.
"""

H = TypeVar("H")


def _connections() -> int:
    """Return the maximum number of connections under the system's limit for open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1000
    return most if soft == resource.RLIM_INFINITY else max(16, min(most, soft - SPARE_FILES))


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits for clients: numbers in total and for one address, and times in seconds.

    ``request_seconds`` is the time for a complete request, from the start of the connection or from
    the previous answer. ``part_seconds`` is the time for a client to read `PART` bytes of an
    answer. ``session_seconds`` is the time after which an unused session ends.
    """

    connections: int = field(default_factory=_connections)
    of_one_address: int = 500
    sessions: int = 1000
    request_seconds: float = 30.0
    part_seconds: float = 30.0
    session_seconds: float = 1800.0


class Admission(Generic[H]):
    """Admits connections or sessions up to a limit in total and for each address.

    At the limit, a new connection or session replaces the least recently used one. An active one is
    replaced only if all are active.
    """

    def __init__(self, most: int, of_one: int) -> None:
        self._most, self._of_one = most, of_one
        self._held: dict[H, str] = {}
        self._busy: Counter[H] = Counter()

    def enter(self, holder: H, address: str) -> H | None:
        """Admit a connection or session (the holder).

        If another holder must leave for it, returns this other holder.
        """
        if holder in self._held:
            return None
        numbers, gone = Counter(self._held.values()), None
        if numbers[address] >= self._of_one:
            gone = self._oldest(address)
        elif len(self._held) >= self._most:
            gone = self._oldest(numbers.most_common(1)[0][0])
        if gone is not None:
            self.leave(gone)
        self._held[holder] = address
        return gone

    def use(self, holder: H, times: int = 1) -> None:
        """Record that a holder becomes active; if ``times`` is -1, that it becomes idle."""
        if holder in self._held:
            self._busy[holder] += times
            self._held[holder] = self._held.pop(holder)

    def rest(self, holder: H) -> None:
        """Record that a holder becomes idle."""
        self.use(holder, -1)

    def leave(self, holder: H) -> None:
        """Remove a holder, so that a new one can be admitted."""
        self._held.pop(holder, None)
        self._busy.pop(holder, None)

    def __contains__(self, holder: object) -> bool:
        return holder in self._held

    def _oldest(self, address: str) -> H:
        own = [holder for holder, its in self._held.items() if its == address]
        return next((holder for holder in own if self._busy[holder] <= 0), own[0])


class BoundedProtocol(H11Protocol):
    """A connection that is closed if its client is too slow, or to admit a new connection."""

    bounds: ClassVar[ClientLimits]
    places: "ClassVar[Admission[BoundedProtocol]]"

    _timer: asyncio.TimerHandle | None = None
    _is_asking = False

    def connection_made(self, transport: Any) -> None:
        """Admit a connection; if there are too many, close an idle connection."""
        super().connection_made(transport)
        # With this limit, uvicorn calls `pause_writing` and `resume_writing` while the client
        # reads.
        transport.set_write_buffer_limits(PART)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            with suppress(OSError):
                transport.get_extra_info("socket").setsockopt(
                    socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, PART
                )
        gone = self.places.enter(self, self.client[0] if self.client else "")
        if gone is not None:
            gone.transport.abort()
        self._end_after(self.bounds.request_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection, so that a new one can be admitted."""
        self._end_after(None)
        self.places.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Start the timeout for the next request.

        The timeout includes the time in which the client reads this answer.
        """
        if self._is_asking:
            self._is_asking = False
            self.places.rest(self)
        self._end_after(self.bounds.request_seconds)
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Start the timeout within which the client must read the sent bytes."""
        super().pause_writing()
        self._end_after(self.bounds.part_seconds)

    def resume_writing(self) -> None:
        """Stop the timeout, because the client has read most of the bytes."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._end_after(None if self._is_asking else self.bounds.request_seconds)

    def _look(self) -> None:
        """Stop the timeout when a request is complete."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete or self._is_asking:
            return
        if self.conn.their_state is not h11.SEND_BODY:
            self._is_asking = True
            self._end_after(None)
            self.places.use(self)

    def _end_after(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._abort)

    def _abort(self) -> None:
        self.transport.abort()


def bounded(bounds: ClientLimits) -> type[H11Protocol]:
    """Return a protocol class for uvicorn; all its connections share these limits."""
    places: Admission[Any] = Admission(bounds.connections, bounds.of_one_address)
    return type("Bounded", (BoundedProtocol,), {"bounds": bounds, "places": places})


MAX_BYTES: Final = 4 << 20
"""Maximum size of a request's body, in bytes.

This size is enough to create a skill together with its files.
"""

RATE: Final = 500.0
BURST: Final = 2000.0
"""Maximum number of requests from one address in a second, and in a burst."""

_NONE: Final[Mapping[str, str]] = MappingProxyType({})

MAX_PEERS: Final = 4096

DRAIN_SECONDS: Final = 5.0
"""Maximum time to wait for the rest of a refused request, in seconds."""

Refusing = Callable[[Headers, int, str, Mapping[str, str]], Response]


def allowed_hosts(host: str, port: int) -> list[str] | None:
    """Return the allowed values of the Host header for this address; None if any is allowed.

    For a wildcard address, which has no name, any value is allowed. Such a server requires a token,
    which a web page can't know. So a web page gets no access by DNS rebinding.
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


class RequestFilter:
    """ASGI middleware that refuses unknown hosts and origins, wrong tokens and too many requests.

    ``hosts`` is the result of `allowed_hosts`. A web page may call only the host from which it was
    loaded, unless its origin is in ``origins``, the public addresses of proxies. ``token`` is the
    bearer token that clients must send; it is compared in constant time. ``refuse`` creates the
    response to a refused request from the headers, a status, a message and further headers.
    ``most`` returns the maximum size of a request's body, in bytes.
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
        most: Callable[[Scope], int] = lambda _: MAX_BYTES,
    ) -> None:
        self._app = app
        self._hosts = None if hosts is None else {host.lower() for host in hosts}
        self._origins = {origin.lower() for origin in origins}
        self._token = None if token is None else token.encode()
        self._rate, self._burst = rate, burst
        self._refuse = refuse
        self._most = most
        self._peers: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Refuse a request, or pass it on to the application."""
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
        wait = self._wait(caller().who or (scope.get("client") or ("",))[0])
        if wait:
            later = {"retry-after": str(int(wait + 1))}
            return self._refused(headers, 429, "Too many requests", later)
        given = headers.getlist("authorization")
        if not self._is_known(given):
            text, how = "A bearer token is required", "Bearer"
            if any(one.lower().startswith("bearer ") for one in given):
                text, how = "The token is not valid", 'Bearer error="invalid_token"'
            return self._refused(headers, 401, text, {"www-authenticate": how})
        length = headers.get("content-length", "0")
        # the SDK limits the size of bodies that are sent in chunks
        if not length.isdecimal() or int(length) > self._most(scope):
            return self._refused(headers, 413, "The request is too large")
        return None

    def _refused(
        self, asked: Headers, status: int, text: str, more: Mapping[str, str] = _NONE
    ) -> Response:
        return self._refuse(asked, status, text, {"connection": "close", **more})

    def _wait(self, peer: str) -> float:
        """Return how many seconds an address must wait before its next request."""
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
    """Read the body of a refused request to its end.

    A response before the end of the body would reset the connection.
    """
    left = MAX_BYTES
    with anyio.move_on_after(DRAIN_SECONDS):
        while left > 0:
            message = await receive()
            left -= len(message.get("body", b""))
            if not message.get("more_body"):
                return


NOT_FOUND: Final = 404
BAD_REQUEST: Final = 400
"""The lowest status of a failed request."""

SESSION: Final = b"mcp-session-id"


class Sessions:
    """ASGI middleware that ends the oldest idle session if a new session needs its place.

    Otherwise the SDK would refuse new sessions until an old session times out.
    """

    def __init__(self, app: App, bounds: ClientLimits) -> None:
        self._app = app
        self._places: Admission[bytes] = Admission(bounds.sessions, bounds.sessions)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Pass a request on, and record the session that it uses or creates."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known = next((value for name, value in scope["headers"] if name == SESSION), None)
        is_end = scope["method"] == "DELETE"
        gone: list[bytes] = []

        async def noting(message: Scope) -> None:
            if message["type"] == "http.response.start":
                made = next((value for name, value in message["headers"] if name == SESSION), None)
                if known is not None and (message["status"] == NOT_FOUND or is_end):
                    self._places.leave(known)
                elif known is None and made is not None and message["status"] < BAD_REQUEST:
                    left = self._places.enter(made, caller().who)
                    gone.extend([] if left is None else [left])
            await send(message)

        used = known if known is not None and known in self._places else None
        if used is not None:
            self._places.use(used)
        try:
            await self._app(scope, receive, noting)
        finally:
            if used is not None:
                self._places.rest(used)
            for session in gone:
                await self._end(scope, session)

    async def _end(self, scope: Scope, session: bytes) -> None:
        """End a session with the request that its client would send to end it."""
        version = [pair for pair in scope["headers"] if pair[0] in {b"host", b"authorization"}]
        headers = [*version, (SESSION, session), (b"content-length", b"0")]
        asked = {**scope, "method": "DELETE", "headers": headers}

        async def receive() -> Scope:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignore(_message: Scope) -> None:
            pass

        with suppress(Exception):  # the session may have ended in the meantime
            await self._app(asked, receive, ignore)


BACKLOG: Final = 100
"""Maximum number of connections that wait until they are accepted and counted."""

MAX_HEADERS: Final = 32 << 10
"""Maximum size of the headers of a request, in bytes."""

GRACE: Final = 3
"""Time for running requests to end after the server is stopped, in seconds."""


UNUSABLE: Final[Mapping[int | None, str]] = {
    errno.EADDRINUSE: "another program uses this port",
    errno.EACCES: "you have no right to use this port",
}
"""Reasons why the server can't listen, by the number of the error."""


def run_app(
    app: Any,
    host: str,
    port: int,
    *,
    bounds: ClientLimits,
    option: str = "--http HOST:PORT",
    on_start: Callable[[], object] = lambda: None,
    on_stop: Callable[[], object] = lambda: None,
    **settings: Any,
) -> None:
    """Serve an application until a signal ends the server.

    ``option`` is the option that gives the address. ``settings`` are more settings of uvicorn.
    ``on_stop`` is called before the server waits for running requests. Raises `UsageProblem` if
    the address can't be used.
    """

    class Uvicorn(uvicorn.Server):
        """A server that ends the streams of waiting clients, then waits for running requests."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                on_start()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            on_stop()
            super().handle_exit(sig, frame)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Catch signals; uvicorn's own method would raise the signals again at the end."""
            before = {
                each: signal.signal(each, self.handle_exit)
                for each in (signal.SIGINT, signal.SIGTERM)
            }
            try:
                yield
            finally:
                for each, handler in before.items():
                    signal.signal(each, handler)

    config = uvicorn.Config(
        app,
        host=host.strip("[]"),
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=GRACE,
        http=bounded(bounds),
        h11_max_incomplete_event_size=MAX_HEADERS,
        backlog=BACKLOG,
        **settings,
    )
    running, problem = Uvicorn(config), None
    # The message below replaces uvicorn's message that it can't listen.
    logging.getLogger("uvicorn.error").addFilter(lambda one: not isinstance(one.msg, OSError))
    try:
        running.run()
    except SystemExit as end:  # uvicorn exits in this way if it can't start
        problem = end.__context__
    if not running.started:
        reason = UNUSABLE.get(getattr(problem, "errno", None), "this machine has no such address")
        message = f"Can't listen on {host}:{port}: {reason}. Choose another with {option}."
        raise UsageProblem(message=message)


def serve_http(
    server: "SkillServer",
    host: str,
    port: int,
    token: str | None,
    on_start: Callable[[], None] = lambda: None,
    bounds: ClientLimits | None = None,
) -> None:
    """Serve clients at an address, with limits, until a signal ends the server.

    Raises `UsageProblem` if other machines can reach the address and there is no token, or if the
    address can't be used.
    """
    if not is_loopback(host) and not token:
        message = (
            f"Other machines can reach {host}. Set a token in SKILL_REGISTRY_TOKEN, which "
            "clients send as a bearer token, or serve 127.0.0.1."
        )
        raise UsageProblem(message=message)
    bounds = bounds or ClientLimits()
    app = Sessions(http_app(server, bounds), bounds)
    guarded = RequestFilter(app, hosts=allowed_hosts(host, port), token=token)
    stop = server.notices.listen.close
    run_app(
        FairRequests(guarded, server.unsent),
        host,
        port,
        bounds=bounds,
        on_start=on_start,
        on_stop=stop,
    )


def http_app(server: "SkillServer", bounds: ClientLimits) -> Any:
    """Return the SDK's application, which has only the path ``/mcp``."""
    from mcp.server.transport_security import TransportSecuritySettings

    return server.build().streamable_http_app(
        json_response=True,
        max_request_body_size=MAX_BYTES,
        # A new session replaces the session with the longest idle time. Each connection may also be
        # opening a session.
        max_sessions=bounds.sessions + bounds.connections,
        session_idle_timeout=bounds.session_seconds,
        # `RequestFilter` has already checked the host. The SDK can't know the names of all
        # addresses.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
