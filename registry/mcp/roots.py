"""Where a client works: the folders that it names as its roots."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import anyio
import mcp_types as types

from registry.mcp.protocol import Handler, guarded

log = logging.getLogger(__name__)

T = TypeVar("T")

PATIENCE: Final = 5.0
"""Seconds in which a client has to name its roots."""

MAX_ROOTS: Final = 100


class Roots:
    """Where the one client of a server works; ``look`` is told before anything is answered.

    Unless it is ``asked``, nobody is told anything.
    """

    def __init__(self, look: Callable[[Sequence[str]], Awaitable[None]], *, asked: bool) -> None:
        self._look = look
        self._asked = asked
        self._known = not asked
        self._asking = anyio.Lock()

    def first(self, handler: Handler[T]) -> Handler[T]:
        """Return a handler that answers only when it is known where the client works."""

        async def answer(context: Any, params: Any) -> T:
            async with self._asking:
                if not self._known:
                    self._known = True
                    await self._look(await roots_of(context.session))
            return await handler(context, params)

        return guarded(answer)

    def forget(self) -> bool:
        """Ask again before the next answer; return whether the client is asked at all."""
        self._known = not self._asked
        return self._asked


async def roots_of(session: Any) -> list[str]:
    """Return the folders that a client names as its roots; none where it does not say.

    Clients of the handshake are asked; since 2026-07-28 the protocol has no roots.
    """
    capabilities = session.client_capabilities
    if capabilities is None or capabilities.roots is None:
        return []
    try:
        answer = await session.send_request(
            types.ListRootsRequest(), types.ListRootsResult, request_read_timeout_seconds=PATIENCE
        )
    except Exception:  # whatever a client does, it is served
        log.info("the client did not name its roots", exc_info=True)
        return []
    return folders([str(root.uri) for root in answer.roots])


def folders(uris: Sequence[str]) -> list[str]:
    """Return the folders of this machine among a client's roots."""
    found = []
    for uri in uris[:MAX_ROOTS]:
        try:
            scheme, host, path, *_ = urlsplit(uri)
        except ValueError:
            continue
        path = unquote(path)
        if scheme == "file" and host in {"", "localhost"} and path[:1] == "/" and "\0" not in path:
            found.append(path)
    return found
