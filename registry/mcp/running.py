"""Run an ASGI application at an address, within bounds, until a signal ends it."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from socket import socket
from types import FrameType
from typing import Any, Final

import uvicorn

from registry.errors import UsageProblem
from registry.mcp.bounds import Bounds, bounded

BACKLOG: Final = 100
"""Connections that are accepted at once, before any of them is counted."""

MAX_HEADERS: Final = 32 << 10
"""Bytes of a request before its body."""

GRACE: Final = 3
"""Seconds that requests under way have when the server is stopped."""


def run(
    app: Any,
    host: str,
    port: int,
    *,
    bounds: Bounds,
    on_start: Callable[[], object] = lambda: None,
    on_stop: Callable[[], object] = lambda: None,
    **settings: Any,
) -> None:
    """Serve an application; ``settings`` are more of uvicorn's.

    ``on_stop`` is called before requests under way are waited for. Raises `UsageProblem` for an
    address that can't be had.
    """

    class Uvicorn(uvicorn.Server):
        """Ends the streams of listening clients before it waits for them."""

        async def startup(self, sockets: list[socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                on_start()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            on_stop()
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
    running = Uvicorn(config)
    with suppress(SystemExit):  # how it ends when it could not begin
        running.run()
    if not running.started:
        message = f"{host}:{port} can't be served: it is in use, or not an address of this machine."
        raise UsageProblem(message=message)
