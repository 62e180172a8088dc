"""The toolset `miniclaw` (docs/contributing/contracts.md)."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from registry.catalog.reading import read_text
from registry.db.read.skills import is_known
from registry.disk.paths import join
from registry.document.names import check_folder_name, check_snake_case, is_built_in
from registry.errors import (
    ChangeRefused,
    DatabaseProblem,
    InvalidName,
    RegistryError,
    SkillAmbiguous,
    SkillExists,
    SkillInvalid,
    SkillNotFound,
    SkillNotVisible,
    SkillProposed,
    SourceNotFound,
    SourceUnclear,
)
from registry.model import DOCUMENT_NAMES, Parameter, Skill, Source
from registry.sync.sources import find as find_source
from registry.sync.sources import target_source
from registry.text import shorten, utc_now
from registry.toolsets.base import Arguments, Context, Toolset, one_line, parameter, shown
from registry.toolsets.schemas import TYPES, Json, Tool, schema, text
from registry.toolsets.view import View

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
"""The variants of `SkillError` in the contract, with their messages."""


NO_WORKSPACE: Final = "The user has to choose a source, or register the folder above."

MAX_MESSAGE: Final = 900
"""Maximum length of a message, in characters."""


class SkillError(Exception):
    """An error of miniclaw's contract; ``type`` is the name of the variant."""

    def __init__(self, type: str, **facts: object) -> None:  # noqa: A002  # the contract's word
        message = MESSAGES[type].format_map(facts)
        super().__init__(shorten(message, MAX_MESSAGE).encode("utf-8", "replace").decode())
        self.type = type


def creating(name: str, path: str, error: RegistryError | OSError, *, known: bool) -> SkillError:
    """Return the contract's error that explains why ``path`` could not be created.

    ``known`` is True if a skill has the name, and False if only a folder on disk has it.
    """
    if isinstance(error, SkillExists):
        return SkillError("NameConflict" if known else "SkillAlreadyExists", name=name)
    if isinstance(error, InvalidName):
        return SkillError("InvalidName", name=name, reason=error.facts["reason"])
    if isinstance(error, ChangeRefused | SourceUnclear | SourceNotFound | OSError):
        return SkillError("DirectoryCreationFailed", path=path, source=_reason(error))
    return SkillError("FileWriteFailed", path=f"{path}/SKILL.md", source=_reason(error))


def failure(
    type: str,  # noqa: A002  # the name in the contract
    name: str,
    error: RegistryError | OSError,
    path: str = "",
) -> SkillError:
    """Return the contract's error for a failed read or deletion.

    Its variant is usually ``type``. If the error has no path, ``path`` is used.
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
    """Return the contract's error for an unknown or ambiguous name; None for another error."""
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
    """Return the reason in an error, on one line."""
    if isinstance(error, SourceUnclear) and error.facts["known"]:
        return one_line(f"{error} {NO_WORKSPACE}")
    if isinstance(error, OSError):
        return one_line(error.strerror or str(error))
    if isinstance(error, SkillInvalid):
        problems = error.facts["problems"]
        worst = [p.message for p in problems if p.severity == "error"]
        return one_line("; ".join(worst) or "it can't be used")
    return one_line(str(error.facts.get("reason") or error))


WORKSPACE: Final = "~/.miniclaw/workspace/skills"
"""The contract's folder for new skills."""

_TEXT: Final[Json] = {"type": "string"}

TOOLS: Final = (
    Tool(
        "create_skill",
        "Create a new reusable skill package",
        schema(
            {
                "name": text("Skill name (snake_case, unique)"),
                "description": text("What this skill does"),
                "parameters": {
                    "type": "array",
                    "description": "Parameter definitions",
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": _TEXT,
                            "type": {"type": "string", "enum": list(TYPES)},
                            "description": _TEXT,
                            "required": {"type": "boolean"},
                        },
                    },
                },
                "implementation": text("Implementation instructions or code"),
            },
            ["name", "description", "implementation"],
        ),
        read_only=False,
        idempotent=False,
    ),
    Tool("list_skills", "List all available skills", {"type": "object", "properties": {}}),
    Tool(
        "read_skill",
        "Read the full content of a skill",
        schema({"name": text("Name of the skill to read")}, ["name"]),
    ),
    Tool(
        "delete_skill",
        "Delete a user-created skill",
        schema({"name": text("Name of the skill to delete")}, ["name"]),
        read_only=False,
        destructive=True,
    ),
)

_CHECKS: Final = {tool.name: Arguments(tool.parameters) for tool in TOOLS}


class MiniclawToolset(Toolset):
    """The tools that create, list, read and delete skills, according to miniclaw's contract."""

    name = "miniclaw"

    def __init__(self, context: Context) -> None:
        super().__init__(context, TOOLS)
        self._core = context.core
        self._source = context.source
        self._view = View(context)

    def _unknown(self, tool: object) -> Json:
        problem = f"there is no tool '{shown(tool)}': {', '.join(self._tools)}"
        return _failed(SkillError("InvalidSchema", msg=problem))

    def _run(self, tool: str, arguments: Any) -> Json:
        actions = {
            "create_skill": self._create,
            "list_skills": self._list,
            "read_skill": self._read,
            "delete_skill": self._delete,
        }
        try:
            _check(tool, arguments)
            with self._core.explained():
                return {"success": True, **actions[tool](arguments)}
        except DatabaseProblem as problem:
            return _failed(failure("FileReadFailed", "", problem))
        except SkillError as error:
            return _failed(error)

    def _create(self, arguments: Json) -> Json:
        from registry.changes.create import create_files
        from registry.document.render import render_miniclaw
        from registry.publish.proposals import preview

        name = arguments["name"]
        reason = check_snake_case(name) or check_folder_name(name)
        if reason is not None:
            raise SkillError("InvalidName", name=shown(name), reason=reason)
        if is_built_in(name):
            raise SkillError("BuiltInToolConflict", name=name)
        created_at, message = utc_now(), "Skill created successfully"
        try:
            document = render_miniclaw(
                name=name,
                description=arguments["description"],
                parameters=_parameters(arguments.get("parameters", ())),
                implementation=arguments["implementation"],
                created_at=created_at,
            )
        except (ValueError, TypeError, RecursionError) as error:  # the default isn't valid JSON
            raise SkillError("InvalidSchema", msg=str(error)) from error
        path, data = os.path.join(os.path.expanduser(WORKSPACE), name), document.encode()
        most = self._core.settings.limits.document_bytes
        if len(data) > most:
            raise SkillError("InvalidSchema", msg=f"it has {len(data)} bytes, {most} are allowed")
        try:
            # the name must be unique, even if the new skill would be in another folder
            if self._view.skills(name):
                raise SkillError("NameConflict", name=name)
            source = self._home()
            path = os.path.join(source.path, name)
            files = {DOCUMENT_NAMES[0]: data}
            skill = create_files(self._core, source, name, name, files).skill
        except SkillProposed as proposed:
            skill, message = preview(self._core, proposed.id), str(proposed)
        except (RegistryError, OSError) as error:
            raise creating(name, path, error, known=self._is_known(name)) from error
        return {
            "message": message,
            "skill": _described(skill),
            "file_path": os.path.join(skill.path, DOCUMENT_NAMES[0]),
        }

    def _home(self) -> Source:
        """Return the source to write to. Raises `SourceUnclear`, `SourceNotFound`."""
        if self._source is None:
            with suppress(SourceNotFound):
                return find_source(self._core, WORKSPACE)
        return target_source(self._core, self._source)

    def _is_known(self, name: str) -> bool:
        try:
            return is_known(self._core.reader, name)
        except RegistryError:  # the database itself may be the problem
            return False

    def _list(self, _arguments: Json) -> Json:
        try:
            skills = self._view.skills()
        except RegistryError as error:
            raise failure("FileReadFailed", "", error) from error
        self._core.usage.listed(skills)
        newest_first = sorted(skills, key=lambda skill: skill.created_at, reverse=True)
        return {"skills": [_described(skill) for skill in newest_first]}

    def _read(self, arguments: Json) -> Json:
        name = arguments["name"]
        try:
            current = self._view.locate(name)
            content = read_text(self._core, current)
        except RegistryError as error:
            raise failure("FileReadFailed", name, error) from error
        self._core.usage.read(current.stored.skill.source, current.stored.folder)
        return {"name": name, "content": content}

    def _delete(self, arguments: Json) -> Json:
        from registry.changes.trash import delete

        name = arguments["name"]
        if is_built_in(name):
            raise SkillError("BuiltInSkillDeletion", name=name)
        path = ""
        try:
            stored = self._view.resolve(name, broken=True)
            path = stored.path
            if is_built_in(stored.skill.name):
                raise SkillError("BuiltInSkillDeletion", name=name)
            delete(self._core, stored)
        except SkillProposed as proposed:
            return {"message": str(proposed)}
        except (RegistryError, OSError) as error:
            raise failure("DirectoryRemovalFailed", name, error, path) from error
        return {"message": f"Skill '{shown(name)}' deleted successfully"}


def _failed(error: SkillError) -> Json:
    return {"success": False, "error": {"type": error.type, "message": str(error)}}


def _check(tool: str, arguments: Any) -> None:
    wrong = _CHECKS[tool].problem(arguments)
    if wrong is None:
        return
    name = arguments.get("name") if isinstance(arguments, Mapping) else None
    if tool != "list_skills" and not isinstance(name, str):
        raise SkillError("InvalidName", name=shown(name), reason=check_snake_case(""))
    raise SkillError("InvalidSchema", msg=wrong)


def _parameters(given: Sequence[Json]) -> list[Parameter]:
    """Return the parameters of a skill; missing keys get default values."""
    found: dict[str, Parameter] = {}
    for number, entry in enumerate(given, 1):
        name = str(entry.get("name", "")).strip()
        if not name:
            raise SkillError("InvalidSchema", msg=f"parameter {number} has no name")
        if name in found:
            raise SkillError("InvalidSchema", msg=f"there are two parameters '{shown(name)}'")
        found[name] = parameter(name, entry)
    return list(found.values())


def _described(skill: Skill) -> Json:
    return {"name": skill.ref, "description": skill.description, "created_at": skill.created_at}
