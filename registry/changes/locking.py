"""One change at a time in a source: its lock held, everything unfinished brought to an end."""

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from registry.changes.context import ChangeContext, refusal
from registry.changes.protocol import CrossDevice
from registry.changes.recovery import recover, sweep
from registry.core import Core
from registry.errors import ChangePending, ChangeRefused, RegistryError

Result = TypeVar("Result")


def under_lock(core: Core, source_id: int, change: Callable[[ChangeContext], Result]) -> Result:
    """Run a change with the source's lock held and everything unfinished brought to an end.

    Raises as `ChangeContext.locked`, and what the change raises.
    """
    try:
        return _attempt(core, source_id, change)
    except CrossDevice:
        # Only the rename itself tells: what lies beside the root is on another file system.
        try:
            return _attempt(core, source_id, change, inside=True)
        except CrossDevice as error:
            path = str(error)  # of the source
            reason = "it holds another file system; changes need renames within one"
            raise ChangeRefused(path=path, reason=reason) from error


def _attempt(
    core: Core,
    source_id: int,
    change: Callable[[ChangeContext], Result],
    *,
    inside: bool | None = None,
) -> Result:
    with ChangeContext.locked(core, source_id, inside=inside) as context:
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
    with suppress(OSError, RegistryError):  # the next change comes by here, too
        sweep(context)
