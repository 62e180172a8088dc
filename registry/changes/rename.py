"""Rename a skill: its folder and the name in its SKILL.md, as one change."""

import os
from dataclasses import replace

from registry.catalog.reading import check_path, read_document
from registry.changes.commit import commit_together, new_entry, new_operation, under_lock
from registry.changes.create import detail_after, stored_after
from registry.changes.state import ChangeContext, new_numbers
from registry.changes.trash import refuse_nested
from registry.changes.update import Edits, base_of, stage_folder, update_files
from registry.core import Core
from registry.db.read.skills import StoredSkill, folder_of_name
from registry.disk.atomic import exists
from registry.disk.files import digest
from registry.disk.paths import ROOT, join
from registry.document.edit import EditImpossible, edit_document
from registry.document.names import check_new_name
from registry.errors import (
    ChangeRefused,
    FolderPulled,
    InvalidName,
    NotUtf8,
    SkillChangedOnDisk,
    SkillExists,
)
from registry.model import SkillDetail
from registry.sync.installed import LOCK, lock_of
from registry.sync.sources import check_own


def rename_skill(
    core: Core, stored: StoredSkill, name: str, *, if_hash: str | None = None
) -> SkillDetail:
    """Give a skill another name and the folder of that name; see `SkillRegistry.rename`."""
    reason = check_new_name(name)
    if reason is not None:
        raise InvalidName(name=name, reason=reason)
    check_own(core, stored.skill.source, stored.host, stored.root)
    base = base_of(core, stored, if_hash, force=False)
    if base.folder == ROOT:
        reason = "the skill is the root of its source; rename that folder and sync it again"
        raise ChangeRefused(path=base.path, reason=reason)
    _refuse_pulled(base, name)
    taken = folder_of_name(core.reader, base.source_id, name)
    if taken not in {None, base.folder}:
        raise SkillExists(name=name, path=join(base.root, taken or ""))
    data = read_document(core, base, base.document)
    if digest(data) != base.skill.content_hash:
        raise SkillChangedOnDisk(name=base.skill.ref, path=base.path)
    above, slash, last = base.folder.rpartition("/")
    try:
        changed = edit_document(data.decode(), name=name, folder_name=last).encode()
    except UnicodeDecodeError as error:
        raise NotUtf8(path=base.path, offset=error.start) from None
    except EditImpossible as error:
        raise ChangeRefused(path=base.path, reason=str(error)) from error
    edits = {} if changed == data else {base.document or "SKILL.md": changed}
    if last == name:
        return detail_after(core, update_files(core, base, edits) if edits else base)
    return detail_after(core, move(core, base, f"{above}{slash}{name}", edits))


def _refuse_pulled(base: StoredSkill, name: str) -> None:
    """Raise `FolderPulled` for a folder that a lock lists: links lead to it, and pulls go there."""
    folder = os.path.basename(base.folder)
    lock = None if folder == name else lock_of(base.path)
    if lock is not None:
        reason = f"it was pulled, and {join(lock, LOCK)} lists it by this name"
        raise FolderPulled(path=base.path, reason=reason, lock=lock, folder=folder)


def move(core: Core, base: StoredSkill, folder: str, edits: Edits) -> StoredSkill:
    """Move a skill to another folder of its source and write some of its files, all or nothing.

    The skill keeps its history and its ``created_at``. Raises `SkillExists` if something is at
    ``folder``, `SkillChangedOnDisk`, `ChangeRefused` for a folder that holds other skills, and as
    `commit_together`.
    """
    check_path(folder)

    def change(context: ChangeContext) -> StoredSkill | None:
        if exists(context.root, folder):
            raise SkillExists(name=base.skill.name, path=join(base.root, folder))
        refuse_nested(context, base)
        first, second = new_numbers(2)
        staged = stage_folder(context, base, edits, base, {}, first)
        created_at = base.skill.created_at
        made = replace(
            staged,
            kind="create together",
            folder=folder,
            target=folder,
            base=None,
            uid=base.uid,
            created_at=created_at,
        )
        with new_operation(context, second):
            gone = new_entry(context, second, "delete together", base.folder, base=staged.base)
        ref = base.skill.ref
        return commit_together([(context, made), (context, gone)], [ref, ref])[0]

    return stored_after(under_lock(core, base.source_id, change), folder)
