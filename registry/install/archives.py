"""Import a skill from an archive, trusting nothing that the archive says of itself."""

import io
import os
from typing import Final, NamedTuple

from registry.changes.create import create_files, told
from registry.changes.foreign import check_foreign
from registry.core import Core
from registry.disk.files import read_file
from registry.disk.paths import check_paths
from registry.document.names import check_folder_name
from registry.errors import (
    ArchiveRefused,
    FileTooLarge,
    InvalidName,
    SkillInaccessible,
    SkillInvalid,
)
from registry.model import DOCUMENT_NAMES, SkillDetail
from registry.remotes.unpacking import BadArchive, Room, strictly, unpack, wrapping
from registry.settings import Limits
from registry.sync.target import target_source

MAX_PACKED: Final = 64 << 20
"""Bytes of an archive."""


NO_DOCUMENT: Final = "it holds no SKILL.md at its top, or in one folder"


class Unpacked(NamedTuple):
    """The files of a skill by their paths, and which of them can be executed."""

    files: dict[str, bytes]
    executable: frozenset[str]


def import_archive(
    core: Core,
    path: str,
    *,
    source: str | None = None,
    name: str | None = None,
    trust: bool = False,
) -> SkillDetail:
    """Create the skill that an archive (.skill, .zip, .tar.gz) holds, and return it.

    ``name``: the folder's, by default the skill's own. ``trust``: one with security errors, too.
    Raises `ArchiveRefused` with the reason, `SkillInvalid`, `InvalidName`, `SkillHeld`, and what
    `SkillRegistry.create` raises.
    """
    from registry.document.parse import parse_document

    home = target_source(core, source)
    files, executable = read_archive(path, core.settings.limits)
    document = next(one for one in DOCUMENT_NAMES if one in files)
    parsed = parse_document(files[document], folder_name=name or "", dialects=core.dialects)
    if not parsed.usable:
        raise SkillInvalid(name=path, problems=parsed.diagnostics)
    folder = name or parsed.name
    reason = check_folder_name(folder)
    if reason is not None:
        raise InvalidName(name=folder, reason=f"{reason}; choose one with --name")
    if not trust:
        check_foreign(core, parsed.name, files, executable)
    made = create_files(core, home, folder, parsed.name, files, executable)
    return told(core, made)


def read_archive(path: str, limits: Limits) -> Unpacked:
    """Return the files of the one skill in an archive, by their paths in its folder.

    The skill file lies at the archive's root, or in the one folder there. Raises `ArchiveRefused`.
    """
    try:
        data = read_file(os.path.realpath(os.path.expanduser(path)), MAX_PACKED).data
    except FileNotFoundError:
        raise ArchiveRefused(path=path, reason="there is no such file") from None
    except FileTooLarge as error:
        reason = f"it has {error.facts['size']} bytes, {MAX_PACKED} are allowed"
        raise ArchiveRefused(path=path, reason=reason) from error
    except SkillInaccessible as error:
        raise ArchiveRefused(path=path, reason=str(error.facts["reason"])) from error
    try:
        unpacked = _unpacked(data, limits)
    except BadArchive as error:
        raise ArchiveRefused(path=path, reason=str(error)) from error
    return _unwrapped(path, unpacked, limits)


def _unpacked(data: bytes, limits: Limits) -> Unpacked:
    files: dict[str, bytes] = {}
    executable: set[str] = set()
    room = Room(limits.files, limits.skill_bytes, limits.skill_bytes)
    for member in unpack(io.BytesIO(data), room):
        if member.path in files:
            strictly(member.path, "is there twice")
        files[member.path] = member.data
        if member.executable:
            executable.add(member.path)
    bad = check_paths(files)
    if bad is not None:
        raise BadArchive(f"{bad[0][:100]!r}: {bad[1]}")
    return Unpacked(files, frozenset(executable))


def _unwrapped(path: str, unpacked: Unpacked, limits: Limits) -> Unpacked:
    """Return the files without the one folder around them, if there is one."""
    files, executable = unpacked
    if top := wrapping(files):
        files = {name.removeprefix(top): data for name, data in files.items()}
        executable = frozenset(name.removeprefix(top) for name in executable)
    documents = [name for name in DOCUMENT_NAMES if name in files]
    if not documents:
        raise ArchiveRefused(path=path, reason=NO_DOCUMENT)
    if len(documents) > 1:
        raise ArchiveRefused(path=path, reason=f"it holds {' and '.join(documents)}")
    size = len(files[documents[0]])
    if size > limits.document_bytes:
        reason = f"its {documents[0]} has {size} bytes, {limits.document_bytes} are allowed"
        raise ArchiveRefused(path=path, reason=reason)
    return Unpacked(files, executable)
