"""The toolset `ethos` (contracts/ethos-skills_list-skill_view.md; NOTES.md for texts)."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from registry.catalog.visibility.decisions import decide_all, personality
from registry.errors import DatabaseProblem, RegistryError, SkillAmbiguous
from registry.model import SCOPES, Skill
from registry.text import shorten
from registry.toolsets.base import Context, Json, Tool, one_line, schema, shown, text
from registry.toolsets.view import View

log = logging.getLogger(__name__)

LIST_CHARS: Final = 10_000
"""The contract's ``maxResultChars`` of `skills_list`."""

VIEW_CHARS: Final = 30_000
"""The contract's ``maxResultChars`` of `skill_view`."""

NONE_AVAILABLE: Final = "No skills available for this personality."

DESCRIPTION_CHARS: Final = 1024
"""Where the list is too long as a whole, no description takes more (Agent Skills specification)."""

TOOLS: Final = (
    Tool(
        "skills_list",
        "List the skills that are available to you: name, kind and description of each.",
        schema({}),
        meta={"toolset": "skills", "maxResultChars": LIST_CHARS, "capabilities": {}},
    ),
    Tool(
        "skill_view",
        "Read a skill: the full Markdown of its instructions. skills_list says which there are.",
        schema({"name": text("The skill's name, as skills_list has it")}, ["name"]),
        meta={"toolset": "skills", "maxResultChars": VIEW_CHARS, "capabilities": {}},
    ),
)


class EthosToolset:
    """What one personality sees of the registry; without one, all that is visible.

    Raises `PersonalityNotFound` where the settings don't know it, and `SourceNotFound`.
    """

    name = "ethos"

    def __init__(self, context: Context) -> None:
        self._view = View(context)
        if context.personality is not None and log.isEnabledFor(logging.INFO):
            chosen = personality(context.core.settings, context.personality)
            for skill, choice in decide_all(context.core.reader, chosen):
                if not choice.visible:
                    log.info("%s is filtered out: %s", one_line(skill.ref), choice.reason)

    def tools(self) -> Sequence[Tool]:
        """Return `skills_list` and `skill_view`."""
        return TOOLS

    def call(self, tool: str, arguments: Any) -> Json:
        """Run one tool; see `Toolset.call`."""
        try:
            with self._view.core.explained():
                if tool == "skills_list":
                    skills = self._view.skills()
                    self._view.core.usage.listed(skills)
                    return _value(list_text(skills))
                if tool == "skill_view":
                    return self._read(arguments)
        except RegistryError as error:
            return _error("not_available", str(error)[:LIST_CHARS])
        return _error("input_invalid", f'No tool "{shown(tool)}": skills_list, skill_view.')

    def _read(self, arguments: Any) -> Json:
        name = arguments.get("name") if isinstance(arguments, Mapping) else None
        if not isinstance(name, str) or not name:
            return _error("input_invalid", "name is required")
        refused = f'Skill "{shown(name)}" not found or not accessible.'
        try:
            found = self._view.find(name)
        except SkillAmbiguous as error:
            choices = ", ".join(error.facts["refs"])
            return _error(
                "not_available", f"{refused} Several have this name: {choices}."[:LIST_CHARS]
            )
        except DatabaseProblem:
            raise
        except RegistryError:  # whatever the reason, it tells nothing of what can't be listed
            return _error("not_available", refused)
        self._view.core.usage.read(found.source, found.folder)
        return _value(view_text((found.body or "").strip("\r\n").rstrip(), found.location))


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
    kind = f" [{one_line(skill.kind)}]" if skill.kind else ""
    description = one_line(skill.description)
    if longest is not None:
        description = shorten(description, longest)
    return f"- **{one_line(skill.ref)}**{kind}: {description}"


def _value(text: str) -> Json:
    return {"ok": True, "value": text}


def _error(code: str, text: str) -> Json:
    return {"ok": False, "code": code, "error": text}
