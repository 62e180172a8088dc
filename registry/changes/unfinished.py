"""Find this user's unfinished changes; finish or undo them when a registry is opened.

The check starts with the files on disk and not with the journal, so it is fast enough for each
opening. For each change with files in this user's state folders, it verifies this user's signature
and compares the row in the journal. The check never reads rows that other users wrote.
"""

from contextlib import suppress

from registry.changes.signer import Signer
from registry.changes.state import ChangeContext, StateFolder, recorded
from registry.core import Core
from registry.db.read import journal
from registry.db.read.journal import JournalEntry
from registry.db.read.sources import list_sources
from registry.errors import DatabaseProblem, RegistryError
from registry.model import Source
from registry.sync.sources import own_sources


def unfinished(core: Core, source: Source) -> list[JournalEntry]:
    """Return a source's unfinished changes that this user signed and that the journal has."""
    with suppress(RegistryError, OSError):
        state = StateFolder.open(source.path)
        if state is None:
            return []
        with state:
            numbers = state.operations()
            signer = Signer.known(core, source.path) if numbers else None
            if signer is not None:
                found = [recorded(core, source, state, signer, number) for number in numbers]
                return [one for one in found if one is not None]
    return []


def foreign_changes(core: Core) -> list[str]:
    """Return a warning for each unfinished change on this host by another user."""
    names = {one.id: one.name for one in list_sources(core.reader, counted=False)}
    ours = {entry.id for source in own_sources(core) for entry in unfinished(core, source)}
    try:
        rows = journal.unfinished_changes(core.reader, core.host)
    except DatabaseProblem as error:
        return [f"a record of an unfinished change can't be read: {error}"]
    return [
        f"the journal holds an unfinished change {number!r} of the source {names.get(source)!r} "
        "that you did not begin here, or that was altered: it is left alone"
        for number, source in rows
        if number not in ours
    ]


def recover_all(core: Core) -> int:
    """Finish or undo unfinished changes of this user's dead processes; return how many."""
    finished = 0
    for source in [one for one in own_sources(core) if unfinished(core, one)]:
        state = StateFolder.open(source.path)
        if state is None:
            continue
        with state, state.lock() as probe:
            try:
                if not probe.acquire(0):
                    continue  # the process still runs, and will finish or undo the change itself
            except OSError:
                continue  # the next change reports the problem with this lock
        from registry.changes.finish import recover

        with ChangeContext.locked(core, source.id) as context:
            finished += recover(context)
    return finished
