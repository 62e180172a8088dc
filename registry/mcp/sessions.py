"""How many sessions clients of MCP may hold: the oldest idle one ends for a new one."""

from contextlib import suppress
from typing import Any, Final

from registry.mcp.bounds import Bounds, Places
from registry.mcp.turns import App, Scope, asking

NOT_FOUND: Final = 404
BAD_REQUEST: Final = 400
"""The lowest status of a request that failed."""

SESSION: Final = b"mcp-session-id"


class Sessions:
    """An ASGI application around the SDK's that ends the oldest idle session for a new one.

    The SDK would refuse new sessions until an old one has been idle for long.
    """

    def __init__(self, app: App, bounds: Bounds) -> None:
        self._app = app
        self._places: Places[bytes] = Places(bounds.sessions, bounds.sessions)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Hand a request on, and note which session it uses or makes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known = next((value for name, value in scope["headers"] if name == SESSION), None)
        is_end = scope["method"] == "DELETE"
        gone: list[bytes] = []

        async def noting(message: Scope) -> None:
            if message["type"] == "http.response.start":
                made = next((value for name, value in message["headers"] if name == SESSION), None)
                if known is not None and (message["status"] == NOT_FOUND or is_end):
                    self._places.leave(known)
                elif known is None and made is not None and message["status"] < BAD_REQUEST:
                    left = self._places.enter(made, asking().who)
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
