"""Read the files of zip and tar archives, without trusting an archive's sizes and paths."""

import gzip
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Final, NamedTuple, NoReturn

from registry.disk.paths import check_path
from registry.model import DOCUMENT_NAMES
from registry.text import quoted

TAR_HEADERS: Final = 4096
"""Maximum size of the headers and the padding in a tar file for each member, in bytes."""

ZIP_ENTRY: Final = 256
"""Maximum size of a zip's directory for each member, in bytes.

Normal zips need about 120 bytes.
"""

ZIP_DIRECTORY: Final = 16 << 20
"""Maximum size of a zip's directory, in bytes.

The reader reads the whole directory before the first member.
"""

HEADER: Final = 1 << 20
"""Maximum size of a tar header, in bytes; a header is read in one call."""

RATIO: Final = 200
"""Maximum ratio of unpacked to packed size; for source code, the ratio is about 10."""

RATIO_FREE: Final = 16 << 20
"""Number of unpacked bytes up to which the ratio doesn't matter."""

GZIP: Final = b"\x1f\x8b"

EXTRAS: Final = "__MACOSX/"
EXTRA: Final = "._"
"""Name of macOS's folder of file metadata in a zip, and prefix of metadata files in a tar."""

CHUNK: Final = 1 << 16

PLAIN_WAYS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""Permitted compression methods of zip members.

Other methods may need as much memory as the archive states.
"""

ENCRYPTED: Final = 0x1

Refuse = Callable[[str, str], None]
"""A function that gets the name of a refused member, and the reason.

If it raises an exception, the whole archive is refused.
"""


class BadArchive(ValueError):
    """The archive is refused; the text of the exception is the reason."""


class TooMuch(BadArchive):
    """An archive has more files or bytes than allowed."""


class ArchiveLimits(NamedTuple):
    """The limits of an archive: number of files, bytes of all files, bytes of each file.

    ``what`` is the name of the archive in messages.
    """

    files: int
    size: int
    each: int
    what: str = "a skill"


class Member(NamedTuple):
    """A regular file in an archive."""

    path: str
    executable: bool
    data: bytes


class _ArchiveEntry(NamedTuple):
    name: str
    problem: str | None
    executable: bool
    opened: Callable[[], IO[bytes] | None]


def strictly(name: str, reason: str) -> NoReturn:
    """Refuse the whole archive because of one of its members."""
    raise BadArchive(f"{quoted(name)} {reason}")


def unpack(file: IO[bytes], room: ArchiveLimits, refuse: Refuse = strictly) -> Iterator[Member]:
    """Yield the regular files of a zip or tar archive in the archive's order, with checked paths.

    ``file`` must be seekable, and is closed at the end. ``refuse`` is called for links, devices,
    and paths that are invalid in a skill's folder. The caller must check for duplicate paths.
    Raises `BadArchive`, `TooMuch`.
    """
    try:
        yield from _unpacked(file, room, refuse)
    except BadArchive:
        raise
    except Exception as error:  # for hostile archives, the libraries raise many types of errors
        raise BadArchive(f"it can't be unpacked: {error}") from error
    finally:
        file.close()


def wrapping(paths: Iterable[str]) -> str:
    """Return the folder that contains all files, with a slash at its end; "" if there is none."""
    tops = set()
    for path in paths:
        if path in DOCUMENT_NAMES:
            return ""
        tops.add(path.partition("/")[0])
    return f"{tops.pop()}/" if len(tops) == 1 else ""


def _unpacked(file: IO[bytes], room: ArchiveLimits, refuse: Refuse) -> Iterator[Member]:
    files, size = 0, 0
    packed = file.seek(0, os.SEEK_END)
    file.seek(0)
    most = min(room.size, max(RATIO_FREE, RATIO * packed))
    for name, problem, executable, opened in _entries(file, room, most):
        path = "/".join(part for part in name.split("/") if part not in {"", "."})
        reason = problem
        if reason is None and check_path(name if name.startswith("/") else path) is not None:
            reason = "can't be in a skill's folder"
        files += 1
        if files > room.files:
            raise TooMuch(f"it has more than {room.files} files")
        if reason is None:
            data = _read(opened, min(room.each, most - size))
            size += len(data)
            if size > room.size:
                raise TooMuch(f"its files are larger than {room.what} may be")
            if size > most:
                raise TooMuch(f"it has more than {RATIO} times its size when it is unpacked")
            if len(data) <= room.each:
                yield Member(path, executable, data)
                continue
            reason = f"has more than {room.each} bytes"
        refuse(name, reason)


def _entries(file: IO[bytes], room: ArchiveLimits, most: int) -> Iterator[_ArchiveEntry]:
    packed = file.read(len(GZIP)) == GZIP
    if not packed and zipfile.is_zipfile(file):
        yield from _zip_entries(file, room)
        return
    file.seek(0)
    # Limit the unpacked bytes before reading them, because a header may state a gigabyte.
    plain: IO[bytes] = gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[assignment]
    with _Tape(plain, most + room.files * TAR_HEADERS) as tape:
        yield from _tar_entries(tape)
        while tape.read(CHUNK):  # read until the end, so that the checksum is verified
            pass


def _zip_entries(file: IO[bytes], room: ArchiveLimits) -> Iterator[_ArchiveEntry]:
    largest = min(max(room.files * ZIP_ENTRY, 2 * CHUNK), ZIP_DIRECTORY)
    with _Sips(file, largest) as sips, zipfile.ZipFile(sips) as archive:
        for info in archive.infolist():
            if info.is_dir() or info.filename.startswith(EXTRAS):
                continue
            executable = bool(info.external_attr >> 16 & stat.S_IXUSR)
            opened = lambda info=info: archive.open(info)  # noqa: E731
            yield _ArchiveEntry(info.orig_filename, _problem(info), executable, opened)


def _problem(info: zipfile.ZipInfo) -> str | None:
    mode = info.external_attr >> 16
    if "\0" in info.orig_filename:  # `zipfile` would end the name at this character
        return "is not the name of a file"
    if mode and stat.S_IFMT(mode) not in {0, stat.S_IFREG}:
        return "is not a plain file"
    if info.flag_bits & ENCRYPTED:
        return "is encrypted"
    return None if info.compress_type in PLAIN_WAYS else "is packed in a way that is not taken"


def _tar_entries(tape: "_Tape") -> Iterator[_ArchiveEntry]:
    with _opened_tar(tape) as tar:
        while (entry := tar.next()) is not None:
            # otherwise `tarfile` keeps all members in memory
            tar.members.clear()  # type: ignore[attr-defined]
            if entry.size < 0:  # the next header would be a header that was already read
                raise BadArchive("it has a file of less than no bytes")
            if entry.isdir() or os.path.basename(entry.name).startswith(EXTRA):
                continue
            problem = None if entry.isreg() else "is not a plain file"
            opened = lambda entry=entry: tar.extractfile(entry)  # noqa: E731
            yield _ArchiveEntry(entry.name, problem, bool(entry.mode & stat.S_IXUSR), opened)


def _opened_tar(tape: "_Tape") -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=tape, mode="r:")
    except tarfile.ReadError as error:
        reason = f"it is neither a zip nor a tar, or only a part of one ({error})"
        raise BadArchive(f"it can't be unpacked: {reason}") from error


def _read(opened: Callable[[], IO[bytes] | None], most: int) -> bytes:
    """Read a member, but at most ``most`` + 1 bytes, whatever size the archive states."""
    stream = opened()
    assert stream is not None  # noqa: S101  # only regular files are opened
    chunks, size = [], 0
    with stream:
        while size <= most and (chunk := stream.read(min(CHUNK, most + 1 - size))):
            chunks.append(chunk)
            size += len(chunk)
    return b"".join(chunks)


class _Sips(io.BufferedReader):
    """A file that limits the size of each read.

    Without it, `zipfile` would read the whole directory of a zip in one call.
    """

    def __init__(self, file: IO[bytes], largest: int) -> None:
        super().__init__(file)  # type: ignore[arg-type]
        self._largest = largest

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = self._largest + 1 if size is None or size < 0 else size
        data = super().read(min(wanted, self._largest + 1))
        if len(data) > self._largest:
            raise TooMuch("it has a directory of too many files")
        return data


class _Tape(io.BufferedReader):
    """A file that can be read only forwards, and only up to a limit.

    In an ordinary file, a negative size in a header could lead back to an earlier header.
    """

    def __init__(self, file: IO[bytes], most: int) -> None:
        super().__init__(file)  # type: ignore[arg-type]
        self._most = most

    def read(self, size: int | None = -1, /) -> bytes:
        at = self.tell()
        room = self._most - at
        if size is None or size < 0 or (HEADER < size <= room):
            raise TooMuch("it has a header that is too long")
        data = super().read(min(size, room + 1))
        if len(data) > room:
            raise TooMuch(f"it has more than {self._most} bytes when it is unpacked")
        return data

    def seek(self, target: int, whence: int = os.SEEK_SET, /) -> int:
        if whence != os.SEEK_SET or target < self.tell():
            raise BadArchive("it leads back to what was read already")
        if target > self._most:
            raise TooMuch(f"it has more than {self._most} bytes when it is unpacked")
        return super().seek(target)
