"""Deleted skills: into the trash, back from it, and away for good."""

import json
import os
from dataclasses import dataclass

from registry.changes.locking import under_lock
from registry.changes.operations import compare
from registry.changes.protocol import Ground, carry_out, new_entry, new_operation
from registry.changes.state import StateFolder
from registry.db.queries.detail import Version
from registry.disk.atomic import digest_path, remove_tree, sync_folder, write_file
from registry.disk.paths import ROOT, join
from registry.disk.walk import Walk
from registry.errors import ChangeRefused, SkillChangedOnDisk, SkillExists


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


def delete(ground: Ground, version: Version, name: str, *, force: bool = False) -> Trashed:
    """Move a skill's folder to the trash.

    Raises `SkillChangedOnDisk` unless ``force``, `ChangeRefused` for the root of a source and for
    a folder that holds other skills, and what `protocol.carry_out` raises.
    """

    def change(ground: Ground) -> Trashed:
        live = join(ground.source.path, version.folder)
        if version.folder == ROOT:
            reason = "the skill is the root of its source; 'source remove' forgets it"
            raise ChangeRefused(path=live, reason=reason)
        _refuse_nested(ground, version.folder, live)
        base = digest_path(live)
        if base is None:
            raise SkillChangedOnDisk(name=name, path=live)
        compare(ground, None if force else version, name)
        operation = new_operation(ground)
        kept = ground.state.room("trash", operation)
        entry = new_entry(
            ground,
            operation,
            kind="delete",
            folder=version.folder,
            target=version.folder,
            staged=f"{kept}/tree",
            base=base,
            new=None,
        )
        trashed = Trashed(
            id=operation,
            name=name,
            source=ground.source.name,
            folder=version.folder,
            deleted_at=entry.started_at,
            created_at=version.created_at,
            uid=version.uid,
            path=f"{kept}/tree",
        )
        _write_note(kept, trashed, ground.writer.path)
        carry_out(ground, entry, name)
        return trashed

    return under_lock(ground, change)


def restore(ground: Ground, trashed: Trashed) -> None:
    """Bring a deleted skill back, byte for byte, with the ``created_at`` it had.

    Raises `SkillExists` where its folder is taken, and what `protocol.carry_out` raises.
    """

    def change(ground: Ground) -> None:
        live = join(ground.source.path, trashed.folder)
        if os.path.lexists(live):
            raise SkillExists(name=trashed.name, path=live)
        entry = new_entry(
            ground,
            new_operation(ground),
            kind="create",
            folder=trashed.folder,
            target=trashed.folder,
            staged=trashed.path,
            base=None,
            new=digest_path(trashed.path),
            uid=trashed.uid,
            created_at=trashed.created_at,
        )
        if entry.new is None:
            raise ChangeRefused(path=trashed.path, reason="the trash holds it no more")
        carry_out(ground, entry, trashed.name)
        remove_tree(os.path.dirname(trashed.path))

    under_lock(ground, change)


def list_trash(source: str, state: StateFolder) -> list[Trashed]:
    """Return what the trash of a source holds, the latest first."""
    found = []
    try:
        names = os.listdir(state.room("trash"))
    except OSError:
        return []
    for name in names:
        kept = state.room("trash", name)
        try:
            with open(f"{kept}/meta.json", encoding="utf-8") as file:
                note = json.load(file)
            fields = ("name", "folder", "deleted_at", "created_at", "uid")
            facts = {key: str(note[key]) for key in fields}
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if os.path.isdir(f"{kept}/tree"):
            found.append(Trashed(id=name, source=source, path=f"{kept}/tree", **facts))
    return sorted(found, key=lambda one: (one.deleted_at, one.id), reverse=True)


def empty_trash(ground: Ground, trashed: Trashed) -> None:
    """Remove one deleted skill for good."""

    def change(ground: Ground) -> None:
        # Out of the trash in one step: what is removed by half must not look restorable.
        operation = ground.state.room("ops", new_operation(ground))
        os.rename(os.path.dirname(trashed.path), f"{operation}/trash")
        remove_tree(operation)

    under_lock(ground, change)


def _refuse_nested(ground: Ground, folder: str, live: str) -> None:
    walk = Walk(ground.source.path, ground.limits, ground.roots)
    nested = [found.folder for found in walk.below(folder) if found.is_skill]
    nested = [other for other in nested if other != folder]
    if nested:
        reason = f"it holds other skills: {', '.join(sorted(nested)[:5])}"
        raise ChangeRefused(path=live, reason=reason)


def _write_note(kept: str, trashed: Trashed, database: str) -> None:
    os.mkdir(kept, 0o700)
    note = {
        "name": trashed.name,
        "folder": trashed.folder,
        "deleted_at": trashed.deleted_at,
        "created_at": trashed.created_at,
        "uid": trashed.uid,
        "database": database,
    }
    write_file(f"{kept}/meta.json", json.dumps(note, ensure_ascii=False).encode())
    sync_folder(kept)
    sync_folder(os.path.dirname(kept))
