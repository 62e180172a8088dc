"""Create a skill: stage its folder, and then commit the change."""

import os
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from registry.catalog.reading import check_path, detail
from registry.changes.commit import commit, new_entry, new_operation, under_lock
from registry.changes.review import Intent, ProposalKind, propose_if_needed
from registry.changes.state import ChangeContext
from registry.core import Core
from registry.db.read.skills import StoredSkill, folder_of_name
from registry.disk.atomic import Place, exists
from registry.disk.paths import join
from registry.disk.swap import TREE, stage_files
from registry.document.names import check_new_name
from registry.document.render import render_document
from registry.errors import InvalidName, RegistryError, SkillExists, SkillNotFound, UsageProblem
from registry.model import Parameter, SkillDetail, Source
from registry.sync.sources import target_of_new, target_source
from registry.text import utc_now


def create_skill(
    core: Core,
    name: str,
    *,
    description: str,
    body: str = "",
    tags: Sequence[str] = (),
    kind: str | None = None,
    parameters: Sequence[Parameter] = (),
    source: str | None = None,
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> SkillDetail:
    """Create a skill in a folder that has the skill's name; see `SkillRegistry.create`."""
    reason = check_new_name(name)
    if reason is not None:
        target_source(core, source)  # report errors about the source before other errors
        raise InvalidName(name=name, reason=reason)
    home = target_of_new(core, source, name)
    try:
        text = render_document(
            name=name,
            description=description,
            body=body,
            tags=tags,
            kind=kind,
            parameters=parameters,
            created_at=utc_now(),
        )
    except ValueError as error:
        raise UsageProblem(message=f"The skill can't be written: {error}.") from error
    texts = {**files, "SKILL.md": text.encode()}
    return detail_after(core, create_files(core, home, name, name, texts, is_free=True))


def create_files(
    core: Core,
    source: Source,
    folder: str,
    name: str,
    files: Mapping[str, bytes],
    executable: Collection[str] = (),
    *,
    uid: str | None = None,
    created_at: str | None = None,
    is_free: bool = False,
) -> StoredSkill:
    """Create a skill with these files (contents by relative path) in ``folder`` of a source.

    ``executable`` has the paths of the executable files. If a deleted skill is restored, ``uid``
    and ``created_at`` are its former values. ``is_free`` is True if the caller knows that no skill
    of the source has this name. Raises `SkillExists`, `OutsideSkill`, `ChangeRefused`, and the
    errors of `commit.commit`.
    """
    for path in (folder, *files):
        check_path(path)
    is_free = is_free or uid is not None
    taken = None if is_free else folder_of_name(core.reader, source.id, name)
    if taken is not None:
        raise SkillExists(name=name, path=os.path.join(source.path, taken))
    runs = dict.fromkeys(executable, True)
    kind: ProposalKind = "create" if uid is None else "restore"
    propose_if_needed(
        core,
        source.id,
        lambda: Intent(kind, name, folder, uid=uid, edits=files, executable=runs),
    )

    def change(context: ChangeContext) -> StoredSkill | None:
        if exists(context.root, folder):
            raise SkillExists(name=name, path=join(source.path, folder))
        with new_operation(context) as (number, operation):
            staged = Place(operation, TREE)
            new = stage_files(staged, {path: (files[path], path in executable) for path in files})
            facts = {"new": new, "uid": uid, "created_at": created_at}
            entry = new_entry(context, number, "create", folder, **facts)
        return commit(context, entry, name)

    return stored_after(under_lock(core, source.id, change), folder)


def stored_after(stored: StoredSkill | None, folder: str) -> StoredSkill:
    """Return the skill that is stored for ``folder`` after a change.

    Raises `SkillNotFound` if the skill no longer exists.
    """
    if stored is None:
        raise SkillNotFound(folder)
    return stored


def detail_after(core: Core, stored: StoredSkill) -> SkillDetail:
    """Return all details of a skill that has just changed.

    If its folder can't be read again, return the known details and warn.
    """
    try:
        return detail(core, stored)
    except (RegistryError, OSError) as error:
        core.warn(
            f"The change of {stored.skill.ref!r} is made, but what is stored of it could not be "
            f"read again ({str(error).rstrip('.')}): only a part of it is shown."
        )
    return SkillDetail(
        **vars(stored.skill),
        body=None,
        files=(),
        diagnostics=(),
        front_matter={},
        compatibility=stored.compatibility,
        required_tools=(),
        parameters=(),
        location=stored.path,
    )
