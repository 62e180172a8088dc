"""How much of the server one client, or all of them, may hold: connections, sessions, time.

uvicorn refuses everybody once there are many connections, and never ends a slow one. Here the
address with most connections loses its oldest idle one, and a slow connection ends.
"""

import asyncio
import resource
import socket
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, TypeVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from registry.mcp.turns import PART

SPARE_FILES: Final = 200
"""Files that a process has open besides its connections: databases, folders it watches, and those
that were accepted and not yet counted."""

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
    ``part_seconds``: to take `PART` bytes of an answer; ``session_seconds``: how long a session
    lasts that no request uses.
    """

    connections: int = field(default_factory=_connections)
    of_one_address: int = 500
    sessions: int = 1000
    request_seconds: float = 30.0
    part_seconds: float = 30.0
    session_seconds: float = 1800.0


class Places(Generic[H]):
    """Who holds a place, in the order in which they used it last; ``busy`` ones leave last."""

    def __init__(self, most: int, of_one: int) -> None:
        self._most, self._of_one = most, of_one
        self._held: dict[H, str] = {}
        self._busy: Counter[H] = Counter()

    def enter(self, holder: H, address: str) -> H | None:
        """Let a holder in. Return the holder that has to leave for it, if any."""
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
        """Note that a holder begins to use its place, or ends it if ``times`` is -1."""
        if holder in self._held:
            self._busy[holder] += times
            self._held[holder] = self._held.pop(holder)

    def rest(self, holder: H) -> None:
        """Note that a holder has used its place once."""
        self.use(holder, -1)

    def leave(self, holder: H) -> None:
        """Give a place back."""
        self._held.pop(holder, None)
        self._busy.pop(holder, None)

    def __contains__(self, holder: object) -> bool:
        return holder in self._held

    def _oldest(self, address: str) -> H:
        own = [holder for holder, its in self._held.items() if its == address]
        return next((holder for holder in own if self._busy[holder] <= 0), own[0])


class BoundedProtocol(H11Protocol):
    """A connection that ends if a request or an answer is too slow, or if others need its place."""

    bounds: ClassVar[Bounds]
    places: "ClassVar[Places[BoundedProtocol]]"

    _timer: asyncio.TimerHandle | None = None
    _is_asking = False

    def connection_made(self, transport: Any) -> None:
        """Let a connection in, for another if there are many."""
        super().connection_made(transport)
        # So that `pause_writing` and `resume_writing` follow what the client takes.
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
        """Give the place back."""
        self._end_after(None)
        self.places.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in a part of a request."""
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, and for the client to take the rest of the answer."""
        if self._is_asking:
            self._is_asking = False
            self.places.rest(self)
        self._end_after(self.bounds.request_seconds)
        super().on_response_complete()
        self._look()

    def pause_writing(self) -> None:
        """Begin to wait for the client to take what was sent."""
        super().pause_writing()
        self._end_after(self.bounds.part_seconds)

    def resume_writing(self) -> None:
        """Go on: the client has taken most of it."""
        super().resume_writing()
        if not self.transport.is_closing():
            self._end_after(None if self._is_asking else self.bounds.request_seconds)

    def _look(self) -> None:
        """See whether a request is whole, which is then being answered."""
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


def bounded(bounds: Bounds) -> type[H11Protocol]:
    """Return a protocol of uvicorn whose connections share these bounds."""
    places: Places[Any] = Places(bounds.connections, bounds.of_one_address)
    return type("Bounded", (BoundedProtocol,), {"bounds": bounds, "places": places})
