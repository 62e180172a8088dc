"""One change at a time in a source: its lock held, everything unfinished brought to an end."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import TypeVar

from registry.changes.context import ChangeContext, refusal
from registry.changes.protocol import CrossDevice
from registry.changes.recovery import recover, sweep
from registry.core import Core
from registry.errors import ChangePending, ChangeRefused, DatabaseBusy, RegistryError

Result = TypeVar("Result")


def under_lock(core: Core, source_id: int, change: Callable[[ChangeContext], Result]) -> Result:
    """Run a change with the source's lock held and everything unfinished brought to an end.

    Raises as `ChangeContext.locked`, and what the change raises.
    """
    return under_locks(core, {source_id: ""}, lambda contexts: change(contexts[source_id]))


def under_locks(
    core: Core,
    roots: Mapping[int, str],
    change: Callable[[Mapping[int, ChangeContext]], Result],
) -> Result:
    """Run a change of several sources (id: root); it is given their contexts by id.

    The locks are taken in the order of the roots, which is the same to all who want some of them.
    Raises as `under_lock`.
    """
    order = sorted(roots, key=lambda source_id: roots[source_id])
    inside: set[str] = set()
    while True:
        try:
            return _attempt(core, order, inside, change)
        except CrossDevice as error:
            # Only the rename itself tells: what lies beside the root is on another file system.
            path = str(error)  # of the source
            if path in inside:
                reason = "it holds another file system; changes need renames within one"
                raise ChangeRefused(path=path, reason=reason) from error
            inside.add(path)


def _attempt(
    core: Core,
    order: Sequence[int],
    inside: Collection[str],
    change: Callable[[Mapping[int, ChangeContext]], Result],
) -> Result:
    with ExitStack() as stack:
        contexts: dict[int, ChangeContext] = {}
        for source_id in order:
            locked = ChangeContext.locked(core, source_id, inside=inside)
            contexts[source_id] = stack.enter_context(locked)
        try:
            for context in contexts.values():
                recover(context)
            return change(contexts)
        except (ChangePending, DatabaseBusy):
            # What is staged is still needed to finish or undo it; or whether it is would have to be
            # asked of who was just waited for in vain. The next change comes by here.
            raise
        except OSError as error:
            _clear_up(contexts)
            root = contexts[order[0]].source.path
            raise refusal(root, error) from error
        except RegistryError:
            _clear_up(contexts)
            raise


def _clear_up(contexts: Mapping[int, ChangeContext]) -> None:
    for context in contexts.values():
        with suppress(OSError, RegistryError):  # the next change comes by here, too
            sweep(context)
