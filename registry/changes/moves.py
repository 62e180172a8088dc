"""What a change moves, and changes that are made together: on to the new content, or back from it.

Several skills can't be renamed in one step. So the commit of their journal decides: what it holds
is published later by whoever finds it unpublished, and is taken back only while whoever began it
is there to say so. Nobody who finishes one of them has to know, or to reach, the others.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from registry.changes.context import ChangeContext
from registry.changes.state import NEW, OLD, open_place
from registry.db.read.journal import JournalEntry
from registry.disk.atomic import (
    ExchangeUnsupported,
    Place,
    digest_of,
    exchange,
    is_gone,
    rename_new,
)


@dataclass(frozen=True, slots=True)
class Ends:
    """What a change moves, by open folders: ``live`` in the source, ``staged`` in the state folder.

    None: the folder that it was in is gone, or a link leads there now.
    """

    live: Place | None
    staged: Place | None


@contextmanager
def ends(context: ChangeContext, entry: JournalEntry) -> Iterator[Ends]:
    """Open the folders that a change moves something between."""
    area, number, tree = entry.staged.split("/")
    home = {"ops": context.state.ops, "trash": context.state.trash}[area]
    with ExitStack() as stack:
        live = open_place(stack, context.root, entry.target)
        yield Ends(live, open_place(stack, home, f"{number}/{tree}"))


def go_on(entry: JournalEntry, at: Ends) -> None:
    """Publish what was journalled with others, unless that is done or somebody edited it since.

    What the rename displaces is verified by `recovery.repair`, as after any rename.
    """
    if at.live is None or at.staged is None:
        return
    if entry.creates:
        if is_gone(at.live) and digest_of(at.staged) == entry.new:
            rename_new(at.staged, at.live)
    elif entry.deletes:
        if is_gone(at.staged) and digest_of(at.live) == entry.base:
            rename_new(at.live, at.staged)
    elif is_swapped_at_once(at.staged) and _are(at.staged, entry.new, at.live, entry.base):
        try:
            exchange(at.staged, at.live)
        except ExchangeUnsupported:  # `repair` goes on from here
            rename_new(at.live, Place(at.staged.folder, OLD))


def take_back(entry: JournalEntry, at: Ends) -> None:
    """Undo what was published, as far as nobody edited it since."""
    if at.live is None or at.staged is None:
        return
    if entry.creates:
        if is_gone(at.staged) and digest_of(at.live) == entry.new:
            rename_new(at.live, at.staged)
    elif entry.deletes:
        if is_gone(at.live) and not is_gone(at.staged):
            rename_new(at.staged, at.live)
    elif is_swapped_at_once(at.staged):
        if _are(at.staged, entry.base, at.live, entry.new):
            exchange(at.staged, at.live)
    else:
        _take_back_by_renames(entry, at.live, at.staged)


def _take_back_by_renames(entry: JournalEntry, live: Place, staged: Place) -> None:
    """Undo a swap that was made by two renames, as far as it was made."""
    old = Place(staged.folder, OLD)
    if is_gone(old):
        return
    if is_gone(staged) and digest_of(live) == entry.new:
        rename_new(live, staged)
    if is_gone(live):
        rename_new(old, live)


def is_swapped_at_once(staged: Place) -> bool:
    """Tell whether there is no trace of a swap by two renames."""
    return all(is_gone(Place(staged.folder, name)) for name in (OLD, NEW))


def _are(staged: Place, first: str | None, live: Place, second: str | None) -> bool:
    return digest_of(staged) == first and digest_of(live) == second
