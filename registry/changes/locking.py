"""One change at a time in a source: its lock held, everything unfinished brought to an end."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from registry.changes.context import ChangeContext, refusal
from registry.changes.protocol import CrossDevice
from registry.changes.recovery import recover, sweep
from registry.changes.state import StateFolder
from registry.core import Core
from registry.db.queries.journal import waiting_sources
from registry.errors import ChangePending, ChangeRefused, RegistryError
from registry.sync.sources import own_sources

Result = TypeVar("Result")


def under_lock(core: Core, source_id: int, change: Callable[[ChangeContext], Result]) -> Result:
    """Run a change with the source's lock held and everything unfinished brought to an end.

    Raises `SourceElsewhere`, `ChangeRefused`, and what the change raises.
    """
    context = ChangeContext.of(core, source_id)
    context.state.ensure()
    try:
        return _attempt(context, change)
    except CrossDevice:
        # Only the rename itself tells: what lies beside the root is on another file system.
        inside = replace(context, state=StateFolder(context.source.path, inside=True))
        inside.state.ensure()
        try:
            return _attempt(inside, change)
        except CrossDevice as error:
            reason = "it holds another file system; changes need renames within one"
            raise ChangeRefused(path=context.source.path, reason=reason) from error


def recover_all(core: Core) -> int:
    """Finish or undo what dead processes left unfinished; return how much that was."""
    waiting = waiting_sources(core.reader, core.host)
    finished = 0
    for source in own_sources(core) if waiting else ():
        state = StateFolder(source.path)
        if source.id not in waiting or not state.exists:
            continue
        try:
            with state.lock() as probe:
                if not probe.acquire(0):
                    continue  # its owner lives, and ends its change itself
        except OSError:
            continue  # it can't be locked: the next change there says why
        context = ChangeContext.of(core, source.id)
        with context.locked():
            finished += recover(context)
    return finished


def _attempt(context: ChangeContext, change: Callable[[ChangeContext], Result]) -> Result:
    with context.locked():
        try:
            recover(context)
            return change(context)
        except ChangePending:
            raise  # what is staged is still needed to finish or undo it
        except OSError as error:
            _clear_up(context)
            raise refusal(context.source.path, error) from error
        except RegistryError:
            _clear_up(context)
            raise


def _clear_up(context: ChangeContext) -> None:
    with suppress(OSError):  # the next change comes by here, too
        sweep(context)
