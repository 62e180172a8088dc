"""The toolset `wave` (contracts/wave-Skill.md; NOTES.md, wave)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from registry.errors import RegistryError, SkillAmbiguous, SkillNotFound, SkillNotVisible
from registry.text import shorten
from registry.toolsets.base import Context, Json, Tool, one_line, schema, shown, text
from registry.toolsets.view import View
from registry.toolsets.wave_errors import SkillErrorDetails, describe, not_available, not_found
from registry.toolsets.wave_skills import SkillManager, kind_of

DESCRIPTION: Final = "Invoke skills based on available skill metadata. Skills: "
NONE_AVAILABLE: Final = "No skills are currently available."

BRIEF: Final = 100
"""Characters of a description in the short result."""

MAX_LISTED: Final = 50
"""Skills that an error lists: those with near names first, then by name."""

_PARAMETERS: Final[Json] = {
    **schema(
        {"skill_name": text("Name of the skill to invoke from available skills")}, ["skill_name"]
    ),
    "additionalProperties": False,
}

TOOLS: Final = (
    Tool("Skill", "Invoke a skill to apply specialized expertise and capabilities", _PARAMETERS),
)


class WaveToolset:
    """One tool, `Skill`, whose description carries the list of skills as it is now."""

    name = "wave"

    def __init__(self, context: Context) -> None:
        self._view = View(context)
        self.skills = SkillManager(self._view)

    def tools(self) -> Sequence[Tool]:
        """Return `Skill` with its live list."""
        with self._view.core.explained():
            return (replace(TOOLS[0], description=self.description()),)

    def description(self) -> str:
        """Return the tool's description with a line for each skill."""
        offers = self._view.offers()
        self._view.core.usage.listed(offers)
        return DESCRIPTION + (
            "\n".join(
                f"\u2022 **{ref}** ({kind_of(scope)}): {one_line(description)}"
                for ref, scope, description, _, _ in offers
            )
            or NONE_AVAILABLE
        )

    def call(self, tool: str, arguments: Any) -> Json:
        """Run `Skill`; see `Toolset.call`."""
        name = arguments.get("skill_name") if isinstance(arguments, Mapping) else None
        problem = _misuse(tool, arguments)
        if problem is not None:
            return self._failed(SkillErrorDetails("skill_not_found", shown(name), problem))
        try:
            skill = self.skills.read(str(name))
        except Exception as error:  # noqa: BLE001  # the contract's "Unexpected system error"
            return self._failed(*self._details(str(name), error))
        self._view.core.usage.read(skill.source, skill.folder)
        return {
            "success": True,
            "content": (
                f"Skill: {skill.ref} (Type: {kind_of(skill.scope)})\nPath: {skill.path}\n\n"
                f"{skill.text}"
            ),
            "shortResult": f"{skill.ref}: {shorten(one_line(skill.description), BRIEF)}",
        }

    def _details(self, name: str, error: Exception) -> tuple[SkillErrorDetails, Sequence[str]]:
        """Return the contract's error, and the refs of the skills to list first."""
        if isinstance(error, SkillNotVisible) and error.facts["rule"] == "hidden":
            return not_available(name), ()
        if isinstance(error, SkillNotFound | SkillNotVisible):
            known: Any = error.facts.get("similar")
            near = self._view.near(name) if known is None else list(known)
            return not_found(name, f"Skill '{shown(name)}' not found.", near), near
        if isinstance(error, SkillAmbiguous):
            refs = list(error.facts["refs"])
            return not_found(name, f"Skill '{shown(name)}' is ambiguous.", refs), refs
        return describe(name, error), ()

    def _failed(self, details: SkillErrorDetails, first: Sequence[str] = ()) -> Json:
        """Answer with an error; skills of ``first`` stand first in its list."""
        listed, names = self._listed(first)
        message = details.text(listed)
        content = f"Error invoking skill '{details.skill_name}': {message}"
        if not details.creatable:
            content += f"\n\n{listed}"
        return {
            "success": False,
            "content": content,
            "error": message,
            "errorDetails": {
                "type": details.type,
                "skillName": details.skill_name,
                "message": details.message,
                "suggestions": list(details.suggestions),
                "availableSkills": names,
            },
        }

    def _listed(self, first: Sequence[str]) -> tuple[str, list[str]]:
        """Return the contract's block of available skills, and the refs in it."""
        try:
            offers, total = self._view.some_offers(first, MAX_LISTED)
        except RegistryError:  # the database itself is what failed
            offers, total = [], 0
        if not offers:
            return f"Available skills:\n{NONE_AVAILABLE}", []
        lines = [f"- {offer.ref}: {one_line(offer.description)}" for offer in offers]
        if total > len(offers):
            lines.append(f"- \u2026 and {total - len(offers)} more: see the tool's description")
        return "Available skills:\n" + "\n".join(lines), [offer.ref for offer in offers]


def _misuse(tool: str, arguments: Any) -> str | None:
    """Say what is wrong with a call, or None."""
    if tool != "Skill":
        return f"There is no tool '{shown(tool)}': the only one is Skill."
    if not isinstance(arguments, Mapping) or "skill_name" not in arguments:
        return "skill_name is required."
    if not isinstance(arguments["skill_name"], str) or not arguments["skill_name"].strip():
        return "skill_name must be the name of a skill."
    unknown = [key for key in arguments if key != "skill_name"]
    if unknown:
        return f"Unknown argument '{shown(unknown[0])}': Skill takes only skill_name."
    return None
