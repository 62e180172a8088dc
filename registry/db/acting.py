"""Who is at work, as it says of itself: the tool, and the client that called it.

It is written down with what is changed, for people to read; nothing is decided by it. Which role
asks, a server knows by itself.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

MAX_TOLD: Final = 200
"""Characters of what a client calls itself."""


@dataclass(frozen=True, slots=True)
class Acting:
    """``tool``: a command, or a toolset's tool; ``client``: what an MCP client calls itself."""

    tool: str | None = None
    client: str | None = None


_NOBODY: Final = Acting()
_ACTING: Final = ContextVar("acting", default=_NOBODY)


def acting() -> Acting:
    """Return who is at work in this context."""
    return _ACTING.get()


@contextmanager
def acts(tool: str | None = None, client: str | None = None) -> Iterator[None]:
    """Say in a block who is at work; what is None stays as it was said around it."""
    before = _ACTING.get()
    client = before.client if client is None else client[:MAX_TOLD].replace("\0", "")
    token = _ACTING.set(Acting(tool or before.tool, client))
    try:
        yield
    finally:
        _ACTING.reset(token)
