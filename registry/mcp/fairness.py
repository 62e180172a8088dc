"""Fair use of threads: which client's request runs next, and how many bytes wait to be sent.

Requests are counted by their token, or else by their address. Each of them in turn gets a thread,
so that a burst of one client delays the next request of another by one job at most.
"""

import asyncio
import ipaddress
from collections import Counter, deque
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

T = TypeVar("T")

PART: Final = 64 << 10
"""Bytes of an answer that are sent at once. The next part waits until the client has taken most."""

UNSENT_TO_ONE: Final = 32 << 20
"""Bytes of answers that may wait for one client. Until it takes some, its requests wait."""

UNSENT: Final = 128 << 20
"""Bytes of answers that may wait for all clients together."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Any]


@dataclass(slots=True)
class Caller:
    """The client of a request: ``who`` names its token or address; empty outside of requests."""

    who: str = ""
    address: str = ""
    is_gone: bool = False


class ClientGone(Exception):
    """The client has closed its connection, so no answer is needed."""


_asking: ContextVar[Caller] = ContextVar("asking")


def caller() -> Caller:
    """Return the client that the current task or thread works for."""
    return _asking.get(None) or Caller()


def check_client() -> None:
    """Raise `ClientGone` if the client of this work has gone. Long work calls it now and then."""
    if caller().is_gone:
        raise ClientGone


class Unsent:
    """Bytes of answers that wait to be sent: to each client, and in all."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()
        self.on_less: list[Callable[[], None]] = []

    @property
    def total(self) -> int:
        """Bytes that wait for all clients."""
        return self._of.total()

    def is_much(self, who: str) -> bool:
        """Tell whether a client must read some of its answers before its next request runs.

        A client for which nothing waits is never held up by the others.
        """
        mine = self._of[who]
        return mine >= UNSENT_TO_ONE or (mine > 0 and self.total >= UNSENT)

    @contextmanager
    def of(self, who: str, size: int) -> Iterator[None]:
        """Count bytes for as long as the block runs."""
        self._of[who] += size
        try:
            yield
        finally:
            self._of[who] -= size
            if not self._of[who]:
                del self._of[who]
            for tell in self.on_less:
                tell()


class FairThreads:
    """A thread pool that clients use in turn: ``of_one`` threads for one client, and one more."""

    def __init__(self, of_one: int, name: str, unsent: Unsent | None = None) -> None:
        self._pool = ThreadPoolExecutor(of_one + 1, thread_name_prefix=name)
        self._free = of_one + 1
        self._of_one = of_one
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self.unsent = unsent or Unsent()
        self.unsent.on_less.append(self._go_on)

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Call a function in a thread, when it is this client's turn."""
        who, loop = caller().who, asyncio.get_running_loop()
        await self._turn(who)
        try:
            job = self._pool.submit(copy_context().run, partial(work, *arguments))
        except RuntimeError:  # the server ends
            self._end(who)
            raise ClientGone from None
        # If the client goes, the thread still works until it notices: its turn is not over.
        job.add_done_callback(lambda _: loop.call_soon_threadsafe(self._end, who))
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def _turn(self, who: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(who, deque()).append(turn)
        self._go_on()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._end(who)
            else:
                with suppress(KeyError, ValueError):
                    self._waiting[who].remove(turn)
            raise

    def _end(self, who: str) -> None:
        self._free += 1
        self._running[who] -= 1
        if not self._running[who]:
            del self._running[who]
        self._go_on()

    def _go_on(self) -> None:
        """Give free threads to waiting clients, in turn."""
        for who in list(self._waiting):
            turns = self._waiting[who]
            while turns and turns[0].done():
                turns.popleft()  # it was cancelled
            if not turns:
                del self._waiting[who]
            elif self._may(who):
                self._waiting[who] = self._waiting.pop(who)
                self._free -= 1
                self._running[who] += 1
                turns.popleft().set_result(None)
        if self._free and any(self._may(who) for who, turns in self._waiting.items() if turns):
            self._go_on()

    def _may(self, who: str) -> bool:
        is_fair = self._running[who] < self._of_one
        return self._free > 0 and is_fair and not self.unsent.is_much(who)


class FairRequests:
    """ASGI middleware that tells `FairThreads` which client sends each request.

    Behind one of the ``proxies`` it is the address that the proxy forwards. Answers are sent part
    by part, as the client takes them. When the client of a page goes, the work for it ends; the SDK
    looks after ``/mcp`` itself.
    """

    def __init__(self, app: Any, unsent: Unsent, proxies: Sequence[Network] = ()) -> None:
        self._app = app
        self._unsent = unsent
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        address = self._address(scope)
        mine = Caller(address, address)

        async def in_parts(message: Scope) -> None:
            body = message.get("body", b"")
            if len(body) <= PART:
                await send(message)
                return
            with self._unsent.of(mine.who, len(body)):
                for begin in range(0, len(body), PART):
                    part = body[begin : begin + PART]
                    await send({**message, "body": part, "more_body": True})
                await send({**message, "body": b""})

        before = _asking.set(mine)
        try:
            if scope["method"] not in {"GET", "HEAD"} or scope["path"] == "/mcp":
                await self._app(scope, receive, in_parts)
            else:
                await self._until_gone(mine, scope, receive, in_parts)
        finally:
            _asking.reset(before)

    async def _until_gone(self, mine: Caller, scope: Scope, receive: Any, send: Any) -> None:
        answering = asyncio.ensure_future(self._app(scope, _never, send))

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            if not answering.done():
                mine.is_gone = True
                answering.cancel()

        watching = asyncio.ensure_future(watch())
        try:
            await asyncio.wait({answering})
        finally:
            watching.cancel()
            answering.cancel()
            await asyncio.wait({answering})
        if not mine.is_gone or not answering.cancelled():
            with suppress(ClientGone):
                await answering

    def _address(self, scope: Scope) -> str:
        address: str = (scope.get("client") or ("",))[0]
        if not is_from(address, self._proxies):
            return address
        given = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
        # A proxy appends the address that it saw; what stands before that, anybody may have sent.
        last = given.rpartition(b",")[2].decode("latin-1").strip()
        try:
            return str(ipaddress.ip_address(last.strip("[]")))
        except ValueError:
            return address


async def _never() -> Scope:
    """Wait until the task is cancelled; the request has no body."""
    await asyncio.Event().wait()
    return {"type": "http.disconnect"}


def is_from(peer: str, networks: Sequence[Network]) -> bool:
    """Tell whether an address belongs to one of these networks."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    return any(address in network for network in networks)
