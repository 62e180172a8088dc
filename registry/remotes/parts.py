"""What a tree is made of: archives and single files that were kept, each in a folder of its own."""

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Protocol

from registry.model import DOCUMENT_NAMES
from registry.remotes.kept import Kept
from registry.remotes.paths import Paths
from registry.remotes.tree import Blob, Bounds
from registry.remotes.unpacking import BadArchive, Refuse, Room, strictly, unpack, wrapping

Stored = str | dict[str, str]
"""What a skill was brought as: the digest of an archive, or those of files by their paths."""


class Part(Protocol):
    """Some files, by their paths in the part."""

    blobs: Mapping[str, Blob]

    def read(self, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes of these files."""


class Packed:
    """The files of an archive, without the one folder around them, if there is one.

    ``opened`` opens the archive, the same each time. Raises `BadArchive`, `TooMuch`.
    """

    def __init__(
        self, opened: Callable[[], IO[bytes]], room: Room, refuse: Refuse = strictly
    ) -> None:
        self._opened = opened
        self._room = room
        found: dict[str, Blob] = {}
        for path, executable, data in unpack(opened(), room, refuse):
            if path in found:
                refuse(path, "is there twice")
            else:
                found[path] = Blob(hashlib.sha256(data).hexdigest(), executable, len(data))
        self._top = wrapping(found)
        blobs: dict[str, Blob] = {}
        paths = Paths()
        for name, blob in found.items():
            path = name.removeprefix(self._top)
            if (reason := paths.add(path)) is None:
                blobs[path] = blob
            else:
                refuse(name, reason)
        self.blobs: Mapping[str, Blob] = blobs

    def read(self, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes of these files, in the order of the archive."""
        left = set(wanted)
        for name, _, data in unpack(self._opened(), self._room, _pass_over):
            path = name.removeprefix(self._top)
            if path in left:
                left.remove(path)
                yield path, data
            if not left:
                return


class Loose:
    """Files that were brought one by one. Raises `BadArchive`, FileNotFoundError."""

    def __init__(self, kept: Kept, files: Mapping[str, str]) -> None:
        self._kept = kept
        blobs: dict[str, Blob] = {}
        paths = Paths()
        for path, digest in files.items():
            if (reason := paths.add(path)) is not None:
                strictly(path, reason)
            with kept.open(digest) as file:
                blobs[path] = Blob(digest, executable=False, size=file.seek(0, os.SEEK_END))
        self.blobs: Mapping[str, Blob] = blobs

    def read(self, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes of these files."""
        for path in wanted:
            with self._kept.open(self.blobs[path].id) as file:
                yield path, file.read()


class Held:
    """A tree of parts by the folders in which they lie; an empty name is the root (`Tree`)."""

    def __init__(
        self,
        version: str,
        made_at: int | None,
        parts: Mapping[str, Part],
        notices: Sequence[str],
    ) -> None:
        self.version = version
        self.made_at = made_at
        self.notices = notices
        self._parts = parts
        self._homes = {
            f"{folder}/{path}" if folder else path: (folder, path)
            for folder, part in parts.items()
            for path in part.blobs
        }
        self.files: Mapping[str, Blob] = {
            whole: parts[folder].blobs[path] for whole, (folder, path) in self._homes.items()
        }

    def read(self, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yield the bytes of some of the files, part by part."""
        wanted: defaultdict[str, set[str]] = defaultdict(set)
        for whole in paths:
            folder, path = self._homes[whole]
            wanted[folder].add(path)
        for folder, some in wanted.items():
            for path, data in self._parts[folder].read(some):
                yield f"{folder}/{path}" if folder else path, data


def part_of(kept: Kept, stored: Stored, bounds: Bounds) -> Part:
    """Return the files of a skill as it was brought.

    Raises `BadArchive`, `TooMuch`, FileNotFoundError where it is no longer kept.
    """
    part: Part
    if isinstance(stored, str):
        room = Room(bounds.artifact_files, bounds.artifact_bytes, bounds.artifact_bytes)
        part = Packed(lambda: kept.open(stored), room)
    else:
        part = Loose(kept, stored)
    if not any(name in part.blobs for name in DOCUMENT_NAMES):
        raise BadArchive("it holds no SKILL.md at its top, or in one folder")
    return part


def _pass_over(name: str, reason: str) -> None:
    """Say nothing: it was said when the archive was read first."""
    del name, reason
