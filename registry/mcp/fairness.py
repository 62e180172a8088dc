"""Distribute threads fairly: decide which client's request runs next, and limit unsent bytes.

A client is identified by the token of its requests, or by its address if it has no token. Clients
get threads in turn. So if one client sends many requests, another client's next request waits for
at most one of them.
"""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

PART: Final = 64 << 10
"""Number of bytes of an answer that are sent in one step.

The next bytes are sent after the client has read most of these.
"""

UNSENT_TO_ONE: Final = 32 << 20
"""Maximum number of unsent bytes for one client; above it, the client's next requests wait."""

UNSENT: Final = 128 << 20
"""Maximum number of unsent bytes for all clients together."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Any]


@dataclass(slots=True)
class Caller:
    """The client of a request.

    ``who`` is the client's token or address; it is empty outside of requests.
    """

    who: str = ""
    address: str = ""
    is_gone: bool = False


class ClientGone(Exception):
    """The client has closed its connection, so it needs no answer."""


_asking: ContextVar[Caller] = ContextVar("asking")


def caller() -> Caller:
    """Return the client of the current task or thread."""
    return _asking.get(None) or Caller()


def check_client() -> None:
    """Raise `ClientGone` if the client of the current work has left.

    Long work calls this regularly.
    """
    if caller().is_gone:
        raise ClientGone


class Unsent:
    """Counts the bytes that are not sent yet, for each client and in total."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()
        self._less = asyncio.Event()

    @property
    def total(self) -> int:
        """The total number of unsent bytes."""
        return self._of.total()

    def is_much(self, who: str) -> bool:
        """Tell whether a client must read some of its answers before its next request runs.

        A client without unsent bytes never waits because of other clients.
        """
        mine = self._of[who]
        return mine >= UNSENT_TO_ONE or (mine > 0 and self.total >= UNSENT)

    async def room(self, who: str) -> None:
        """Wait until a client has read enough of its earlier answers."""
        while self.is_much(who):
            self._less.clear()
            await self._less.wait()

    @contextmanager
    def of(self, who: str, size: int) -> Iterator[None]:
        """While the block runs, count ``size`` bytes as unsent for a client."""
        self._of[who] += size
        try:
            yield
        finally:
            self._of[who] -= size
            if not self._of[who]:
                del self._of[who]
            self._less.set()


class Turns:
    """Places that clients take in turn.

    There are ``most`` places. One client can have at most ``of_one`` of them at the same time. If a
    client has that many, its next request waits until one of them is free. Only then does the
    request join the queue for all places. So waiting clients alternate.
    """

    def __init__(self, most: int, of_one: int) -> None:
        self._free = asyncio.Semaphore(most)
        self._of_one = of_one
        self._clients: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def take(self, unsent: Unsent | None = None) -> Callable[[], None]:
        """Wait for a place, and return the function that frees the place.

        If ``unsent`` is given, first wait until the client has read enough of its earlier answers.
        """
        who = caller().who
        own = self._clients.setdefault(who, asyncio.Semaphore(self._of_one))
        await own.acquire()
        try:
            if unsent is not None:
                await unsent.room(who)
            await self._free.acquire()
        except BaseException:
            own.release()
            raise

        def end() -> None:
            own.release()
            self._free.release()

        return end

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold a place while the block runs."""
        end = await self.take()
        try:
            yield
        finally:
            end()


class FairThreads:
    """A thread pool in which one client can use at most ``of_one`` threads.

    One more thread is reserved for other clients.
    """

    def __init__(self, of_one: int, name: str, unsent: Unsent | None = None) -> None:
        self._pool = ThreadPoolExecutor(of_one + 1, thread_name_prefix=name)
        self._turns = Turns(of_one + 1, of_one)
        self.unsent = unsent or Unsent()

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Wait for this client's turn, then call a function in a thread."""
        end, loop = await self._turns.take(self.unsent), asyncio.get_running_loop()
        try:
            job = self._pool.submit(copy_context().run, partial(work, *arguments))
        except RuntimeError:  # the server is stopping
            end()
            raise ClientGone from None
        # If the client leaves, the thread works until it notices this. The thread holds the
        # client's place until then.
        job.add_done_callback(lambda _: loop.call_soon_threadsafe(end))
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)


class FairRequests:
    """ASGI middleware that records for `FairThreads` which client sends each request.

    For requests from one of the ``proxies``, the client is the forwarded address. An answer is sent
    in parts, as fast as the client reads them. If the client of a page leaves, the work for its
    request ends. For ``/mcp``, the SDK does this.
    """

    def __init__(self, app: Any, unsent: Unsent, proxies: Sequence[Network] = ()) -> None:
        self._app = app
        self._unsent = unsent
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Pass a request on, and record its client."""
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
        # A proxy appends the address from which it got the request. The client may have sent
        # everything before this address.
        last = given.rpartition(b",")[2].decode("latin-1").strip()
        try:
            return str(ipaddress.ip_address(last.strip("[]")))
        except ValueError:
            return address


async def _never() -> Scope:
    """Wait until the task is cancelled, because the request has no body."""
    await asyncio.Event().wait()
    return {"type": "http.disconnect"}


def is_from(peer: str, networks: Sequence[Network]) -> bool:
    """Tell whether an address belongs to one of these networks."""
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    return any(address in network for network in networks)
