"""The toolset `ethos` (contracts/ethos-skills_list-skill_view.md; NOTES.md for texts)."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from registry.errors import RegistryError, SkillAmbiguous
from registry.model import SCOPES, Skill, SkillDetail
from registry.settings import Personality
from registry.tools.base import Context, Json, Tool, schema
from registry.visibility import decide_all
from registry.visibility import personality as personality_of

LIST_CHARS: Final = 10_000
"""The contract's ``maxResultChars`` of `skills_list`."""

VIEW_CHARS: Final = 30_000
"""The contract's ``maxResultChars`` of `skill_view`."""

NONE_AVAILABLE: Final = "No skills available for this personality."

DESCRIPTION_CHARS: Final = 1024
"""Where the list is too long as a whole, no description takes more (Agent Skills specification)."""

NAME_CHARS: Final = 200
"""An error repeats no more of a name that nothing is found by."""

_TOOLS: Final = (
    Tool(
        "skills_list",
        "List the skills that are available to you: name, kind and description of each.",
        schema({}),
    ),
    Tool(
        "skill_view",
        "Read a skill: the full Markdown of its instructions. skills_list says which there are.",
        schema(
            {"name": {"type": "string", "description": "The skill's name, as skills_list has it"}},
            ["name"],
        ),
    ),
)


def make(context: Context, environ: Mapping[str, str] = os.environ) -> "EthosToolset":
    """Return the toolset for the context's personality.

    Raises `PersonalityNotFound` where the settings don't know it.
    """
    return EthosToolset(context, environ)


class EthosToolset:
    """What one personality sees of the registry; without one, all that is visible."""

    name = "ethos"

    def __init__(self, context: Context, environ: Mapping[str, str]) -> None:
        self._registry = context.registry
        self._environ = environ
        self._personality: Personality | None = None
        if context.personality is not None:
            self._personality = personality_of(context.registry.settings, context.personality)

    def tools(self) -> Sequence[Tool]:
        """Return `skills_list` and `skill_view`."""
        return _TOOLS

    def call(self, tool: str, arguments: Any) -> Json:
        """Run one tool; see `Toolset.call`."""
        try:
            if tool == "skills_list":
                return _value(list_text(self._seen()))
            if tool == "skill_view":
                return self._view(arguments)
        except RegistryError as error:
            return _error("not_available", str(error)[:LIST_CHARS])
        return _error("input_invalid", f'No tool "{_shown(tool)}": skills_list, skill_view.')

    def _view(self, arguments: Any) -> Json:
        name = arguments.get("name") if isinstance(arguments, Mapping) else None
        if not isinstance(name, str) or not name:
            return _error("input_invalid", "name is required")
        refused = f'Skill "{_shown(name)}" not found or not accessible.'
        try:
            found = self._find(name)
        except SkillAmbiguous as error:
            choices = ", ".join(error.facts["refs"])  # type: ignore[arg-type]
            return _error(
                "not_available", f"{refused} Several have this name: {choices}."[:LIST_CHARS]
            )
        if found is None:
            return _error("not_available", refused)
        return _value(view_text((found.body or "").strip("\r\n").rstrip(), found.location))

    def _seen(self, name: str | None = None) -> list[Skill]:
        decided = decide_all(self._registry.reader, self._personality, self._environ, name=name)
        return [skill for skill, decision in decided if decision.visible]

    def _find(self, handle: str) -> SkillDetail | None:
        """Return what the handle means to this personality, as it is on disk now.

        A name that means something else, or several things, to the whole registry may still mean
        just one of the skills seen here. Raises `SkillAmbiguous` where it means several of those.
        """
        found = self._current(handle)
        if found is not None:
            return found
        named = self._seen(handle)
        if len(named) > 1:
            raise SkillAmbiguous(handle, [skill.ref for skill in named])
        return self._current(named[0].ref) if named else None

    def _current(self, handle: str) -> SkillDetail | None:
        """Read the skill and only then judge it: reading may have found it changed."""
        try:
            detail = self._registry.get(handle)
        except RegistryError:
            return None
        place = detail.source, detail.folder
        seen = any((skill.source, skill.folder) == place for skill in self._seen(detail.name))
        return detail if seen else None


def list_text(skills: Sequence[Skill], limit: int = LIST_CHARS) -> str:
    """Return the list of skills, at most ``limit`` characters.

    Where not all fit, skills of the strongest scopes stay; the text says how many are missing.
    """
    if not skills:
        return NONE_AVAILABLE
    head = f"{len(skills)} skills available:\n\n"
    bullets: list[str] = []
    room = limit - len(head) + 1
    for skill in skills:
        bullets.append(_bullet(skill))
        room -= len(bullets[-1]) + 1
        if room < 0:
            return _cut_list(head, skills, limit)
    return head + "\n".join(bullets)


def _cut_list(head: str, skills: Sequence[Skill], limit: int) -> str:
    room = limit - len(head) - len(_rest(len(skills), len(skills), limit))
    kept: dict[int, str] = {}
    for index in sorted(range(len(skills)), key=lambda i: SCOPES.index(skills[i].scope)):
        bullet = _bullet(skills[index], DESCRIPTION_CHARS)
        room -= len(bullet) + 1
        if room < 0:
            break
        kept[index] = bullet
    shown = "".join(f"{kept[index]}\n" for index in sorted(kept))
    return head + shown + _rest(len(skills) - len(kept), len(skills), limit)


def _rest(missing: int, total: int, limit: int) -> str:
    if not missing:
        what = "Long descriptions are shortened"
        how = "skill_view(name) shows a skill whole."
    else:
        what = f"{missing} of {total} skills are not shown"
        how = "skill_view(name) reads those too."
    return f"\n({what}: this list holds at most {limit} characters. {how})"


def view_text(body: str, location: str, limit: int = VIEW_CHARS) -> str:
    """Return a body of at most ``limit`` characters, cut after a line where it is longer."""
    if len(body) <= limit:
        return body
    lines = body.count("\n") + 1
    room = limit - len(_cut(lines, lines, location))
    end = body.rfind("\n", 0, room + 1)
    shown = body[: end if end > 0 else room]
    return shown + _cut(shown.count("\n") + 1, lines, location)


def _cut(line: int, lines: int, location: str) -> str:
    return f"\n\n[Cut after line {line} of {lines}. The whole text is in {location}]"


def _bullet(skill: Skill, longest: int | None = None) -> str:
    kind = f" [{_line(skill.kind)}]" if skill.kind else ""
    description = _line(skill.description)
    if longest is not None and len(description) > longest:
        description = description[: longest - 1].rstrip() + "…"
    return f"- **{_line(skill.ref)}**{kind}: {description}"


def _line(text: str) -> str:
    return " ".join(text.split())


def _shown(name: object) -> str:
    text = str(name).encode("utf-8", "replace").decode()
    return text if len(text) <= NAME_CHARS else text[:NAME_CHARS] + "…"


def _value(text: str) -> Json:
    return {"ok": True, "value": text}


def _error(code: str, text: str) -> Json:
    return {"ok": False, "code": code, "error": text}
