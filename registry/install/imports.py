"""Import skills from an untrusted archive or address into a local source.

An import checks the skills for security errors, and then creates copies of them.
"""

import io
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from registry.changes.create import create_files, detail_after
from registry.changes.untrusted import check_untrusted, security_status
from registry.core import Core
from registry.db.read.skills import folder_of_name
from registry.db.read.sources import list_sources
from registry.disk.paths import ROOT
from registry.document.names import check_folder_name
from registry.document.parse import parse_document
from registry.errors import (
    ArchiveRefused,
    InvalidName,
    RemoteProblem,
    SeveralSkills,
    SkillExists,
    SkillInvalid,
    UsageProblem,
)
from registry.model import DOCUMENT_NAMES, Document, Remote, SkillDetail, Source, Value
from registry.remotes.address import Address
from registry.remotes.artifacts import packed, read_local
from registry.remotes.discovery import by_skill, wanted_files
from registry.remotes.kinds import open_remote
from registry.remotes.snapshot import Blob, FetchLimits, Snapshot
from registry.remotes.sources import address_of, check_exists, kind_of
from registry.remotes.unpacking import ArchiveLimits, BadArchive
from registry.settings import Limits
from registry.sync.sources import check_writable, target_source
from registry.text import folded, quoted

MAX_PACKED: Final = 64 << 20
"""Maximum size of an archive, in bytes."""


IS_FOLDER: Final = "it is a folder, not an archive"
IS_DOCUMENT: Final = "it is a single file, not an archive"
NO_DOCUMENT: Final = "it has no SKILL.md at its top or in a single top folder"


Unpacked: TypeAlias = tuple[dict[str, bytes], frozenset[str]]
"""The files of a skill by path, and the paths of its executable files."""


def import_archive(
    core: Core,
    path: str,
    *,
    source: str | None = None,
    name: str | None = None,
    trust: bool = False,
) -> SkillDetail:
    """Create a skill from an archive (.skill, .zip, .tar.gz) with a single skill; return it.

    Raises `ArchiveRefused`, `SkillInvalid`, `InvalidName`, and the errors of
    `SkillRegistry.create`. Raises `SkillHeld` if the skill has security errors, unless ``trust``.
    """
    home = target_source(core, source)
    files, executable = read_archive(path, core.settings.limits)
    document = next(one for one in DOCUMENT_NAMES if one in files)
    parsed = parse_document(files[document], folder_name=name or "")
    if not parsed.usable:
        raise SkillInvalid(name=path, problems=parsed.diagnostics)
    folder = name or parsed.name
    reason = check_folder_name(folder)
    if reason is not None:
        raise InvalidName(name=folder, reason=f"{reason}; choose one with --name")
    if not trust:
        check_untrusted(core, parsed.name, files, executable)
    made = create_files(core, home, folder, parsed.name, files, executable)
    return detail_after(core, made)


def read_archive(path: str, limits: Limits) -> Unpacked:
    """Return the files of the single skill in an archive. Raises `ArchiveRefused`."""
    _check_packed(path)
    try:
        data, _ = read_local(path, MAX_PACKED)
    except RemoteProblem as error:
        raise ArchiveRefused(path=path, reason=error.facts["reason"]) from error
    return unpacked(data, path, limits)


def unpacked(data: bytes, path: str, limits: Limits) -> Unpacked:
    """Return the files of the single skill in an archive's bytes; errors contain ``path``.

    Raises `ArchiveRefused`. If the archive exceeds a limit, the cause of the error is `TooMuch`.
    """
    room = ArchiveLimits(limits.files, limits.skill_bytes, limits.skill_bytes)
    try:
        part = packed(partial(io.BytesIO, data), room)
        files = dict(part.read(set(part.blobs)))
    except BadArchive as error:
        raise ArchiveRefused(path=path, reason=str(error)) from error
    documents = [name for name in DOCUMENT_NAMES if name in files]
    if not documents:
        raise ArchiveRefused(path=path, reason=NO_DOCUMENT)
    if len(documents) > 1:
        raise ArchiveRefused(path=path, reason=f"it holds {' and '.join(documents)}")
    size = len(files[documents[0]])
    if size > limits.document_bytes:
        reason = f"its {documents[0]} has {size} bytes, {limits.document_bytes} are allowed"
        raise ArchiveRefused(path=path, reason=reason)
    return files, frozenset(name for name, blob in part.blobs.items() if blob.executable)


def _check_packed(path: str) -> None:
    if os.path.isdir(os.path.expanduser(path)):
        raise ArchiveRefused(path=path, reason=IS_FOLDER)
    if os.path.basename(path) in DOCUMENT_NAMES:
        raise ArchiveRefused(path=path, reason=IS_DOCUMENT)


def import_skills(
    core: Core,
    target: str,
    *,
    skills: Sequence[str] = (),
    every: bool = False,
    source: str | None = None,
    name: str | None = None,
    trust: bool = False,
) -> list[SkillDetail]:
    """Create copies of the skills in an archive, a repository, a site or a hub; return them.

    If a skill can't be created, no skill is created. ``skills`` are the names of the skills to
    create. Without names, ``every`` creates all skills; otherwise the only skill is created. Raises
    `SeveralSkills` if there are several, and `SkillHeld` if a skill has security errors, unless
    ``trust``. Raises `ArchiveRefused`, `AddressInvalid`, `RemoteProblem`, and the errors of
    `SkillRegistry.create`.
    """
    address = address_of(core, list_sources(core.reader, counted=False), target)
    _check_there(target, address)
    home = target_source(core, source)
    check_writable(home)
    if address is None or os.path.isfile(os.path.expanduser(target)):
        try:
            if not skills and not every:
                return [import_archive(core, target, source=home.name, name=name, trust=trust)]
        except ArchiveRefused as error:
            if error.facts["reason"] != NO_DOCUMENT or address is None:
                raise
    if address is None:
        _check_packed(target)
        raise ArchiveRefused(path=target, reason="it is not an archive and not the address of one")
    remote = _remote_of(address, skills)
    with _opened(core, remote) as tree:
        found = _found_skills(tree, remote, target, every=every or bool(skills), name=name)
    taken: set[str] = set()
    for one in found:
        _check(core, home, one)
        if (key := folded(one.folder)) in taken:
            reason = f"several skills need the folder {quoted(one.folder)}"
            raise ArchiveRefused(path=target, reason=reason)
        taken.add(key)
    for one in () if trust else found:
        check_untrusted(core, one.name, one.files, one.executable)
    made = [
        create_files(core, home, one.folder, one.name, one.files, one.executable) for one in found
    ]
    return [detail_after(core, one) for one in made]


def _check_there(target: str, address: Address | None) -> None:
    if address is not None:
        check_exists(address)
    elif not os.path.lexists(os.path.expanduser(target)):
        raise ArchiveRefused(path=target, reason="there is no such file")


@dataclass(frozen=True, slots=True)
class OfferedSkill(Value):
    """A skill that an address offers; ``folder`` is its folder at the address.

    If ``quarantined``, the skill has security errors, and agents don't see it until you trust it.
    If ``warning``, the skill has security findings.
    """

    name: str
    description: str
    version: str | None
    folder: str
    usable: bool
    quarantined: bool
    warning: bool


def offered_at(core: Core, target: str) -> list[OfferedSkill]:
    """Return the skills that an address offers, sorted by name.

    Raises `UsageProblem` if ``target`` is not an address, and `RemoteProblem`.
    """
    address = address_of(core, list_sources(core.reader, counted=False), target)
    if address is None:
        raise UsageProblem(message=f"{target} is not an address")
    remote = _remote_of(address, ())
    found = []
    with _opened(core, remote) as tree:
        wanted, _ = wanted_files(tree, remote, FetchLimits())
        for folder, files, executable in _read(tree, wanted):
            parsed = _parsed(_document(files), folder)
            found_there = security_status(core, parsed.name, files, executable)
            facts = parsed.description, parsed.version, folder, parsed.usable
            found.append(OfferedSkill(parsed.name, *facts, *found_there))
    return sorted(found, key=lambda one: (one.name, one.folder))


@contextmanager
def _opened(core: Core, remote: Remote) -> Iterator[Snapshot]:
    """Fetch a remote source into a temporary folder, which is removed at the end of the block.

    Raises `RemoteProblem`.
    """
    with (
        tempfile.TemporaryDirectory(prefix="skill-registry-") as state,
        open_remote(remote, state, None, FetchLimits(), core.settings.source_kinds) as tree,
    ):
        assert tree is not None  # noqa: S101  # not None, as `known` is None
        yield tree


def _parsed(data: bytes, folder: str) -> Document:
    name = "" if folder == ROOT else os.path.basename(folder)
    return parse_document(data, folder_name=name)


@dataclass(frozen=True, slots=True)
class _Brought:
    """A skill that the import will create."""

    folder: str
    name: str
    files: Mapping[str, bytes]
    executable: frozenset[str]


def _remote_of(address: Address, skills: Sequence[str]) -> Remote:
    check_exists(address)
    kind = kind_of(address)
    only = tuple(skills) or address.only
    return Remote(kind, address.url, address.ref, address.part, only)


def _found_skills(
    tree: Snapshot, remote: Remote, target: str, *, every: bool, name: str | None
) -> list[_Brought]:
    wanted, _notices = wanted_files(tree, remote, FetchLimits())
    skills = _without_copies(by_skill(wanted), wanted)
    if len(skills) > 1 and not every:
        raise SeveralSkills(path=target, names=[os.path.basename(one) for one in skills])
    if len(skills) > 1 and name is not None:
        raise UsageProblem(message="--name requires a single skill")
    found = []
    for folder, files, runs in _read(tree, wanted):
        parsed = _parsed(_document(files), folder)
        if not parsed.usable:
            raise SkillInvalid(name=folder, problems=parsed.diagnostics)
        found.append(_Brought(name or parsed.name, parsed.name, files, runs))
    return found


def _read(
    tree: Snapshot, wanted: Mapping[str, Blob]
) -> Iterator[tuple[str, dict[str, bytes], frozenset[str]]]:
    """Yield each skill's folder, its files, and the paths of its executable files."""
    data = dict(tree.read(list(wanted)))
    for folder, paths in _without_copies(by_skill(wanted), wanted).items():
        files = {inside: data[path] for inside, path in paths.items()}
        yield folder, files, frozenset(one for one in paths if wanted[paths[one]].executable)


def _document(files: Mapping[str, bytes]) -> bytes:
    return next(files[one] for one in DOCUMENT_NAMES if one in files)


def _without_copies(
    skills: Mapping[str, Mapping[str, str]], wanted: Mapping[str, Blob]
) -> dict[str, Mapping[str, str]]:
    """Return the skills of a repository, without copies of the same skill.

    A repository may contain a copy of a skill for each of several agents. Only the first copy is
    returned.
    """
    first: dict[object, str] = {}
    for folder, paths in skills.items():
        files = {(inside, *wanted[path][:2]) for inside, path in paths.items()}
        first.setdefault((os.path.basename(folder), frozenset(files)), folder)
    return {folder: skills[folder] for folder in first.values()}


def _check(core: Core, home: Source, one: _Brought) -> None:
    """Check a skill, and raise the errors that its creation would raise.

    `import_skills` checks all skills before it creates the first one.
    """
    limits = core.settings.limits
    reason = check_folder_name(one.folder)
    if reason is not None:
        raise InvalidName(name=one.folder, reason=reason)
    size = sum(map(len, one.files.values()))
    if len(one.files) > limits.files or size > limits.skill_bytes:
        reason = f"{one.name} exceeds the limits of a skill: {len(one.files)} files, {size} bytes"
        raise ArchiveRefused(path=one.name, reason=reason)
    taken = folder_of_name(core.reader, home.id, one.name)
    path = os.path.join(home.path, taken or one.folder)
    if taken is not None or os.path.lexists(path):
        raise SkillExists(name=one.name, path=path)
