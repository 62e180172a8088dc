"""The toolset `ethos` (docs/contributing/contracts.md)."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from registry.catalog.visibility.decisions import decisions, personality
from registry.errors import DatabaseProblem, RegistryError, SkillAmbiguous
from registry.model import Skill
from registry.toolsets.base import Context, Toolset, one_line, shown
from registry.toolsets.fitting import SkillLine, fit, strongest
from registry.toolsets.schemas import Json, Tool, schema, text
from registry.toolsets.view import View

log = logging.getLogger(__name__)

LIST_CHARS: Final = 10_000
"""Maximum length of an answer of `skills_list`, in characters (``maxResultChars``)."""

VIEW_CHARS: Final = 30_000
"""Maximum length of an answer of `skill_view`, in characters (``maxResultChars``)."""

NONE_AVAILABLE: Final = "No skills available for this personality."

NAME: Final = (
    "Skill name (matches the name: field in the skill's frontmatter; not the directory id, though "
    "they're typically identical)"
)
"""The contract's description of the parameter `name`."""

TOOLS: Final = (
    Tool(
        "skills_list",
        "List the skills that are available to you: name, kind and description of each.",
        schema({}),
        meta={"toolset": "skills", "maxResultChars": LIST_CHARS, "capabilities": {}},
    ),
    Tool(
        "skill_view",
        "Read a skill: the full Markdown of its instructions. skills_list names them all.",
        schema({"name": text(NAME)}, ["name"]),
        meta={"toolset": "skills", "maxResultChars": VIEW_CHARS, "capabilities": {}},
    ),
)


class EthosToolset(Toolset):
    """The toolset for the skills that one personality sees.

    Without a personality, it shows all visible skills. A personality gets only the tools in its
    ``toolset``. Raises `PersonalityNotFound` and `SourceNotFound`.
    """

    name = "ethos"

    def __init__(self, context: Context) -> None:
        self._view = View(context)
        if context.personality is None:
            super().__init__(context, TOOLS)
            return
        chosen = personality(context.core.settings, context.personality)
        super().__init__(context, [tool for tool in TOOLS if tool.name in chosen.toolset])
        if log.isEnabledFor(logging.INFO):
            for _, skill, choice in decisions(context.core.reader, chosen):
                if not choice.visible:
                    log.info("%s is filtered out: %s", one_line(skill.ref), choice.reason)

    def _unknown(self, tool: object) -> Json:
        return _error("input_invalid", _missing(tool, list(self._tools)))

    def _run(self, tool: str, arguments: Any) -> Json:
        try:
            with self._view.core.explained():
                if tool == "skills_list":
                    skills = self._view.skills()
                    self._view.core.usage.listed(skills)
                    return _value(list_text(skills))
                return self._read(arguments)
        except RegistryError as error:
            return _error("not_available", str(error)[:LIST_CHARS])

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
        except RegistryError:  # one answer for all errors: it must not reveal a hidden skill
            return _error("not_available", refused)
        self._view.core.usage.read(found.source, found.folder)
        return _value(view_text((found.body or "").strip("\r\n").rstrip(), found.location))


def list_text(skills: Sequence[Skill], limit: int = LIST_CHARS) -> str:
    """Return the list of skills in at most ``limit`` characters.

    If the list is too long, descriptions are shortened first, then skills are left out (see `fit`).
    A note in the list mentions this.
    """
    if not skills:
        return NONE_AVAILABLE
    total = len(skills)
    head = f"{total} skills available:\n\n"
    lines = [_line(skill) for skill in strongest(skills, limit)]
    whole = head + "\n".join(line.text() for line in lines)
    if len(whole) <= limit:
        return whole
    ends = [
        _rest(missing, total, limit, longest) for missing, longest in ((total, 0), (0, 0), (0, 1))
    ]
    fitted, longest = fit(lines, limit - len(head) - max(map(len, ends)))
    shown = "".join(f"{line}\n" for line in fitted)
    return head + shown + _rest(total - len(fitted), total, limit, longest)


def _rest(missing: int, total: int, limit: int, longest: int) -> str:
    what = "Long descriptions are shortened" if longest else "Descriptions are left out"
    how = "skill_view(name) shows a skill whole."
    if missing:
        what = f"{missing} of {total} skills are not shown"
        how = "skill_view(name) reads those too."
    return f"\n({what}: this list holds at most {limit} characters. {how})"


def view_text(body: str, location: str, limit: int = VIEW_CHARS) -> str:
    """Return a body in at most ``limit`` characters; it is cut at the end of a line."""
    if len(body) <= limit:
        return body
    lines = body.count("\n") + 1
    room = limit - len(_cut(lines, lines, location))
    end = body.rfind("\n", 0, room + 1)
    shown = body[: end if end > 0 else room]
    return shown + _cut(shown.count("\n") + 1, lines, location)


def _cut(line: int, lines: int, location: str) -> str:
    return f"\n\n[Cut after line {line} of {lines}. The whole text is in {location}]"


def _line(skill: Skill) -> SkillLine:
    kind = f" [{one_line(skill.kind)}]" if skill.kind else ""
    head = f"- **{one_line(skill.ref)}**{kind}"
    return SkillLine(head, one_line(skill.description), skill.scope)


def _missing(tool: object, known: Sequence[str]) -> str:
    why = ", ".join(known)
    if tool in [one.name for one in TOOLS]:
        why = "this personality's toolset does not have it"
    return f'No tool "{shown(tool)}": {why or "this personality has none"}.'


def _value(text: str) -> Json:
    return {"ok": True, "value": text}


def _error(code: str, text: str) -> Json:
    return {"ok": False, "code": code, "error": text}
