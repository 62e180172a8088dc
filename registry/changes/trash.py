"""Move skills to the trash, restore them from the trash or the history, and empty the trash."""

import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import Final, TypeAlias

from registry.catalog.resolve import resolve
from registry.catalog.why import links_to
from registry.changes.commit import (
    Which,
    change_together,
    commit,
    new_entry,
    new_operation,
    under_lock,
    with_copies,
)
from registry.changes.create import stored_after
from registry.changes.history import History
from registry.changes.review import Intent, propose_if_needed, propose_together
from registry.changes.signer import is_together, new_numbers
from registry.changes.state import META, ChangeContext, open_place
from registry.changes.trashed import NOTED, Trashed, find_trashed, list_trash, note_of
from registry.changes.update import base_of, compare, not_as_stored, refuse_nested, warn_of_dangling
from registry.core import Core
from registry.db.read.history import latest_tombstone
from registry.db.read.journal import JournalEntry, Kind
from registry.db.read.skills import StoredSkill, places_of_name, same_name, skills_of_source
from registry.db.write.history import drop_tombstones
from registry.disk.atomic import Place, digest_of, exists, make_folder, remove_tree, rename_new
from registry.disk.paths import ROOT, join
from registry.disk.swap import TREE
from registry.errors import (
    ChangeRefused,
    NotInTrash,
    RegistryError,
    RootMissing,
    SkillExists,
    SkillNotDeleted,
)
from registry.sync.sources import check_ours, check_writable, find, own_sources
from registry.text import quoted


def delete(
    core: Core,
    stored: StoredSkill,
    *,
    if_hash: str | None = None,
    force: bool = False,
    copies: Which | None = None,
) -> Trashed:
    """Move a skill's folder to the trash; with ``copies``, also move these copies, all or none.

    Raises `SkillChangedOnDisk` if the folder was changed since the last sync, unless ``force``.
    Raises `ChangeRefused` for the root of a source and for a folder that contains other skills.
    Raises `UsageProblem`, and the errors of `commit.commit`.
    """
    base = base_of(core, stored, if_hash, force=force)
    group = with_copies(core, base, copies, force=force)
    propose_together(
        core, group, lambda one: Intent("delete", one.skill.name, one.folder, one, one.uid)
    )
    links = [link for one in group for link in links_to(core, one)]
    if len(group) > 1:
        noted: list[Trashed] = []

        def staged(context: ChangeContext, one: StoredSkill, number: str) -> JournalEntry:
            entry, trashed = _stage(context, one, one, number)
            noted.append(trashed)
            return entry

        change_together(core, group, staged)
        trashed = noted[-1]
    else:

        def change(context: ChangeContext) -> Trashed:
            entry, trashed = _stage(context, base, None if force else base)
            commit(context, entry, base.skill.ref)
            return trashed

        trashed = under_lock(core, base.source_id, change)
    warn_of_dangling(core, links)
    return trashed


def warn_of_successor(core: Core, name: str) -> None:
    """Warn if the name of a deleted skill now means another skill, which may be a stranger's."""
    # Several skills rarely share a name. So the second query, which also considers projects, is
    # rarely needed.
    is_shared = core.reader.rows(*places_of_name(name))
    for other in same_name(core.reader, name) if is_shared else ():
        skill = other.skill
        if skill.ref == name and other.is_usable and not skill.shadowed:
            place = f"{skill.source}/{skill.folder} (source {skill.source}, {skill.scope})"
            origin = f", which comes from {skill.origin.url}" if skill.origin else ""
            core.warn(f"{name!r} now refers to {place}{origin}.")
            return


def _stage(
    context: ChangeContext,
    base: StoredSkill,
    check: StoredSkill | None,
    together: str | None = None,
) -> tuple[JournalEntry, Trashed]:
    """Check that a skill has the expected version, and stage its deletion.

    ``check`` is the expected version. The function writes a signed record of the deletion into the
    trash. Returns the journal entry and the deleted skill.
    """
    if base.folder == ROOT:
        reason = "the skill is the root of its source; remove the source to forget it"
        raise ChangeRefused(path=base.path, reason=reason)
    refuse_nested(context, base)
    with ExitStack() as stack:
        live = open_place(stack, context.root, base.folder)
        before = None if live is None else digest_of(live)
    if before is None:
        raise not_as_stored(base)
    compare(context, check)
    kind: Kind = "delete together" if together else "delete"
    with new_operation(context, together) as (number, _):
        staged = f"trash/{number}/{TREE}"
        entry = new_entry(context, number, kind, base.folder, staged=staged, base=before)
    trashed = Trashed(
        id=number,
        name=base.skill.name,
        source=base.skill.source,
        folder=base.folder,
        deleted_at=entry.started_at,
        created_at=base.skill.created_at,
        uid=base.uid,
        path=context.state.trash.path_of(f"{number}/{TREE}"),
    )
    _write_note(context, trashed)
    return entry, trashed


def restore(core: Core, trashed: Trashed, number: str | None = None) -> StoredSkill:
    """Restore a deleted skill from the trash with the same bytes and its former ``created_at``.

    Raises `SkillExists` if its folder exists again, `ChangeRefused` if the skill is no longer in
    the trash, and the errors of `commit.commit`.
    """

    def change(context: ChangeContext) -> StoredSkill | None:
        if exists(context.root, trashed.folder):
            path = join(context.source.path, trashed.folder)
            raise SkillExists(name=trashed.name, path=path)
        with ExitStack() as stack:
            staged = open_place(stack, context.state.trash, f"{trashed.id}/{TREE}")
            new = None if staged is None else digest_of(staged)
        if new is None:
            raise ChangeRefused(path=trashed.path, reason="it is no longer in the trash")
        with new_operation(context, number) as (given, _):
            entry = new_entry(
                context,
                given,
                "create",
                trashed.folder,
                staged=f"trash/{trashed.id}/{TREE}",
                new=new,
                uid=trashed.uid,
                created_at=trashed.created_at,
            )
        stored = commit(context, entry, trashed.name)
        with suppress(OSError):  # the skill is restored; the next change removes the other files
            remove_tree(Place(context.state.trash, trashed.id))
        return stored

    source_id = _source_ids(core)[trashed.source]
    propose_if_needed(
        core,
        source_id,
        lambda: Intent("restore", trashed.name, trashed.folder, uid=trashed.uid, trashed=trashed),
    )
    return stored_after(under_lock(core, source_id, change), trashed.folder)


def empty_trash(core: Core, chosen: Sequence[Trashed] | None = None) -> int:
    """Remove deleted skills permanently, and return how many; None means all."""
    chosen = list_trash(core) if chosen is None else chosen
    source_ids = _source_ids(core)
    for trashed in chosen:

        def change(context: ChangeContext, trashed: Trashed = trashed) -> None:
            if note_of(context.signer, context.state.trash, trashed.id) is None:
                raise ChangeRefused(path=trashed.path, reason="it is no longer in the trash")
            # Move the folder out of the trash in one step, so that no user can restore a partly
            # removed folder.
            with new_operation(context) as (number, operation):
                rename_new(Place(context.state.trash, trashed.id), Place(operation, "trash"))
                operation.sync()
                context.state.trash.sync()
            remove_tree(Place(context.state.ops, number))

        under_lock(core, source_ids[trashed.source], change)
    if chosen:
        with core.writer.transaction() as connection:
            drop_tombstones(connection, [trashed.id for trashed in chosen])
    return len(chosen)


def _source_ids(core: Core) -> dict[str, int]:
    return {source.name: source.id for source in own_sources(core)}


def _write_note(context: ChangeContext, trashed: Trashed) -> None:
    trash = context.state.trash
    with make_folder(Place(trash, trashed.id), 0o700) as kept:
        facts = {key: getattr(trashed, key) for key in NOTED}
        context.signer.write(Place(kept, META), "trash", trashed.id, facts)
        kept.sync()
    trash.sync()


Deleted: TypeAlias = Trashed | History

MAX_NAMED: Final = 10


def find_deleted(
    core: Core,
    name: str,
    *,
    in_trash: Sequence[Trashed] | None = None,
    source: str | None = None,
    among: Collection[str] | None = None,
    skipped_uids: Collection[str] = (),
) -> Deleted:
    """Return the deleted skill that `restore_named` would restore, first from the trash.

    ``in_trash`` has the skills in the trash, if the caller has already listed them. Skills
    with ``skipped_uids`` don't count. Raises `NotInTrash` if no deleted skill matches, and
    `SkillNotDeleted` if the name means a skill that isn't deleted.
    """
    in_trash = list_trash(core) if in_trash is None else in_trash
    try:
        return find_trashed(in_trash, name, source=source, among=among, skipped_uids=skipped_uids)
    except NotInTrash:
        found = History.of_gone(core, name, source=source, among=among, skipped_uids=skipped_uids)
        # A skill in the trash can be restored only from the trash, and only to its former folder.
        numbers = {one.id for one in in_trash}
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


def find_all_deleted(core: Core, names: Iterable[str], *, source: str | None) -> list[Deleted]:
    """Return the deleted skills that these names mean, each skill once.

    Trash ids and handles of the form ``source/folder`` are looked up first. A name without a source
    then means a deleted skill that no id or handle has already named. Raises `SkillExists` if the
    folder of a skill exists again, and the errors of `find_deleted` and `History.restore`.
    """
    in_trash = list_trash(core)
    chosen = list(dict.fromkeys(names))
    exact = {name for name in chosen if "/" in name}
    exact |= {one.id for one in in_trash}.intersection(chosen)
    found: dict[str, Deleted] = {}
    taken: set[str] = set()
    for name in sorted(chosen, key=lambda name: name not in exact):
        try:
            skipped_uids = () if name in exact else taken
            one = find_deleted(
                core, name, in_trash=in_trash, source=source, skipped_uids=skipped_uids
            )
        except NotInTrash:
            if (
                name not in exact
                and _uid(find_deleted(core, name, in_trash=in_trash, source=source)) in taken
            ):
                continue  # the user named the same skill twice
            raise
        if _uid(one) not in taken:
            found[name] = one
            taken.add(_uid(one))
    ordered = [found[name] for name in chosen if name in found]
    _check_free(core, ordered, source)
    return ordered


def find_missing(core: Core, name: str) -> tuple[list[History], int, list[str]]:
    """Return the stored skills of a source with a missing folder.

    Also returns how many folders of its skills exist, and the refs of missing skills without stored
    files. Raises `SourceNotFound`, `RootMissing`, and the errors of `check_ours` and
    `check_writable`.
    """
    source = find(core, name)
    check_ours(core, source)
    check_writable(source)
    if not os.path.isdir(source.path):
        raise RootMissing(path=source.path, reason="the source's folder does not exist")
    found: list[History] = []
    lost: list[str] = []
    on_disk = 0
    for stored in skills_of_source(core.reader, source.name):
        if os.path.lexists(stored.path):
            on_disk += 1
        elif (history := History.of_missing(core, stored)) is not None:
            found.append(history)
        else:
            lost.append(stored.skill.ref)
    return found, on_disk, lost


def with_deleted_copies(core: Core, found: Sequence[Deleted]) -> list[Deleted]:
    """Return deleted skills; before each skill, the copies that were deleted together with it.

    Raises `SkillExists` if the folder of one of these skills exists again.
    """
    in_trash = list_trash(core)
    chosen: list[Deleted] = []
    for one in found:
        if isinstance(one, Trashed):
            chosen += [other for other in reversed(in_trash) if _are_together(one, other)]
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
    assert found.gone is not None  # noqa: S101  # `find_deleted` checked this
    return found.gone.uid


def _are_together(one: Trashed, other: Trashed) -> bool:
    return one.id != other.id and is_together(one.id, other.id)


def restore_one(
    core: Core, found: Deleted, *, source: str | None = None, number: str | None = None
) -> StoredSkill:
    """Restore a deleted skill from the trash or from its history.

    If the change is part of a group, ``number`` is its number.
    """
    if isinstance(found, History):
        return found.restore(source=source)
    return restore(core, found, number)


def restore_all(
    core: Core, found: Sequence[Deleted], *, source: str | None = None
) -> list[StoredSkill]:
    """Restore several deleted skills in one group of changes; `undo` undoes the whole group.

    Raises the errors of `restore_one`.
    """
    numbered = zip(found, new_numbers(len(found)), strict=True)
    return [restore_one(core, one, source=source, number=number) for one, number in numbered]


def restore_named(
    core: Core, name: str, *, source: str | None, among: Collection[str] | None = None
) -> StoredSkill:
    """Restore the skill that was deleted last with this name, trash id or source/folder.

    The skill is first searched in the trash (of ``source``), then in the database. From the
    database, the skill is written into ``source``. ``among`` has the names of the sources whose
    skills may be restored. Raises `NotInTrash`, and the errors of `restore` and `History.restore`.
    """
    found = find_deleted(core, name, source=source, among=among)
    back = restore_one(core, found, source=source)
    warn_of_others(core, name, found, among)
    return back


def warn_of_others(core: Core, name: str, found: Deleted, among: Collection[str] | None) -> None:
    """After a restore from the trash, warn about other deleted skills that ``name`` may mean."""
    if isinstance(found, History):
        return
    in_trash = list_trash(core)
    seen = [one for one in in_trash if among is None or one.source in among]
    copies = [one.id for one in seen if _are_together(found, one)]
    others = [one.id for one in seen if one.is_called(name) and one.id not in copies]
    if copies:
        what = "A copy is" if len(copies) == 1 else f"{len(copies)} copies are"
        core.warn(f"{what} still in the trash: {_named(copies)}.")
    if others:
        what = "Another" if len(others) == 1 else f"{len(others)} others"
        verb = "is" if len(others) == 1 else "are"
        core.warn(f"{what} named {quoted(name)} {verb} still in the trash: {_named(others)}.")
    later = latest_tombstone(core.reader, name, among, trash={one.id for one in in_trash})
    if later is not None and later.since >= found.deleted_at:
        core.warn(
            f"Restored from the trash; another {quoted(later.name)} is gone since {later.since}. "
            f"To see its history or restore it, use {quoted(later.uid)}."
        )


def _named(numbers: Sequence[str]) -> str:
    more = len(numbers) - MAX_NAMED
    return ", ".join(numbers[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
