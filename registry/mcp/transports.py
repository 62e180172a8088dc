"""Serve over stdio, or over HTTP (streamable)."""

import os
import select
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio

from registry.errors import UsageProblem
from registry.mcp.guard import MAX_BYTES, Guard, allowed_hosts
from registry.remotes.address import is_loopback

if TYPE_CHECKING:
    from registry.mcp.bounds import Bounds
    from registry.mcp.server import SkillServer


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
    from registry.mcp.bounds import Bounds
    from registry.mcp.running import run
    from registry.mcp.sessions import Sessions
    from registry.mcp.turns import Fair

    if not is_loopback(host) and not token:
        message = (
            f"{host} can be reached from other machines: set a token in SKILL_REGISTRY_TOKEN, "
            "which clients send as a bearer token, or serve 127.0.0.1."
        )
        raise UsageProblem(message=message)
    bounds = bounds or Bounds()
    app = Sessions(http_app(server, bounds), bounds)
    guarded = Guard(app, hosts=allowed_hosts(host, port), token=token)
    stop = server.notices.listen.close
    run(Fair(guarded, server.unsent), host, port, bounds=bounds, on_start=on_start, on_stop=stop)


def http_app(server: "SkillServer", bounds: "Bounds") -> Any:
    """Return the SDK's application, with ``/mcp`` its only path."""
    from mcp.server.transport_security import TransportSecuritySettings

    return server.build().streamable_http_app(
        json_response=True,
        max_request_body_size=MAX_BYTES,
        # Whoever was idle for longest leaves for a new one; what is being opened comes on top.
        max_sessions=bounds.sessions + bounds.connections,
        session_idle_timeout=bounds.session_seconds,
        # The guard has done it, also for addresses that the SDK knows no hosts of.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
