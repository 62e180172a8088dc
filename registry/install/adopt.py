"""Add skills that the ``skills`` command line tool installed to this program's lock file.

The tool's lock file lists the skills. The files on disk show how they are installed. Afterwards the
skills count as installed by `pull`.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from registry.core import Core
from registry.db.read.skills import same_files
from registry.disk.agents import agents, installed_agents
from registry.disk.atomic import Place, digest_of_link
from registry.disk.files import read_file, tree_digest
from registry.disk.paths import is_safe_relative
from registry.document.names import check_folder_name
from registry.errors import AddressInvalid, LockMissing, PullRefused, RegistryError
from registry.install.content import local_files
from registry.install.lockfile import LockEntry, Mode
from registry.install.plan import InstallPlan
from registry.install.provenance import agents_folder, owner
from registry.install.pull import open_transaction
from registry.install.targets import PLAIN, InstallOptions, InstallResult, InstallTarget
from registry.model import DOCUMENT_NAMES
from registry.remotes.address import Address, parse_address

_NAME: Final = "skills-lock.json"
_GLOBAL_NAME: Final = ".skill-lock.json"
_VERSION: Final = 1
_GLOBAL_VERSION: Final = 3
_MAX_BYTES: Final = 16 << 20

_SHARING: Final = "codex"
"""The agent to record for the global shared folder if no installed agent reads it."""


def adopt(
    core: Core, target: InstallTarget, options: InstallOptions = PLAIN
) -> list[InstallResult]:
    """Add the skills in the lock file of the ``skills`` tool to this program's lock file.

    Raises `LockMissing` if the tool has no lock file for the target.
    """
    theirs = _client_lock(core, target)
    if theirs is None:
        raise LockMissing(path=client_lock_path(target))
    with open_transaction(core, target, options) as work:
        return [_adopted(core, target, work, *one) for one in sorted(theirs.items())]


def client_lock_path(target: InstallTarget) -> str:
    """Return the path of the ``skills`` tool's lock file for a project, or for all projects."""
    if not target.is_global:
        return os.path.join(target.path, _NAME)
    state = os.environ.get("XDG_STATE_HOME")
    if state and os.path.isabs(state):
        return os.path.join(state, "skills", _GLOBAL_NAME)
    return os.path.join(os.path.expanduser("~"), ".agents", _GLOBAL_NAME)


def _client_lock(core: Core, target: InstallTarget) -> Mapping[str, Mapping[str, Any]] | None:
    """Return the entries in the lock file of the ``skills`` tool, by skill name.

    Returns None if the lock file is missing or can't be read.
    """
    path = client_lock_path(target)
    try:
        data = json.loads(read_file(path, _MAX_BYTES).data)
        wanted = _GLOBAL_VERSION if target.is_global else _VERSION
        skills: Mapping[str, Mapping[str, Any]] = data["skills"]
        are_entries = isinstance(skills, dict) and all(
            isinstance(one, dict) for one in skills.values()
        )
        if data["version"] != wanted or not are_entries:
            raise ValueError(f"it is not version {wanted}")  # noqa: TRY301
    except FileNotFoundError:
        return None
    except (RegistryError, OSError, ValueError, LookupError, TypeError, RecursionError) as why:
        core.warn(f"{path} can't be read: {str(why).rstrip('.')}.")
        return None
    return skills


def _adopted(
    core: Core, target: InstallTarget, work: InstallPlan, name: str, facts: Mapping[str, Any]
) -> InstallResult:
    folder = agents_folder(name)
    if check_folder_name(folder) is not None:
        return InstallResult(name, target.path, "failed", "no folder of a skill can have its name")
    agent_of = _agents_with(target, folder)
    places = target.install_paths(agent_of.values(), "copy", folder) if agent_of else []
    first = next((one for one in places if _is_folder(one.path_of(folder))), None)
    if first is None:
        return InstallResult(name, os.path.join(target.path_of(target.shared), folder), "missing")
    path = first.path_of(folder)
    if folder in work.locked:
        return InstallResult(name, path, "unchanged")
    found = {one: work.found(one, folder) for one in places}
    digest = found[first] or ""
    linked = [one for one in places if one.link and found[one] == digest_of_link(one.link)]
    is_linked = bool(linked) and not first.link
    having = linked if is_linked else [one for one in places if found[one] == digest]
    files = local_files(Place(work.folder_at(first.folder_id), folder))
    document = next((one for one in DOCUMENT_NAMES if one in files), None)
    if document is None or not all(hashed for hashed, _ in files.values()):
        return InstallResult(
            name, path, "failed", "its folder has no SKILL.md, or an entry that is not a file"
        )
    mode: Mode = "link" if is_linked else "copy"
    entry = LockEntry(
        name=name,
        ref=name,
        source="",
        folder="",
        content_hash=files[document][0],
        tree_hash=tree_digest([(one, is_run, hashed) for one, (hashed, is_run) in files.items()]),
        digest=digest,
        files={one: hashed for one, (hashed, _) in files.items()},
        origin=_origin(name, facts),
        agents=tuple(sorted(agent_of[one.folder_id] for one in having)),
        mode=mode,
    )
    entry = _owned(core, entry)
    work.note(folder, entry)
    return InstallResult(entry.ref, path, "added")


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


def _agents_with(target: InstallTarget, folder: str) -> dict[str, str]:
    """Return the ids of the agents' folders that contain ``folder``, each with an agent's id."""
    found: dict[str, str] = {}
    for one in agents().values():
        folder_id = one.personal if target.is_global else one.project
        if not folder_id or folder_id in found:
            continue
        try:
            path = target.path_of(folder_id)
        except PullRefused:
            continue  # the path of this folder depends on an environment variable that isn't set
        if os.path.lexists(os.path.join(path, folder)):
            found[folder_id] = one.id
    if target.shared in found:
        found[target.shared] = _sharing(target)
    return found


def _sharing(target: InstallTarget) -> str:
    if not target.is_global:
        return "universal"
    installed = [one.id for one in installed_agents(target.path) if one.is_universal]
    return next(iter(installed), _SHARING)


def _owned(core: Core, entry: LockEntry) -> LockEntry:
    skill = owner(core, entry)
    if skill is None and entry.origin is None:
        known = same_files(core.reader, entry.name, entry.tree_hash)
        skill = next((one.skill for one in known), None)
    if skill is None:
        return entry
    return replace(entry, ref=skill.ref, source=skill.source, folder=skill.folder)


def _origin(name: str, facts: Mapping[str, Any]) -> dict[str, str | None] | None:
    """Return a skill's origin (address, ref and folder) from its entry in that tool's lock file.

    Returns None if the skill is local, or if the entry has no valid address.
    """
    kind, path = facts.get("sourceType"), facts.get("skillPath")
    text = facts.get("source") if kind == "github" else facts.get("sourceUrl")
    if not isinstance(text, str) or kind not in {"github", "gitlab", "git", "well-known"}:
        return None
    address = _address(f"github:{text}" if kind == "github" else text)
    if address is None:
        return None
    folder = os.path.dirname(path) if isinstance(path, str) and is_safe_relative(path) else ""
    ref = facts.get("ref")
    return {
        "url": address.url,
        "ref": ref if isinstance(ref, str) else address.ref,
        "commit": None,
        "path": folder or (name if kind == "well-known" else "."),
    }


def _address(text: str) -> Address | None:
    try:
        address = parse_address(text)
    except AddressInvalid:
        return None
    return None if address is None or address.is_short else address
