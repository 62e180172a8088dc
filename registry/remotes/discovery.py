"""Find the folders of skills in a remote source, and the files of these skills.

The rules are those of the ``skills`` client.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from registry.disk.paths import PATH_BYTES, ROOT, check_path
from registry.document.parse import parse_document
from registry.errors import RemoteInvalid, RemoteTooLarge
from registry.model import DOCUMENT_NAMES, Remote
from registry.remotes.snapshot import Blob, FetchLimits, Snapshot

DOT_FOLDERS: Final = (
    "agents claude cline codebuddy codex commandcode continue factory github goose grok iflow "
    "junie kilo kilocode kimchi kiro minimax mux neovate opencode openhands pi posit/assistant "
    "qoder roo trae windsurf zcode zencoder"
).split()
"""Names of the agents' folders that a repository may have, without the dot before each name."""

CONTAINERS: Final = (
    *("skills", "skills/.curated", "skills/.experimental", "skills/.system"),
    *(f".{name}/skills" for name in DOT_FOLDERS),
)
"""Folders that contain skills, at most `NESTED` levels below them."""

REPOSITORIES: Final = frozenset({"git", "archive"})
"""Kinds of remote sources in which only the usual folders are searched for skills.

For other kinds, all folders are searched.
"""

NESTED: Final = 3
ANYWHERE: Final = 5
"""Maximum depth at which all folders are searched, if the usual folders contain no skills."""

PASSED_OVER: Final = frozenset({"node_modules", ".git", "dist", "build", "__pycache__"})

MARKETPLACES: Final = (".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json")
PLUGIN: Final = ".claude-plugin/plugin.json"

MAX_MANIFEST: Final = 1 << 20
MAX_PLUGINS: Final = 2000
MAX_NOTICES: Final = 20
MAX_NAMED: Final = 3
MAX_FOLDER: Final = 100
"""Maximum length of a folder's path in a message, in characters."""


@dataclass(frozen=True, slots=True)
class SkillFolders:
    """The folders of skills, and messages about missing skills.

    No folder is inside another folder of the list.
    """

    folders: tuple[str, ...]
    notices: tuple[str, ...] = ()


def manifests(paths: Iterable[str], part: str | None) -> list[str]:
    """Return the files below ``part`` that list a repository's skill folders."""
    known, begin = set(paths), f"{part}/" if part else ""
    first = next((begin + one for one in MARKETPLACES if begin + one in known), None)
    return [one for one in (first, begin + PLUGIN) if one in known]


def skill_folders(
    paths: Iterable[str], part: str | None, read: Callable[[str], bytes] | None = None
) -> SkillFolders:
    """Return the folders of skills among the files of a repository, below ``part``."""
    begin = f"{part}/" if part else ""
    documents = sorted(_documents(paths, begin))
    if "" in documents:
        return SkillFolders((part or ROOT,))
    named: set[str] = set()
    notices: list[str] = []
    for path in manifests(paths, part) if read is not None else ():
        _read_manifest(path, read(path) if read else b"", len(begin), named, notices)
    found = {one for one in documents if _is_usual(one, named)}
    if found:
        notices += _elsewhere(documents, found)
    else:
        found = {one for one in documents if one.count("/") < ANYWHERE}
    if (more := len(notices) - MAX_NOTICES) > 0:
        notices[MAX_NOTICES:] = [f"and {more} more"]
    return SkillFolders(tuple(begin + one for one in _outermost(found)), tuple(notices))


def _elsewhere(documents: Iterable[str], found: set[str]) -> Iterator[str]:
    others = [one for one in documents if found.isdisjoint(_above(f"{one}/"))]
    if others:
        named = ", ".join(one[:MAX_FOLDER] for one in others[:MAX_NAMED])
        more = ", \u2026" if len(others) > MAX_NAMED else ""
        are = "is" if len(others) == 1 else "are"
        count = f"{len(others)} more SKILL.md {are} in other folders"
        yield f"{count}: {named}{more}; sync ADDRESS/FOLDER takes them"


def _documents(paths: Iterable[str], begin: str) -> Iterator[str]:
    for path in paths:
        if path.startswith(begin):
            folder, _, name = path[len(begin) :].rpartition("/")
            if name in DOCUMENT_NAMES and PASSED_OVER.isdisjoint(folder.split("/")):
                yield folder


def _is_usual(folder: str, named: set[str]) -> bool:
    if "/" not in folder:
        return True
    for container in CONTAINERS:
        if folder.startswith(f"{container}/"):
            below = folder[len(container) + 1 :]
            if below.count("/") < NESTED:
                return True
    above = folder.rpartition("/")[0]
    return above in named or folder in named


def _outermost(folders: Iterable[str]) -> list[str]:
    """Return the folders that aren't inside another folder of the list.

    A folder inside a skill is part of this skill.
    """
    kept: list[str] = []
    for folder in sorted(folders, key=lambda one: one.split("/")):
        if not kept or not folder.startswith(f"{kept[-1]}/"):
            kept.append(folder)
    return kept


def _read_manifest(
    path: str, data: bytes, skipped: int, named: set[str], notices: list[str]
) -> None:
    try:
        said = json.loads(data[:MAX_MANIFEST])
    except (ValueError, RecursionError):
        notices.append(f"{path} is not JSON")
        return
    if not isinstance(said, dict):
        notices.append(f"{path} is not a JSON object")
        return
    if path[skipped:] == PLUGIN:
        _name_skills(said, "", named)
        return
    metadata = said.get("metadata")
    root = _path_inside(metadata.get("pluginRoot"), "") if isinstance(metadata, dict) else ""
    plugins = said.get("plugins")
    for plugin in plugins[:MAX_PLUGINS] if isinstance(plugins, list) else ():
        if isinstance(plugin, dict):
            _name_plugin(plugin, root or "", named, notices)


def _name_plugin(plugin: dict[str, Any], root: str, named: set[str], notices: list[str]) -> None:
    source = plugin.get("source")
    if isinstance(source, dict) and source.get("source") == "local":
        source = source.get("path")
    if isinstance(source, dict):
        where = source.get("repo") or source.get("url") or source.get("package") or "elsewhere"
        name = str(plugin.get("name"))[:100]
        notices.append(f"the plugin {name} is not in this repository: {str(where)[:200]}")
        return
    home = _path_inside(source, root)
    if home is not None:
        _name_skills(plugin, home, named)


def _name_skills(plugin: dict[str, Any], home: str, named: set[str]) -> None:
    """Add the folders that a plugin lists, their parent folders, and its ``skills`` folder.

    The function adds them to ``named``, the set of folders in which skills are searched.
    """
    listed = plugin.get("skills")
    for one in [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else ():
        path = _path_inside(one, home)
        if path:
            named |= {path, path.rpartition("/")[0]}
    named.add(f"{home}/skills".lstrip("/"))


def _path_inside(path: object, home: str) -> str | None:
    """Return the path, relative to the repository, to which a path in one of its files refers.

    The path in the file is relative to ``home``. Returns None if it leads out of the repository.
    """
    if not isinstance(path, str) or path.startswith(("/", "~")) or len(path) > PATH_BYTES:
        return None
    parts = [part for part in path.split("/") if part not in {"", "."}]
    whole = "/".join([*home.split("/"), *parts] if home else parts)
    return whole if not whole or check_path(whole) is None else None


def wanted_files(
    tree: Snapshot, remote: Remote, bounds: FetchLimits, *, may_be_none: bool = False
) -> tuple[dict[str, Blob], list[str]]:
    """Return the files of the requested skills, and messages about skills that are left out.

    Raises `RemoteInvalid`, `RemoteTooLarge`.
    """
    notices: list[str] = []
    if remote.kind in REPOSITORIES:
        manifest = dict(tree.read(manifests(tree.files, remote.part)))
        found = skill_folders(tree.files, remote.part, manifest.__getitem__)
        folders, notices = list(found.folders), list(found.notices)
    else:
        folders = skills_of(tree.files)
    if remote.only:
        folders = _named(tree, folders, remote.only)
    if not folders and not may_be_none:
        where = f" in {remote.part}" if remote.part else ""
        what = f" of the name {' or '.join(remote.only)}" if remote.only else ""
        left = "".join(f", and {notice}" for notice in tree.notices[:1])
        raise RemoteInvalid(url=remote.url, reason=f"it holds no skill{what}{where}{left}")
    chosen = set(folders)
    wanted = {path: one for path, one in tree.files.items() if not chosen.isdisjoint(_above(path))}
    if len(wanted) > bounds.files:
        reason = f"its skills have more than {bounds.files} files"
        raise RemoteTooLarge(url=remote.url, reason=reason)
    return wanted, notices


def without_offered(files: Mapping[str, str], wanted: Iterable[str]) -> dict[str, str]:
    """Return the files that are in no folder of a skill among the ``wanted`` files, or above one.

    ``files`` are the files of withdrawn skills in the checkout.
    """
    wanted = list(wanted)
    offered = set(skills_of(wanted))
    inside = {above for one in wanted for above in _above(one)}
    left = {
        home: own
        for home, own in by_skill(files).items()
        if home not in inside and offered.isdisjoint(_above(f"{home}/"))
    }
    return {path: files[path] for own in left.values() for path in own.values()}


def _above(path: str) -> Iterator[str]:
    """Yield all folders above a file, from the nearest one to the root of the source."""
    while path:
        path = path.rpartition("/")[0]
        yield path or ROOT


def skills_of(files: Iterable[str]) -> list[str]:
    """Return the folders that contain a skill file, without folders inside another skill."""
    folders = {next(_above(one)) for one in files if os.path.basename(one) in DOCUMENT_NAMES}
    return [one for one in sorted(folders) if one == ROOT or folders.isdisjoint(_above(one))]


def by_skill(files: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the files of each skill folder, by their paths in that folder."""
    known = list(files)
    found: dict[str, dict[str, str]] = {folder: {} for folder in skills_of(known)}
    for path in known:
        home = next((one for one in _above(path) if one in found), None)
        if home is not None:
            found[home][path if home == ROOT else path[len(home) + 1 :]] = path
    return found


def _named(tree: Snapshot, folders: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the folders of the skills with these names.

    A name is first compared with the names of folders, then with the names of skills.
    """
    wanted = {name.casefold() for name in names}
    found = [one for one in folders if os.path.basename(one).casefold() in wanted]
    if len({os.path.basename(one).casefold() for one in found}) == len(wanted):
        return found
    documents = {
        path: folder
        for folder in folders
        for name in DOCUMENT_NAMES
        if (path := name if folder == ROOT else f"{folder}/{name}") in tree.files
    }
    for path, data in tree.read(list(documents)):
        parsed = parse_document(data, folder_name=os.path.basename(documents[path]))
        if parsed.name.casefold() in wanted:
            found.append(documents[path])
    return sorted(set(found))
