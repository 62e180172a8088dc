"""Write git objects and packs.

The packs have no deltas, so each entry is complete and can be copied to another pack. If the
database stores a file in compressed form, these bytes become an entry without a second compression.
"""

import hashlib
import os
import tempfile
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final

_sha1: Final = partial(hashlib.sha1, usedforsecurity=False)

COMMIT, TREE, BLOB = 1, 2, 3
_KINDS: Final = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}

FOLDER, FILE, PROGRAM = b"40000", b"100644", b"100755"
"""Modes of the entries of a tree."""

OID: Final = 20
"""Length of an object id, in bytes."""

MAX_PACK: Final = (1 << 31) - 1
"""Maximum size of a pack, in bytes.

The index of a pack stores offsets with 31 bits.
"""

PART: Final = 64 << 10
"""Number of bytes of a pack that are read or written in one step."""

LEVEL: Final = 1
"""The zlib level of objects: the fastest level."""


class PackFull(Exception):
    """The pack would become larger than `MAX_PACK`."""


def object_id(kind: int, data: bytes) -> bytes:
    """Return the id of an object."""
    return _sha1(b"%s %d\0%s" % (_KINDS[kind], len(data), data)).digest()


def tree(entries: Mapping[bytes, tuple[bytes, bytes]]) -> bytes:
    """Return the bytes of a tree; ``entries`` maps each name to its mode and object id."""
    # For sorting, git adds a slash to the name of a folder.
    ordered = sorted(
        entries.items(), key=lambda one: one[0] + b"/" if one[1][0] == FOLDER else one[0]
    )
    return b"".join(b"%s %s\0%s" % (mode, name, oid) for name, (mode, oid) in ordered)


def entries_of(data: bytes) -> dict[bytes, tuple[bytes, bytes]]:
    """Return the mode and the object id of each name in a tree."""
    found, at = {}, 0
    while at < len(data):
        end = data.index(b"\0", at)
        mode, _, name = data[at:end].partition(b" ")
        at = end + 1 + OID
        found[name] = mode, data[end + 1 : at]
    return found


def commit(tree_id: bytes, author: str, seconds: int, message: str) -> bytes:
    """Return the bytes of a commit without a parent; ``seconds`` is its time since 1970."""
    who = f"{author} {seconds} +0000"
    text = f"tree {tree_id.hex()}\nauthor {who}\ncommitter {who}\n\n{message}\n"
    return text.encode("utf-8", "replace")


def _entry_header(kind: int, size: int) -> bytes:
    """Return the header of an entry in a pack: the kind and the size of the uncompressed object."""
    byte, size = (kind << 4) | (size & 15), size >> 4
    header = bytearray()
    while size:
        header.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    header.append(byte)
    return bytes(header)


def _uncompressed(data: bytes) -> bytes:
    """Return a zlib stream that stores the data uncompressed, in one block (RFC 1950 and 1951).

    Trees are stored in this form, because they mostly consist of ids, which compression doesn't
    make smaller.
    """
    size = len(data)
    if size >= 1 << 16:
        return zlib.compress(data, 0)
    lengths = size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")
    return b"\x78\x01\x01%s%s%s" % (lengths, data, zlib.adler32(data).to_bytes(4, "big"))


def pack_header(count: int) -> bytes:
    """Return the first bytes of a pack with ``count`` objects."""
    return b"PACK" + (2).to_bytes(4, "big") + count.to_bytes(4, "big")


class Pack:
    """A finished pack in an unnamed temporary file, which is deleted together with this object.

    Threads can share a pack.
    """

    def __init__(
        self, descriptor: int, size: int, places: Mapping[bytes, tuple[int, int, int]]
    ) -> None:
        self._file = descriptor
        self.size = size
        ordered = sorted(places)
        self.oids = b"".join(ordered)
        self._offsets = array("L", (places[oid][0] for oid in ordered))
        self._lengths = array("L", (places[oid][1] for oid in ordered))
        self._checks = array("L", (places[oid][2] for oid in ordered))

    def __del__(self) -> None:
        os.close(self._file)

    def __len__(self) -> int:
        return len(self.oids) // OID

    def __iter__(self) -> Iterator[bytes]:
        return (self.oids[begin : begin + OID] for begin in range(0, len(self.oids), OID))

    def entry(self, oid: bytes) -> tuple[bytes, int] | None:
        """Return the entry (bytes) and the CRC-32 of an object.

        Returns None if the pack doesn't have the object.
        """
        at = bisect_left(range(len(self)), oid, key=lambda n: self.oids[n * OID : n * OID + OID])
        if self.oids[at * OID : at * OID + OID] != oid:
            return None
        data = os.pread(self._file, self._lengths[at], self._offsets[at])
        return data, self._checks[at]

    def read(self, oid: bytes) -> bytes | None:
        """Return the bytes of an object; None if the pack doesn't have it."""
        found = self.entry(oid)
        if found is None:
            return None
        header = next(at for at, byte in enumerate(found[0]) if not byte & 0x80) + 1
        return zlib.decompress(found[0][header:])

    def stream(self) -> Iterator[bytes]:
        """Yield the whole pack in parts."""
        for begin in range(0, self.size, PART):
            yield os.pread(self._file, min(PART, self.size - begin), begin)

    def stream_of(self, oids: Iterable[bytes]) -> Iterator[bytes]:
        """Yield, in parts, a new pack with only these objects of this pack."""
        wanted = list(oids)
        total = _sha1()
        buffer = bytearray(pack_header(len(wanted)))
        for oid in wanted:
            found = self.entry(oid)
            if found is None:
                raise KeyError(oid.hex())
            buffer += found[0]
            if len(buffer) >= PART:
                total.update(buffer)
                yield bytes(buffer)
                buffer.clear()
        total.update(buffer)
        yield bytes(buffer) + total.digest()

    def index(self) -> bytes:
        """Return the index of the pack, in version 2 of its format."""
        counts = [0] * 256
        for first in self.oids[::OID]:
            counts[first] += 1
        fanout, total = bytearray(), 0
        for count in counts:
            total += count
            fanout += total.to_bytes(4, "big")
        checks = b"".join(one.to_bytes(4, "big") for one in self._checks)
        offsets = b"".join(one.to_bytes(4, "big") for one in self._offsets)
        trailer = os.pread(self._file, OID, self.size - OID)
        body = b"\xfftOc" + (2).to_bytes(4, "big") + fanout + self.oids + checks + offsets + trailer
        return body + _sha1(body).digest()

    @property
    def name(self) -> str:
        """The name, without ending, of the file in which git stores this pack."""
        return f"pack-{os.pread(self._file, OID, self.size - OID).hex()}"


class PackWriter:
    """Writes a pack; `copy` copies objects from the pack ``before``."""

    def __init__(self, before: Pack | None = None) -> None:
        self._file = tempfile.TemporaryFile(prefix="skill-registry-git-")  # noqa: SIM115
        self._file.write(pack_header(0))
        self._at = len(pack_header(0))
        self._places: dict[bytes, tuple[int, int, int]] = {}
        self._before = before

    def add(self, kind: int, data: bytes, compressed: bytes | None = None) -> bytes:
        """Add an object if the pack doesn't have it yet, and return its id.

        ``compressed`` is the same data as a zlib stream, if available. Raises `PackFull`.
        """
        oid = object_id(kind, data)
        if oid not in self._places:
            stream = compressed
            if stream is None:
                stream = _uncompressed(data) if kind == TREE else zlib.compress(data, LEVEL)
            self._write(oid, _entry_header(kind, len(data)) + stream)
        return oid

    def copy(self, oid: bytes) -> bool:
        """Copy an object from the pack ``before``; return False if that pack doesn't have it."""
        if oid in self._places:
            return True
        found = None if self._before is None else self._before.entry(oid)
        if found is None:
            return False
        self._write(oid, *found)
        return True

    def _write(self, oid: bytes, entry: bytes, check: int | None = None) -> None:
        if self._at + len(entry) + OID > MAX_PACK:
            raise PackFull
        crc = zlib.crc32(entry) if check is None else check
        self._places[oid] = self._at, len(entry), crc
        self._file.write(entry)
        self._at += len(entry)

    def finish(self) -> Pack:
        """Return the finished pack."""
        self._file.seek(0)
        self._file.write(pack_header(len(self._places)))
        self._file.seek(0)
        total = hashlib.file_digest(self._file, _sha1)
        self._file.seek(self._at)
        self._file.write(total.digest())
        with self._file:
            self._file.flush()
            return Pack(os.dup(self._file.fileno()), self._at + OID, self._places)

    def discard(self) -> None:
        """Delete the unfinished pack."""
        self._file.close()
