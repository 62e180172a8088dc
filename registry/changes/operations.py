"""The four changes: stage what is to be, then hand over to the protocol."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from registry.catalog.detail import Version
from registry.changes.files import copy_tree, digest_path, remove_tree, sync_folder, write_file
from registry.changes.protocol import (
    CrossDevice,
    Ground,
    carry_out,
    locked,
    new_entry,
    new_operation,
    refuse,
)
from registry.changes.recovery import recover, sweep
from registry.changes.state import StateFolder
from registry.disk.paths import ROOT, join
from registry.disk.walk import Walk
from registry.errors import ChangeRefused, RegistryError, SkillChangedOnDisk, SkillExists
from registry.sync.hashing import hash_files, tree_hash

Result = TypeVar("Result")


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


def create(ground: Ground, folder: str, name: str, files: Mapping[str, bytes]) -> None:
    """Make the skill folder ``folder`` with these files (relative path: content).

    Raises `SkillExists`, `ChangeRefused`, and what `protocol.carry_out` raises.
    """

    def change(ground: Ground) -> None:
        live = join(ground.source.path, folder)
        if os.path.lexists(live):
            raise SkillExists(name=name, path=live)
        operation = new_operation(ground)
        staged = ground.state.room("ops", operation, "tree")
        os.mkdir(staged)
        for path, data in files.items():
            _place(staged, path, data)
        _sync_folders(staged)
        entry = new_entry(
            ground,
            operation,
            kind="create",
            folder=folder,
            target=folder,
            staged=staged,
            base=None,
            new=digest_path(staged),
        )
        carry_out(ground, entry, name)

    _under_lock(ground, change)


def update(
    ground: Ground,
    version: Version,
    name: str,
    edits: Mapping[str, bytes | None],
    *,
    force: bool = False,
) -> None:
    """Write (or with None remove) files of a skill; every other byte stays.

    One file is swapped by itself, several go in one step with a copy of the whole folder. Raises
    `SkillChangedOnDisk` unless ``force``, and what `protocol.carry_out` raises.
    """

    def change(ground: Ground) -> None:
        check = None if force else version
        if len(edits) == 1:
            ((path, data),) = edits.items()
            _update_file(ground, version, name, path, data, check)
        else:
            _update_folder(ground, version, name, edits, check)

    _under_lock(ground, change)


def _update_file(
    ground: Ground,
    version: Version,
    name: str,
    path: str,
    data: bytes | None,
    check: Version | None,
) -> None:
    target = path if version.folder == ROOT else f"{version.folder}/{path}"
    live = join(ground.source.path, target)
    _check_parents(ground, version, path)
    operation = new_operation(ground)
    staged = ground.state.room("ops", operation, "tree")
    base = digest_path(live)
    # After the digest: an edit before it is seen here, a later one when the rename displaces it.
    _compare(ground, check, name)
    facts: dict[str, Any] = {"folder": version.folder, "target": target, "staged": staged}
    if data is None:
        if base is None:
            raise ChangeRefused(path=live, reason="there is no such file")
        entry = new_entry(ground, operation, kind="delete", base=base, new=None, **facts)
    else:
        mode = os.lstat(live).st_mode & 0o777 if base is not None else 0o644
        write_file(staged, data, mode)
        sync_folder(os.path.dirname(staged))
        kind = "update" if base is not None else "create"
        new = digest_path(staged)
        entry = new_entry(ground, operation, kind=kind, base=base, new=new, **facts)
    carry_out(ground, entry, name)


def _check_parents(ground: Ground, version: Version, path: str) -> None:
    """Refuse a path that leads through a link, or names something that is no regular file."""
    at = join(ground.source.path, version.folder)
    for part in path.split("/"):
        at = f"{at}/{part}"
        if os.path.islink(at):
            raise ChangeRefused(path=at, reason="it is a link; change what it leads to instead")
    if os.path.lexists(at) and not os.path.isfile(at):
        raise ChangeRefused(path=at, reason="it is no regular file")


def _update_folder(
    ground: Ground,
    version: Version,
    name: str,
    edits: Mapping[str, bytes | None],
    check: Version | None,
) -> None:
    if version.folder == ROOT:
        reason = "the skill is the source's root, whose files can only be changed one at a time"
        raise ChangeRefused(path=ground.source.path, reason=reason)
    live = join(ground.source.path, version.folder)
    for path in edits:
        _check_parents(ground, version, path)
    operation = new_operation(ground)
    staged = ground.state.room("ops", operation, "tree")
    base = digest_path(live)
    copy_tree(live, staged)
    if digest_path(staged) != base:
        raise SkillChangedOnDisk(name=name, path=live)
    _compare(ground, check, name)
    for path, data in edits.items():
        mode = None
        if os.path.lexists(f"{staged}/{path}"):
            mode = os.lstat(f"{staged}/{path}").st_mode & 0o777
            os.unlink(f"{staged}/{path}")
        if data is not None:
            _place(staged, path, data, mode or 0o644)
    _sync_folders(staged)
    entry = new_entry(
        ground,
        operation,
        kind="update",
        folder=version.folder,
        target=version.folder,
        staged=staged,
        base=base,
        new=digest_path(staged),
    )
    carry_out(ground, entry, name)


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
        _compare(ground, None if force else version, name)
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

    return _under_lock(ground, change)


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

    _under_lock(ground, change)


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

    _under_lock(ground, change)


def _under_lock(ground: Ground, change: Callable[[Ground], Result]) -> Result:
    """Run a change with the source's lock held and everything unfinished brought to an end."""
    ground.state.ensure()
    try:
        return _attempt(ground, change)
    except CrossDevice:
        # Only the rename itself tells: what lies beside the root is on another file system.
        inside = replace(ground, state=StateFolder(ground.source.path, inside=True))
        inside.state.ensure()
        try:
            return _attempt(inside, change)
        except CrossDevice as error:
            reason = "it holds another file system; changes need renames within one"
            raise ChangeRefused(path=ground.source.path, reason=reason) from error


def _attempt(ground: Ground, change: Callable[[Ground], Result]) -> Result:
    with locked(ground):
        recover(ground)
        try:
            return change(ground)
        except OSError as error:
            sweep(ground)
            raise refuse(ground.source.path, error) from error
        except RegistryError:
            sweep(ground)
            raise


def _compare(ground: Ground, version: Version | None, name: str) -> None:
    """Raise `SkillChangedOnDisk` unless the folder is what the stored version says it is."""
    if version is None:
        return  # forced
    walk = Walk(ground.source.path, ground.limits, ground.roots)
    found = walk.one(version.folder)
    live = join(ground.source.path, version.folder)
    if found is None:
        raise SkillChangedOnDisk(name=name, path=live)
    hashes = hash_files(ground.source.path, found, {}, ground.limits)[0]
    if tree_hash(found, hashes) != version.tree_hash:
        raise SkillChangedOnDisk(name=name, path=live)


def _refuse_nested(ground: Ground, folder: str, live: str) -> None:
    walk = Walk(ground.source.path, ground.limits, ground.roots)
    nested = [found.folder for found in walk.below(folder) if found.is_skill]
    nested = [other for other in nested if other != folder]
    if nested:
        reason = f"it holds other skills: {', '.join(sorted(nested)[:5])}"
        raise ChangeRefused(path=live, reason=reason)


def _place(tree: str, path: str, data: bytes, mode: int = 0o644) -> None:
    target = f"{tree}/{path}"
    os.makedirs(os.path.dirname(target), exist_ok=True)
    write_file(target, data, mode)


def _sync_folders(tree: str) -> None:
    for folder, _, _ in os.walk(tree, topdown=False):
        sync_folder(folder)
    sync_folder(os.path.dirname(tree))


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
