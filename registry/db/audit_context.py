"""Who makes a change: the tool, the client that called it, and the command that it belongs to.

The tool and the client are recorded for people to read; nothing is decided by them. ``command`` is
the random number of one run of the program, by which `undo` finds all changes of that run.
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
    """``tool``: a command, or a toolset's tool; ``client``: what an MCP client calls itself.

    ``command``: a hex number shared by all changes of one run; None if each change is its own.
    """

    tool: str | None = None
    client: str | None = None
    command: str | None = None


_NOBODY: Final = Acting()

_ACTING: Final = ContextVar("acting", default=_NOBODY)


def acting() -> Acting:
    """Return who is at work in this context."""
    return _ACTING.get()


@contextmanager
def acts(
    tool: str | None = None, client: str | None = None, *, command: str | None = None
) -> Iterator[None]:
    """Set who makes the changes in a block. None keeps the value of the surrounding block.

    ``command``: an empty string means that the changes belong to no command.
    """
    before = _ACTING.get()
    client = before.client if client is None else client[:MAX_TOLD].replace("\0", "")
    command = before.command if command is None else command or None
    token = _ACTING.set(Acting(tool or before.tool, client, command))
    try:
        yield
    finally:
        _ACTING.reset(token)
