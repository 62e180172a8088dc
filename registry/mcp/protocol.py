"""What the SDK needs to be told: both generations of the protocol, the extension, its errors."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import mcp_types as types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.exceptions import MCPError

from registry.toolsets.base import shown

log = logging.getLogger(__name__)

T = TypeVar("T")

SKILLS: Final = "io.modelcontextprotocol/skills"
"""The extension for skills (SEP-2640)."""

SETTINGS: Final = {"directoryRead": True}
"""How it is declared."""


class BothGenerations(Server[Any]):
    """A server that tells clients of the handshake, too, that its lists may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        *rest: Any,
        **named: Any,
    ) -> Any:
        """Return the options of a session."""
        options = notification_options or NotificationOptions(
            tools_changed=True, resources_changed=True
        )
        return super().create_initialization_options(options, *rest, **named)


Handler = Callable[[Any, Any], Awaitable[T]]


def guarded(handler: Handler[T]) -> Handler[T]:
    """Keep the words of an unexpected error, and the paths in them, from the client."""

    async def safe(context: Any, params: Any) -> T:
        try:
            return await handler(context, params)
        except MCPError:
            raise
        except Exception:
            log.exception("a request failed")
            message = "Internal error; the server's log has it"
            raise MCPError(types.INTERNAL_ERROR, message) from None

    return safe


async def advertise(context: Any, following: Callable[[Any], Awaitable[Any]]) -> Any:
    """Declare the extension to clients of the handshake, whose schemas the SDK knows without it."""
    result = await following(context)
    if context.method == "initialize" and isinstance(result, dict):
        result["capabilities"].setdefault("extensions", {})[SKILLS] = SETTINGS
    return result


def no_resource(uri: str, kind: str = "resource") -> MCPError:
    """Return the protocol's error for a URI at which nothing is served."""
    return MCPError(types.INVALID_PARAMS, f"There is no {kind} {shown(uri)}", {"uri": uri})


def failure(text: str) -> types.CallToolResult:
    """Return the error of a call that no toolset answered."""
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)
