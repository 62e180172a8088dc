"""Update a skill: edit its document or files, compared with what the change is based on."""

import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from registry.catalog.reading import CurrentSkill, check_path, detail, read_document
from registry.changes.context import ChangeContext
from registry.changes.create import recorded
from registry.changes.locking import under_lock
from registry.changes.protocol import carry_out, new_entry, new_operation
from registry.core import Core
from registry.db.queries.skills import StoredSkill
from registry.db.writes.journal import Kind
from registry.disk.atomic import (
    copy_tree,
    digest_path,
    is_gone,
    sync_folder,
    sync_tree,
    write_below,
    write_file,
)
from registry.disk.files import digest
from registry.disk.paths import ROOT, join
from registry.disk.walk import Walk
from registry.document.edit import EditImpossible, edit_document
from registry.errors import ChangeRefused, NotUtf8, SkillChangedOnDisk
from registry.model import Parameter, SkillDetail
from registry.sync.hashing import whole_hash
from registry.sync.sources import check_own

Edits = Mapping[str, bytes | None]
"""Relative path: new content, or None for a file that is removed."""


def update_skill(
    core: Core,
    stored: StoredSkill,
    *,
    description: str | None = None,
    body: str | None = None,
    tags: Sequence[str] | None = None,
    kind: str | None = None,
    parameters: Sequence[Parameter] | None = None,
    files: Edits = MappingProxyType({}),
    if_hash: str | None = None,
    force: bool = False,
) -> SkillDetail:
    """Change fields and files of a skill; see `SkillRegistry.update`."""
    edits: dict[str, bytes | None] = dict(files)
    fields: dict[str, Any] = {
        "description": description,
        "body": body,
        "tags": tags,
        "kind": kind,
        "parameters": parameters,
    }
    if any(field is not None for field in fields.values()):
        check_own(core, stored.skill.source, stored.host)
        # Not by way of the registry, which would tell the database what the file is now: the edit
        # made by hand that must stop this change would be known to the next one.
        data = read_document(core, stored, stored.document)
        if not force and digest(data) != (if_hash or stored.skill.content_hash):
            raise SkillChangedOnDisk(name=stored.skill.ref, path=stored.path)
        try:
            text = data.decode()
            changed = edit_document(text, folder_name=os.path.basename(stored.path), **fields)
        except UnicodeDecodeError as error:
            raise NotUtf8(path=stored.path, offset=error.start) from None
        except EditImpossible as error:
            raise ChangeRefused(path=stored.path, reason=str(error)) from error
        if changed != text:
            edits[stored.document or "SKILL.md"] = changed.encode()
    if not edits:
        return detail(core, CurrentSkill.of_stored(core, stored).stored)
    return detail(core, update_files(core, stored, edits, if_hash=if_hash, force=force))


def update_files(
    core: Core,
    stored: StoredSkill,
    edits: Edits,
    *,
    if_hash: str | None = None,
    force: bool = False,
    executable: Mapping[str, bool] = MappingProxyType({}),
) -> StoredSkill:
    """Write or remove files of a skill; every other byte stays.

    ``if_hash``: the content hash the caller has seen; any other content is refused with
    `SkillChangedOnDisk`, as is an edit made by hand since the last sync unless ``force``.
    ``executable``: which files can be executed; the others keep what they were. One file is
    swapped by itself, several go in one step with a copy of the whole folder. Raises
    `OutsideSkill`, `ChangeRefused`, and what `protocol.carry_out` raises.
    """
    for path in edits:
        check_path(path)
    base = base_of(core, stored, if_hash, force=force)

    def change(context: ChangeContext) -> None:
        check = None if force else base
        if len(edits) == 1:
            ((path, data),) = edits.items()
            _update_file(context, base, path, data, check, executable.get(path))
        else:
            _update_folder(context, base, edits, check, executable)

    under_lock(core, base.source_id, change)
    return recorded(core, base.source_id, base.folder)


def base_of(
    core: Core, stored: StoredSkill, if_hash: str | None, *, force: bool = False
) -> StoredSkill:
    """Return the stored version that a change is based on.

    Without a hash to compare, the change is based on what the database knew: an edit made by hand
    since then is refused later, under the lock. With one, what is on disk now counts. Raises
    `SkillChangedOnDisk`, `SkillInaccessible` where a part of it can't be read.
    """
    if if_hash is None and not force:
        return stored
    now = CurrentSkill.of_stored(core, stored)
    now.check_whole()
    current = now.stored
    if if_hash is not None and current.skill.content_hash != if_hash:
        raise SkillChangedOnDisk(name=current.skill.ref, path=current.path)
    return current


def compare(context: ChangeContext, stored: StoredSkill | None) -> None:
    """Raise `SkillChangedOnDisk` unless the folder is what the stored version says it is.

    None: nothing is compared, the change is forced. Raises `SkillInaccessible` where a part of it
    can't be read.
    """
    if stored is None:
        return
    limits = context.core.settings.limits
    found = Walk(stored.root, limits, context.roots).one(stored.folder)
    if found is None or whole_hash(stored.root, found, limits) != stored.skill.tree_hash:
        raise SkillChangedOnDisk(name=stored.skill.ref, path=stored.path)


def _update_file(
    context: ChangeContext,
    base: StoredSkill,
    path: str,
    data: bytes | None,
    check: StoredSkill | None,
    executable: bool | None,  # three states of one file
) -> None:
    target = path if base.folder == ROOT else f"{base.folder}/{path}"
    live = join(base.root, target)
    _check_parents(base, path)
    operation = new_operation(context)
    staged = context.state.path_of("ops", operation, "tree")
    before = digest_path(live)
    # After the digest: an edit before it is seen here, a later one when the rename displaces it.
    compare(context, check)
    if data is None:
        if before is None:
            raise ChangeRefused(path=live, reason="there is no such file")
    else:
        write_file(staged, data, _mode(live, executable))
        sync_folder(os.path.dirname(staged))
    kinds: dict[tuple[bool, bool], Kind] = {
        (False, True): "create",
        (True, True): "update",
        (True, False): "delete",
    }
    kind = kinds[before is not None, data is not None]
    entry = new_entry(context, operation, kind, base.folder, staged, target=target, base=before)
    carry_out(context, entry, base.skill.ref)


def _update_folder(
    context: ChangeContext,
    base: StoredSkill,
    edits: Edits,
    check: StoredSkill | None,
    executable: Mapping[str, bool],
) -> None:
    if base.folder == ROOT:
        reason = "the skill is the source's root, whose files can only be changed one at a time"
        raise ChangeRefused(path=base.root, reason=reason)
    for path in edits:
        _check_parents(base, path)
    operation = new_operation(context)
    staged = context.state.path_of("ops", operation, "tree")
    before = digest_path(base.path)
    copy_tree(base.path, staged)
    if digest_path(staged) != before:
        raise SkillChangedOnDisk(name=base.skill.ref, path=base.path)
    compare(context, check)
    modes = {path: _mode(f"{staged}/{path}", executable.get(path)) for path in edits}
    for path in edits:
        if not is_gone(f"{staged}/{path}"):
            os.unlink(f"{staged}/{path}")
    for path, data in edits.items():
        if data is not None:
            write_below(staged, path, data, modes[path])
    sync_tree(staged)
    entry = new_entry(context, operation, "update", base.folder, staged, base=before)
    carry_out(context, entry, base.skill.ref)


def _check_parents(base: StoredSkill, path: str) -> None:
    """Refuse a path that leads through a link, or names something that is not a regular file."""
    at = base.path
    for part in path.split("/"):
        at = f"{at}/{part}"
        if os.path.islink(at):
            raise ChangeRefused(path=at, reason="it is a link; change what it leads to instead")
    if os.path.lexists(at) and not os.path.isfile(at):
        raise ChangeRefused(path=at, reason="it is not a regular file")


def _mode(path: str, executable: bool | None) -> int:  # three states of one file
    """Return the mode of a file as it is (or is usual), executable or not where that is given."""
    mode = 0o644 if is_gone(path) else os.lstat(path).st_mode & 0o777
    if executable is None:
        return mode
    return mode | 0o111 if executable else mode & ~0o111
