"""The errors of miniclaw's contract ("Error Types"): a variant each, with its message."""

from collections.abc import Mapping
from typing import Final

from registry.disk.paths import join
from registry.document.names import check_snake_case
from registry.errors import (
    ChangeRefused,
    InvalidName,
    RegistryError,
    SkillAmbiguous,
    SkillExists,
    SkillInvalid,
    SkillNotFound,
    SkillNotVisible,
    SourceNotFound,
    SourceUnclear,
)
from registry.model import DOCUMENT_NAMES
from registry.text import shorten
from registry.toolsets.base import one_line, shown

MESSAGES: Final[Mapping[str, str]] = {
    "InvalidName": "Invalid skill name '{name}': {reason}",
    "NameConflict": "Skill '{name}' already exists",
    "BuiltInToolConflict": "Name '{name}' conflicts with built-in tool",
    "SkillNotFound": "Skill '{name}' not found",
    "SkillAlreadyExists": "Skill '{name}' already exists",
    "DirectoryCreationFailed": "Failed to create directory '{path}': {source}",
    "FileWriteFailed": "Failed to write file '{path}': {source}",
    "FileReadFailed": "Failed to read file '{path}': {source}",
    "DirectoryRemovalFailed": "Failed to remove directory '{path}': {source}",
    "BuiltInSkillDeletion": "Cannot delete built-in skill '{name}'",
    "InvalidSchema": "Invalid parameter schema: {msg}",
}
"""The variants of `SkillError` and what they display."""


NO_WORKSPACE: Final = "The user has to choose one, or register the folder above."

MAX_MESSAGE: Final = 900
"""Characters of a message, which may repeat what a model sent."""


class SkillError(Exception):
    """One of the contract's errors: ``type`` is the variant's name."""

    def __init__(self, type: str, **facts: object) -> None:  # noqa: A002  # the contract's word
        message = MESSAGES[type].format_map(facts)
        super().__init__(shorten(message, MAX_MESSAGE).encode("utf-8", "replace").decode())
        self.type = type


def creating(name: str, path: str, error: RegistryError | OSError, *, known: bool) -> SkillError:
    """Return the contract's error for why ``path`` could not be created.

    ``known``: there is a skill of the name, not only a folder on disk.
    """
    if isinstance(error, SkillExists):
        return SkillError("NameConflict" if known else "SkillAlreadyExists", name=name)
    if isinstance(error, InvalidName):
        return SkillError("InvalidName", name=name, reason=error.facts["reason"])
    if isinstance(error, ChangeRefused | SourceUnclear | SourceNotFound | OSError):
        return SkillError("DirectoryCreationFailed", path=path, source=_reason(error))
    return SkillError("FileWriteFailed", path=f"{path}/SKILL.md", source=_reason(error))


def failure(
    type: str,  # noqa: A002  # the contract's word
    name: str,
    error: RegistryError | OSError,
    path: str = "",
) -> SkillError:
    """Return the contract's error, usually ``type``, for a skill that was not read or deleted.

    ``path`` is what could not be, where the error itself does not tell.
    """
    if isinstance(error, RegistryError):
        found = _unfound(name, error)
        if found is not None:
            return found
        path = path or error.facts.get("path", "")
        if isinstance(error, SkillInvalid) and type == "FileReadFailed":
            path = join(path, DOCUMENT_NAMES[0])
    return SkillError(type, path=path, source=_reason(error))


def _unfound(name: str, error: RegistryError) -> SkillError | None:
    """Return the error of a name that means no skill here, or several; None for any other."""
    if isinstance(error, SkillAmbiguous):
        refs = ", ".join(error.facts["refs"])
        reason = f"several skills have it, choose one of {refs}"
        return SkillError("InvalidName", name=shown(name), reason=one_line(reason))
    if not isinstance(error, SkillNotFound | SkillNotVisible):
        return None
    reason = check_snake_case(name) or ""  # "when creating or accessing skills"
    if isinstance(error, SkillNotFound) and reason:
        return SkillError("InvalidName", name=shown(name), reason=reason)
    return SkillError("SkillNotFound", name=shown(name))


def _reason(error: RegistryError | OSError) -> str:
    """Return why, in one line; the path is told beside it."""
    if isinstance(error, SourceUnclear) and error.facts["known"]:
        return one_line(f"{error} {NO_WORKSPACE}")
    if isinstance(error, OSError):
        return one_line(error.strerror or str(error))
    if isinstance(error, SkillInvalid):
        problems = error.facts["problems"]
        worst = [p.message for p in problems if p.severity == "error"]
        return one_line("; ".join(worst) or "it can't be used")
    return one_line(str(error.facts.get("reason") or error))
