"""Wave's SkillManager and parseSkillFile as Python values (contracts/wave-Skill.md)."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from registry.catalog.reading import current_detail, read_text, unusable
from registry.db.read.sources import list_sources
from registry.disk.files import open_home, read_below, read_file
from registry.disk.links import real_path
from registry.disk.paths import ROOT, join
from registry.errors import RegistryError, SkillInaccessible
from registry.model import Document, JsonValue, Scope
from registry.settings import Limits
from registry.toolsets.view import View

SkillType: TypeAlias = Literal["personal", "project"]

_KEPT: Final = ".wave/skills"

NAME: Final = re.compile(r"[a-z0-9-]+")
MAX_CHARS: Final = 1024
"""Characters of a description ("SKILL.md Contract")."""


@dataclass(frozen=True, slots=True)
class SkillMetadata:
    """What a list of skills has of each; ``skill_path`` is the skill's folder."""

    name: str
    description: str
    type: SkillType
    skill_path: str


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill as it is on disk now; ``text`` is its whole SKILL.md."""

    ref: str
    description: str
    scope: Scope
    source: str
    folder: str
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class SkillError:
    """A skill that was found and can't be used."""

    skill_path: str
    message: str


@dataclass(frozen=True, slots=True)
class SkillDiscoveryResult:
    """All skills by the name they are invoked by, and what is wrong with the others."""

    personal_skills: Mapping[str, SkillMetadata]
    project_skills: Mapping[str, SkillMetadata]
    errors: tuple[SkillError, ...]


@dataclass(frozen=True, slots=True)
class ParsedSkillFile:
    """One SKILL.md, held against the contract's own rules, which are stricter than the registry's.

    ``content`` is the Markdown below the front matter.
    """

    frontmatter: Mapping[str, JsonValue]
    content: str
    skill_metadata: SkillMetadata
    validation_errors: tuple[str, ...]
    is_valid: bool


def kind_of(scope: Scope) -> SkillType:
    """Return the contract's type: skills of a project are its own, all others the user's."""
    return "project" if scope == "project" else "personal"


class SkillManager:
    """Discovers and loads skills; safe for many threads, nothing is kept between calls."""

    def __init__(self, view: View) -> None:
        self._view = view

    def initialize(self) -> SkillDiscoveryResult:
        """Return all skills there are, from the database."""
        found: dict[SkillType, dict[str, SkillMetadata]] = {"personal": {}, "project": {}}
        for skill in self.available_skills():
            found[skill.type][skill.name] = skill
        return SkillDiscoveryResult(found["personal"], found["project"], tuple(self._errors()))

    def available_skills(self) -> list[SkillMetadata]:
        """Return what can be invoked, by name."""
        known = list_sources(self._view.core.reader, counted=False)
        roots = {source.name: source.path for source in known}
        return [
            SkillMetadata(ref, description, kind_of(scope), join(roots[source], folder))
            for ref, scope, description, source, folder in self._view.offers()
        ]

    def load_skill(self, name: str) -> LoadedSkill | None:
        """Return a skill as it is on disk now; None: there is none of this name to be invoked."""
        try:
            return self.read(name)
        except RegistryError:
            return None

    def read(self, name: str) -> LoadedSkill:
        """Return a skill as it is on disk now. Raises what `View.find` and `read` raise."""
        current = self._view.locate(name)
        text = read_text(self._view.core, current)
        skill = current.stored.skill
        if current.is_behind:
            skill = current_detail(self._view.core, current)
        return LoadedSkill(
            skill.ref,
            skill.description,
            skill.scope,
            skill.source,
            skill.folder,
            skill.path,
            text,
        )

    def _errors(self) -> Iterator[SkillError]:
        for stored in self._view.broken():
            why = unusable(self._view.core.reader, stored, stored.skill.ref)
            yield SkillError(stored.path, why.facts["problems"][0].message)


def parse_skill_file(path: str, limits: Limits | None = None) -> ParsedSkillFile:
    """Read a SKILL.md and check it by the contract's rules; what is wrong are validation errors.

    ``limits.document_bytes`` bounds what is read. Its skill is a project's where its folder lies in
    `.wave/skills` outside of the user's home folder. Raises `SkillInaccessible` where there is no
    such file or it can't be read, and `FileTooLarge`.
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
    """Read a SKILL.md; below a folder of wave's skills no link is followed."""
    above, kept, below = path.rpartition(f"/{_KEPT}/")
    if not kept:
        return read_file(path, limit).data
    folder, _, name = below.rpartition("/")
    with open_home(real_path(f"{above}/{_KEPT}"), folder or ROOT) as home:
        return read_below(home, name, limit).data


def _violations(document: Document, folder: str) -> Iterator[str]:
    """Yield what the contract refuses ("Validation Contract")."""
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
