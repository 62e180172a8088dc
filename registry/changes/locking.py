"""One change at a time in a source: its lock held, everything unfinished brought to an end."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from registry.changes.protocol import CrossDevice, Ground, locked, refuse
from registry.changes.recovery import recover, sweep
from registry.changes.state import StateFolder
from registry.errors import ChangePending, ChangeRefused, RegistryError

Result = TypeVar("Result")


def under_lock(ground: Ground, change: Callable[[Ground], Result]) -> Result:
    """Run a change with the source's lock held and everything unfinished brought to an end."""
    ground.state.ensure()
    try:
        return _attempt(ground, change)
    except CrossDevice:
        # Only the rename itself tells: what lies beside the root is on another file system.
        inside = replace(ground, state=StateFolder(ground.source.path, inside=True))
        inside.state.ensure()
        try:
            return _attempt(inside, change)
        except CrossDevice as error:
            reason = "it holds another file system; changes need renames within one"
            raise ChangeRefused(path=ground.source.path, reason=reason) from error


def _attempt(ground: Ground, change: Callable[[Ground], Result]) -> Result:
    with locked(ground):
        try:
            recover(ground)
            return change(ground)
        except ChangePending:
            raise  # what is staged is still needed to finish or undo it
        except OSError as error:
            _tidy(ground)
            raise refuse(ground.source.path, error) from error
        except RegistryError:
            _tidy(ground)
            raise


def _tidy(ground: Ground) -> None:
    with suppress(OSError):  # the next change comes by here, too
        sweep(ground)
