"""The address `/mcp`: one MCP server for each combination of visible skills and rights."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from registry.web.state import Visitor

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.mcp.fairness import Unsent
    from registry.mcp.http import ClientLimits
    from registry.mcp.server import SkillServer
    from registry.sync.watch import Changes

Limits = tuple[str | None, str | None, bool, str | None]


class McpMount:
    """ASGI application that passes each request to the MCP server for its visitor.

    Servers are created at their first request. A visitor without a token that allows changes gets
    read-only tools. If ``watch``, one of the servers watches the folders for all servers.
    """

    def __init__(self, registry: "SkillRegistry", bounds: "ClientLimits", *, watch: bool) -> None:
        self.unsent: Unsent | None = None
        self._registry = registry.answering_others()
        self._bounds = bounds
        self.watches = watch
        self._apps: dict[Limits, Any] = {}
        self._servers: list[SkillServer] = []
        self._running: list[asyncio.Task[None]] = []
        self._end = asyncio.Event()
        self._lock = asyncio.Lock()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request of a visitor to the visitor's MCP server."""
        app = await self.app_of(scope["visitor"])
        await app(scope, receive, send)

    async def app_of(self, visitor: Visitor) -> Callable[..., Awaitable[None]]:
        """Return the MCP application for a visitor.

        Raises the errors of `SkillRegistry.toolset`.
        """
        # Each token that may write has its own server, because the token is the author of its
        # proposals.
        author = visitor.token if visitor.write else None
        limits = visitor.personality, visitor.source, visitor.write, author
        async with self._lock:
            if limits not in self._apps:
                self._apps[limits] = await self._begin(visitor)
        app: Callable[..., Awaitable[None]] = self._apps[limits]
        return app

    async def _begin(self, visitor: Visitor) -> Any:
        from registry.mcp.http import Sessions, http_app
        from registry.mcp.server import ServerOptions, SkillServer

        limits = {
            "personality": visitor.personality,
            "source": visitor.source,
            "read_only": not visitor.write,
        }
        if visitor.write:
            limits |= {"person": visitor.name, "token": visitor.token}
        serving = ServerOptions(limits=limits, watch=self.watches and not self._apps)
        server = SkillServer(self._registry, serving, self.unsent)
        server.on_change = self._tell
        app = http_app(server, self._bounds)
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        # The same task must enter and leave a lifespan.
        async def live() -> None:
            try:
                async with app.router.lifespan_context(app):
                    begun.set_result(None)
                    await self._end.wait()
            except BaseException as error:
                if not begun.done():
                    begun.set_exception(error)
                raise

        self._running.append(asyncio.create_task(live()))
        await begun
        self._servers.append(server)
        return Sessions(app, self._bounds)

    def _tell(self, changes: "Changes") -> None:
        """Notify the clients of all servers of changes; only one server watches for changes."""
        for server in self._servers:
            server.tell(changes)

    def stop_listening(self) -> None:
        """End the streams of clients that wait for notifications."""
        for server in self._servers:
            server.notices.listen.close()

    async def close(self) -> None:
        """End all servers."""
        self._end.set()
        await asyncio.gather(*self._running, return_exceptions=True)
