"""How much of the server one client, or all of them, may hold: connections, sessions, time.

uvicorn counts connections and turns away all who come when there are many, whoever holds them, and
waits for ever for a request that never becomes whole. Here who comes is let in, and whoever has
held a place for longest without using it leaves, of the address that holds most.
"""

import asyncio
import resource
from collections import Counter
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, TypeVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

SPARE_FILES: Final = 200
"""Files that a process has open besides its connections: databases, folders it watches, and those
that were accepted and not yet counted."""

NOT_FOUND: Final = 404
BAD_REQUEST: Final = 400
"""And above: what was asked was not done."""

SESSION: Final = b"mcp-session-id"

H = TypeVar("H")


def _connections() -> int:
    """Return how many connections may be open, as the system's limit of open files allows."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 1000
    return most if soft == resource.RLIM_INFINITY else max(16, min(most, soft - SPARE_FILES))


@dataclass(frozen=True, slots=True)
class Bounds:
    """What clients may hold: numbers in all, of one address, and seconds.

    ``request_seconds``: from a connection's beginning, or the answer before, to a whole request;
    ``session_seconds``: how long a session lasts that nobody uses.
    """

    connections: int = field(default_factory=_connections)
    of_one_address: int = 500
    sessions: int = 1000
    request_seconds: float = 30.0
    session_seconds: float = 1800.0


class Places(Generic[H]):
    """Who holds a place, in the order in which they used it last; ``busy`` ones leave last."""

    def __init__(self, most: int, of_one: int) -> None:
        self._most, self._of_one = most, of_one
        self._held: dict[H, str] = {}
        self._busy: Counter[H] = Counter()
        self._addresses: Counter[str] = Counter()

    def enter(self, holder: H, address: str) -> H | None:
        """Let a holder in, and return who has to leave for it, if anybody."""
        if holder in self._held:
            return None
        greediest, number = self._addresses.most_common(1)[0] if self._addresses else ("", 0)
        gone = None
        if self._addresses[address] >= self._of_one:
            gone = self._oldest(address)
        elif len(self._held) >= self._most and number:
            gone = self._oldest(greediest)
        self._held[holder] = address
        self._addresses[address] += 1
        if gone is not None:
            self.leave(gone)
        return gone

    def use(self, holder: H) -> None:
        """Note that a holder begins to use its place."""
        self._busy[holder] += 1
        self._touch(holder)

    def rest(self, holder: H) -> None:
        """Note that it has used it once."""
        if self._busy[holder] > 1:
            self._busy[holder] -= 1
        else:
            del self._busy[holder]
        self._touch(holder)

    def leave(self, holder: H) -> None:
        """Give a place back."""
        address = self._held.pop(holder, None)
        if address is not None:
            self._addresses[address] -= 1
            if not self._addresses[address]:
                del self._addresses[address]
        self._busy.pop(holder, None)

    def __contains__(self, holder: object) -> bool:
        return holder in self._held

    def _touch(self, holder: H) -> None:
        if holder in self._held:
            self._held[holder] = self._held.pop(holder)

    def _oldest(self, address: str) -> H:
        own = [holder for holder, its in self._held.items() if its == address]
        return next((holder for holder in own if not self._busy[holder]), own[0])


class BoundedProtocol(H11Protocol):
    """A connection that ends where no request becomes whole in time, or its place is needed."""

    bounds: ClassVar[Bounds]
    places: "ClassVar[Places[BoundedProtocol]]"

    _timer: asyncio.TimerHandle | None = None
    _is_asking = False

    def connection_made(self, transport: Any) -> None:
        """Let a connection in, for another where there are many."""
        super().connection_made(transport)
        gone = self.places.enter(self, self.client[0] if self.client else "")
        if gone is not None:
            gone.transport.abort()
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._stop_waiting()
        self.places.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in what was sent; the waiting ends when a request is whole."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        if self._is_asking:
            self._is_asking = False
            self.places.rest(self)
        super().on_response_complete()
        self._look()
        if not self._is_asking and not self.transport.is_closing():
            self._await_request()

    def _look(self) -> None:
        """See whether a request is whole now, which is then being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete or self._is_asking:
            return
        if self.conn.their_state is not h11.SEND_BODY:
            self._is_asking = True
            self._stop_waiting()
            self.places.use(self)

    def _await_request(self) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(self.bounds.request_seconds, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def bounded(bounds: Bounds) -> type[H11Protocol]:
    """Return a protocol of uvicorn whose connections share these bounds."""
    places: Places[Any] = Places(bounds.connections, bounds.of_one_address)
    return type("Bounded", (BoundedProtocol,), {"bounds": bounds, "places": places})


Scope = MutableMapping[str, Any]


class Sessions:
    """An ASGI application around the SDK's that ends the session unused for longest for a new one.

    The SDK itself refuses new ones where there are many, until theirs have been idle for long.
    """

    def __init__(self, app: Callable[[Scope, Any, Any], Any], bounds: Bounds) -> None:
        self._app = app
        self._places: Places[bytes] = Places(bounds.sessions, bounds.sessions)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Hand a request on, and note which session it uses or makes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known = next((value for name, value in scope["headers"] if name == SESSION), None)
        address = (scope.get("client") or ("",))[0]
        is_end = scope["method"] == "DELETE"
        gone: list[bytes] = []

        async def noting(message: Scope) -> None:
            if message["type"] == "http.response.start":
                made = next((value for name, value in message["headers"] if name == SESSION), None)
                if known is not None and (message["status"] == NOT_FOUND or is_end):
                    self._places.leave(known)
                elif known is None and made is not None and message["status"] < BAD_REQUEST:
                    left = self._places.enter(made, address)
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
        """End a session as its own client would."""
        version = [pair for pair in scope["headers"] if pair[0] in {b"host", b"authorization"}]
        headers = [*version, (SESSION, session), (b"content-length", b"0")]
        asked = {**scope, "method": "DELETE", "headers": headers}

        async def receive() -> Scope:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignore(_message: Scope) -> None:
            pass

        with suppress(Exception):  # it ended by itself meanwhile
            await self._app(asked, receive, ignore)
