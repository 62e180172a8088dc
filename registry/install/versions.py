"""The versions of installed skills: their pins, newer versions, and warnings."""

from collections.abc import Sequence
from dataclasses import replace

from registry.core import Core
from registry.db.read.labels import versions_of_installed
from registry.install.lockfile import LockEntry
from registry.install.targets import InstallResult
from registry.model import SkillVersion


def versions_of(core: Core, entry: LockEntry) -> Sequence[SkillVersion]:
    """Return all versions of a lock entry's skill, including yanked versions, the newest first."""
    place = entry.source, entry.folder
    return versions_of_installed(core.reader, *place, entry.tree_hash)


def is_yanked(versions: Sequence[SkillVersion]) -> bool:
    """Tell whether the current files of the skill are a yanked version."""
    return any(one.current and one.state == "yanked" for one in versions)


def noted(
    result: InstallResult, entry: LockEntry | None, versions: Sequence[SkillVersion]
) -> InstallResult:
    """Return a result with the pin of the lock entry, a newer version, and a warning.

    ``versions`` is the result of `versions_of`.
    """
    if entry is None:
        return result
    installed = [one for one in versions if one.tree_hash == entry.tree_hash]
    newer = None
    if entry.pin is not None:
        labels = [one.label for one in versions]
        before = versions[: labels.index(entry.pin)] if entry.pin in labels else ()
        newer = next((one.label for one in before if one.state != "yanked"), None)
    warned = [one for one in installed if one.warning is not None]
    worst = min(warned, key=lambda one: one.state != "yanked", default=None)
    result = replace(result, pin=entry.pin, newer=newer)
    if worst is None:
        return result
    return replace(result, warning=worst.warning, yanked=worst.state == "yanked")
