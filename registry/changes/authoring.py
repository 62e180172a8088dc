"""Create and update skills by their fields: the SKILL.md text is made or edited, then changed."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from registry.catalog import resolve
from registry.changes import changing
from registry.db.queries import detail
from registry.disk.files import digest, read_inside
from registry.disk.paths import join
from registry.errors import (
    ChangeRefused,
    InvalidName,
    NotUtf8,
    SkillChangedOnDisk,
    SkillInvalid,
    SkillMissing,
    UsageProblem,
)
from registry.model import Parameter, SkillDetail
from registry.times import now

if TYPE_CHECKING:
    from registry.api import SkillRegistry


def create(
    registry: "SkillRegistry",
    name: str,
    *,
    description: str,
    body: str,
    tags: Sequence[str],
    kind: str | None,
    parameters: Sequence[Parameter],
    source: str | None,
    files: Mapping[str, bytes],
) -> SkillDetail:
    """Create a skill in the folder of its name; see `SkillRegistry.create`."""
    from registry.document.names import check_new_name
    from registry.document.render import render_document

    home = changing.target_source(registry, source)
    reason = check_new_name(name)
    if reason is not None:
        raise InvalidName(name=name, reason=reason)
    try:
        text = render_document(
            name=name,
            description=description,
            body=body,
            tags=tags,
            kind=kind,
            parameters=parameters,
            created_at=now(),
        )
    except ValueError as error:
        raise UsageProblem(message=f"The skill can't be written: {error}.") from error
    made = changing.create(registry, home, name, name, {**files, "SKILL.md": text.encode()})
    return changing.detail_of(registry, made)


def update(
    registry: "SkillRegistry",
    name: str,
    *,
    description: str | None,
    body: str | None,
    tags: Sequence[str] | None,
    kind: str | None,
    parameters: Sequence[Parameter] | None,
    files: Mapping[str, bytes | None],
    if_hash: str | None,
    force: bool,
) -> SkillDetail:
    """Change fields and files of a skill; see `SkillRegistry.update`."""
    from registry.document.edit import EditImpossible, edit_document

    skill = registry.resolve(name)
    edits: dict[str, bytes | None] = dict(files)
    fields = (description, body, tags, kind, parameters)
    if any(field is not None for field in fields):
        document, data = _as_it_is(registry, name)
        if not force and digest(data) != (if_hash or skill.content_hash):
            raise SkillChangedOnDisk(name=name, path=skill.path)
        try:
            text = data.decode()
            changed = edit_document(
                text,
                description=description,
                tags=tags,
                kind=kind,
                body=body,
                parameters=parameters,
                folder_name=os.path.basename(skill.path),
            )
        except UnicodeDecodeError as error:
            raise NotUtf8(path=skill.path, offset=error.start) from None
        except EditImpossible as error:
            raise ChangeRefused(path=skill.path, reason=str(error)) from error
        if changed != text:
            edits[document] = changed.encode()
    if not edits:
        return registry.get(name)
    done = changing.update(registry, name, edits, if_hash=if_hash, force=force)
    return changing.detail_of(registry, done)


def _as_it_is(registry: "SkillRegistry", name: str) -> tuple[str, bytes]:
    """Return the skill file's name and bytes, without telling the database what they are now.

    Reading through the registry would, and the edit made by hand that must stop this change would
    be known to the next one.
    """
    version = detail.version(registry.reader, resolve.find(registry.reader, name)[0])
    if version is None or version.document is None:
        raise SkillInvalid(name=name, problems=registry.get(name).diagnostics)
    changing.check_own(registry, changing.source_of(registry, version))
    home = join(version.root, version.folder)
    path = f"{home}/{version.document}"
    limit = registry.settings.limits.document_bytes
    try:
        return version.document, read_inside(path, limit, home, version.root).data
    except FileNotFoundError:
        raise SkillMissing(name=name, path=path) from None
