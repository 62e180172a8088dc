"""Record the origin of installed copies, which is in the lock file of their pull.

Another person may have written the lock file of a project. So a lock file counts only for folders
of its own project, and only if the files in a folder have the recorded hash.
"""

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any, Final, TypeAlias

from registry.core import Core
from registry.db.read.skills import by_place, stored_origins
from registry.db.versions import NewVersion
from registry.disk.agents import SHARED, expand, find_agent
from registry.disk.files import read_file
from registry.disk.links import real_path
from registry.disk.paths import ROOT, check_path, is_below, join
from registry.errors import RegistryError
from registry.model import Source
from registry.settings import data_folder
from registry.sync.sources import own_sources
from registry.text import is_encodable, without_secrets

LOCK: Final = "skills.lock.json"
VERSION: Final = 3
"""The version of the lock file format that `pull` writes."""

KNOWN: Final = (1, 2, VERSION)
"""Versions of the lock file format that this program can read.

Version 1 had no origins and no agents. Version 2 had no pins.
"""

MAX_BYTES: Final = 64 << 20
"""Maximum size of a lock file in bytes."""

_URL: Final = re.compile(r"\w[\w.+-]*(?:@[\w.-]+)?:\S{1,2000}")
_VERSION: Final = re.compile(r"(?:sha256:)?[0-9a-f]{40,64}")
"""Matches the id of a commit, or the hash of an archive."""

_REF: Final = re.compile(r"(?!-)\S{1,250}")

Named: TypeAlias = tuple[str, str]
"""The record of a folder in a lock file: its tree hash and its origin (`read.skills.ORIGIN`)."""


def read_entries(path: str) -> Mapping[str, Any]:
    """Return the entries of the lock file at ``path`` by the names of their folders, unchecked.

    Raises FileNotFoundError, the errors of `read_file`, and KeyError, TypeError, ValueError or
    RecursionError if the file isn't a lock file of a known version.
    """
    data = json.loads(read_file(path, MAX_BYTES).data)
    if data["version"] not in KNOWN:
        raise ValueError(f"its version is {data['version']!r}, {VERSION} is known")
    if not isinstance(data["skills"], dict):
        raise TypeError("its skills must be an object")
    return data["skills"]


def record_installed(core: Core, sources: Sequence[Source]) -> None:
    """Store the origins of all current skills in these sources, as lock files record them.

    Remote sources are skipped.
    """
    roots = {one.id: one.path for one in sources if one.remote is None}
    if not roots or not core.backend.writable:
        return
    named = _installed(roots.values())
    folders = {
        number: [path[len(join(root, "")) :] or ROOT for path in named if is_below(path, root)]
        for number, root in roots.items()
    }
    changed = []
    for one in stored_origins(core.reader, folders):
        origin = _origin_of(named, join(roots[one.source_id], one.folder), one.tree_hash)
        if origin != one.installed:
            changed.append((one.id, origin))
    if changed:
        from registry.db.write.skills import set_installed

        with core.writer.transaction() as connection:
            set_installed(connection, changed)


def mark_installed(version: NewVersion, root: str) -> None:
    """Set the origin of a new version to the origin in a lock file, or to None.

    ``root`` is the root of the version's local source.
    """
    facts = version.columns
    path = join(root, facts["folder"])
    facts["installed"] = _origin_of(_installed([root]), path, facts["tree_hash"])


def forget_removed(core: Core, paths: Iterable[str]) -> None:
    """Delete the skills in these folders from the database, after the folders were removed.

    The paths must not contain links.
    """
    paths = list(paths)
    if not paths or core.reader.empty or not core.backend.writable:
        return
    sources, gone = own_sources(core), []
    for path in paths:
        for source in sources:
            if is_below(path, source.path) and not os.path.lexists(path):
                stored = by_place(
                    core.reader, source.id, path[len(join(source.path, "")) :] or ROOT
                )
                gone += [] if stored is None else [stored.id]
    if gone:
        from registry.db.write.skills import publish

        with core.writer.transaction() as connection:
            publish(connection, [], gone)


def lock_of(path: str) -> str | None:
    """Return the folder of the lock file that lists the skill folder ``path``.

    Returns None if no lock file lists it. ``path`` must not contain links.
    """
    everywhere = real_path(str(data_folder()))
    homes = [everywhere, *map(str, PurePath(path).parents)]
    for home in homes:
        if any(path == one for one, _ in _listed(home, is_global=home == everywhere)):
            return home
    return None


def listed_in_locks(paths: Collection[str]) -> set[str]:
    """Return which of these skill folders, or links to them, a lock file lists.

    The parts before the last must not be links. Each lock file is read only once.
    """
    everywhere = real_path(str(data_folder()))
    homes = {everywhere, *(str(above) for path in paths for above in PurePath(path).parents)}
    return {
        path
        for home in homes
        for path, _ in _listed(home, is_global=home == everywhere)
        if path in paths
    }


def _origin_of(named: Mapping[str, Named], path: str, tree: str | None) -> str | None:
    """Return the recorded origin of a folder if its files have the recorded hash, else None.

    ``named`` holds the records by path, and ``tree`` is the hash of the files in the folder.
    """
    recorded, origin = named.get(path, (None, None))
    return origin if tree is not None and tree == recorded else None


def _installed(roots: Iterable[str]) -> dict[str, Named]:
    """Return the records of lock files about folders in these roots, by path of the folder.

    The records come from the lock files in the roots, in the folders above them, and from the
    global lock file. Each lock file is read only once.
    """
    everywhere = real_path(str(data_folder()))
    homes = {str(above) for root in roots for above in (root, *PurePath(root).parents)}
    found: dict[str, Named] = {}
    for home in sorted(homes - {everywhere}):
        found |= _named(home, is_global=False)
    return found | _named(everywhere, is_global=True)


def _named(home: str, *, is_global: bool) -> dict[str, Named]:
    """Return the records of the lock file in ``home``, by the path of the skill folder."""
    found: dict[str, Named] = {}
    for path, entry in _listed(home, is_global=is_global):
        # Skip records in a form that `pull` never writes.
        with suppress(LookupError, TypeError, ValueError, AttributeError):
            found[path] = entry["tree_hash"], _origin(entry["origin"])
    return found


def _listed(home: str, *, is_global: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each skill folder that the lock file in ``home`` lists, and its record."""
    known: dict[tuple[str, ...], list[str]] = {}
    for name, entry in _entries(home).items():
        with suppress(LookupError, TypeError, ValueError, AttributeError, RegistryError):
            ids = tuple(entry["agents"])
            if ids not in known:
                known[ids] = list(_places(home, ids, is_global=is_global))
            if "/" not in name and check_path(name) is None:
                yield from [(join(place, name), entry) for place in known[ids]]


def _entries(home: str) -> Mapping[str, Any]:
    """Return the records of the lock file in the folder ``home``, by skill name.

    The result is empty if this user can't read the lock file or doesn't own it.
    """
    path = os.path.join(home, LOCK)
    with suppress(OSError, RegistryError, LookupError, TypeError, ValueError, RecursionError):
        if os.stat(path).st_uid == os.stat(home).st_uid == os.geteuid():
            return read_entries(path)
    return {}


def _places(home: str, ids: Sequence[str], *, is_global: bool) -> Iterator[str]:
    """Yield the folders into which a pull installs skills for these agents, with links resolved.

    If the lock file belongs to a project, folders outside the project are left out. Raises
    `AgentNotFound` if an agent is unknown.
    """
    if not ids:
        yield home
        return
    agents = [find_agent(one) for one in ids]
    if is_global:
        folder_ids = {f"~/{SHARED}", *(one.personal for one in agents)} - {""}
        yield from {real_path(path) for one in folder_ids if (path := expand(one)) is not None}
        return
    for folder_id in {SHARED, *(one.project for one in agents)} - {""}:
        place = real_path(join(home, folder_id))
        if is_below(place, home):
            yield place


def _origin(record: Mapping[str, Any]) -> str:
    """Return the origin in a lock file's record in the form of the database.

    Raises ValueError if `pull` can't have written the record.
    """
    ref, version = record.get("ref"), record.get("commit")
    url, path = without_secrets(record["url"]), record.get("path") or ROOT
    is_right = (
        _URL.fullmatch(url)
        and (ref is None or _REF.fullmatch(ref))
        and (version is None or _VERSION.fullmatch(version))
        and (path == ROOT or check_path(path) is None)
    )
    text = "\n".join([url, ref or "", version or "", path])
    if not is_right or not is_encodable(text) or not text.replace("\n", "").isprintable():
        raise ValueError("it is not an origin")
    return text
