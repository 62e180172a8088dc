"""All files of a skill, as they are now, whole and verified."""

import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Final

from registry.catalog.reading import CurrentSkill
from registry.core import Core
from registry.db.queries import skills
from registry.db.queries.revisions import content
from registry.db.queries.skills import StoredSkill
from registry.disk.beneath import Folder
from registry.disk.files import digest, open_home, read_inside, tree_digest
from registry.disk.paths import is_safe_relative
from registry.disk.scanned import UNREADABLE, inaccessible
from registry.errors import (
    FileChanging,
    OutsideSkill,
    RegistryError,
    SkillInaccessible,
    SkillInvalid,
)
from registry.model import Skill, SkillFile

ATTEMPTS: Final = 3
"""How often a skill that changes while it is read is read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: its path below the skill's folder, its bytes, whether it can be executed."""

    path: str
    data: bytes
    executable: bool


def content_of(core: Core, skill: Skill) -> list[Entry]:
    """Return the files of a skill as it is now, by path; a change meanwhile is never half in them.

    Raises `SkillInvalid` for what can't be used, `SkillInaccessible` where the bytes of a file are
    to be had neither from the database nor from the disk, `FileChanging`, `OutsideSkill`, and as
    `SkillRegistry.get`.
    """
    problem: RegistryError = FileChanging(path=skill.path)
    for _ in range(ATTEMPTS):
        current = CurrentSkill.of(core, f"{skill.source}/{skill.folder}")
        stored = current.stored
        if stored.skill.status not in {"ok", "warning"}:
            problems = skills.findings(core.reader, stored.id)
            raise SkillInvalid(name=stored.skill.ref, problems=problems)
        try:
            _check_whole(core, current)
            entries = _entries(core, stored)
        except SkillInaccessible as error:
            problem = error  # or it changed in this moment: the next attempt tells
            continue
        if tree_hash(entries) == stored.skill.tree_hash:
            return entries
    raise problem


def tree_hash(entries: Sequence[Entry]) -> str:
    """Return the tree hash of these files, as the registry writes it."""
    return tree_digest([(one.path, one.executable, digest(one.data)) for one in entries])


def _check_whole(core: Core, current: CurrentSkill) -> None:
    """Raise `SkillInaccessible` for a skill of which not all files are known."""
    current.check_whole()
    stored = current.stored
    if stored.skill.tree_hash is None or current.found is None:
        for finding in skills.findings(core.reader, stored.id):
            if finding.code == UNREADABLE:
                raise inaccessible(stored.path, finding)


def _entries(core: Core, stored: StoredSkill) -> list[Entry]:
    with _home(core, stored) as home:
        return [
            Entry(file.path, _bytes(core, stored, file, home), file.executable)
            for file in skills.files(core.reader, stored.id)
        ]


def _home(core: Core, stored: StoredSkill) -> AbstractContextManager[Folder | None]:
    """Open the folder of a skill, once for all its files; None: nothing can be read there."""
    if stored.host == core.host:
        with suppress(RegistryError, OSError):
            return open_home(stored.root, stored.folder)
    return nullcontext()


def _bytes(core: Core, stored: StoredSkill, file: SkillFile, home: Folder | None) -> bytes:
    """Return a file's bytes from the database, else from the disk, where they have its hash."""
    path = f"{stored.path}/{file.path}"
    if not is_safe_relative(file.path):
        raise OutsideSkill(path=path)  # a database may have come from elsewhere
    if file.hash is None:
        raise SkillInaccessible(path=path, reason="it could not be read when it was synced, either")
    try:
        data = content(core.reader, stored.uid, file.hash)
    except zlib.error:
        data = None
    if home is not None and (data is None or digest(data) != file.hash):
        try:
            data = read_inside(home, file.path, file.size, stored.root).data
        except (RegistryError, OSError):
            data = None
    if data is None or digest(data) != file.hash:
        reason = "its content is neither stored nor on disk as it was synced"
        if stored.host != core.host:
            reason = f"its folder is on {stored.host}, and its content is not in the database"
        raise SkillInaccessible(path=path, reason=reason)
    return data
