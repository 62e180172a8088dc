"""Import a skill from an archive, trusting nothing that the archive says of itself."""

import gzip
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Container, Iterator
from typing import IO, Final, NamedTuple

from registry.changes.create import create_files, told
from registry.core import Core
from registry.disk.files import read_file
from registry.disk.paths import check_path, check_paths
from registry.document.names import check_folder_name
from registry.errors import (
    ArchiveRefused,
    FileTooLarge,
    InvalidName,
    SkillInaccessible,
    SkillInvalid,
)
from registry.model import DOCUMENT_NAMES, SkillDetail
from registry.settings import Limits
from registry.sync.sources import target_source

MAX_PACKED: Final = 64 << 20
"""Bytes of an archive."""

TAR_OVERHEAD: Final = 2 << 20
"""Bytes of a tar beyond those of its files: headers and padding."""

GZIP: Final = b"\x1f\x8b"

EXTRAS: Final = "__MACOSX/"
"""Where macOS puts what it knows of the files of a zip."""

CHUNK: Final = 1 << 16

PLAIN_WAYS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""How members of a zip may be packed; the others need memory as an archive says."""

ENCRYPTED: Final = 0x1

Member = tuple[str, bool, Callable[[], IO[bytes]]]
"""A file of an archive: its path there, whether it can be executed, and what opens it."""


class Unpacked(NamedTuple):
    """The files of a skill by their paths, and which of them can be executed."""

    files: dict[str, bytes]
    executable: frozenset[str]


def import_archive(
    core: Core, path: str, *, source: str | None = None, name: str | None = None
) -> SkillDetail:
    """Create the skill that an archive (.skill, .zip, .tar.gz) holds, and return it.

    ``name``: the folder's, by default the skill's own. Raises `ArchiveRefused` with the reason,
    `SkillInvalid`, `InvalidName`, and what `SkillRegistry.create` raises.
    """
    from registry.document import parse_document

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
        unpacked = _unpacked(path, data, limits)
    except ArchiveRefused:
        raise
    except Exception as error:  # hostile archives fail in the libraries in many ways
        raise ArchiveRefused(path=path, reason=f"it can't be unpacked: {error}") from error
    return _unwrapped(path, unpacked, limits)


def _unpacked(path: str, data: bytes, limits: Limits) -> Unpacked:
    files: dict[str, bytes] = {}
    executable: set[str] = set()
    total = 0
    for given, can_run, opened in _members(data, limits.skill_bytes + TAR_OVERHEAD):
        member = _checked(path, given, files)
        if len(files) >= limits.files:
            raise ArchiveRefused(path=path, reason=f"it has more than {limits.files} files")
        with opened() as stream:
            files[member] = _read(path, stream, limits.skill_bytes - total)
        total += len(files[member])
        if can_run:
            executable.add(member)
    bad = check_paths(files)
    if bad is not None:
        raise ArchiveRefused(path=path, reason=f"{bad[0][:100]!r}: {bad[1]}")
    return Unpacked(files, frozenset(executable))


def _gunzipped(data: bytes, most: int) -> bytes:
    if not data.startswith(GZIP):
        return data
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
        plain = stream.read(most + 1)
    if len(plain) > most:
        raise ValueError(f"it has more than {most} bytes when it is unpacked")
    return plain


def _members(data: bytes, most: int) -> Iterator[Member]:
    """Yield the files of a zip or tar archive; anything that is not a plain file is an error.

    ``most``: bytes that a tar may have.
    """
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist():
                if info.is_dir() or info.filename.startswith(EXTRAS):
                    continue
                can_run = _may_be_read(info)
                yield info.filename, can_run, lambda info=info: archive.open(info)  # type: ignore[misc]
        return
    # Unpacked with a limit before it is looked at: a header may claim, and hold, a gigabyte.
    with tarfile.open(fileobj=io.BytesIO(_gunzipped(data, most)), mode="r:") as tar:
        for entry in tar:
            if entry.isdir():
                continue
            if not entry.isreg():
                raise ValueError(f"{entry.name!r} is not a plain file")
            can_run = bool(entry.mode & stat.S_IXUSR)
            yield entry.name, can_run, lambda entry=entry: tar.extractfile(entry)  # type: ignore[misc]


def _may_be_read(info: zipfile.ZipInfo) -> bool:
    """Raise ValueError for what is not a plain file; return whether it can be executed."""
    mode = info.external_attr >> 16
    if "\0" in info.orig_filename:  # the library cuts the name off there
        raise ValueError(f"{info.orig_filename!r} is not the name of a file")
    if mode and stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
        raise ValueError(f"{info.filename!r} is not a plain file")
    if info.flag_bits & ENCRYPTED:
        raise ValueError(f"{info.filename!r} is encrypted")
    if info.compress_type not in PLAIN_WAYS:
        raise ValueError(f"{info.filename!r} is packed in a way that is not taken")
    return bool(mode & stat.S_IXUSR)


def _checked(path: str, given: str, known: Container[str]) -> str:
    """Return a member's path without the dots that `tar` begins it with, if it is a safe one."""
    member = "/".join(part for part in given.split("/") if part not in {"", "."})
    if check_path(given if given.startswith("/") else member) is not None:
        raise ArchiveRefused(path=path, reason=f"{given[:100]!r} can't be in a skill's folder")
    if member in known:
        raise ArchiveRefused(path=path, reason=f"{member[:100]!r} is there twice")
    return member


def _read(path: str, stream: IO[bytes], room: int) -> bytes:
    """Read a member, no further than the limit, whatever size the archive claims."""
    chunks, size = [], 0
    while chunk := stream.read(CHUNK):
        size += len(chunk)
        if size > room:
            raise ArchiveRefused(path=path, reason="its files are larger than a skill may be")
        chunks.append(chunk)
    return b"".join(chunks)


def _unwrapped(path: str, unpacked: Unpacked, limits: Limits) -> Unpacked:
    """Return the files without the one folder around them, if there is one."""
    files, executable = unpacked
    if not any(name in files for name in DOCUMENT_NAMES):
        tops = {name.partition("/")[0] for name in files}
        if len(tops) == 1:
            top = f"{next(iter(tops))}/"
            files = {name.removeprefix(top): data for name, data in files.items()}
            executable = frozenset(name.removeprefix(top) for name in executable)
    documents = [name for name in DOCUMENT_NAMES if name in files]
    if not documents:
        raise ArchiveRefused(path=path, reason="it holds no SKILL.md at its top, or in one folder")
    if len(documents) > 1:
        raise ArchiveRefused(path=path, reason=f"it holds {' and '.join(documents)}")
    size = len(files[documents[0]])
    if size > limits.document_bytes:
        reason = f"its {documents[0]} has {size} bytes, {limits.document_bytes} are allowed"
        raise ArchiveRefused(path=path, reason=reason)
    return Unpacked(files, executable)
