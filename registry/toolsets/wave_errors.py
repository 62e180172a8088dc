"""The errors of wave's contract ("Error Handling Contract"): five types and their texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from registry.errors import (
    FileChanging,
    FileTooLarge,
    NotUtf8,
    RegistryError,
    SkillInaccessible,
    SkillInvalid,
    SkillMissing,
)
from registry.model import Diagnostic
from registry.toolsets.base import one_line, shown

SkillErrorType: TypeAlias = Literal[
    "skill_not_found",  # requested skill doesn't exist
    "skill_invalid",  # skill failed validation
    "skill_inaccessible",  # file system access denied
    "skill_malformed",  # YAML parsing failed
    "system_error",  # unexpected system error
]

MALFORMED: Final = ("front-matter-", "yaml-")
"""What the codes of all findings about the front matter's syntax begin with."""

BROKEN: Final = ("front-matter-not-", "yaml-")
"""What the codes of those begin with that may have lost a part of the front matter."""

NO_FIX: Final = "Correct the SKILL.md"


@dataclass(frozen=True, slots=True)
class SkillErrorDetails:
    """An error as the contract has it; the suggestions of a validation error are steps to fix it.

    ``creatable``: the error of a skill that does not exist lists those there are, and says how to
    create it.
    """

    type: SkillErrorType
    skill_name: str
    message: str
    suggestions: tuple[str, ...] = ()
    creatable: bool = False

    def text(self, listed: str) -> str:
        """Return the whole text; ``listed`` is the block of available skills."""
        if self.creatable:
            return (
                f"{self.message}\n\n{listed}\n\nTo create this skill:\n"
                f"1. Create directory ~/.wave/skills/{self.skill_name}/\n"
                "2. Add SKILL.md file with proper YAML frontmatter"
            )
        if self.suggestions:
            steps = "\n".join(f"- {fix}" for fix in self.suggestions)
            return (
                f"{self.message}\n\nFix by:\n{steps}\n\n"
                "Skill will be available after fixing these issues."
            )
        return self.message


def not_found(name: str, message: str, near: Sequence[str]) -> SkillErrorDetails:
    """Return the error of a name that nothing, or more than one skill, is found by."""
    suggestions = tuple(f"Did you mean '{ref}'?" for ref in near)
    return SkillErrorDetails("skill_not_found", shown(name), message, suggestions, creatable=True)


def not_available(name: str) -> SkillErrorDetails:
    """Return the error of a skill that keeps itself from models (NOTES.md, wave)."""
    message = f"Skill '{shown(name)}' is not available for model invocation."
    return SkillErrorDetails("skill_inaccessible", shown(name), message)


def invalid(name: str, problems: Sequence[Diagnostic]) -> SkillErrorDetails:
    """Return the error of a skill that was read and can't be used, with all its fixes."""
    errors = [problem for problem in problems if problem.severity == "error"] or list(problems)
    if any(problem.code == "description-missing" for problem in errors):
        # Broken front matter may be why: it is repaired as far as it can be read, with a warning.
        errors += [one for one in problems if one.code.startswith(BROKEN) and one not in errors]
    words = "; ".join(one_line(problem.message) for problem in errors) or "it can't be used"
    fixes = tuple(one_line(problem.fix) for problem in errors if problem.fix) or (NO_FIX,)
    kind: SkillErrorType = "skill_invalid"
    if any(problem.code == "unreadable" for problem in errors):
        kind = "skill_inaccessible"
    elif any(problem.code.startswith(MALFORMED) for problem in errors):
        kind = "skill_malformed"
    message = f"Skill '{shown(name)}' is invalid: {words}"
    return SkillErrorDetails(kind, shown(name), message, fixes)


def misnamed(name: str, ref: str, findings: Sequence[Diagnostic]) -> SkillErrorDetails:
    """Return the error of a skill in the folder ``name`` that has to be asked for as ``ref``.

    Broken front matter may be why; it is told then.
    """
    ref = one_line(shown(ref))
    broken = [one for one in findings if one.code.startswith(MALFORMED)]
    words = [f"name must match directory name: '{ref}' is not '{shown(name)}'"]
    words += [one_line(one.message) for one in broken]
    fixes = [one_line(one.fix) for one in broken if one.fix]
    fixes.append(f"Write `name: {shown(name)}` in the SKILL.md, or invoke '{ref}'")
    kind: SkillErrorType = "skill_malformed" if broken else "skill_invalid"
    message = f"Skill '{shown(name)}' is invalid: {'; '.join(words)}"
    return SkillErrorDetails(kind, shown(name), message, tuple(dict.fromkeys(fixes)))


def describe(name: str, error: Exception) -> SkillErrorDetails:
    """Return the error for what went wrong while a skill was read."""
    subject = shown(name)
    if isinstance(error, SkillInvalid):
        return invalid(name, error.facts["problems"])
    if isinstance(error, SkillMissing):
        return not_found(name, f"Skill '{subject}' not found.", ())
    if isinstance(error, SkillInaccessible | FileChanging):
        return SkillErrorDetails("skill_inaccessible", subject, str(error))
    if isinstance(error, FileTooLarge | NotUtf8):
        problem = Diagnostic(error.code, "error", str(error), fix=_FIXES[type(error)])
        return invalid(name, [problem])
    message = str(error) if isinstance(error, RegistryError) else f"Unexpected error: {error}"
    return SkillErrorDetails("system_error", subject, message)


_FIXES: Final[dict[type[RegistryError], str]] = {
    FileTooLarge: "Move parts of the SKILL.md into files beside it",
    NotUtf8: "Save the SKILL.md as UTF-8",
}
