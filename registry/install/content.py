"""Read and verify all files of a skill, and compare them with a folder on disk."""

import hashlib
import os
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from stat import S_ISDIR, S_ISLNK
from typing import Final

from registry.catalog.reading import CurrentSkill, unusable
from registry.catalog.resolve import resolve
from registry.changes.untrusted import check_untrusted
from registry.core import Core
from registry.db.read import skills
from registry.db.read.history import Revision, content, revisions_with_files, stored_files
from registry.db.read.skills import StoredSkill
from registry.disk.atomic import Place
from registry.disk.beneath import Folder
from registry.disk.files import digest, open_home, read_below, read_inside, tree_digest
from registry.disk.paths import check_paths
from registry.disk.walk import UNREADABLE, inaccessible
from registry.errors import (
    ContentDamaged,
    FileChanging,
    PathRefused,
    RegistryError,
    RemoteTooLarge,
    SkillInaccessible,
    VersionNotStored,
)
from registry.install.lockfile import LockEntry
from registry.model import PinnedSkill, Skill, SkillFile
from registry.remotes.snapshot import Snapshot, below
from registry.sync.sources import is_here

ATTEMPTS: Final = 3
"""Maximum number of attempts to read a skill that changes while it is read."""


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file of a skill: its path below the skill's folder, its bytes and its executable bit."""

    path: str
    data: bytes
    executable: bool


def content_below(tree: Snapshot, folder: str, url: str, most: int) -> list[FileContent]:
    """Return the files of a folder in a remote snapshot, at most ``most``.

    Raises `RemoteProblem`.
    """
    wanted = below(tree.files, folder)
    if len(wanted) > most:
        raise RemoteTooLarge(url=url, reason=f"{folder} has more than {most} files")
    data = dict(tree.read(list(wanted.values())))
    return [
        FileContent(inside, data[path], tree.files[path].executable)
        for inside, path in sorted(wanted.items())
    ]


def content_of(core: Core, skill: Skill, *, quarantined: bool = False) -> list[FileContent]:
    """Return the current files of a skill, sorted by path; all belong to one state of the skill.

    If ``quarantined``, also return the files of a quarantined skill, to show them. Raises
    `SkillInvalid`, `SkillInaccessible`, `ContentDamaged`, `FileTooLarge`, `FileChanging`,
    `PathRefused`, and the errors of `SkillRegistry.get`.
    """
    if isinstance(skill, PinnedSkill):
        return _pinned_content(core, skill)
    problem: RegistryError = FileChanging(path=skill.path)
    for _ in range(ATTEMPTS):
        found = resolve(core.reader, f"{skill.source}/{skill.folder}")
        # Use the caller's ref in errors, because the caller may not see all skills with this name.
        found = found._replace(skill=replace(found.skill, ref=skill.ref))
        current = CurrentSkill.of_stored(core, found)
        stored = current.stored
        is_held = stored.yanked or (stored.quarantined and not quarantined)
        if stored.skill.status not in {"ok", "warning"} or is_held:
            raise unusable(core.reader, stored, skill.ref)
        try:
            _check_whole(core, current)
            entries = _entries(core, stored)
        except SkillInaccessible as error:
            problem = error  # the skill may have changed during this attempt, so try again
            continue
        if tree_hash(entries) == stored.skill.tree_hash:
            return entries
    raise problem


def _pinned_content(core: Core, skill: PinnedSkill) -> list[FileContent]:
    """Return the files of a version.

    Raises `VersionNotStored`. Raises `SkillHeld` if a sync would quarantine the files.
    """
    tree = skill.tree_hash or ""
    entries = content_as_locked(core, skill.name, tree, foreign=False)
    if entries is None:
        entries = content_as_locked(core, skill.name, tree)
        if entries is None:
            raise VersionNotStored(name=skill.ref, label=skill.pin)
        files = {one.path: one.data for one in entries}
        check_untrusted(core, skill.name, files, {one.path for one in entries if one.executable})
    return entries


def tree_hash(entries: Sequence[FileContent]) -> str:
    """Return the tree hash of these files, which equals the hash that the registry stores."""
    return tree_digest([(one.path, one.executable, digest(one.data)) for one in entries])


def same_files(entries: Sequence[FileContent], place: Place) -> bool:
    """Tell whether the folder at ``place`` exists and has exactly these files. Raises OSError."""
    if not S_ISDIR(place.folder.lstat(place.name).st_mode):
        return False
    return local_files(place) == {one.path: (digest(one.data), one.executable) for one in entries}


def local_files(place: Place) -> dict[str, tuple[str, bool]]:
    """Return the hash and the executable bit of each file in a folder, by path.

    For a link or a special file, the hash is ''.
    """
    found: dict[str, tuple[str, bool]] = {}
    with place.folder.folder(place.name) as folder:
        for entry in folder.entries():
            if entry.is_dir(follow_symlinks=False):
                inner = local_files(Place(folder, entry.name))
                found |= {f"{entry.name}/{path}": facts for path, facts in inner.items()}
            elif entry.is_file(follow_symlinks=False):
                with os.fdopen(folder.open_file(entry.name), "rb") as file:
                    mode = os.fstat(file.fileno()).st_mode
                    hashed = hashlib.file_digest(file, "sha256").hexdigest()
                found[entry.name] = f"sha256:{hashed}", bool(mode & 0o100)
            else:
                found[entry.name] = "", False
    return found


def tree_hash_at(place: Place) -> str | None:
    """Return the tree hash of a folder; None if it contains a link or a special file."""
    if not S_ISDIR(place.folder.lstat(place.name).st_mode):
        return None
    files = local_files(place)
    if not all(hashed for hashed, _ in files.values()):
        return None
    return tree_digest([(path, runs, hashed) for path, (hashed, runs) in files.items()])


def local_content(core: Core, place: Place) -> list[FileContent]:
    """Return the regular files in a folder, sorted by path. Raises OSError, `FileTooLarge`."""
    room, found = core.settings.limits.skill_bytes, []
    for path, (hashed, executable) in sorted(local_files(place).items()):
        if hashed:
            data = read_below(place.folder, f"{place.name}/{path}", room).data
            room -= len(data)
            found.append(FileContent(path, data, executable))
    return found


def _check_whole(core: Core, current: CurrentSkill) -> None:
    """Raise `SkillInaccessible` if the registry doesn't know all files of the skill."""
    current.check_whole()
    stored = current.stored
    if stored.skill.tree_hash is None or current.found is None:
        for finding in skills.findings(core.reader, stored.id):
            if finding.code == UNREADABLE:
                raise inaccessible(stored.path, finding)


def content_as_locked(
    core: Core, name: str, tree: str, *, foreign: bool = True
) -> list[FileContent] | None:
    """Return files with this tree hash, from a skill with this name or from any stored revision.

    Returns None if there is no such skill or revision. Skips quarantined skills. Unless
    ``foreign``, also skips revisions of remote sources.
    """
    for stored in skills.same_files(core.reader, name, tree):
        with suppress(RegistryError):
            entries = content_of(core, stored.skill)
            if tree_hash(entries) == tree:
                return entries
    for revision in revisions_with_files(core.reader, tree):
        if revision.origin is not None and not foreign:
            continue
        with suppress(RegistryError):
            found = _kept(core, revision)
            if found is not None and tree_hash(found) == tree:
                return found
    return None


def is_known(core: Core, name: str, tree: str) -> bool:
    """Tell whether a skill or a stored revision has this tree hash; this reads no files."""
    return bool(
        skills.same_files(core.reader, name, tree) or revisions_with_files(core.reader, tree)
    )


def _kept(core: Core, revision: Revision) -> list[FileContent] | None:
    """Return the files of a revision; None if the database doesn't have all of them."""
    _check_files(core, revision.files, revision.name)
    stored = stored_files(core.reader, revision, core.settings.limits.skill_bytes)
    if len(stored) < len(revision.files):
        return None
    return [FileContent(one.path, stored[one.path], one.executable) for one in revision.files]


def _check_files(core: Core, files: Sequence[SkillFile], path: str) -> None:
    """Raise an error if there are too many files, or if a path leads out of the skill's folder."""
    limits = core.settings.limits
    if len(files) > limits.files:
        reason = f"it has {len(files)} files, {limits.files} are allowed"
        raise SkillInaccessible(path=path, reason=reason)
    bad = check_paths(file.path for file in files)  # another user may have written these paths
    if bad is not None:
        raise PathRefused(path=bad[0], reason=bad[1])


def _entries(core: Core, stored: StoredSkill) -> list[FileContent]:
    """Return the files of a skill, within the limits of a sync."""
    files = skills.files(core.reader, stored.id)
    _check_files(core, files, stored.path)
    entries: list[FileContent] = []
    room = core.settings.limits.skill_bytes
    with _home(core, stored) as home:
        for file in files:
            data = _bytes(core, stored, file, home, room)
            room -= len(data)
            entries.append(FileContent(file.path, data, file.executable))
    return entries


def _home(core: Core, stored: StoredSkill) -> AbstractContextManager[Folder | None]:
    """Open the folder of a skill once, to read all its files.

    Yields None if the folder is on another machine or can't be opened.
    """
    if is_here(core, stored.host, stored.root):
        with suppress(RegistryError, OSError):
            return open_home(stored.root, stored.folder)
    return nullcontext()


def _bytes(
    core: Core, stored: StoredSkill, file: SkillFile, home: Folder | None, most: int
) -> bytes:
    """Return a file's bytes from the database; if it has none, from disk if the hash matches."""
    path = f"{stored.path}/{file.path}"
    if file.hash is None:
        raise SkillInaccessible(path=path, reason="the last sync could not read it either")
    try:
        data = content(core.reader, stored.uid, file, most)
    except ContentDamaged:
        if not is_here(core, stored.host, stored.root):
            raise
        data = None
    if home is not None and data is None:
        try:
            data = read_inside(home, file.path, min(file.size, most), stored.root).data
        except (RegistryError, OSError):
            data = None
    if data is None or digest(data) != file.hash:
        reason = "its files are not stored, and no longer on disk as synced"
        if not is_here(core, stored.host, stored.root):
            reason = f"its folder is on {stored.host}, and its bytes are not in the database"
        raise SkillInaccessible(path=path, reason=reason)
    return data


MAX_NAMED: Final = 5
MAX_DIFF_BYTES: Final = 1 << 18
"""Maximum size of a file whose changed lines are counted, in bytes.

For a larger file, the summary only reports that the file differs.
"""


def edit_summary(core: Core, place: Place, pulled: LockEntry) -> str:
    """Summarise how an installed skill differs from the files that `pull` wrote, for each file.

    Raises OSError.
    """
    entries = content_as_locked(core, pulled.name, pulled.tree_hash)
    if entries is not None:
        return diff_summary(place, entries)
    if told := _no_folder(place):
        return told
    there = {path: hashed for path, (hashed, _) in local_files(place).items()}
    told = _listed(
        [f"{path} exists only here" for path in there.keys() - pulled.files.keys()]
        + [f"{path} is missing" for path in pulled.files.keys() - there.keys()]
        + [
            f"{path} differs"
            for path in there.keys() & pulled.files.keys()
            if there[path] != pulled.files[path]
        ]
    )
    return told or "the executable bits differ"


def diff_summary(place: Place, entries: Sequence[FileContent]) -> str:
    """Summarise how the folder at ``place`` differs from these files, for each file.

    Raises OSError.
    """
    if no_folder := _no_folder(place):
        return no_folder
    there, coming = local_files(place), {one.path: one for one in entries}
    told = []
    for path in {*there, *coming}:
        if path not in coming:
            told.append(f"{path} exists only here")
        elif path not in there:
            told.append(f"{path} is missing")
        elif there[path] != (digest(coming[path].data), coming[path].executable):
            told.append(f"{path} differs{_lines(place, coming[path])}")
    return _listed(told)


def _no_folder(place: Place) -> str:
    mode = place.folder.lstat(place.name).st_mode
    if S_ISDIR(mode):
        return ""
    return "a link is there" if S_ISLNK(mode) else "a file is there"


def _listed(told: Sequence[str]) -> str:
    more = f", and {len(told) - MAX_NAMED} more" if told[MAX_NAMED:] else ""
    return ", ".join(sorted(told)[:MAX_NAMED]) + more


def _lines(place: Place, coming: FileContent) -> str:
    """Return how many lines of a changed file were added and removed, such as " (+2 -1)".

    Returns "" if the file is too large or isn't text.
    """
    if len(coming.data) > MAX_DIFF_BYTES:
        return ""
    with suppress(OSError, RegistryError, UnicodeDecodeError):
        data = read_below(place.folder, f"{place.name}/{coming.path}", MAX_DIFF_BYTES).data
        mine, theirs = data.decode().splitlines(), coming.data.decode().splitlines()
        more, fewer = Counter(mine) - Counter(theirs), Counter(theirs) - Counter(mine)
        return f" (+{more.total()} -{fewer.total()})"
    return ""
