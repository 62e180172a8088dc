"""Bring back what is gone: from the trash, else from what the database kept of it."""

from collections.abc import Collection

from registry.changes import trash
from registry.changes.history import History
from registry.changes.trash import Trashed, find_trashed, list_trash
from registry.core import Core
from registry.db.queries.gone import latest_gone
from registry.db.queries.skills import StoredSkill
from registry.errors import NotInTrash
from registry.text import quoted


def find(
    core: Core, name: str, *, source: str | None = None, among: Collection[str] | None = None
) -> Trashed | History:
    """Return what `bring_back` would bring back. Raises `NotInTrash`.

    What this user deleted comes first: it is signed, and what the database says is not.
    """
    try:
        return find_trashed(core, name, source=source, among=among)
    except NotInTrash:
        found = History.of_gone(core, name, source=source, among=among)
        if found is None or found.gone is None or _is_held(core, found.gone.trash):
            raise
        return found


def _is_held(core: Core, number: str | None) -> bool:
    """Tell whether the trash holds this, from which it comes back to where it was or not at all."""
    return number is not None and any(one.id == number for one in list_trash(core))


def bring_back(
    core: Core, name: str, *, source: str | None = None, among: Collection[str] | None = None
) -> StoredSkill:
    """Bring back the latest deleted skill of this name (or trash id, or source/folder).

    Where the trash has none: what went otherwise, as the database knows it. ``source``: of what is
    in the trash, only from it; of what is gone, the one to write it into. ``among``: the sources
    whose skills may come back; None: all. Raises `NotInTrash` where there is none, and as
    `trash.restore` and `History.restore`.
    """
    found = find(core, name, source=source, among=among)
    if isinstance(found, History):
        return found.restore(source=source)
    back = trash.restore(core, found)
    later = latest_gone(core.reader, name, among)
    if later is not None and later.since >= found.deleted_at:
        core.warn(
            f"The trash came first; another {quoted(name)} is gone since {later.since}: by "
            f"{quoted(later.uid)} its history is found, and brought back to where nothing is."
        )
    return back
