"""All files of a skill, as they are now, whole and verified."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from registry.catalog import resolve
from registry.db.queries import detail
from registry.db.queries.detail import Version
from registry.db.queries.revisions import content
from registry.disk.files import digest, read_inside, tree_digest
from registry.disk.paths import is_safe_relative, join
from registry.errors import (
    FileChanging,
    OutsideSkill,
    RegistryError,
    SkillInaccessible,
    SkillInvalid,
)
from registry.model import DOCUMENT_NAMES, Skill, SkillFile

if TYPE_CHECKING:
    from registry.api import SkillRegistry

ATTEMPTS: Final = 3
"""How often a skill that changes while it is read is read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: its path below the skill's folder, its bytes, whether it can be executed."""

    path: str
    data: bytes
    executable: bool = False


def content_of(registry: "SkillRegistry", skill: Skill) -> list[Entry]:
    """Return the files of a skill as it is now, by path; a change meanwhile is never half in them.

    Raises `SkillInvalid` for what can't be used, `SkillInaccessible` where the bytes of a file are
    to be had neither from the database nor from the disk, `FileChanging`, `OutsideSkill`, and as
    `SkillRegistry.get`.
    """
    place = f"{skill.source}/{skill.folder}"
    problem: RegistryError = FileChanging(path=skill.path)
    for _ in range(ATTEMPTS):
        known = registry.get(place)
        if known.status not in {"ok", "warning"}:
            raise SkillInvalid(name=known.ref, problems=known.diagnostics)
        version = detail.version(registry.reader, resolve.find(registry.reader, place)[0])
        if version is None or version.tree_hash != known.tree_hash:
            continue  # it changed in this moment
        try:
            entries = [
                Entry(file.path, _bytes(registry, version, file), file.executable)
                for file in known.files
            ]
        except SkillInaccessible as error:
            problem = error  # or it changed in this moment: the next attempt tells
            continue
        if tree_hash(entries) == known.tree_hash:
            return entries
    raise problem


def tree_hash(entries: Sequence[Entry]) -> str:
    """Return the tree hash of these files, as the registry writes it."""
    return tree_digest([(one.path, one.executable, digest(one.data)) for one in entries])


def document_of(entries: Sequence[Entry]) -> Entry | None:
    """Return the skill file among the files of a skill; None: there is none."""
    by_path = {one.path: one for one in entries}
    return next((by_path[name] for name in DOCUMENT_NAMES if name in by_path), None)


def _bytes(registry: "SkillRegistry", version: Version, file: SkillFile) -> bytes:
    """Return a file's bytes from the database, else from the disk, where they have its hash."""
    home = join(version.root, version.folder)
    path = f"{home}/{file.path}"
    if not is_safe_relative(file.path):
        raise OutsideSkill(path=path)  # a database may have come from elsewhere
    if file.hash is None:
        raise SkillInaccessible(path=path, reason="it could not be read when it was synced, either")
    try:
        data = content(registry.reader, version.uid, file.hash)
    except zlib.error:
        data = None
    here = version.host == registry.backend.host
    if here and (data is None or digest(data) != file.hash):
        try:
            data = read_inside(path, file.size, home, version.root).data
        except (RegistryError, OSError):
            data = None
    if data is None or digest(data) != file.hash:
        reason = "its content is neither stored nor on disk as it was synced"
        if not here:
            reason = f"its folder is on {version.host}, and its content is not in the database"
        raise SkillInaccessible(path=path, reason=reason)
    return data
