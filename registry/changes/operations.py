"""Create and update: stage what is to be, then hand over to the protocol."""

import os
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from registry.changes.locking import under_lock
from registry.changes.protocol import Ground, carry_out, new_entry, new_operation
from registry.db.queries.detail import Version
from registry.disk.atomic import copy_tree, digest_path, is_gone, sync_folder, write_file
from registry.disk.paths import ROOT, join
from registry.disk.walk import Walk
from registry.errors import ChangeRefused, SkillChangedOnDisk, SkillExists
from registry.sync.hashing import hash_files, tree_hash


def create(
    ground: Ground,
    folder: str,
    name: str,
    files: Mapping[str, bytes],
    executable: Collection[str] = (),
) -> None:
    """Make the skill folder ``folder`` with these files (relative path: content).

    ``executable`` are the paths of those that can be executed. Raises `SkillExists`,
    `ChangeRefused`, and what `protocol.carry_out` raises.
    """

    def change(ground: Ground) -> None:
        live = join(ground.source.path, folder)
        if os.path.lexists(live):
            raise SkillExists(name=name, path=live)
        operation = new_operation(ground)
        staged = ground.state.room("ops", operation, "tree")
        os.mkdir(staged)
        for path, data in files.items():
            _place(staged, path, data, 0o755 if path in executable else 0o644)
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

    under_lock(ground, change)


def update(
    ground: Ground,
    version: Version,
    name: str,
    edits: Mapping[str, bytes | None],
    *,
    force: bool = False,
    executable: Mapping[str, bool] = MappingProxyType({}),
) -> None:
    """Write (or with None remove) files of a skill; every other byte stays.

    ``executable``: which of them can be executed; the others keep what they were. One file is
    swapped by itself, several go in one step with a copy of the whole folder. Raises
    `SkillChangedOnDisk` unless ``force``, and what `protocol.carry_out` raises.
    """

    def change(ground: Ground) -> None:
        check = None if force else version
        if len(edits) == 1:
            ((path, data),) = edits.items()
            _update_file(ground, version, name, path, data, check, executable)
        else:
            _update_folder(ground, version, name, edits, check, executable)

    under_lock(ground, change)


def _update_file(
    ground: Ground,
    version: Version,
    name: str,
    path: str,
    data: bytes | None,
    check: Version | None,
    executable: Mapping[str, bool],
) -> None:
    target = path if version.folder == ROOT else f"{version.folder}/{path}"
    live = join(ground.source.path, target)
    _check_parents(ground, version, path)
    operation = new_operation(ground)
    staged = ground.state.room("ops", operation, "tree")
    base = digest_path(live)
    # After the digest: an edit before it is seen here, a later one when the rename displaces it.
    compare(ground, check, name)
    facts: dict[str, Any] = {"folder": version.folder, "target": target, "staged": staged}
    if data is None:
        if base is None:
            raise ChangeRefused(path=live, reason="there is no such file")
        entry = new_entry(ground, operation, kind="delete", base=base, new=None, **facts)
    else:
        mode = os.lstat(live).st_mode & 0o777 if base is not None else 0o644
        write_file(staged, data, _mode(mode, executable.get(path)))
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
    executable: Mapping[str, bool],
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
    compare(ground, check, name)
    for path, data in edits.items():
        mode = None
        if not is_gone(f"{staged}/{path}"):
            mode = os.lstat(f"{staged}/{path}").st_mode & 0o777
            os.unlink(f"{staged}/{path}")
        if data is not None:
            _place(staged, path, data, _mode(mode or 0o644, executable.get(path)))
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


def compare(ground: Ground, version: Version | None, name: str) -> None:
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


def _place(tree: str, path: str, data: bytes, mode: int = 0o644) -> None:
    target = f"{tree}/{path}"
    os.makedirs(os.path.dirname(target), exist_ok=True)
    write_file(target, data, mode)


def _mode(mode: int, executable: bool | None) -> int:
    """Return ``mode`` with the permission to execute given or taken; None: as it is."""
    if executable is None:
        return mode
    return mode | 0o111 if executable else mode & ~0o111


def _sync_folders(tree: str) -> None:
    for folder, _, _ in os.walk(tree, topdown=False):
        sync_folder(folder)
    sync_folder(os.path.dirname(tree))
