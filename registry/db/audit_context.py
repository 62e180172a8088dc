"""The audit context: the tool, the client and the command that make a change.

The tool and the client are recorded only for information. ``command`` is a random number for one
run of the program. `undo` uses it to find all changes of that run.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

MAX_CLIENT: Final = 200
"""Maximum length of a client's name, in characters."""


@dataclass(frozen=True, slots=True)
class AuditContext:
    """The tool, the client and the command that make a change.

    ``tool`` is a command of the program or a tool of a toolset. ``client`` is the name that an MCP
    client gives. ``command`` is a hex number that all changes of one run share; None if no changes
    belong together. ``event`` is the name of the event that the audit log records for each changed
    skill; None records no event. ``person`` and ``token`` are the name and the number of the user's
    token.
    """

    tool: str | None = None
    client: str | None = None
    command: str | None = None
    event: str | None = None
    person: str | None = None
    token: str | None = None


_UNKNOWN: Final = AuditContext()

_CONTEXT: Final = ContextVar("audit_context", default=_UNKNOWN)


def current_context() -> AuditContext:
    """Return the current audit context."""
    return _CONTEXT.get()


@contextmanager
def audit_context(
    tool: str | None = None,
    client: str | None = None,
    *,
    command: str | None = None,
    event: str | None = None,
    person: str | None = None,
    token: str | None = None,
) -> Iterator[None]:
    """Set the audit context inside a ``with`` block.

    If an argument is None, its value doesn't change. If ``command`` is an empty string, the changes
    belong to no command.
    """
    before = _CONTEXT.get()
    client = before.client if client is None else client[:MAX_CLIENT].replace("\0", "")
    command = before.command if command is None else command or None
    told = event or before.event, person or before.person, token or before.token
    changed = _CONTEXT.set(AuditContext(tool or before.tool, client, command, *told))
    try:
        yield
    finally:
        _CONTEXT.reset(changed)
