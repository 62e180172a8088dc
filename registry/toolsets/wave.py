"""The toolset `wave` (docs/contributing/contracts.md)."""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias

from registry.catalog.reading import current_detail, read_text, unusable
from registry.db.read import skills as stored_skills
from registry.db.read.sources import list_sources
from registry.disk.files import open_home, read_below, read_file
from registry.disk.links import real_path
from registry.disk.paths import ROOT, join
from registry.errors import (
    FileChanging,
    FileTooLarge,
    NotUtf8,
    RegistryError,
    SkillAmbiguous,
    SkillInaccessible,
    SkillInvalid,
    SkillMissing,
    SkillNotFound,
    SkillNotVisible,
)
from registry.model import Diagnostic, Document, JsonValue, Scope, Skill
from registry.settings import Limits
from registry.text import shorten
from registry.toolsets.base import Context, Toolset, one_line, shown
from registry.toolsets.fitting import SkillLine, fit, strongest
from registry.toolsets.schemas import Json, Tool, schema, text
from registry.toolsets.view import View

SkillErrorType: TypeAlias = Literal[
    "skill_not_found",  # requested skill doesn't exist
    "skill_invalid",  # skill failed validation
    "skill_inaccessible",  # file system access denied
    "skill_malformed",  # YAML parsing failed
    "system_error",  # unexpected system error
]

MALFORMED: Final = ("front-matter-", "yaml-")
"""Prefixes of codes of findings about the syntax of a front matter."""

BROKEN: Final = ("front-matter-not-", "yaml-")
"""Prefixes of codes of findings which mean that values of the front matter may be lost."""

NO_FIX: Final = "Correct the SKILL.md"


@dataclass(frozen=True, slots=True)
class SkillErrorDetails:
    """An error of the contract.

    The suggestions of a validation error are the steps to fix it. If ``creatable``, the skill
    doesn't exist. The text then lists the available skills, and explains how to create this skill.
    """

    type: SkillErrorType
    skill_name: str
    message: str
    suggestions: tuple[str, ...] = ()
    creatable: bool = False

    def text(self, listed: str) -> str:
        """Return the whole text of the error; ``listed`` is the text with the available skills."""
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
    """Return the contract's error for an unknown or ambiguous name."""
    suggestions = tuple(f"Did you mean '{ref}'?" for ref in near)
    return SkillErrorDetails("skill_not_found", shown(name), message, suggestions, creatable=True)


def not_available(name: str) -> SkillErrorDetails:
    """Return the contract's error for a skill that is hidden from models."""
    message = f"Skill '{shown(name)}' is not available for model invocation."
    return SkillErrorDetails("skill_inaccessible", shown(name), message)


def invalid(name: str, problems: Sequence[Diagnostic]) -> SkillErrorDetails:
    """Return the contract's error for an invalid skill, with the fixes of all its problems."""
    errors = [problem for problem in problems if problem.severity == "error"] or list(problems)
    if any(problem.code == "description-missing" for problem in errors):
        # If the description is missing, broken front matter may be the cause, because the parser
        # repaired it only as far as possible.
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
    """Return the contract's error for a skill in the folder ``name`` that has the ref ``ref``.

    Findings about broken front matter are part of the text, because they may explain the
    difference.
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
    """Return the contract's error for an error that occurred while reading a skill."""
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


SkillType: TypeAlias = Literal["personal", "project"]

_KEPT: Final = ".wave/skills"

NAME: Final = re.compile(r"[a-z0-9-]+")
MAX_CHARS: Final = 1024
"""Maximum length of a description, in characters ("SKILL.md Contract")."""


@dataclass(frozen=True, slots=True)
class SkillMetadata:
    """A skill in a list; ``skill_path`` is the path of the skill's folder."""

    name: str
    description: str
    type: SkillType
    skill_path: str


@dataclass(frozen=True, slots=True)
class SkillError:
    """An unusable skill, with the reason."""

    skill_path: str
    message: str


@dataclass(frozen=True, slots=True)
class SkillDiscoveryResult:
    """All usable skills by the names with which models invoke them, and the unusable skills."""

    personal_skills: Mapping[str, SkillMetadata]
    project_skills: Mapping[str, SkillMetadata]
    errors: tuple[SkillError, ...]


@dataclass(frozen=True, slots=True)
class ParsedSkillFile:
    """A SKILL.md after the check by the contract's rules.

    These rules are stricter than the registry's rules. ``content`` is the Markdown after the front
    matter.
    """

    frontmatter: Mapping[str, JsonValue]
    content: str
    skill_metadata: SkillMetadata
    validation_errors: tuple[str, ...]
    is_valid: bool


def kind_of(scope: Scope) -> SkillType:
    """Return a skill's type in the contract.

    A skill of a project has the type for projects. All other skills have the type for users.
    """
    return "project" if scope == "project" else "personal"


class SkillManager:
    """Finds and loads skills; threads can share it, and it stores nothing between calls."""

    def __init__(self, view: View) -> None:
        self._view = view

    def initialize(self) -> SkillDiscoveryResult:
        """Return all available skills from the database."""
        found: dict[SkillType, dict[str, SkillMetadata]] = {"personal": {}, "project": {}}
        for skill in self.available_skills():
            found[skill.type][skill.name] = skill
        return SkillDiscoveryResult(found["personal"], found["project"], tuple(self._errors()))

    def available_skills(self) -> list[SkillMetadata]:
        """Return the skills that models can invoke, by name."""
        known = list_sources(self._view.core.reader, counted=False)
        roots = {source.name: source.path for source in known}
        return [
            SkillMetadata(ref, description, kind_of(scope), join(roots[source], folder))
            for ref, scope, description, source, folder in self._view.offers()
        ]

    def load_skill(self, name: str) -> Skill | None:
        """Return a skill, read from disk; None if no visible skill has this name."""
        try:
            return self.read(name)[0]
        except RegistryError:
            return None

    def read(self, name: str) -> tuple[Skill, str]:
        """Return a skill and its SKILL.md, read from disk. Raises the errors of `View.find`."""
        core, current = self._view.core, self._view.locate(name)
        text = read_text(core, current)
        is_stored = not current.is_behind and current.version is None
        return current.stored.skill if is_stored else current_detail(core, current), text

    def _errors(self) -> Iterator[SkillError]:
        for stored in self._view.broken():
            why = unusable(self._view.core.reader, stored, stored.skill.ref)
            yield SkillError(stored.path, why.facts["problems"][0].message)


def parse_skill_file(path: str, limits: Limits | None = None) -> ParsedSkillFile:
    """Read a SKILL.md and check it by the contract's rules.

    The result lists problems as validation errors. ``limits.document_bytes`` is the maximum number
    of bytes to read. The skill belongs to a project if its folder is in `.wave/skills` outside the
    user's home folder. Raises `SkillInaccessible` if the file doesn't exist or can't be read, and
    `FileTooLarge`.
    """
    from registry.document.parse import parse_document

    path = os.path.abspath(path)
    folder = os.path.dirname(path)
    name = os.path.basename(folder)
    try:
        data = _read(path, (limits or Limits()).document_bytes)
    except FileNotFoundError as error:
        raise SkillInaccessible(path=path, reason="there is no such file") from error
    document = parse_document(data, folder_name=name)
    errors = tuple(dict.fromkeys(_violations(document, name)))
    home = os.path.join(os.path.expanduser("~"), _KEPT)
    project = _KEPT in folder and not folder.startswith(home + os.sep)
    return ParsedSkillFile(
        frontmatter=document.front_matter,
        content=document.body,
        skill_metadata=SkillMetadata(
            document.name, document.description, "project" if project else "personal", folder
        ),
        validation_errors=errors,
        is_valid=not errors,
    )


def _read(path: str, limit: int) -> bytes:
    """Read a SKILL.md; in a skills folder of wave, links are not followed."""
    above, kept, below = path.rpartition(f"/{_KEPT}/")
    if not kept:
        return read_file(path, limit).data
    folder, _, name = below.rpartition("/")
    with open_home(real_path(f"{above}/{_KEPT}"), folder or ROOT) as home:
        return read_below(home, name, limit).data


def _violations(document: Document, folder: str) -> Iterator[str]:
    """Yield the broken rules of the contract ("Validation Contract")."""
    for finding in document.diagnostics:
        front = finding.code.startswith(("front-matter-", "yaml-"))
        if finding.severity == "error" or (front and finding.severity == "warning"):
            yield finding.message
    name = document.front_matter.get("name")
    if not isinstance(name, str) or not name:
        yield "name is required"
    else:
        if not NAME.fullmatch(name):
            yield "name must be lowercase letters, numbers, hyphens only"
        if name != folder:
            yield f"name must match directory name: '{name}' is not '{folder}'"
    description = document.front_matter.get("description")
    if not isinstance(description, str) or not description.strip():
        yield "description is required"
    elif len(description) > MAX_CHARS:
        yield f"description must be 1-{MAX_CHARS} characters, not {len(description)}"


DESCRIPTION: Final = "Invoke skills based on available skill metadata. Skills: "
NONE_AVAILABLE: Final = "No skills are currently available."

BRIEF: Final = 100
"""Maximum length of a description in the short form of a result, in characters."""

MAX_LISTED: Final = 50
"""Maximum number of skills in an error.

Skills with similar names come first, then the others by name.
"""

KEPT_FROM_MODELS: Final = ("hidden", "held", "yanked")
"""Rules that hide a skill from all models."""

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
    """The toolset with one tool, `Skill`; the tool's description contains the current skills."""

    name = "wave"

    def __init__(self, context: Context) -> None:
        super().__init__(context, TOOLS)
        self._view = View(context)
        self.skills = SkillManager(self._view)

    def _current(self) -> Sequence[Tool]:
        with self._view.core.explained():
            return (replace(TOOLS[0], description=self.description()),)

    def description(self) -> str:
        """Return the tool's description, with a line for each skill.

        The setting ``tool_description_chars`` limits its length (see `fit`). If skills or
        descriptions are left out, the description mentions this.
        """
        limit = self._view.core.settings.tool_description_chars
        offers = self._view.offers()
        self._view.core.usage.listed(offers)
        lines = [
            SkillLine(
                f"\u2022 **{one_line(ref)}** ({kind_of(scope)})", one_line(description), scope
            )
            for ref, scope, description, _, _ in strongest(offers, limit)
        ]
        whole = DESCRIPTION + ("\n".join(line.text() for line in lines) or NONE_AVAILABLE)
        if len(whole) <= limit:
            return whole
        fitted, longest = fit(lines, limit - len(DESCRIPTION) - len(_rest(len(offers), 0)))
        note = _rest(len(offers) - len(fitted), longest)
        return DESCRIPTION + "".join(f"{line}\n" for line in fitted) + note

    def _unknown(self, tool: object) -> Json:
        problem = f"There is no tool '{shown(tool)}': the only one is Skill."
        return self._failed(SkillErrorDetails("skill_not_found", "", problem))

    def _run(self, _tool: str, arguments: Any) -> Json:
        name = arguments.get("skill_name") if isinstance(arguments, Mapping) else None
        problem = _misuse(arguments)
        if problem is not None:
            return self._failed(SkillErrorDetails("skill_not_found", shown(name), problem))
        try:
            skill, content = self.skills.read(str(name))
        except Exception as error:  # noqa: BLE001  # the contract's "Unexpected system error"
            details, first = self._details(str(name), error)
            facts = error.facts if isinstance(error, RegistryError) else {}
            return self._failed(details, first, but={str(name), facts.get("name")})
        self._view.core.usage.read(skill.source, skill.folder)
        return {
            "success": True,
            "content": (
                f"Skill: {skill.ref} (Type: {kind_of(skill.scope)})\nPath: {skill.path}\n\n"
                f"{content}"
            ),
            "shortResult": f"{skill.ref}: {shorten(one_line(skill.description), BRIEF)}",
        }

    def _details(self, name: str, error: Exception) -> tuple[SkillErrorDetails, Sequence[str]]:
        """Return the error of the contract, and the refs of skills that its text lists first."""
        if isinstance(error, SkillNotVisible) and error.facts["rule"] in KEPT_FROM_MODELS:
            return not_available(name), ()
        there = self._in_folder(name) if isinstance(error, SkillNotFound) else None
        if there is not None:
            return there, ()
        if isinstance(error, SkillNotFound | SkillNotVisible):
            # the error about a deleted skill has no similar names
            known: Any = error.facts.get("similar")
            near = list(known) if known else self._view.near(name)
            return not_found(name, f"Skill '{shown(name)}' not found.", near), near
        if isinstance(error, SkillAmbiguous):
            refs = list(error.facts["refs"])
            return not_found(name, f"Skill '{shown(name)}' is ambiguous.", refs), refs
        return describe(name, error), ()

    def _in_folder(self, name: str) -> SkillErrorDetails | None:
        """Return the error for a skill in the folder ``name`` that has another name.

        Returns None if there is no such folder. In that case, the skill may be created.
        """
        try:
            found = self._view.in_folder(name)
        except SkillInvalid as error:
            return describe(name, error)
        except SkillNotVisible:
            return not_available(name)
        except RegistryError:  # the database itself may be the problem
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
        """Answer with an error that lists available skills.

        The skills in ``first`` come first. ``but`` is the requested skill, which is left out of the
        list. The skill may have been removed since the last sync, and can't be an alternative to
        itself.
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
        """Return the contract's block of available skills, and the refs of these skills."""
        try:
            found, total = self._view.some_offers(first, MAX_LISTED)
        except RegistryError:  # the database itself may be the problem
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
    """Return a sentence about the parts that the list leaves out.

    The sentence is longest if skills are ``missing``.
    """
    if missing:
        return f"(Only names are listed, and {missing} more skills not even by name.)"
    return "(Long descriptions are shortened.)" if longest else "(Only names are listed.)"


def _misuse(arguments: Any) -> str | None:
    """Return a message that explains why a call is invalid; None if the call is valid."""
    if not isinstance(arguments, Mapping) or "skill_name" not in arguments:
        return "skill_name is required."
    if not isinstance(arguments["skill_name"], str) or not arguments["skill_name"].strip():
        return "skill_name must be the name of a skill."
    unknown = [key for key in arguments if key != "skill_name"]
    if unknown:
        return f"Unknown argument '{shown(unknown[0])}': Skill takes only skill_name."
    return None
