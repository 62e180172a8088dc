"""What opening a registry ends: changes whose process died. Light where there are none of ours."""

from registry.changes.context import ChangeContext
from registry.changes.pending import pending
from registry.changes.state import StateFolder
from registry.core import Core


def recover_all(core: Core) -> int:
    """Finish or undo what dead processes of this user left unfinished; return how much that was."""
    finished = 0
    for source in pending(core):
        state = StateFolder.open(source.path)
        if state is None:
            continue
        with state, state.lock() as probe:
            try:
                if not probe.acquire(0):
                    continue  # its owner lives, and ends its change itself
            except OSError:
                continue  # what is wrong with the lock is told by the next change
        from registry.changes.recovery import recover

        with ChangeContext.locked(core, source.id) as context:
            finished += recover(context)
    return finished
