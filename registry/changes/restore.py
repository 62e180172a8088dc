"""Bring back what is gone: from the trash, else from what the database kept of it."""

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Final, TypeAlias

from registry.catalog.resolve import resolve
from registry.changes import trash
from registry.changes.history import History
from registry.changes.signer import is_together, new_numbers
from registry.changes.trashed import Trashed, find_trashed, list_trash
from registry.core import Core
from registry.db.read.history import latest_tombstone
from registry.db.read.skills import StoredSkill
from registry.disk.paths import join
from registry.errors import NotInTrash, RegistryError, SkillExists, SkillNotDeleted
from registry.sync.sources import own_sources
from registry.text import quoted

Deleted: TypeAlias = Trashed | History

MAX_NAMED: Final = 10


def find_deleted(
    core: Core,
    name: str,
    *,
    source: str | None = None,
    among: Collection[str] | None = None,
) -> Deleted:
    """Return what `restore_named` would restore, first the trash's.

    Raises `NotInTrash`, `SkillNotDeleted`.
    """
    return _find_deleted(core, list_trash(core), name, source=source, among=among)


def _find_deleted(
    core: Core,
    held: Sequence[Trashed],
    name: str,
    *,
    source: str | None,
    among: Collection[str] | None = None,
    without: Collection[str] = (),
) -> Deleted:
    """As `find_deleted`; ``held``: skills in the trash; ``without``: uids of skills to skip."""
    try:
        return find_trashed(held, name, source=source, among=among, without=without)
    except NotInTrash:
        found = History.of_gone(core, name, source=source, among=among, without=without)
        # A skill in the trash is restored only from there, to its former place.
        numbers = {one.id for one in held}
        if found is not None and found.gone is not None and found.gone.trash not in numbers:
            return found
        if among is None and _is_there(core, name):
            raise SkillNotDeleted(name[:200]) from None
        raise


def _is_there(core: Core, name: str) -> bool:
    try:
        resolve(core.reader, name)
    except RegistryError:
        return False
    return True


def find_all_deleted(
    core: Core, names: Iterable[str], *, source: str | None = None
) -> list[Deleted]:
    """Return what comes back of several names, each skill once, ids and places before names.

    Raises as `find_deleted`, `SkillExists`, and as `History.restore`.
    """
    held = list_trash(core)
    chosen = list(dict.fromkeys(names))
    exact = {name for name in chosen if "/" in name}
    exact |= {one.id for one in held}.intersection(chosen)
    found: dict[str, Deleted] = {}
    taken: set[str] = set()
    for name in sorted(chosen, key=lambda name: name not in exact):
        try:
            without = () if name in exact else taken
            one = _find_deleted(core, held, name, source=source, without=without)
        except NotInTrash:
            if name not in exact and _uid(_find_deleted(core, held, name, source=source)) in taken:
                continue  # it was named twice
            raise
        if _uid(one) not in taken:
            found[name] = one
            taken.add(_uid(one))
    ordered = [found[name] for name in chosen if name in found]
    _check_free(core, ordered, source)
    return ordered


def with_copies(core: Core, found: Sequence[Deleted]) -> list[Deleted]:
    """Return these, and before each the copies deleted together with it. Raises `SkillExists`."""
    held = list_trash(core)
    chosen: list[Deleted] = []
    for one in found:
        if isinstance(one, Trashed):
            chosen += [other for other in reversed(held) if _are_together(one, other)]
        chosen.append(one)
    every = list({_uid(one): one for one in chosen}.values())
    _check_free(core, every, None)
    return every


def _check_free(core: Core, found: Sequence[Deleted], source: str | None) -> None:
    roots = {one.name: one.path for one in own_sources(core)}
    places: set[str] = set()
    for one in found:
        if isinstance(one, History):
            place = one.check_back(source)
        else:
            place = join(roots[one.source], one.folder)
        if place in places or os.path.lexists(place):
            raise SkillExists(name=one.name, path=place)
        places.add(place)


def _uid(found: Deleted) -> str:
    if isinstance(found, Trashed):
        return found.uid
    assert found.gone is not None  # noqa: S101  # `find` saw to it
    return found.gone.uid


def _are_together(one: Trashed, other: Trashed) -> bool:
    return one.id != other.id and is_together(one.id, other.id)


def restore_one(
    core: Core, found: Deleted, *, source: str | None = None, number: str | None = None
) -> StoredSkill:
    """Restore a deleted skill; ``number``: the change's, in a group."""
    if isinstance(found, History):
        return found.restore(source=source)
    return trash.restore(core, found, number)


def restore_all(
    core: Core, found: Sequence[Deleted], *, source: str | None = None
) -> list[StoredSkill]:
    """Restore several deletions; one `undo` reverts them all. Raises as `restore_one`."""
    numbered = zip(found, new_numbers(len(found)), strict=True)
    return [restore_one(core, one, source=source, number=number) for one, number in numbered]


def restore_named(
    core: Core, name: str, *, source: str | None = None, among: Collection[str] | None = None
) -> StoredSkill:
    """Restore the latest deleted skill of this name (or trash id, or source/folder).

    First from the trash (of ``source``), else from the database (into ``source``). ``among``: the
    sources whose skills may be restored. Raises `NotInTrash`, and as `trash.restore` and
    `History.restore`.
    """
    found = find_deleted(core, name, source=source, among=among)
    back = restore_one(core, found, source=source)
    warn_of_others(core, name, found, among)
    return back


def warn_of_others(core: Core, name: str, found: Deleted, among: Collection[str] | None) -> None:
    """Say what else, ``found`` having come back from the trash, could be meant by its name."""
    if isinstance(found, History):
        return
    held = list_trash(core)
    seen = [one for one in held if among is None or one.source in among]
    copies = [one.id for one in seen if _are_together(found, one)]
    others = [one.id for one in seen if one.is_called(name) and one.id not in copies]
    if copies:
        what = "A copy is" if len(copies) == 1 else f"{len(copies)} copies are"
        core.warn(f"{what} still in the trash: {_named(copies)}.")
    if others:
        what = "Another" if len(others) == 1 else f"{len(others)} others"
        verb = "is" if len(others) == 1 else "are"
        core.warn(f"{what} named {quoted(name)} {verb} still in the trash: {_named(others)}.")
    later = latest_tombstone(core.reader, name, among, trash={one.id for one in held})
    if later is not None and later.since >= found.deleted_at:
        core.warn(
            f"Restored from the trash; another {quoted(later.name)} is gone since {later.since}. "
            f"To see its history or restore it, use {quoted(later.uid)}."
        )


def _named(numbers: Sequence[str]) -> str:
    more = len(numbers) - MAX_NAMED
    return ", ".join(numbers[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
