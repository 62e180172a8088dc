"""The toolset `basic` (docs/contributing/contracts.md).

The toolset shows one source, which it reads from disk. Each folder of the source is a skill, unless
it contains only folders of skills. Skills that are hidden from models, or from the personality, are
neither listed nor read.
"""

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from registry.catalog.reading import CurrentSkill, read_bytes
from registry.db.read import skills
from registry.db.read.skills import StoredSkill
from registry.db.read.sources import list_sources
from registry.db.write.usage import SkillPlace
from registry.disk.beneath import Folder
from registry.disk.files import IsLink, digest, open_home, read_inside
from registry.disk.links import Leads, follow
from registry.disk.paths import ROOT, is_ignored
from registry.errors import FileTooLarge, RegistryError, SkillInaccessible
from registry.model import DOCUMENT_NAMES, Source
from registry.sync.sources import is_here, target_source, walk_of
from registry.text import is_encodable
from registry.toolsets.base import Context, Toolset, shown
from registry.toolsets.schemas import Json, Tool, schema, text
from registry.toolsets.view import View

MAX_BYTES: Final = 1 << 20
"""The contract's limit "1MB", in bytes; a file of exactly this size is allowed."""

RULE: Final = r"Skill names must not contain '/', '\', or '..'"

TOOLS: Final = (
    Tool(
        "list_skills",
        "List all available skills in the skills folder. Returns skill names as a JSON array.",
        schema({}),
    ),
    Tool(
        "get_skill",
        "Read the SKILL.MD documentation for a specific skill. Returns the full text content of "
        "the documentation file.",
        schema({"skill_name": text("Name of the skill (folder name)")}, ["skill_name"]),
    ),
)


class BasicToolset(Toolset):
    """The toolset for the folders of one source.

    The constructor raises `SourceUnclear`, `SourceNotFound`.
    """

    name = "basic"

    def __init__(self, context: Context) -> None:
        super().__init__(context, TOOLS)
        self._core = context.core
        self._source = target_source(context.core, context.source, to_read=True)
        self._view = View(replace(context, source=self._source.name))

    def _unknown(self, tool: object) -> Json:
        return {"error": f"Unknown tool: '{shown(tool)}'. There are list_skills and get_skill"}

    def _run(self, tool: str, arguments: Any) -> Json:
        try:
            with self._core.explained():
                source = self._current_source()
                listing = tool == "list_skills"
                return self._list(source) if listing else self._get(source, arguments)
        except RegistryError as error:
            return {"error": str(error)}

    def _current_source(self) -> Source:
        """Return the source with its current values; a removed source counts as disabled."""
        known = list_sources(self._core.reader, counted=False)
        gone = replace(self._source, enabled=False)
        return next((one for one in known if one.id == self._source.id), gone)

    def _list(self, source: Source) -> Json:
        try:
            on_disk = folders_in(source.path) if self._is_here(source) else None
        except (FileNotFoundError, NotADirectoryError):
            return {"error": f"Skills folder not found at path: {source.path}"}
        except OSError:
            return {"error": "Permission denied reading skills folder"}
        if not self._view.shows(source):
            return {"skills": []}
        stored = self._view.folders(source)
        if on_disk is None:
            on_disk = {name: name for name in stored if is_valid(name) and name != ROOT}
        listed = sorted(
            name
            for name, folder in on_disk.items()
            if (stored[folder] if folder in stored else self._is_new(source, name, stored))
        )
        self._core.usage.listed([SkillPlace(source.name, name) for name in listed])
        return {"skills": listed}

    def _is_new(self, source: Source, name: str, stored: Collection[str]) -> bool:
        """Tell whether to list a folder that no sync has stored yet.

        A folder that contains only folders of skills isn't listed.
        """
        try:
            answer, folder = self._look(source, name)
        except (FileNotFoundError, IsLink, ValueError):
            return False
        except SkillInaccessible:
            return True
        if answer != no_document(name):
            return True
        holds = any(one.startswith(f"{folder}/") for one in stored)
        return not holds and walk_of(self._core, source.path).one(folder) is not None

    def _get(self, source: Source, arguments: Any) -> Json:
        name = arguments.get("skill_name") if isinstance(arguments, Mapping) else None
        if not isinstance(name, str) or not is_valid(name):
            return {"error": f"Invalid skill name: '{shown(name)}'. {RULE}"}
        missing = {"error": f"Skill '{shown(name)}' not found in skills folder"}
        if name == "." or is_ignored(name) or "\0" in name or not is_encodable(name):
            return missing
        if not self._is_here(source):
            return self._stored(source, name, missing)
        try:
            return self._read(source, name)
        except (FileNotFoundError, IsLink, ValueError):  # no file system can have such a name
            return missing
        except SkillInaccessible:
            return {"error": f"Permission denied reading SKILL.MD for skill '{name}'"}

    def _read(self, source: Source, name: str) -> Json:
        """Read a skill as `_look` does, and count the use of the skill."""
        answer, folder = self._look(source, name)
        if "documentation" in answer:
            self._core.usage.read(source.name, folder)
        return answer

    def _look(self, source: Source, name: str) -> tuple[Json, str]:
        """Read the skill in the folder ``name``; return the answer and the folder.

        The folder may be a link to another folder in the source. Raises the errors of `open_home`.
        Raises FileNotFoundError if the skill isn't shown.
        """
        root, folder = source.path, name
        try:
            home = open_home(root, folder)
        except IsLink:
            target = linked(root, name)
            if target is None:
                raise
            folder = target
            home = open_home(root, folder)
        with home:
            answer = read_document(home, name)
        if not self._admits(source, answer, folder):
            raise FileNotFoundError(name)
        return answer, folder

    def _is_here(self, source: Source) -> bool:
        return is_here(self._core, source.host, source.path)

    def _stored(self, source: Source, name: str, missing: Json) -> Json:
        """Return the stored SKILL.md of a skill whose folder is on another machine."""
        stored = skills.by_place(self._core.reader, source.id, name)
        if stored is None:
            folders = self._view.folders(source) if self._view.shows(source) else {}
            holds = any(one.startswith(f"{name}/") for one, shown in folders.items() if shown)
            return no_document(name) if holds else missing
        answer = self._stored_document(stored, name)
        if not self._admits(source, answer, name):
            return missing
        if "documentation" in answer:
            self._core.usage.read(source.name, name)
        return answer

    def _stored_document(self, stored: StoredSkill, name: str) -> Json:
        if stored.document is None:
            return no_document(name)
        files = skills.files(self._core.reader, stored.id)
        if any(one.path == stored.document and one.size > MAX_BYTES for one in files):
            return too_large(name)
        try:
            return understood(read_bytes(self._core, CurrentSkill(stored, None)), name)
        except RegistryError as error:
            return {"error": f"Error reading SKILL.MD: {error}"}

    def _admits(self, source: Source, answer: Json, folder: str) -> bool:
        """Tell whether the current SKILL.md in a folder may be shown."""
        text = answer.get("documentation", "")
        known = skills.by_place(self._core.reader, source.id, folder)
        if text and source.remote is not None and not self._is_trusted(known):
            return False
        if known is not None and known.skill.content_hash == digest(text.encode()):
            return self._view.shows_folder(source, known)
        from registry.document.parse import parse_text

        name = os.path.basename(folder)
        document = parse_text(text, folder_name=name)
        return self._view.admits(source, document)

    def _is_trusted(self, known: StoredSkill | None) -> bool:
        """Tell whether a remote skill's current files are synced, not quarantined, not yanked."""
        if known is None:
            return False
        current = CurrentSkill.of_stored(self._core, known)
        return not current.is_behind and not current.stored.held


def folders_in(root: str) -> dict[str, str]:
    """Return the path of each subfolder by its name; for a link, this is the path of its target.

    Raises OSError if the folder can't be read.
    """
    with os.scandir(root) as listing:
        found = [one for one in listing if is_valid(one.name) and not is_ignored(one.name)]
    names = {one.name: one.name for one in found if one.is_dir(follow_symlinks=False)}
    links = {one.name: linked(root, one.name) for one in found if one.is_symlink()}
    names |= {name: folder for name, folder in links.items() if folder is not None}
    return {name: folder for name, folder in names.items() if is_encodable(name)}


def linked(root: str, name: str) -> str | None:
    """Return the folder to which a link in a source leads; None if it is outside the source."""
    link = follow(os.path.join(root, name), root, (root,))
    return os.path.relpath(link.target, root) if link.leads is Leads.INSIDE else None


def is_valid(name: str) -> bool:
    """Tell whether the contract accepts ``name`` ("validate_skill_name")."""
    return bool(name) and "/" not in name and "\\" not in name and ".." not in name


def read_document(folder: Folder, name: str) -> Json:
    """Return the text of the skill file in the open ``folder``, or the contract's error."""
    for document in DOCUMENT_NAMES:
        try:
            data = read_inside(folder, document, MAX_BYTES).data
        except FileNotFoundError:
            continue
        except FileTooLarge:
            return too_large(name)
        except SkillInaccessible:
            return {"error": f"Permission denied reading SKILL.MD for skill '{name}'"}
        except RegistryError as error:
            return {"error": f"Error reading SKILL.MD: {error}"}
        return understood(data, name)
    return no_document(name)


def no_document(name: str) -> Json:
    """Return the contract's error for a folder without a skill file."""
    return {"error": f"SKILL.MD not found for skill '{name}'"}


def too_large(name: str) -> Json:
    """Return the contract's error for a skill file that exceeds the limit."""
    return {"error": f"SKILL.MD too large (>1MB) for skill '{name}'"}


def understood(data: bytes, name: str) -> Json:
    """Return the text of a skill file; if it isn't UTF-8, return the contract's error."""
    try:
        # the contract requires "\n" for all line ends
        documentation = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return {"error": f"SKILL.MD contains invalid UTF-8 for skill '{name}'"}
    return {"skill_name": name, "documentation": documentation}
