"""Read one skill as it is on disk now: an answer is never older than the folder."""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from registry.catalog import resolve
from registry.db.queries import detail
from registry.db.queries.detail import Version
from registry.db.queries.rows import fill, parameters, skills
from registry.db.queries.sources import roots
from registry.disk import files as disk_files
from registry.disk.found import Found
from registry.disk.links import Leads, follow
from registry.disk.paths import ROOT, is_safe_relative, join
from registry.disk.walk import Walk
from registry.errors import (
    FileNotFoundInSkill,
    NotUtf8,
    OutsideSkill,
    RegistryError,
    SkillInaccessible,
    SkillInvalid,
    SkillMissing,
    SkillNotFound,
)
from registry.model import Skill, SkillDetail

if TYPE_CHECKING:
    from registry.core import OpenRegistry

TRIES = 3
"""How often a skill that keeps changing hands is looked up again."""


def get(registry: "OpenRegistry", name: str) -> SkillDetail:
    """Return everything of one skill; see `SkillRegistry.get`."""
    version, found = locate(registry, name)
    known = _detail(registry, version)
    if found is None or found.document is None or registry.backend.writable:
        return known
    return _with_text(registry, version, found.document, known)


def _with_text(
    registry: "OpenRegistry", version: Version, name: str, known: SkillDetail
) -> SkillDetail:
    """Put what the skill file says now in the place of what can't be brought up to date."""
    from registry.document.parse import parse_document

    home, limit = join(version.root, version.folder), registry.settings.limits.document_bytes
    try:
        data = disk_files.read_inside(f"{home}/{name}", limit, home, version.root).data
    except (OSError, RegistryError):
        return known
    document = parse_document(data, folder_name=os.path.basename(home))
    if not document.usable:
        return known
    return replace(
        known,
        description=document.description,
        body=document.body,
        front_matter=document.front_matter,
    )


def refresh(registry: "OpenRegistry", name: str) -> Skill | None:
    """Bring one skill's stored version up to date; see `SkillRegistry.refresh`."""
    before = resolve.find(registry.reader, name)[0]
    version, _ = locate(registry, name)
    row = detail.row_of(registry.reader, version.source_id, version.folder)
    return skills([row[1]])[0] if row is not None and version.id != before else None


def locate(registry: "OpenRegistry", name: str) -> tuple[Version, Found | None]:
    """Find a skill, bring its stored version up to date, and return both sides of it.

    None: its folder is on another machine, and what is stored is what can be known.
    """
    for _ in range(TRIES):
        skill_id, _row = resolve.find(registry.reader, name)
        version = detail.version(registry.reader, skill_id)
        if version is None:
            continue  # replaced in this moment: look again
        if version.host != registry.backend.host:
            return version, None
        fresh = _refreshed(registry, version, name)
        if fresh is not None:
            return fresh
    raise SkillNotFound(name)


def _refreshed(
    registry: "OpenRegistry", version: Version, name: str
) -> tuple[Version, Found] | None:
    walk = walk_of(registry, version.root)
    found = walk.one(version.folder)
    if found is None:
        path = join(version.root, version.folder)
        for notice in walk.notices:
            if notice.lost:
                raise SkillInaccessible(path=path, reason=notice.diagnostic.message)
        raise SkillMissing(name=name, path=path)
    if found.fingerprint == version.fingerprint and not (
        version.racy and _differs(registry, version, found)
    ):
        return version, found
    if not registry.backend.writable:
        return version, found  # whoever may only read gets the newest text, and older facts
    replaced = _reimport(registry, walk, version, found)
    row = detail.row_of(registry.reader, version.source_id, version.folder)
    if row is None:
        return None
    newer = detail.version(registry.reader, row[0])
    if newer is None or (not replaced and newer.id == version.id):
        return (version, found) if newer is not None else None
    return newer, found


def _differs(registry: "OpenRegistry", version: Version, found: Found) -> bool:
    """Compare contents, for a version whose timestamps were too new to prove anything."""
    from registry.sync.hashing import hash_files, tree_hash

    hashes = hash_files(version.root, found, {}, registry.settings.limits)[0]
    return tree_hash(found, hashes) != version.tree_hash


def _reimport(registry: "OpenRegistry", walk: Walk, version: Version, found: Found) -> bool:
    from registry.db.writes.versions import bury, publish, stage
    from registry.sync.apply import read_version
    from registry.times import from_ns

    now = time.time_ns()
    new = read_version(registry.reader, walk, found, version, version.source_id, now, from_ns(now))
    if new is None:
        path = join(version.root, version.folder)
        raise SkillInaccessible(path=path, reason="it can't be read at the moment")
    with registry.writer.transaction() as connection:
        staged = stage(connection, [new])
        live = publish(connection, staged, [])
        bury(connection, version=version.id if live else staged[0])
    keep(registry, live)
    return bool(live)


def keep(registry: "OpenRegistry", versions: Sequence[int] | None) -> int:
    """Store the bytes of these versions' files (None: of all live ones), unless switched off."""
    if not registry.settings.store_files:
        return 0
    from registry.sync.contents import keep_contents

    limit = registry.settings.limits.skill_bytes
    return keep_contents(registry.reader, registry.writer, limit, versions)


def walk_of(registry: "OpenRegistry", root: str) -> Walk:
    """Return a walk of the source at ``root`` that knows all other sources."""
    return Walk(root, registry.settings.limits, roots(registry.reader, registry.backend.host))


def _detail(registry: "OpenRegistry", version: Version) -> SkillDetail:
    reader = registry.reader
    with reader.snapshot():
        row = detail.row_of(reader, version.source_id, version.folder)
        if row is None:
            raise SkillNotFound(version.folder)
        skill_id, columns = row
        document = detail.document(reader, skill_id)
        compatibility, tools, declared, name = detail.extras(reader, skill_id)
        import json

        home = join(version.root, version.folder)
        return fill(
            SkillDetail,
            columns,
            body=document[0][document[1] :] if document else None,
            front_matter=document[2] if document else {},
            files=detail.files(reader, skill_id),
            diagnostics=detail.findings(reader, skill_id),
            compatibility=compatibility,
            required_tools=tuple(json.loads(tools)),
            parameters=parameters(declared),
            location=f"{home}/{name}" if name else home,
        )


def read_bytes(registry: "OpenRegistry", name: str) -> bytes:
    """Return the bytes of SKILL.md; see `SkillRegistry.read_bytes`."""
    version, found = locate(registry, name)
    home = join(version.root, version.folder)
    if found is None:
        return _stored(registry, version, version.document)
    if found.document is None:
        findings = detail.findings(registry.reader, version.id)
        raise SkillInvalid(name=name, problems=findings or found.problems)
    path = f"{home}/{found.document}"
    try:
        limit = registry.settings.limits.document_bytes
        return disk_files.read_inside(path, limit, home, version.root).data
    except FileNotFoundError:
        raise SkillMissing(name=name, path=path) from None


def _stored(registry: "OpenRegistry", version: Version, path: str | None) -> bytes:
    """Return the stored bytes of a file of a skill whose folder is on another machine."""
    from registry.db.queries.revisions import content

    name = detail.refs_of(registry.reader, [version.id]).get(version.id, version.folder)
    files = {file.path: file for file in detail.files(registry.reader, version.id)}
    if path is None:
        raise SkillInvalid(name=name, problems=detail.findings(registry.reader, version.id))
    file = files.get(path)
    if file is None:
        raise FileNotFoundInSkill(name=name, path=path)
    data = None
    if file.hash is not None:
        data = content(registry.reader, version.uid, file.hash)
    if data is None:
        where = f"{version.host}:{join(version.root, version.folder)}/{path}"
        reason = "its folder is on another machine, and its bytes are not in the database"
        raise SkillInaccessible(path=where, reason=reason)
    return data


def read_text(registry: "OpenRegistry", name: str) -> str:
    """Return the text of SKILL.md; see `SkillRegistry.read`."""
    data = read_bytes(registry, name)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotUtf8(path=name, offset=error.start) from None


def read_file(registry: "OpenRegistry", name: str, path: str) -> bytes:
    """Return the bytes of a supporting file; see `SkillRegistry.read_file`."""
    if not is_safe_relative(path):
        raise OutsideSkill(path=path)
    version, found = locate(registry, name)
    if found is None:
        return _stored(registry, version, path)
    home = join(version.root, version.folder)
    target = f"{home}/{path}"
    link = follow(target, home, ())
    if link.leads is Leads.NOWHERE or (version.folder == ROOT and path == ROOT):
        raise FileNotFoundInSkill(name=name, path=path)
    if link.leads is not Leads.INSIDE:
        raise OutsideSkill(path=path)
    try:
        return disk_files.read_file(link.target, registry.settings.limits.document_bytes).data
    except FileNotFoundError:
        raise FileNotFoundInSkill(name=name, path=path) from None
