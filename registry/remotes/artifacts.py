"""Cache downloads from remote sources by their digests, and read archives as files.

The cache stays between runs.
"""

import errno
import hashlib
import io
import json
import os
import re
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from http.client import HTTPMessage
from io import BufferedReader
from typing import IO, Any, Final, NamedTuple, TypeGuard

from registry.disk.atomic import OWN, Place, make_path, open_named, remove_tree, replace
from registry.disk.beneath import READ, WRITE_NEW, Folder
from registry.disk.files import read_file
from registry.disk.private import NotOurs, open_own_folder, read_own_file, write_own_file
from registry.errors import (
    FileChanging,
    FileTooLarge,
    RemoteInvalid,
    RemoteProblem,
    RemoteRefused,
    RemoteTooLarge,
    RemoteUnreachable,
    SkillInaccessible,
)
from registry.model import DOCUMENT_NAMES, RemoteState
from registry.remotes.address import redacted
from registry.remotes.http import UNCHANGED, HttpClient
from registry.remotes.snapshot import Blob, FetchLimits, Paths, SkipNotices, Snapshot
from registry.remotes.unpacking import (
    ArchiveLimits,
    BadArchive,
    Refuse,
    TooMuch,
    strictly,
    unpack,
    wrapping,
)

NOTES: Final = "notes.json"
NOTES_BYTES: Final = 64 << 20


class ArtifactCache:
    """A folder of this user with downloaded files, and notes about the files.

    The name of a file is its SHA-256. ``notes`` are JSON data, in a format that depends on the kind
    of the source. The notes are only hints, because the digest of each file is verified. Only one
    process at a time uses the folder, but it may use several threads.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.notes: dict[str, Any] = {}
        with suppress(FileNotFoundError, NotOurs, ValueError, RecursionError):
            notes = json.loads(read_own_file(Place(folder, NOTES), NOTES_BYTES))
            self.notes = notes if isinstance(notes, dict) else {}

    def noted(self, key: str) -> Mapping[str, Any]:
        """Return the note with this key; if it isn't a mapping, return an empty mapping."""
        found = self.notes.get(key)
        return found if isinstance(found, dict) else {}

    def download(self, client: HttpClient, url: str, most: int) -> str:
        """Download an address into the cache; return its SHA-256 as 64 hexadecimal digits."""
        digest, _ = self.renewed(client, url, most, {})
        assert digest is not None  # noqa: S101  # only conditional requests return None
        return digest

    def renewed(
        self, client: HttpClient, url: str, most: int, headers: Mapping[str, str]
    ) -> tuple[str | None, HTTPMessage]:
        """Download an address; return its digest and the response headers.

        The digest is None if the server reports that the file has not changed.
        """
        draft = Place(self._folder, f"draft-{secrets.token_hex(8)}")
        descriptor = os.open(draft.name, WRITE_NEW, 0o600, dir_fd=self._folder.fd)
        try:
            with os.fdopen(descriptor, "wb") as file:
                answer = client.get(url, file, most, headers)
            if answer.status == UNCHANGED:
                return None, answer.headers
            with self._read(draft.name) as written:
                digest = _digest(written)
            replace(draft, Place(self._folder, digest))
        finally:
            remove_tree(draft)
        return digest, answer.headers

    def has(self, digest: str) -> bool:
        """Tell whether a file with this digest is in the cache; only `open` verifies the file."""
        return self._folder.holds(digest)

    def open(self, digest: str) -> BufferedReader:
        """Open a cached file and verify its digest. Raises FileNotFoundError if it is missing."""
        file = self._read(digest)
        if _digest(file) != digest:
            file.close()
            remove_tree(Place(self._folder, digest))
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), digest)
        file.seek(0)
        return file

    def _read(self, name: str) -> BufferedReader:
        return os.fdopen(os.open(name, READ, dir_fd=self._folder.fd), "rb")

    def keep_only(self, digests: Collection[str]) -> None:
        """Remove all files except the notes and files with these digests."""
        for entry in self._folder.entries():
            if entry.name != NOTES and entry.name not in digests:
                remove_tree(Place(self._folder, entry.name))

    def note(self, notes: Mapping[str, Any]) -> None:
        """Save notes for the next run."""
        place = Place(self._folder, NOTES)
        remove_tree(place)
        write_own_file(place, json.dumps(notes).encode())


@contextmanager
def open_cache(state: str) -> Iterator[ArtifactCache]:
    """Open the artifact cache in ``state`` (mode 0700); create the folder if it is missing.

    Raises OSError, or `NotOurs` if other users can access the folder.
    """
    above, name = os.path.split(os.path.abspath(state))
    make_path(above, OWN)
    with open_named(above) as parent, open_own_folder(Place(parent, name), make=True) as folder:
        yield ArtifactCache(folder)


def _digest(file: BufferedReader) -> str:
    return hashlib.file_digest(file, "sha256").hexdigest()


def made_at(headers: HTTPMessage) -> int | None:
    """Return the Last-Modified time of a response in seconds since 1970, or None if unknown."""
    try:
        return past(parsedate_to_datetime(headers.get("Last-Modified", "")).timestamp())
    except (ValueError, OverflowError):
        return None


def past(seconds: float) -> int | None:
    """Return a time from a server in seconds; None if it isn't a plausible time in the past."""
    return int(seconds) if 0 < seconds < time.time() else None


Stored = str | dict[str, str]
"""The cached form of a skill: the digest of its archive, or the digests of its files by path."""


class Part(NamedTuple):
    """Files by their paths, and a function that yields the bytes of selected files."""

    blobs: Mapping[str, Blob]
    read: Callable[[Collection[str]], Iterator[tuple[str, bytes]]]


def packed(opened: Callable[[], IO[bytes]], room: ArchiveLimits, refuse: Refuse = strictly) -> Part:
    """Return the files of an archive.

    If one folder contains all files, their paths don't include this folder. ``opened`` is called
    each time the archive is read. Raises `BadArchive`, `TooMuch`.
    """
    found: dict[str, Blob] = {}
    for path, executable, data in unpack(opened(), room, refuse):
        if path in found:
            refuse(path, "is there twice")
        else:
            found[path] = Blob(hashlib.sha256(data).hexdigest(), executable, len(data))
    top, paths = wrapping(found), Paths()
    blobs: dict[str, Blob] = {}
    for name, blob in found.items():
        path = name.removeprefix(top)
        if (reason := paths.add(path)) is None:
            blobs[path] = blob
        else:
            refuse(name, reason)

    def read(wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
        left = set(wanted)
        for name, _, data in unpack(opened(), room, lambda *_: None):
            path = name.removeprefix(top)
            if path in left:
                left.remove(path)
                yield path, data
            if not left:
                return

    return Part(blobs, read)


def loose(cache: ArtifactCache, files: Mapping[str, str]) -> Part:
    """Return files that were downloaded separately. Raises `BadArchive`, FileNotFoundError."""
    blobs: dict[str, Blob] = {}
    paths = Paths()
    for path, digest in files.items():
        if (reason := paths.add(path)) is not None:
            strictly(path, reason)
        with cache.open(digest) as file:
            blobs[path] = Blob(digest, executable=False, size=file.seek(0, os.SEEK_END))

    def read(wanted: Collection[str]) -> Iterator[tuple[str, bytes]]:
        for path in wanted:
            with cache.open(files[path]) as file:
                yield path, file.read()

    return Part(blobs, read)


def part_of(cache: ArtifactCache, stored: Stored, bounds: FetchLimits) -> Part:
    """Return the files of a skill, given its cached form.

    Raises `BadArchive`, `TooMuch`, FileNotFoundError.
    """
    if isinstance(stored, str):
        room = ArchiveLimits(bounds.artifact_files, bounds.artifact_bytes, bounds.artifact_bytes)
        part = packed(lambda: cache.open(stored), room)
    else:
        part = loose(cache, stored)
    if not any(name in part.blobs for name in DOCUMENT_NAMES):
        raise BadArchive("it has no SKILL.md at its top or in a single top folder")
    return part


_DIGEST: Final = re.compile(r"[0-9a-f]{64}")

AT_ONCE: Final = 4
"""Maximum number of connections to one server."""


class Removed(Exception):  # the name is a state, as in `RemoteInvalid`
    """The index has removed a skill, so all versions of the skill must be removed here.

    The message gives the reason.
    """


@dataclass(frozen=True, slots=True)
class FetchResult:
    """The skills of an index by folder, with the cached form of each.

    ``failed`` has the skills that could not be fetched. Some of them keep their former version.
    ``parts`` is None if nothing has changed since the known version.
    """

    parts: dict[str, Part] | None
    stored: dict[str, Stored]
    notices: list[str]
    failed: set[str]
    states: Sequence[RemoteState] = ()

    def tree(self, made_at: int | None) -> Snapshot | None:
        """Return the snapshot of the skills; None if its version is the known version."""
        parts = self.parts
        if parts is None:
            return None
        homes = {f"{one}/{path}": (one, path) for one, part in parts.items() for path in part.blobs}

        def read(paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
            wanted: defaultdict[str, set[str]] = defaultdict(set)
            for folder, path in map(homes.__getitem__, paths):
                wanted[folder].add(path)
            for folder, some in wanted.items():
                for path, data in parts[folder].read(some):
                    yield f"{folder}/{path}", data

        files = {whole: parts[folder].blobs[path] for whole, (folder, path) in homes.items()}
        version = version_of(self.stored, self.states)
        return Snapshot(version, made_at, files, self.notices, read, self.states)


def files_of(stored: Iterable[object]) -> set[str]:
    """Return the digests of all cached files of skills.

    ``stored`` comes from the notes; invalid notes are skipped.
    """
    found: set[str] = set()
    for one in filter(is_stored, stored):
        found.update([one] if isinstance(one, str) else one.values())
    return found


def version_of(stored: Mapping[str, Stored], states: Sequence[RemoteState] = ()) -> str:
    """Return the version of all skills and of the states of versions together, which is a digest.

    ``stored`` has the cached form of each skill by folder.
    """
    said = json.dumps([stored, states] if states else stored, sort_keys=True).encode()
    return f"sha256:{hashlib.sha256(said).hexdigest()}"


def is_stored(value: object) -> TypeGuard[Stored]:
    """Tell whether a value from notes is the cached form of a skill."""
    if isinstance(value, dict):
        return bool(value) and all(map(_is_digest, value.values()))
    return _is_digest(value)


def fetch_skills(
    cache: ArtifactCache,
    wanted: Mapping[str, Callable[[], Stored]],
    before: Mapping[str, object],
    known: str | None,
    bounds: FetchLimits,
    notices: SkipNotices,
    *,
    url: str,
    states: Sequence[RemoteState] = (),
) -> FetchResult:
    """Fetch and open skills in the given order, unless their version is ``known``.

    ``wanted`` has a function for each skill, which fetches the skill or raises `RemoteProblem`,
    `BadArchive` or `Removed`. If a skill can't be fetched, it keeps its version from ``before``.
    ``states`` are the states of versions that the index tells. Raises `RemoteProblem` if no skill
    is left.
    """
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        brought = list(pool.map(_brought, wanted.values()))
    finally:
        pool.shutdown(cancel_futures=True)
    pairs = list(zip(wanted, brought, strict=True))
    offered = {folder: one for folder, one in pairs if not isinstance(one, Removed)}
    came = {folder: one for folder, one in offered.items() if is_stored(one)}
    if len(came) == len(offered) and version_of(came, states) == known:
        return FetchResult(None, came, [], set())
    parts: dict[str, Part] = {}
    stored: dict[str, Stored] = {}
    files, size = 0, 0
    for folder, one in pairs:
        found = _part(cache, folder, one, before.get(folder), bounds, notices)
        if found is None:
            continue
        part, of = found
        files += len(part.blobs)
        size += sum(blob.size or 0 for blob in part.blobs.values())
        if files > bounds.files or size > bounds.bytes:
            notices.leave_out(folder, "the size limit of the source is reached")
            continue
        parts[folder], stored[folder] = part, of
    if wanted and not parts:
        unreachable = next((one for one in brought if isinstance(one, RemoteUnreachable)), None)
        refused = next((one for one in brought if isinstance(one, RemoteRefused)), None)
        cause = notices.said()[0]
        if refused is not None:
            cause = f"HTTP status {refused.status} at {refused.url}"
        reason = f"none of its skills is available: {cause}"
        raise unreachable or RemoteInvalid(url=redacted(url), reason=reason)
    failed = {folder for folder, one in offered.items() if stored.get(folder) != one}
    return FetchResult(parts, stored, notices.said(), failed, states)


def _brought(bring: Callable[[], Stored]) -> Stored | Exception:
    try:
        return bring()
    except (RemoteProblem, BadArchive, Removed) as problem:
        return problem


def _part(
    cache: ArtifactCache,
    folder: str,
    brought: Stored | Exception,
    old: object,
    bounds: FetchLimits,
    notices: SkipNotices,
) -> tuple[Part, Stored] | None:
    if isinstance(brought, Removed):
        notices.leave_out(folder, str(brought))
        return None
    reason = str(brought) if isinstance(brought, Exception) else ""
    for stored in (brought, old):
        if not is_stored(stored):
            continue
        try:
            part = part_of(cache, stored, bounds)
        except BadArchive as error:
            reason = reason or str(error)
        except FileNotFoundError:
            reason = reason or "its stored files are gone"
        else:
            if reason:
                notices.keep(folder, reason)
            return part, stored
    notices.leave_out(folder, reason)
    return None


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


@contextmanager
def open_archive(
    url_or_file: str, state: str, known: str | None, bounds: FetchLimits
) -> Iterator[Snapshot | None]:
    """Open the files of a zip or tar archive; yield None if its SHA-256 is still ``known``."""
    if "://" not in url_or_file:
        data, changed = read_local(url_or_file, bounds.bytes)
        version = f"sha256:{hashlib.sha256(data).hexdigest()}"
        if version == known:
            yield None
        else:
            yield _tree(url_or_file, version, changed, partial(io.BytesIO, data), bounds)
        return
    client = HttpClient(url_or_file, bounds)
    with open_cache(state) as cache:
        cache.keep_only(())
        found, answer = cache.renewed(client, client.url, bounds.bytes, _asking(cache, known))
        version = f"sha256:{found}"
        if found is None or version == known:
            yield None
        else:
            opened = partial(cache.open, found)
            yield _tree(redacted(client.url), version, made_at(answer), opened, bounds)
        if found is not None:  # None means that the checkout already has the files of this archive
            seen = {"etag": answer.get("ETag"), "modified": answer.get("Last-Modified")}
            cache.note({"version": version, **seen})
            cache.keep_only(())


def _asking(cache: ArtifactCache, known: str | None) -> dict[str, str]:
    """Return request headers that ask a server to send the file only if it has changed."""
    noted = {"If-None-Match": "etag", "If-Modified-Since": "modified"}
    if known is None or cache.notes.get("version") != known:
        return {}
    said = {header: cache.notes.get(key) for header, key in noted.items()}
    return {header: value for header, value in said.items() if isinstance(value, str)}


def read_local(path: str, most: int) -> tuple[bytes, int]:
    """Return a file's bytes and modification time. Raises `RemoteUnreachable`, `RemoteTooLarge`."""
    try:
        content = read_file(os.path.realpath(os.path.expanduser(path)), most)
    except FileNotFoundError:
        raise RemoteUnreachable(url=path, reason="there is no such file") from None
    except FileTooLarge as error:
        reason = f"it has {error.facts['size']} bytes, {most} are allowed"
        raise RemoteTooLarge(url=path, reason=reason) from error
    except FileChanging as error:
        raise RemoteUnreachable(url=path, reason="it kept changing") from error
    except SkillInaccessible as error:
        raise RemoteUnreachable(url=path, reason=str(error.facts["reason"])) from error
    return content.data, int(content.facts.st_mtime)


def _tree(
    shown: str,
    version: str,
    changed: int | None,
    opened: Callable[[], IO[bytes]],
    bounds: FetchLimits,
) -> Snapshot:
    notices = SkipNotices()
    room = ArchiveLimits(bounds.files, bounds.bytes, bounds.artifact_bytes, "a source")
    try:
        part = packed(opened, room, notices.refuse)
    except TooMuch as error:
        raise RemoteTooLarge(url=shown, reason=str(error)) from error
    except BadArchive as error:
        raise RemoteInvalid(url=shown, reason=str(error)) from error
    if not part.blobs:
        said = "; ".join(notices.said()[:1])
        reason = f"it holds no files{f': {said}' if said else ''}"
        raise RemoteInvalid(url=shown, reason=reason)
    return Snapshot(version, changed, part.blobs, notices.said(), part.read)
