"""Update or rename a skill, after a comparison of its folder with the stored version."""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from stat import S_ISLNK, S_ISREG
from types import MappingProxyType
from typing import Any, Final

from registry.catalog.reading import CurrentSkill, check_path, detail, read_document
from registry.catalog.why import LinkTo, links_to
from registry.changes.commit import (
    Which,
    change_together,
    commit,
    commit_together,
    new_entry,
    new_operation,
    under_lock,
    with_copies,
)
from registry.changes.create import detail_after, stored_after
from registry.changes.review import Intent, propose_if_needed, propose_together
from registry.changes.signer import new_numbers
from registry.changes.state import ChangeContext, open_place
from registry.core import Core
from registry.db.read.journal import JournalEntry, Kind
from registry.db.read.skills import StoredSkill, folder_of_name
from registry.disk.atomic import (
    Place,
    copy_tree,
    digest_of,
    exists,
    sync_tree,
    write_below,
    write_file,
)
from registry.disk.beneath import Folder
from registry.disk.files import digest
from registry.disk.links import is_dangling
from registry.disk.paths import ROOT, join
from registry.disk.swap import TREE
from registry.disk.walk import Walk
from registry.document.edit import EditImpossible, edit_document
from registry.document.names import check_new_name
from registry.errors import (
    ChangeRefused,
    FolderPulled,
    InvalidName,
    NotUtf8,
    RegistryError,
    SkillChangedOnDisk,
    SkillExists,
    SkillMissing,
)
from registry.model import Parameter, SkillDetail
from registry.sync.installed import LOCK, lock_of
from registry.sync.reading import whole_hash
from registry.sync.sources import check_own

USUAL: Final = 0o644
"""Mode (permission bits) of a new file."""

Edits = Mapping[str, bytes | None]
"""The new contents of files by relative path; None for a file that will be removed."""


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
    copies: Which | None = None,
) -> SkillDetail:
    """Change fields and files of a skill; for the parameters, see `SkillRegistry.update`."""
    edits: dict[str, bytes | None] = dict(files)
    fields: dict[str, Any] = {
        "description": description,
        "body": body,
        "tags": tags,
        "kind": kind,
        "parameters": parameters,
    }
    if any(field is not None for field in fields.values()):
        check_own(core, stored.skill.source, stored.host, stored.root)
        # Read the file from disk and not through the registry. The registry would store the current
        # file, and the next change would no longer notice the user's edit.
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
    given: dict[str, Any] = {"if_hash": if_hash, "force": force, "copies": copies}
    return detail_after(core, update_files(core, stored, edits, **given))


def update_files(
    core: Core,
    stored: StoredSkill,
    edits: Edits,
    *,
    if_hash: str | None = None,
    force: bool = False,
    executable: Mapping[str, bool] = MappingProxyType({}),
    copies: Which | None = None,
) -> StoredSkill:
    """Write or remove files of a skill, without changing any other byte.

    Raises `SkillChangedOnDisk` if ``if_hash`` is given and isn't the skill's content hash. Unless
    ``force``, also raises it if the user edited the skill since the last sync. ``executable`` sets
    or clears the executable bit, by path. ``copies`` selects copies that also change; all of them
    change, or none.

    If one file changes, only this file is replaced. If several files change, a changed copy
    replaces the whole folder. Raises `OutsideSkill`, `ChangeRefused`, `UsageProblem`, and the
    errors of `commit.commit`.
    """
    for path in edits:
        check_path(path)
    base = base_of(core, stored, if_hash, force=force)
    group = with_copies(core, base, copies, force=force)
    propose_together(
        core,
        group,
        lambda one: Intent(
            "update", one.skill.name, one.folder, one, one.uid, edits=edits, executable=executable
        ),
    )
    if len(group) > 1:

        def staged(context: ChangeContext, one: StoredSkill, number: str) -> JournalEntry:
            return stage_folder(context, one, edits, one, executable, number)

        changed = change_together(core, group, staged)
        made = [stored_after(now, one.folder) for now, one in zip(changed, group, strict=True)]
        return made[-1]

    def change(context: ChangeContext) -> StoredSkill | None:
        check = None if force else base
        if len(edits) > 1:
            entry = stage_folder(context, base, edits, check, executable)
            return commit(context, entry, base.skill.ref)
        ((path, data),) = edits.items()
        return _update_file(context, base, path, data, check, executable.get(path))

    return stored_after(under_lock(core, base.source_id, change), base.folder)


def base_of(core: Core, stored: StoredSkill, if_hash: str | None, *, force: bool) -> StoredSkill:
    """Return the version that a change expects: the stored version, or the version on disk.

    With ``if_hash`` or ``force``, it is the version on disk; otherwise, it is the stored version.
    Then, if the user edited the folder, the change is refused later, under the lock. Raises
    `SkillChangedOnDisk` if the skill doesn't have the hash ``if_hash``, and `SkillInaccessible`.
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
    """Raise `SkillChangedOnDisk` or `SkillMissing` if the folder isn't the same as ``stored``.

    ``stored`` is None if the change is forced.
    """
    if stored is None:
        return
    limits = context.core.settings.limits
    found = Walk(stored.root, limits, context.roots).one(stored.folder)
    if found is None or whole_hash(stored.root, found, limits) != stored.skill.tree_hash:
        raise not_as_stored(stored)


def not_as_stored(stored: StoredSkill) -> RegistryError:
    """Return the error for a folder that is missing or isn't the same as the stored version."""
    is_there = os.path.lexists(stored.path)
    return (SkillChangedOnDisk if is_there else SkillMissing)(
        name=stored.skill.ref, path=stored.path
    )


def _update_file(
    context: ChangeContext,
    base: StoredSkill,
    path: str,
    data: bytes | None,
    check: StoredSkill | None,
    executable: bool | None,  # True, False or None (unchanged)
) -> StoredSkill | None:
    target = path if base.folder == ROOT else f"{base.folder}/{path}"
    mode = _mode(context, base, target)
    with ExitStack() as stack:
        live = open_place(stack, context.root, target)
        before = None if live is None else digest_of(live)
        # Compare after computing the digest. So this comparison finds earlier edits, and the rename
        # finds later edits.
        compare(context, check)
        if data is None and before is None:
            reason = "there is no such file"
            raise ChangeRefused(path=join(base.root, target), reason=reason)
        number, operation = stack.enter_context(new_operation(context))
        new = None
        if data is not None:
            staged = Place(operation, TREE)
            write_file(staged, data, _with(mode, executable))
            operation.sync()
            new = digest_of(staged)
    kinds: dict[tuple[bool, bool], Kind] = {
        (False, True): "create",
        (True, True): "update",
        (True, False): "delete",
    }
    kind = kinds[before is not None, data is not None]
    entry = new_entry(context, number, kind, base.folder, target=target, base=before, new=new)
    return commit(context, entry, base.skill.ref)


def stage_folder(
    context: ChangeContext,
    base: StoredSkill,
    edits: Edits,
    check: StoredSkill | None,
    executable: Mapping[str, bool],
    together: str | None = None,
) -> JournalEntry:
    """Stage an update of a skill: a changed copy of its whole folder.

    If the change is part of a group, ``together`` is its number.
    """
    if base.folder == ROOT:
        reason = "the skill is the source's root, whose files can only be changed one at a time"
        raise ChangeRefused(path=base.root, reason=reason)
    for path in edits:
        _mode(context, base, f"{base.folder}/{path}")
    with ExitStack() as stack:
        live = open_place(stack, context.root, base.folder)
        before = None if live is None else digest_of(live)
        if live is None or before is None:
            raise not_as_stored(base)
        number, operation = stack.enter_context(new_operation(context, together))
        staged = Place(operation, TREE)
        copy_tree(live, staged)
        if digest_of(staged) != before:
            raise SkillChangedOnDisk(name=base.skill.ref, path=base.path)
        compare(context, check)
        with operation.folder(TREE) as tree:
            _edit(tree, edits, executable)
        sync_tree(staged)
        new = digest_of(staged)
    kind: Kind = "update together" if together else "update"
    return new_entry(context, number, kind, base.folder, base=before, new=new)


def _edit(tree: Folder, edits: Edits, executable: Mapping[str, bool]) -> None:
    modes = dict.fromkeys(edits, USUAL)
    for path in edits:
        if exists(tree, path):
            holder, name = tree.parent(path)
            with holder:
                modes[path] = holder.lstat(name).st_mode & 0o777
                os.unlink(name, dir_fd=holder.fd)
    for path, data in edits.items():
        if data is not None:
            write_below(tree, path, data, _with(modes[path], executable.get(path)))


def _mode(context: ChangeContext, base: StoredSkill, target: str) -> int:
    """Return the mode of an existing file; for a new file, the default mode.

    Raises `ChangeRefused` if the path is not a regular file.
    """
    path = join(base.root, target)
    try:
        mode = context.root.lstat(target).st_mode
    except FileNotFoundError:
        return USUAL
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR}:
            raise
        reason = "it is a link, or its path contains a link or a file"
        raise ChangeRefused(path=path, reason=reason) from None
    if S_ISLNK(mode):
        raise ChangeRefused(path=path, reason="it is a link; change what it leads to instead")
    if not S_ISREG(mode):
        raise ChangeRefused(path=path, reason="it is not a regular file")
    return mode & 0o777


def _with(mode: int, executable: bool | None) -> int:  # True, False or None (unchanged)
    """Return ``mode`` with the executable bit set or cleared; None changes nothing."""
    if executable is None:
        return mode
    return mode | 0o111 if executable else mode & ~0o111


def refuse_nested(context: ChangeContext, base: StoredSkill) -> None:
    """Raise `ChangeRefused` if a skill's folder contains other skills or another source."""
    walk = Walk(base.root, context.core.settings.limits, context.roots)
    found = {one.folder for one in walk.below(base.folder) if one.is_skill}
    if nested := sorted(found - {base.folder}):
        reason = f"it contains other skills: {', '.join(nested[:5])}"
        raise ChangeRefused(path=base.path, reason=reason)
    # The walk skips these folders, because their skills belong to other sources.
    for root in context.roots:
        if root.startswith(f"{base.path}/"):
            raise ChangeRefused(path=base.path, reason=f"it contains another source: {root}")


def rename_skill(core: Core, stored: StoredSkill, name: str, *, if_hash: str | None) -> SkillDetail:
    """Rename a skill and its folder; for the parameters, see `SkillRegistry.rename`."""
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
    links = links_to(core, base)
    moved = move(core, base, f"{above}{slash}{name}", edits)
    warn_of_dangling(core, links)
    return detail_after(core, moved)


def warn_of_dangling(core: Core, links: Iterable[LinkTo]) -> None:
    """Warn about links to a folder that was moved or removed."""
    for link in links:
        if is_dangling(link.link):
            core.warn(f"The link {link.link!r} now leads nowhere.")


def _refuse_pulled(base: StoredSkill, name: str) -> None:
    """Raise `FolderPulled` if a lock file lists the folder.

    Links lead to this folder, and pulls update it.
    """
    folder = os.path.basename(base.folder)
    lock = None if folder == name else lock_of(base.path)
    if lock is not None:
        reason = f"it was pulled, and {join(lock, LOCK)} lists it by this name"
        raise FolderPulled(path=base.path, reason=reason, lock=lock, folder=folder)


def move(core: Core, base: StoredSkill, folder: str, edits: Edits) -> StoredSkill:
    """Move a skill to another folder of its source and write some of its files, all or nothing.

    The skill keeps its history. Raises `SkillExists` if the other folder exists,
    `SkillChangedOnDisk`, and `ChangeRefused` if the skill's folder contains other skills.
    """
    check_path(folder)
    propose_if_needed(
        core,
        base.source_id,
        lambda: Intent("rename", base.skill.name, folder, base, base.uid, edits=edits),
    )

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
