"""What of the journal is this user's own to finish: light enough to be asked at every open.

Asked of the disk, not of the journal: of the few changes that left something in state folders of
ours, which did we sign, and does the journal still say the same of them? However many rows others
put into the journal, they are not even looked at.
"""

from contextlib import suppress
from dataclasses import fields
from typing import get_args

from registry.changes.signed import Seal
from registry.changes.state import NUMBER, RECORD, StateFolder, open_if_there
from registry.core import Core
from registry.db.read import journal
from registry.db.read.journal import JournalEntry, Kind
from registry.db.read.sources import list_sources
from registry.disk.atomic import Place
from registry.disk.paths import ROOT, is_safe_relative
from registry.disk.swap import TREE
from registry.errors import DatabaseProblem, RegistryError
from registry.model import Source
from registry.sync.sources import own_sources


def pending(core: Core) -> list[Source]:
    """Return the sources in which a change that this user began here is unfinished."""
    return [source for source in own_sources(core) if unfinished(core, source)]


def unfinished(core: Core, source: Source) -> list[JournalEntry]:
    """Return what the journal and our own signed records agree on that is unfinished in a source.

    A state folder or a key that can't be used is told by the next change.
    """
    with suppress(RegistryError, OSError):
        state = StateFolder.open(source.path)
        if state is None:
            return []
        with state:
            numbers = state.operations()
            seal = Seal.known(core, source.path) if numbers else None
            if seal is not None:
                found = [recorded(core, source, state, seal, number) for number in numbers]
                return [one for one in found if one is not None]
    return []


def foreign(core: Core) -> list[str]:
    """Say of each unfinished change under this host's name that it is not ours to finish."""
    names = {one.id: one.name for one in list_sources(core.reader, counted=False)}
    ours = {entry.id for source in own_sources(core) for entry in unfinished(core, source)}
    try:
        rows = journal.unfinished_changes(core.reader, core.host)
    except DatabaseProblem as error:
        return [f"the journal holds what can't be read: {error}"]
    return [
        f"the journal holds an unfinished change {number!r} of the source {names.get(source)!r} "
        "that you did not begin here, or that was altered: it is left alone"
        for number, source in rows
        if number not in ours
    ]


def recorded(
    core: Core, source: Source, state: StateFolder, seal: Seal, number: str
) -> JournalEntry | None:
    """Return a change that we signed when it began, where the journal agrees."""
    entry = signed_entry(source, core.host, state, seal, number)
    return entry if entry is not None and journal.is_journalled(core.reader, entry) else None


def signed_entry(
    source: Source, host: str, state: StateFolder, seal: Seal, number: str
) -> JournalEntry | None:
    """Return a change as we signed it when it began; None: there is no such record."""
    operation = open_if_there(state.ops, number)
    if operation is None:
        return None
    with operation:
        facts = seal.read(Place(operation, RECORD), "change", number)
    if facts is None or facts.keys() != {field.name for field in fields(JournalEntry)}:
        return None
    entry = JournalEntry(**facts)
    return entry if _is_whole(entry, source, host, number) else None


def _is_whole(entry: JournalEntry, source: Source, host: str, number: str) -> bool:
    """Tell whether an entry is one that we make of a change in this source."""
    area, _, rest = entry.staged.partition("/")
    kept, _, tree = rest.partition("/")
    return (
        (entry.id, entry.host, entry.source_id, entry.root)
        == (number, host, source.id, source.path)
        and entry.kind in get_args(Kind)
        and (entry.folder == ROOT or is_safe_relative(entry.folder))
        and is_safe_relative(entry.target)
        and area in {"ops", "trash"}
        and NUMBER.fullmatch(kept) is not None
        and (area == "trash" or kept == number)
        and tree == TREE
    )
