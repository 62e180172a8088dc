"""Deleted skills: into the trash, back from it, and away for good."""

from collections.abc import Sequence
from contextlib import ExitStack, suppress

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
from registry.changes.state import META, ChangeContext, open_place
from registry.changes.trashed import NOTED, Trashed, list_trash, note_of
from registry.changes.update import base_of, compare, not_as_stored, refuse_nested
from registry.core import Core
from registry.db.read.journal import JournalEntry, Kind
from registry.db.read.skills import StoredSkill, places_of_name, same_name
from registry.db.write.history import drop_tombstones
from registry.disk.atomic import Place, digest_of, exists, make_folder, remove_tree, rename_new
from registry.disk.links import is_dangling
from registry.disk.paths import ROOT, join
from registry.disk.swap import TREE
from registry.errors import ChangeRefused, SkillExists
from registry.sync.sources import own_sources


def delete(
    core: Core,
    stored: StoredSkill,
    *,
    if_hash: str | None = None,
    force: bool = False,
    copies: Which | None = None,
) -> Trashed:
    """Move a skill's folder to the trash, and with it all these ``copies`` or none.

    Raises `SkillChangedOnDisk` unless ``force``, `ChangeRefused` for the root of a source and for a
    folder that holds other skills, `UsageProblem`, and as `commit.commit`.
    """
    base = base_of(core, stored, if_hash, force=force)
    group = with_copies(core, base, copies, force=force)
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
    for link in links:
        if is_dangling(link.link):
            core.warn(f"The link {link.link!r} now leads nowhere.")
    return trashed


def warn_of_successor(core: Core, name: str) -> None:
    """Warn if a deleted skill's name now refers to another skill, perhaps a stranger's."""
    # Few names are shared: the second query, which asks for projects as well, is rarely sent.
    is_shared = core.reader.rows(*places_of_name(name))
    for other in same_name(core.reader, name) if is_shared else ():
        skill = other.skill
        if skill.name == name and other.is_usable and not skill.shadowed:
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
    """Prepare the trash for a skill, compared with ``check``, and record the deletion there."""
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
    """Restore a deleted skill, byte for byte, with its former ``created_at``.

    Raises `SkillExists`, `ChangeRefused` if it is no longer in the trash, and as `commit.commit`.
    """

    def change(context: ChangeContext) -> StoredSkill | None:
        if exists(context.root, trashed.folder):
            path = join(context.source.path, trashed.folder)
            raise SkillExists(name=trashed.name, path=path)
        with ExitStack() as stack:
            staged = open_place(stack, context.state.trash, f"{trashed.id}/{TREE}")
            new = None if staged is None else digest_of(staged)
        if new is None:
            raise ChangeRefused(path=trashed.path, reason="the trash holds it no more")
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
        with suppress(OSError):  # it is back; what is left is removed by the next change
            remove_tree(Place(context.state.trash, trashed.id))
        return stored

    source_id = _source_ids(core)[trashed.source]
    return stored_after(under_lock(core, source_id, change), trashed.folder)


def empty_trash(core: Core, chosen: Sequence[Trashed] | None = None) -> int:
    """Remove deleted skills (None: all) for good; return how many."""
    chosen = list_trash(core) if chosen is None else chosen
    source_ids = _source_ids(core)
    for trashed in chosen:

        def change(context: ChangeContext, trashed: Trashed = trashed) -> None:
            if note_of(context.signer, context.state.trash, trashed.id) is None:
                raise ChangeRefused(path=trashed.path, reason="the trash holds it no more")
            # Move it out of the trash in one step: a partly removed folder must not look
            # restorable.
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
