"""The toolset `wave` (contracts/wave-Skill.md; NOTES.md, wave)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from registry.db.read import skills as stored_skills
from registry.errors import (
    RegistryError,
    SkillAmbiguous,
    SkillInvalid,
    SkillNotFound,
    SkillNotVisible,
)
from registry.text import shorten
from registry.toolsets.base import Context, Json, Tool, one_line, schema, shown, text
from registry.toolsets.fitting import Line, fit, strongest
from registry.toolsets.toolset import Toolset
from registry.toolsets.view import View
from registry.toolsets.wave_errors import (
    SkillErrorDetails,
    describe,
    misnamed,
    not_available,
    not_found,
)
from registry.toolsets.wave_skills import SkillManager, kind_of

DESCRIPTION: Final = "Invoke skills based on available skill metadata. Skills: "
NONE_AVAILABLE: Final = "No skills are currently available."

BRIEF: Final = 100
"""Characters of a description in the short result."""

MAX_LISTED: Final = 50
"""Skills that an error lists: those with near names first, then by name."""

KEPT_FROM_MODELS: Final = ("hidden", "held")
"""Rules by which a skill is not shown to any model, though it is there."""

_PARAMETERS: Final[Json] = {
    **schema(
        {"skill_name": text("Name of the skill to invoke from available skills")}, ["skill_name"]
    ),
    "additionalProperties": False,
}

TOOLS: Final = (
    Tool("Skill", "Invoke a skill to apply specialized expertise and capabilities", _PARAMETERS),
)


class WaveToolset(Toolset):
    """One tool, `Skill`, whose description carries the list of skills as it is now."""

    name = "wave"

    def __init__(self, context: Context) -> None:
        super().__init__(context, TOOLS)
        self._view = View(context)
        self.skills = SkillManager(self._view)

    def _current(self) -> Sequence[Tool]:
        with self._view.core.explained():
            return (replace(TOOLS[0], description=self.description()),)

    def description(self) -> str:
        """Return the tool's description with a line for each skill.

        It keeps within the setting ``tool_description_chars``: see `fit`. The text says so.
        """
        limit = self._view.core.settings.tool_description_chars
        offers = self._view.offers()
        self._view.core.usage.listed(offers)
        lines = [
            Line(f"\u2022 **{one_line(ref)}** ({kind_of(scope)})", one_line(description), scope)
            for ref, scope, description, _, _ in strongest(offers, limit)
        ]
        whole = DESCRIPTION + ("\n".join(line.text() for line in lines) or NONE_AVAILABLE)
        if len(whole) <= limit:
            return whole
        fitted = fit(lines, limit - len(DESCRIPTION) - len(_rest(len(offers), 0)))
        note = _rest(len(offers) - len(fitted.lines), fitted.longest)
        return DESCRIPTION + "".join(f"{line}\n" for line in fitted.lines) + note

    def _unknown(self, tool: object) -> Json:
        problem = f"There is no tool '{shown(tool)}': the only one is Skill."
        return self._failed(SkillErrorDetails("skill_not_found", "", problem))

    def _run(self, _tool: str, arguments: Any) -> Json:
        name = arguments.get("skill_name") if isinstance(arguments, Mapping) else None
        problem = _misuse(arguments)
        if problem is not None:
            return self._failed(SkillErrorDetails("skill_not_found", shown(name), problem))
        try:
            skill = self.skills.read(str(name))
        except Exception as error:  # noqa: BLE001  # the contract's "Unexpected system error"
            details, first = self._details(str(name), error)
            facts = error.facts if isinstance(error, RegistryError) else {}
            return self._failed(details, first, but={str(name), facts.get("name")})
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
        if isinstance(error, SkillNotVisible) and error.facts["rule"] in KEPT_FROM_MODELS:
            return not_available(name), ()
        there = self._in_folder(name) if isinstance(error, SkillNotFound) else None
        if there is not None:
            return there, ()
        if isinstance(error, SkillNotFound | SkillNotVisible):
            known: Any = error.facts.get("similar")  # what is gone has none
            near = list(known) if known else self._view.near(name)
            return not_found(name, f"Skill '{shown(name)}' not found.", near), near
        if isinstance(error, SkillAmbiguous):
            refs = list(error.facts["refs"])
            return not_found(name, f"Skill '{shown(name)}' is ambiguous.", refs), refs
        return describe(name, error), ()

    def _in_folder(self, name: str) -> SkillErrorDetails | None:
        """Return what is wrong with a skill that is called otherwise than its folder, ``name``.

        None: there is no such folder, so that one may be created.
        """
        try:
            found = self._view.in_folder(name)
        except SkillInvalid as error:
            return describe(name, error)
        except SkillNotVisible:
            return not_available(name)
        except RegistryError:  # the database itself is what failed
            return None
        if found is None:
            return None
        findings = stored_skills.findings(self._view.core.reader, found.stored.id)
        return misnamed(name, found.stored.skill.ref, findings)

    def _failed(
        self,
        details: SkillErrorDetails,
        first: Sequence[str] = (),
        but: Collection[str | None] = (),
    ) -> Json:
        """Answer with an error; skills of ``first`` stand first in its list, and none of ``but``.

        What was asked for is no alternative to itself: it may be gone since the last sync.
        """
        listed, names = self._listed(first, but)
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

    def _listed(self, first: Sequence[str], but: Collection[str | None]) -> tuple[str, list[str]]:
        """Return the contract's block of available skills, and the refs in it."""
        try:
            found, total = self._view.some_offers(first, MAX_LISTED)
        except RegistryError:  # the database itself is what failed
            found, total = [], 0
        offers = [offer for offer in found if offer.ref not in but]
        total -= len(found) - len(offers)
        if not offers:
            return f"Available skills:\n{NONE_AVAILABLE}", []
        lines = [f"- {offer.ref}: {one_line(offer.description)}" for offer in offers]
        if total > len(offers):
            lines.append(f"- \u2026 and {total - len(offers)} more")
        return "Available skills:\n" + "\n".join(lines), [offer.ref for offer in offers]


def _rest(missing: int, longest: int) -> str:
    """Say what of the list is not in it; with nothing missing it is no longer than with it."""
    if missing:
        return f"(Only names are listed, and {missing} more skills not even by name.)"
    return "(Long descriptions are shortened.)" if longest else "(Only names are listed.)"


def _misuse(arguments: Any) -> str | None:
    """Say what is wrong with a call, or None."""
    if not isinstance(arguments, Mapping) or "skill_name" not in arguments:
        return "skill_name is required."
    if not isinstance(arguments["skill_name"], str) or not arguments["skill_name"].strip():
        return "skill_name must be the name of a skill."
    unknown = [key for key in arguments if key != "skill_name"]
    if unknown:
        return f"Unknown argument '{shown(unknown[0])}': Skill takes only skill_name."
    return None
