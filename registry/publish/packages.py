"""Read, check and compare the files of a skill before it is published."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from stat import S_IXUSR
from typing import Final

from registry.changes.untrusted import read_files
from registry.changes.update import update_files
from registry.core import Core
from registry.db.read.skills import StoredSkill
from registry.db.read.skills import files as stored_files
from registry.disk.files import digest, open_home, read_inside
from registry.disk.links import real_path
from registry.disk.paths import ROOT, called_on_disk
from registry.disk.walk import Walk
from registry.document.differing import difference
from registry.document.names import check_folder_name
from registry.document.parse import parse_document
from registry.errors import ArchiveRefused, FileChanging, InvalidName, PublishRefused
from registry.install.imports import NO_DOCUMENT, Unpacked, read_archive
from registry.model import DOCUMENT_NAMES, Diagnostic
from registry.sync.reading import read_folder, tree_hash

MAX_DIFF: Final = 2000
"""Maximum number of lines of a diff that is shown before publishing."""

MAX_COMPARED: Final = 1 << 18
"""Maximum size of a file that is compared line by line, in bytes."""


@dataclass(frozen=True, slots=True)
class Package:
    """The files of a skill to publish, with the result of their check.

    ``name`` is the name in the SKILL.md. ``folder`` is the name of the skill's folder, if the skill
    is new. ``version`` is the label in the front matter.
    """

    name: str
    folder: str
    files: Mapping[str, bytes]
    executable: frozenset[str]
    tree_hash: str
    findings: tuple[Diagnostic, ...]
    version: str | None = None


def read_package(core: Core, path: str, name: str | None = None) -> Package:
    """Return the package in a folder or an archive on this machine.

    ``name`` is the name of the folder for a new skill; the default is the skill's name. Raises
    `ArchiveRefused`, `InvalidName`, `SkillInaccessible`, `FileChanging`.
    """
    place = os.path.expanduser(path)
    if os.path.isdir(place):
        return package(
            core, *_read_folder(core, place), name=name, usual=os.path.basename(real_path(place))
        )
    return package(core, *read_archive(path, core.settings.limits), name=name)


def package(
    core: Core,
    files: Mapping[str, bytes],
    executable: frozenset[str],
    *,
    name: str | None = None,
    usual: str = "",
) -> Package:
    """Return the package of these files, with the same checks as `check` makes for a folder.

    If the SKILL.md has no name, the name is ``name`` or ``usual``. Raises `InvalidName`, or
    `PublishRefused` if the files can't be a skill.
    """
    document = next(one for one in DOCUMENT_NAMES if one in files)
    parsed = parse_document(files[document], folder_name=name or usual)
    folder = name or parsed.name
    if (reason := check_folder_name(folder)) is not None:
        raise InvalidName(name=folder, reason=reason)
    reading = read_files(core, files, executable, folder)
    hashed = tree_hash(reading.found, reading.hashes)
    if hashed is None or reading.document is None or not parsed.usable:
        raise PublishRefused(name=parsed.name, problems=reading.findings)
    return Package(parsed.name, folder, files, executable, hashed, reading.findings, parsed.version)


def _read_folder(core: Core, place: str) -> Unpacked:
    """Read the same files as a sync. Raises `ArchiveRefused`, `SkillInaccessible`."""
    root, limits = real_path(place), core.settings.limits
    found = Walk(root, limits, ()).one(ROOT)
    if found is None or found.document is None:
        problem = next(iter(found.problems), None) if found is not None else None
        raise ArchiveRefused(path=place, reason=problem.message if problem else NO_DOCUMENT)
    reading = read_folder(root, found, limits, {})
    refused = [one for one in reading.findings if one.severity == "error"]
    if reading.document is None or any(one.category == "format" for one in refused):
        raise PublishRefused(name=place, problems=reading.findings)
    files, executable, left = {}, set(), limits.skill_bytes
    with open_home(root, ROOT) as home:
        for file in found.files:
            data = read_inside(home, called_on_disk(file.path), left, root).data
            if digest(data) != reading.hashes.get(file.path):
                raise FileChanging(path=os.path.join(place, file.path))
            left -= len(data)
            files[file.path] = data
            if file.mode & S_IXUSR:
                executable.add(file.path)
    return files, frozenset(executable)


def replace_files(
    core: Core, current: StoredSkill, files: Mapping[str, bytes], executable: frozenset[str]
) -> StoredSkill:
    """Replace all files of a skill in one change. Raises the errors of `update.update_files`."""
    before = {one.path: one for one in stored_files(core.reader, current.id)}
    edits: dict[str, bytes | None] = {}
    for path, data in files.items():
        old = before.get(path)
        if old is None or (old.hash, old.executable) != (digest(data), path in executable):
            edits[path] = data
    edits |= {path: None for path in before if path not in files}
    runs = {path: path in executable for path in files}
    return update_files(core, current, edits, executable=runs)


def differences(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the lines of a unified diff between two sets of files."""
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path, b""), after.get(path, b"")
        if path in before and path in after and old == new:
            continue
        if max(len(old), len(new)) > MAX_COMPARED:
            yield f"Files {path} (current) and {path} (new) differ\n"
            continue
        yield from difference(path, old, new, "current", "new")
        if path not in after:
            yield f"Removed {path}\n"


def shortened(lines: Iterator[str]) -> str:
    """Return the first `MAX_DIFF` lines of a diff; if there are more, add a note."""
    shown: Sequence[str] = list(islice(lines, MAX_DIFF + 1))
    more = f"The diff has more than {MAX_DIFF} lines.\n" if shown[MAX_DIFF:] else ""
    return "".join(shown[:MAX_DIFF]) + more
