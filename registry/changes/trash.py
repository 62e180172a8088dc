"""Deleted skills: into the trash, back from it, and away for good."""

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from registry.changes.context import ChangeContext
from registry.changes.create import recorded
from registry.changes.locking import under_lock
from registry.changes.protocol import carry_out, new_entry, new_operation
from registry.changes.state import StateFolder
from registry.changes.update import base_of, compare
from registry.core import Core
from registry.db.queries.skills import StoredSkill
from registry.disk.atomic import digest_path, remove_tree, sync_folder, write_file
from registry.disk.paths import ROOT, join
from registry.disk.walk import Walk
from registry.errors import ChangeRefused, NotInTrash, SkillChangedOnDisk, SkillExists
from registry.sync.sources import own_sources

_NOTED: Final = ("name", "folder", "deleted_at", "created_at", "uid")
"""What is written down beside a deleted folder; the rest follows from where it lies."""


@dataclass(frozen=True, slots=True)
class Trashed:
    """A deleted skill that can be restored; ``path`` is where its folder is kept."""

    id: str
    name: str
    source: str
    folder: str
    deleted_at: str
    created_at: str
    uid: str
    path: str


def delete(
    core: Core, stored: StoredSkill, *, if_hash: str | None = None, force: bool = False
) -> Trashed:
    """Move a skill's folder to the trash.

    Raises `SkillChangedOnDisk` unless ``force``, `ChangeRefused` for the root of a source and for
    a folder that holds other skills, and what `protocol.carry_out` raises.
    """
    base = base_of(core, stored, if_hash, force=force)

    def change(context: ChangeContext) -> Trashed:
        if base.folder == ROOT:
            reason = "the skill is the root of its source; remove the source to forget it"
            raise ChangeRefused(path=base.path, reason=reason)
        _refuse_nested(context, base)
        before = digest_path(base.path)
        if before is None:
            raise SkillChangedOnDisk(name=base.skill.ref, path=base.path)
        compare(context, None if force else base)
        operation = new_operation(context)
        kept = context.state.path_of("trash", operation)
        entry = new_entry(context, operation, "delete", base.folder, f"{kept}/tree", base=before)
        trashed = Trashed(
            id=operation,
            name=base.skill.name,
            source=base.skill.source,
            folder=base.folder,
            deleted_at=entry.started_at,
            created_at=base.skill.created_at,
            uid=base.uid,
            path=entry.staged,
        )
        _write_note(kept, trashed, core.writer.path)
        carry_out(context, entry, base.skill.ref)
        return trashed

    return under_lock(core, base.source_id, change)


def restore(
    core: Core, name: str, *, source: str | None = None, among: Collection[str] | None = None
) -> StoredSkill:
    """Bring back the latest deleted skill of this name (or trash id, or source/folder).

    ``among``: the sources whose skills may come back; None: all. It comes back byte for byte, with
    the ``created_at`` it had. Raises `NotInTrash` where there is none, `SkillExists` where its
    folder is taken, and what `protocol.carry_out` raises.
    """
    found = [
        one
        for one in list_trash(core)
        if name in {one.name, one.id, f"{one.source}/{one.folder}"}
        and source in {None, one.source}
        and (among is None or one.source in among)
    ]
    if not found:
        raise NotInTrash(name[:200])
    trashed = found[0]

    def change(context: ChangeContext) -> None:
        live = join(context.source.path, trashed.folder)
        if os.path.lexists(live):
            raise SkillExists(name=trashed.name, path=live)
        entry = new_entry(
            context,
            new_operation(context),
            "create",
            trashed.folder,
            trashed.path,
            uid=trashed.uid,
            created_at=trashed.created_at,
        )
        if entry.new is None:
            raise ChangeRefused(path=trashed.path, reason="the trash holds it no more")
        carry_out(context, entry, trashed.name)
        remove_tree(os.path.dirname(trashed.path))

    source_id = _source_ids(core)[trashed.source]
    under_lock(core, source_id, change)
    return recorded(core, source_id, trashed.folder)


def list_trash(core: Core) -> list[Trashed]:
    """Return what can be restored, the latest first."""
    found = [one for source in own_sources(core) for one in _kept(source.name, source.path)]
    return sorted(found, key=lambda one: (one.deleted_at, one.id), reverse=True)


def empty_trash(core: Core, chosen: Sequence[Trashed] | None = None) -> int:
    """Remove deleted skills (None: all) for good; return how many."""
    chosen = list_trash(core) if chosen is None else chosen
    source_ids = _source_ids(core)
    for trashed in chosen:

        def change(context: ChangeContext, trashed: Trashed = trashed) -> None:
            # Out of the trash in one step: what is removed by half must not look restorable.
            operation = context.state.path_of("ops", new_operation(context))
            os.rename(os.path.dirname(trashed.path), f"{operation}/trash")
            remove_tree(operation)

        under_lock(core, source_ids[trashed.source], change)
    return len(chosen)


def _source_ids(core: Core) -> dict[str, int]:
    return {source.name: source.id for source in own_sources(core)}


def _kept(source: str, root: str) -> list[Trashed]:
    """Return what the trash of a source holds."""
    state = StateFolder(root)
    found: list[Trashed] = []
    try:
        names = os.listdir(state.path_of("trash"))
    except OSError:
        return found
    for name in names:
        kept = state.path_of("trash", name)
        try:
            with open(f"{kept}/meta.json", encoding="utf-8") as file:
                note = json.load(file)
            facts = {key: str(note[key]) for key in _NOTED}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if os.path.isdir(f"{kept}/tree"):
            found.append(Trashed(id=name, source=source, path=f"{kept}/tree", **facts))
    return found


def _refuse_nested(context: ChangeContext, base: StoredSkill) -> None:
    walk = Walk(base.root, context.core.settings.limits, context.roots)
    found = {one.folder for one in walk.below(base.folder) if one.is_skill}
    if nested := sorted(found - {base.folder}):
        reason = f"it holds other skills: {', '.join(nested[:5])}"
        raise ChangeRefused(path=base.path, reason=reason)
    # The walk leaves these out: their skills are another source's.
    for root in context.roots:
        if root.startswith(f"{base.path}/"):
            raise ChangeRefused(path=base.path, reason=f"it holds another source: {root}")


def _write_note(kept: str, trashed: Trashed, database: str) -> None:
    os.mkdir(kept, 0o700)
    note = {key: getattr(trashed, key) for key in _NOTED} | {"database": database}
    write_file(f"{kept}/meta.json", json.dumps(note, ensure_ascii=False).encode())
    sync_folder(kept)
    sync_folder(os.path.dirname(kept))
