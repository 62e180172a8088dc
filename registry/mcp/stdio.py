"""Serve the client that is connected to stdin and stdout."""

import os
import select
import signal
import sys
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from registry.mcp.server import SkillServer


def serve_stdio(server: "SkillServer") -> None:
    """Serve the client that is connected to stdin and stdout.

    The server ends on a signal, when the client closes the connection, or when the client no longer
    reads the answers.
    """
    anyio.run(_stdio, server)


async def _stdio(server: "SkillServer") -> None:
    from mcp.server.stdio import stdio_server

    built = server.build()
    answers = os.dup(sys.stdout.fileno())  # while the SDK serves, it redirects stdout

    def leave() -> None:
        server.close()
        # The SDK reads stdin in a thread, which ends only if the client sends something. So end the
        # process immediately.
        os._exit(0)

    async with anyio.create_task_group() as tasks:

        async def serve() -> None:
            try:
                async with stdio_server() as (incoming, outgoing):
                    await built.run(incoming, outgoing, built.create_initialization_options())
            except* ConnectionError:  # the client no longer reads answers
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
    """Wait until the reader of a pipe, a socket or a terminal has closed it."""
    gone = select.poll()
    gone.register(descriptor, 0)  # poll() always reports a closed reader
    gone.poll()
