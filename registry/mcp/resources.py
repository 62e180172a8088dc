"""Skills as MCP resources: plain resources for all clients, and the extension of SEP-2640.

Digests and manifests come from the registry. Files are read from disk for each request.
"""

import json
import logging
import mimetypes
from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from registry.catalog.reading import CurrentSkill, read_bytes, read_file
from registry.catalog.resolve import resolve
from registry.db.read.listing import Filters, Manifest, list_skills, manifests
from registry.db.read.skills import StoredSkill, files
from registry.disk.paths import ROOT
from registry.document.frontmatter import front_matter_json, scalar_texts
from registry.document.names import check_new_name
from registry.errors import RegistryError
from registry.model import DOCUMENT_NAMES
from registry.text import shorten
from registry.toolsets.view import View

log = logging.getLogger(__name__)

PAGE: Final = 100
MAX_FILES: Final = 512
MAX_BYTES: Final = 16 << 20
"""Maximum size of a skill in the extension, in bytes; larger skills are left out."""

MAX_COMPLETIONS: Final = 100

TEMPLATE: Final = "skill://{source}/{+path}"

FOLDER: Final = "inode/directory"

_CHILD: Final = "-"
"""Replaces the name of a file or folder if only the URI of its folder is known."""

Json = dict[str, Any]


class SkillResources:
    """The skills of one view as resources.

    The methods block; several threads may call them.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._core = view.core
        self._left_out: set[str] = set()

    def page(self, cursor: str | None) -> tuple[list[Json], str | None]:
        """Return a page of plain resources (one for each SKILL.md), and the next page's cursor."""
        found, following = self._page(cursor)
        return list(map(_listed, found)), following

    def skills(self, cursor: str | None) -> tuple[list[Json], str | None]:
        """Return a page of the extension's `skills/list`, and the cursor of the next page."""
        found, following = self._page(cursor)
        known = len(self._left_out)
        entries = [entry for entry in map(self._entry, found) if entry is not None]
        if not known and self._left_out:
            log.warning(
                "Some skills can't be listed in skills/list; with --verbose this log "
                "has the reasons."
            )
        return entries, following

    def skill(self, uri: str) -> Json | None:
        """Return the extension's data about the skill with this SKILL.md; None if there is none."""
        found = self._find(uri)
        if found is None or found[1] not in DOCUMENT_NAMES:
            return None
        manifest = self._manifest(found[0].stored)
        return None if manifest is None or _uri(manifest) != uri else self._entry(manifest)

    def read(self, uri: str) -> tuple[str, bytes] | None:
        """Return the MIME type and the bytes of the file at a URI.

        Returns None if the server doesn't show the file.
        """
        found = self._find(uri)
        if found is None:
            return None
        current, path = found
        try:
            if path == current.stored.document:
                data = read_bytes(self._core, current)
            else:
                data = read_file(self._core, current, path)
        except RegistryError as error:
            log.info("%s is not served: %s", uri[:200], error)
            return None
        self._core.usage.read(current.stored.skill.source, current.stored.folder)
        return _kind(path), data

    def directory(self, uri: str) -> list[Json] | None:
        """Return the files and folders directly in a folder of a skill.

        Returns None if there is no such folder. The URI must not end with a slash. Files that can't
        be read are left out.
        """
        found = self._find(f"{uri}/{_CHILD}")
        if found is None:
            return None
        current, path = found
        skill = self._manifest(current.stored)
        below = path.removesuffix(_CHILD)
        children = {} if skill is None else _children(skill, below)
        return [children[name] for name in sorted(children)] or None

    def is_served(self, uri: str) -> bool:
        """Tell whether this URI belongs to a file of a visible skill."""
        found = self._find(uri)
        if found is None:
            return False
        stored = found[0].stored
        return any(file.path == found[1] for file in files(self._core.reader, stored.id))

    def uri_of(self, ref: str) -> str | None:
        """Return the URI of the SKILL.md of the skill with this ref."""
        try:
            manifest = self._manifest(resolve(self._core.reader, ref))
        except RegistryError:
            return None
        return None if manifest is None else _uri(manifest)

    def listed(self) -> frozenset[tuple[str, str]] | None:
        """Return (source, folder) of each skill in a limited view.

        Returns None if the view has no limits.
        """
        return self._view.listed()

    def complete(self, argument: str, value: str, given: Json) -> list[str]:
        """Return the values of an argument of `TEMPLATE` that begin with ``value``."""
        found = list_skills(self._core.reader, self._view.filters(Filters()))
        if argument == "source":
            names: Iterable[str] = dict.fromkeys(skill.source for skill in found)
        else:
            source = given.get("source")
            names = (
                base(skill.source, skill.folder, skill.name).split("/", 3)[3] + DOCUMENT_NAMES[0]
                for skill in found
                if source is None or skill.source == source
            )
        return [name for name in names if name.startswith(value)]

    def _page(self, cursor: str | None) -> tuple[tuple[Manifest, ...], str | None]:
        """Return a page of manifests, and the cursor of the next page.

        Raises ValueError if the cursor is invalid.
        """
        start = _start(cursor)
        wanted = self._view.filters(Filters())
        found = manifests(self._core.reader, wanted, limit=PAGE + 1, offset=start)
        found = tuple(self._view.renamed(found))
        return found[:PAGE], str(start + PAGE) if len(found) > PAGE else None

    def _find(self, uri: str) -> tuple[CurrentSkill, str] | None:
        for target in targets(uri):
            try:
                current = self._view.locate(f"{target.source}/{target.folder}")
            except RegistryError:
                continue
            skill = current.stored.skill
            here = (skill.source, skill.folder, skill.name)
            if here == (target.source, target.folder, target.name):
                return current, target.path
        return None

    def _manifest(self, stored: StoredSkill) -> Manifest | None:
        found = manifests(self._core.reader, Filters(ids=[stored.id]))
        return next(iter(self._view.renamed(found)), None)

    def _entry(self, skill: Manifest) -> Json | None:
        """Return the extension's data about a skill.

        Returns None if the extension can't represent the skill.
        """
        front_matter = front_matter_json(skill.text)
        reason = _obstacle(skill, front_matter)
        uri = _uri(skill)
        if reason is not None:
            if uri not in self._left_out:
                self._left_out.add(uri)
                log.info("%s is not listed in skills/list: %s", skill.ref, reason)
            return None
        folder = base(skill.source, skill.folder, skill.name)
        if self._core.settings.strict:
            front_matter = strict_front_matter(front_matter or {}, skill.text, skill.description)
        return {
            "uri": uri,
            "frontmatter": front_matter,
            "resources": [
                {"uri": folder + quote(file.path), "digest": file.hash, "size": file.size}
                for file in skill.files
            ],
        }


def _obstacle(skill: Manifest, front_matter: Json | None) -> str | None:
    """Return the reason why `skills/list` can't contain a skill; None if it can contain it."""
    if len(skill.files) > MAX_FILES:
        return f"it has {len(skill.files)} files; the limit is {MAX_FILES}"
    if sum(file.size for file in skill.files) > MAX_BYTES:
        return f"its files have more than {MAX_BYTES} bytes"
    if any(file.hash is None for file in skill.files):
        return "not all of its files could be read"
    if front_matter is None:
        return "its front matter is not valid YAML"
    reason = check_new_name(skill.name)
    if reason is not None or front_matter.get("name") != skill.name:
        return reason or "its front matter has a different name, or none"
    return None


def _uri(skill: Manifest) -> str:
    return base(skill.source, skill.folder, skill.name) + quote(skill.document)


def _listed(skill: Manifest) -> Json:
    """Return the plain resource for a skill's SKILL.md."""
    return {
        "uri": _uri(skill),
        "name": skill.ref,
        "description": skill.description,
        "mimeType": "text/markdown",
        "size": next((one.size for one in skill.files if one.path == skill.document), None),
    }


def _children(skill: Manifest, below: str) -> dict[str, Json]:
    """Return the direct children of a folder as resources, by name.

    ``below`` is the path of the folder with a slash at the end; for the skill's own folder, it is
    empty.
    """
    home = base(skill.source, skill.folder, skill.name) + quote(below)
    found: dict[str, Json] = {}
    for file in skill.files:
        if file.path == skill.document and not below:
            found[file.path] = _listed(skill)
        elif file.path.startswith(below):
            name, inside, _ = file.path[len(below) :].partition("/")
            about = {"mimeType": FOLDER} if inside else {"mimeType": _kind(name), "size": file.size}
            found[name] = {"uri": home + quote(name), "name": name, **about}
    return found


def _kind(path: str) -> str:
    """Return the MIME type of a file, which depends only on the file's name."""
    kind = "text/markdown" if path.lower().endswith(".md") else mimetypes.guess_type(path)[0]
    return kind or "application/octet-stream"


def page_of(children: list[Json], cursor: str | None) -> tuple[list[Json], str | None]:
    """Return a page of a list of children, and the cursor of the next page.

    Raises ValueError if the cursor is invalid.
    """
    start = _start(cursor)
    left = len(children) > start + PAGE
    return children[start : start + PAGE], str(start + PAGE) if left else None


def _start(cursor: str | None) -> int:
    """Return the index at which a page starts. Raises ValueError if the cursor is invalid."""
    start = 0 if cursor is None else int(cursor)
    if start < 0:
        raise ValueError(cursor)
    return start


SCHEME: Final = "skill://"
ASIDE: Final = "@"
MAX_SEGMENTS: Final = 64


class ResourceTarget(NamedTuple):
    """The file ``path`` of the skill ``name``, which is in ``folder`` of ``source``."""

    source: str
    folder: str
    name: str
    path: str


def base(source: str, folder: str, name: str) -> str:
    """Return the URI of a skill's folder, with a slash at the end."""
    segments = [] if folder == ROOT else folder.split("/")
    if not segments or segments[-1] != name:
        segments += [ASIDE, name]
    return SCHEME + "/".join(quote(part, safe="") for part in (source, *segments)) + "/"


def targets(uri: str) -> list[ResourceTarget]:
    """Return the files that ``uri`` may refer to, those in the deepest skill folder first.

    Returns an empty list if the URI doesn't belong to a skill's file.
    """
    if not uri.startswith(SCHEME) or "?" in uri or "#" in uri:
        return []
    source, *segments = [unquote(part) for part in uri.removeprefix(SCHEME).split("/")]
    if len(segments) > MAX_SEGMENTS:
        return []
    found = []
    for end in range(len(segments) - 1, -1, -1):
        folder = "/".join(segments[:end]) or ROOT
        rest = segments[end:]
        if len(rest) > 2 and rest[0] == ASIDE:  # noqa: PLR2004  # the mark, a name and a path
            found.append(ResourceTarget(source, folder, rest[1], "/".join(rest[2:])))
        if end:
            found.append(ResourceTarget(source, folder, segments[end - 1], "/".join(rest)))
    return found


MAX_DESCRIPTION: Final = 1024
MAX_COMPATIBILITY: Final = 500


def strict_front_matter(front_matter: Json, text: str, description: str) -> Json:
    """Return front matter in which the six standard fields follow the specification.

    Other fields stay unchanged. A value that isn't text becomes its text in the SKILL.md, or its
    JSON. Null values are left out. A long description or ``compatibility`` is cut after a word.
    ``text`` is the text of the SKILL.md. ``description`` is the description in the registry, which
    is used if the front matter has none. The name isn't checked.
    """
    done = {key: value for key, value in front_matter.items() if key not in _FIELDS}
    given = front_matter.get("description")
    said = given if isinstance(given, str) and given.strip() else description
    done["description"] = cut(said, MAX_DESCRIPTION)
    for key in ("license", "compatibility", "allowed-tools"):
        value = front_matter.get(key)
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            value = " ".join(value)
        if value not in (None, ""):
            done[key] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if "compatibility" in done:
        done["compatibility"] = cut(done["compatibility"], MAX_COMPATIBILITY)
    metadata = front_matter.get("metadata")
    if isinstance(metadata, dict):
        done["metadata"] = _texts(metadata, text)
    # Keep the order of the keys in the document.
    return {key: done[key] for key in [*front_matter, *done] if key in done}


def cut(text: str, limit: int) -> str:
    """Return at most ``limit`` UTF-16 units of ``text``; a longer text is cut at a word.

    JavaScript counts the length of a text in UTF-16 units.
    """
    units = text.encode("utf-16-le", "surrogatepass")
    if len(units) <= 2 * limit:
        return text
    return shorten(text, len(units[: 2 * limit].decode("utf-16-le", "ignore")), whole_words=True)


_FIELDS: Final = frozenset(("description", "license", "compatibility", "allowed-tools", "metadata"))


def _texts(metadata: Json, text: str) -> dict[str, str]:
    """Return ``metadata`` with only texts as values.

    A number becomes its text in the SKILL.md. A list or map becomes JSON.
    """
    if all(isinstance(value, str) for value in metadata.values()):
        return metadata
    written = scalar_texts(text).get("metadata")
    texts = written if isinstance(written, dict) else {}
    found = {}
    for key, value in metadata.items():
        plain = value if isinstance(value, str) else texts.get(key)
        if value is not None:
            found[key] = plain if isinstance(plain, str) else json.dumps(value, ensure_ascii=False)
    return found
