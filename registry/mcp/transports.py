"""Serve over stdio, or over HTTP (streamable)."""

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import socket
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import anyio

from registry.errors import UsageProblem
from registry.mcp.guard import MAX_BYTES, Guard, allowed_hosts, is_loopback

if TYPE_CHECKING:
    from registry.mcp.bounds import Bounds
    from registry.mcp.server import SkillServer

BACKLOG: Final = 100
"""Connections that are accepted at once, before any of them is counted."""

MAX_HEADERS: Final = 32 << 10
"""Bytes of a request before its body."""

GRACE: Final = 3
"""Seconds that requests under way have when the server is stopped."""


def serve_stdio(server: "SkillServer") -> None:
    """Serve the client at the other end of stdin and stdout.

    It ends when the client hangs up, when nobody reads the answers any more, or by a signal.
    """
    anyio.run(_stdio, server)


async def _stdio(server: "SkillServer") -> None:
    from mcp.server.stdio import stdio_server

    built = server.build()
    answers = os.dup(sys.stdout.fileno())  # the SDK points stdout elsewhere while it serves

    def leave() -> None:
        server.close()
        # The SDK reads stdin in a thread that nothing but the client can wake.
        os._exit(0)

    async with anyio.create_task_group() as tasks:

        async def serve() -> None:
            try:
                async with stdio_server() as (incoming, outgoing):
                    await built.run(incoming, outgoing, built.create_initialization_options())
            except* ConnectionError:  # an answer that nobody reads
                leave()
            tasks.cancel_scope.cancel()

        async def watch() -> None:
            await anyio.to_thread.run_sync(_until_unread, answers, abandon_on_cancel=True)
            leave()

        tasks.start_soon(serve)
        tasks.start_soon(watch)
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                leave()


def _until_unread(descriptor: int) -> None:
    """Return when nobody reads what is written to a pipe, a socket or a terminal."""
    gone = select.poll()
    gone.register(descriptor, 0)  # that it is at its end is told unasked
    gone.poll()


def serve_http(
    server: "SkillServer",
    host: str,
    port: int,
    token: str | None,
    on_start: Callable[[], None] = lambda: None,
    bounds: "Bounds | None" = None,
) -> None:
    """Serve clients at an address, within bounds, until a signal ends it.

    Raises `UsageProblem` for an address that others reach too, without a token, and for one that
    can't be had.
    """
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    from registry.mcp.bounds import Bounds, Sessions, bounded

    if not is_loopback(host) and not token:
        message = (
            f"{host} can be reached from other machines: set a token in SKILL_REGISTRY_TOKEN, "
            "which clients send as a bearer token, or serve 127.0.0.1."
        )
        raise UsageProblem(message=message)
    hosts = allowed_hosts(host, port)
    bounds = bounds or Bounds()
    app: Any = server.build().streamable_http_app(
        json_response=True,
        max_request_body_size=MAX_BYTES,
        # Whoever was idle for longest leaves for a new one; what is being opened comes on top.
        max_sessions=bounds.sessions + bounds.connections,
        session_idle_timeout=bounds.session_seconds,
        # The guard has done it, also for addresses that the SDK knows no hosts of.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )

    class Uvicorn(uvicorn.Server):
        """Ends the streams of listening clients before it waits for them."""

        async def startup(self, sockets: list[socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                on_start()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            server.notices.listen.close()
            super().handle_exit(sig, frame)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            """Catch signals; uvicorn's own would raise them again when all is done."""
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
        Guard(Sessions(app, bounds), hosts=hosts, token=token),
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
    )
    running = Uvicorn(config)
    with suppress(SystemExit):  # how it ends when it could not begin
        running.run()
    if not running.started:
        message = f"{host}:{port} can't be served: it is in use, or not an address of this machine."
        raise UsageProblem(message=message)
