"""All files of a skill, as the registry knows it, whole and verified."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from registry import history
from registry.errors import SkillInvalid
from registry.model import Skill

if TYPE_CHECKING:
    from registry.service import SkillRegistry


@dataclass(frozen=True, slots=True)
class Entry:
    """One file: its path below the skill's folder, its bytes, whether it can be executed."""

    path: str
    data: bytes
    executable: bool


def content_of(registry: "SkillRegistry", skill: Skill) -> list[Entry]:
    """Return the files of a skill as it is now, by path.

    Raises `SkillInvalid` for what can't be used, `ContentMissing` where the bytes of a file are
    not stored, and as `SkillRegistry.get`.
    """
    place = f"{skill.source}/{skill.folder}"
    current = next((one for one in history.history(registry, place) if one.current), None)
    if current is None or skill.status not in {"ok", "warning"}:
        raise SkillInvalid(name=skill.ref, problems=registry.get(place).diagnostics)
    return [
        Entry(file.path, history.content(registry, skill.ref, current, file), file.executable)
        for file in current.files
    ]
