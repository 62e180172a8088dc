"""Tell clients that something changed, from any thread, in both generations of the protocol.

Clients of 2026-07-28 listen on a subscription stream, which the SDK's bus feeds; sessions of older
clients are told one by one.
"""

import asyncio
import logging
import threading
from contextlib import suppress
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)

log = logging.getLogger(__name__)

MAX_SUBSCRIPTIONS: Final = 1000
"""Resources that one session, or one stream, is told of."""

PATIENCE: Final = 5.0
"""Seconds after which a client that does not read must not hold up the others."""


class Notices:
    """Collects events from any thread and sends them from the event loop."""

    def __init__(self) -> None:
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._sessions: dict[int, tuple[Any, set[str]]] = {}
        self._waiting: dict[Any, None] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None

    def publish(self, *events: Any) -> None:
        """Send events soon; the same event several times is one. Any thread may call this."""
        with self._lock:
            self._waiting.update(dict.fromkeys(events))
            loop, wake = self._loop, self._wake
        if loop is not None and wake is not None:
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(wake.set)

    async def run(self, *, task_status: Any = anyio.TASK_STATUS_IGNORED) -> None:
        """Send until cancelled."""
        with self._lock:
            self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        wake = self._wake
        task_status.started()
        try:
            while True:
                await wake.wait()
                wake.clear()
                with self._lock:
                    events, self._waiting = list(self._waiting), {}
                for event in events:
                    await self._bus.publish(event)
                async with anyio.create_task_group() as sending:
                    for session, uris in list(self._sessions.values()):
                        sending.start_soon(_send, session, frozenset(uris), events)
        finally:
            with self._lock:
                self._loop = self._wake = None

    def subscriptions(self, context: Any) -> set[str]:
        """Return the URIs that the session of this request wants to hear of, to be changed."""
        connection = context.session._connection  # noqa: SLF001  # the SDK has no public name
        key = id(connection)
        if key not in self._sessions:
            self._sessions[key] = (context.session, set())
            connection.exit_stack.callback(self._sessions.pop, key, None)
        return self._sessions[key][1]

    async def on_initialized(self, context: Any, _params: types.NotificationParams | None) -> None:
        """Remember the session of an older client."""
        self.subscriptions(context)


async def _send(session: Any, uris: frozenset[str], events: list[Any]) -> None:
    with anyio.move_on_after(PATIENCE):
        for event in events:
            try:
                if isinstance(event, ToolsListChanged):
                    await session.send_tool_list_changed()
                elif isinstance(event, ResourcesListChanged):
                    await session.send_resource_list_changed()
                elif isinstance(event, ResourceUpdated) and event.uri in uris:
                    await session.send_resource_updated(event.uri)
            except Exception:  # a client that left must not end the others' notices
                log.debug("a notice was not delivered", exc_info=True)


__all__ = ["Notices", "ResourceUpdated", "ResourcesListChanged", "ToolsListChanged"]
