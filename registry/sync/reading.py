"""Read the folder of a skill: fingerprint, hashes, parsed SKILL.md and findings."""

import os
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from stat import S_IXUSR
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from registry.db.interface import StatUpdates
from registry.db.versions import NewVersion, Packed, dump, pack
from registry.disk.beneath import Folder
from registry.disk.files import digest, open_home, read_inside, tree_digest
from registry.disk.paths import called_on_disk, join, position
from registry.disk.walk import FileStat, ScannedFolder, inaccessible, unreadable
from registry.document.fields import may_name_needs
from registry.document.parse import parse_document
from registry.document.rules import check_specification
from registry.document.scan import Kind
from registry.document.security import (
    CONTENT_CODES,
    Texts,
    check_file,
    check_security,
    check_text,
    is_about_defence,
)
from registry.errors import FileChanging, FileTooLarge, SkillInaccessible
from registry.model import Diagnostic, Document, Severity, SkillFile, record
from registry.settings import Limits
from registry.text import name_key, utc_text

RULES_VERSION: Final = "21"
"""Version of the rules that check a skill folder; increase it whenever a rule changes.

The next sync then reads all skills again. Until then, `check` ignores the stored findings.
"""


RACY_NS = 2_000_000_000
"""Minimum age of a file time at a scan, in nanoseconds.

If the file time is older than this at the scan, then a later equal time proves that the file is
unchanged.
"""


def stamp(found: ScannedFolder) -> str:
    """Return the fingerprint of a folder in its stored form, with the version of the rules."""
    return f"{RULES_VERSION}:{found.fingerprint}"


def is_current(stored: str) -> bool:
    """Tell whether a stored fingerprint comes from the current version of the rules."""
    return stored.startswith(f"{RULES_VERSION}:")


def is_same(stored: str, found: ScannedFolder) -> bool:
    """Tell whether the files are unchanged since the fingerprint was stored.

    The fingerprint may come from older rules.
    """
    return stored.rpartition(":")[2] == found.fingerprint


def is_racy(found: ScannedFolder, scan_ns: int) -> bool:
    """Tell whether a file time is so close to the scan that equal times prove nothing.

    If a file changes just after the scan, its time may stay the same. ``scan_ns`` is the time at
    which the scan started.
    """
    return found.newest_ns >= scan_ns - RACY_NS


def stamps_of(seen: Iterable[tuple[int, ScannedFolder]], scan_ns: int) -> StatUpdates:
    """Return the file times and sizes from the scan, in the form for storing them."""
    updates = StatUpdates([], [])
    for version, found in seen:
        updates.versions.append((stamp(found), int(is_racy(found, scan_ns)), version))
        for path, *facts, inode in found.files:
            updates.files.append((*facts, signed(inode), version, path))
    return updates


def signed(inode: int) -> int:
    """Return an inode number as a signed 64-bit integer; databases have no unsigned integers."""
    return inode if inode < 1 << 63 else inode - (1 << 64)


MOST: Final = 10_000
"""Maximum number of files whose results `Recent` caches; the oldest results are dropped first."""

_K = TypeVar("_K")
_V = TypeVar("_V")


class Recent:
    """A cache of the files that were checked and stored since the current sync or check began."""

    def __init__(self) -> None:
        self._found: dict[tuple[str | None, Kind], Sequence[Diagnostic]] = {}
        self._stored: dict[str, None] = {}

    def findings(self, content_hash: str | None, text: str, kind: Kind) -> Sequence[Diagnostic]:
        """Return the findings in the text of a file, without the file's path."""
        key = content_hash, kind
        found = self._found.get(key)
        if found is None:
            found = list(check_text(text, kind))
            _put(self._found, key, found)
        return found

    def is_stored(self, content_hash: str) -> bool:
        """Tell whether a file with this hash was already handed over for storage."""
        return content_hash in self._stored

    def note_stored(self, hashes: Iterable[str]) -> None:
        """Record the hashes of files that were handed over for storage."""
        for content_hash in hashes:
            _put(self._stored, content_hash, None)


def _put(known: dict[_K, _V], key: _K, value: _V) -> None:
    if len(known) >= MOST:
        del known[next(iter(known))]
    known[key] = value


KnownHashes: TypeAlias = Mapping[str, tuple[tuple[int, ...], str | None]]
"""Maps each path to the file's stat values at its last reading and its hash at that time.

The stat values are mode, size, mtime, ctime and inode.
"""


class Hashed(NamedTuple):
    """The hashes of a folder's files, and the problems that occurred while reading the files.

    ``unread`` holds the findings about files that can't be read now; such a finding doesn't mean
    that the skill changed. ``data`` holds the bytes of SKILL.md.
    """

    hashes: dict[str, str | None]
    findings: list[Diagnostic]
    unread: list[Diagnostic]
    data: bytes | None


def hash_files(
    root: str,
    found: ScannedFolder,
    known: KnownHashes,
    limits: Limits,
    on_read: Callable[[str, str, bytes], None] = lambda _path, _hash, _data: None,
) -> Hashed:
    """Hash the files of a folder, but read only files with other stat values than in ``known``.

    ``on_read`` is called with the path, hash and bytes of each file that was read.
    """
    done = Hashed({}, [], [], None)
    try:
        home = open_home(root, found.folder)
    except (OSError, SkillInaccessible) as error:
        for file in found.files:
            _note(done, file, error, is_document=file.path == found.document)
        return done
    with home:
        return _hash_below(home, root, found, known, limits, on_read, done)


def _hash_below(
    home: Folder,
    root: str,
    found: ScannedFolder,
    known: KnownHashes,
    limits: Limits,
    on_read: Callable[[str, str, bytes], None],
    done: Hashed,
) -> Hashed:
    data: bytes | None = None
    for file in found.files:
        is_document = file.path == found.document
        before = known.get(file.path)
        if not is_document and before and before[1] and before[0] == tuple(file[1:]):
            done.hashes[file.path] = before[1]
            continue
        limit = limits.document_bytes if is_document else limits.skill_bytes
        try:
            content = read_inside(home, called_on_disk(file.path), limit, root)
            done.hashes[file.path] = content_hash = digest(content.data)
            on_read(file.path, content_hash, content.data)
            if is_document:
                data = content.data
        except (OSError, FileTooLarge, SkillInaccessible, FileChanging) as error:
            _note(done, file, error, is_document=is_document, limit=limit)
    return done._replace(data=data)


def _note(
    done: Hashed, file: FileStat, error: Exception, *, is_document: bool, limit: int = 0
) -> None:
    finding = _unread(file, error, is_document=is_document, limit=limit)
    done.hashes[file.path] = None
    done.findings.append(finding)
    settled = FileTooLarge if is_document else (FileTooLarge, FileChanging, FileNotFoundError)
    if not isinstance(error, settled):
        done.unread.append(finding)


def content_now(root: str, found: ScannedFolder, limits: Limits) -> str | None:
    """Read all files of a folder now and return the hash over all of them.

    Returns None if a file can't be read.
    """
    return tree_hash(found, hash_files(root, found, {}, limits).hashes)


def whole_hash(root: str, found: ScannedFolder, limits: Limits) -> str | None:
    """Return the hash over all files of a folder, as `content_now` does.

    Raises `SkillInaccessible` if a part of the folder can't be read.
    """
    hashed = hash_files(root, found, {}, limits)
    for finding in (*found.unread, *hashed.unread):
        raise inaccessible(join(root, found.folder), finding)
    return tree_hash(found, hashed.hashes)


def _unread(file: FileStat, error: Exception, *, is_document: bool, limit: int) -> Diagnostic:
    severity: Severity = "error" if is_document else "warning"
    match error:
        case FileTooLarge():
            code, fix = "document-too-large", "move parts into supporting files, or raise the limit"
            message = f"the file has {file.size} bytes, {limit} are allowed"
        case FileChanging():
            code, message = "changing", "the file kept changing while it was read"
            fix = "sync again when it is finished"
        case SkillInaccessible():
            return unreadable(error.facts["reason"], file.path, severity)
        case _:
            code, message, fix = "unreadable", f"it can't be read: {error}", "sync again"
    return Diagnostic(code, severity, message, fix=fix, path=file.path)


def tree_hash(found: ScannedFolder, hashes: Mapping[str, str | None]) -> str | None:
    """Return the hash over all files of a folder; None if a file could not be read."""
    if found.unread:
        return None
    entries = []
    for file in found.files:
        content = hashes.get(file.path)
        if content is None:
            return None
        entries.append((file.path, bool(file.mode & S_IXUSR), content))
    return tree_digest(entries) if entries else None


_CONTAINER: Final = re.compile(
    r"(?<![^/])(?:\.[^/]+/|plugins/[^/]+/)?skills?(?:/|$)", re.IGNORECASE
)
"""Matches a folder of skills in a path.

This is ``skills``, or the skills folder of an agent or a plugin.
"""

_COPIED_FIELDS: Final = "name description kind version license author compatibility".split()
"""Database columns with the same names as fields of a `Document`."""


@dataclass(frozen=True, slots=True)
class Previous:
    """The values that a new version copies from its previous version."""

    id: int
    uid: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of reading a folder: its parsed SKILL.md, the hashes of its files, all findings.

    ``data`` is None if SKILL.md couldn't be read. ``unread`` holds the findings about files that
    can't be read now (no permission, input/output error). Such a finding doesn't mean that the
    skill changed, so the stored version stays.
    """

    found: ScannedFolder
    data: bytes | None
    document: Document | None
    hashes: Mapping[str, str | None]
    findings: tuple[Diagnostic, ...]
    unread: tuple[Diagnostic, ...] = ()
    contents: tuple[Packed, ...] = ()


def read_folder(
    root: str,
    found: ScannedFolder,
    limits: Limits,
    known: KnownHashes,
    *,
    with_contents: bool = False,
    earlier: Sequence[Diagnostic] = (),
    recent: Recent | None = None,
) -> Reading:
    """Read a skill folder: hash its files, parse and check SKILL.md, check the other files.

    If ``with_contents``, the result holds the bytes of the files, except files that were stored
    recently. ``earlier`` holds the findings of the last sync. For unchanged files (``known``), they
    are still valid, so these files are not read again.
    """
    recent = recent or Recent()
    what = root, found, limits, known
    reading: Reading
    *_, reading = _steps(*what, recent, with_contents=with_contents, earlier=earlier)
    return reading


def _steps(
    root: str,
    found: ScannedFolder,
    limits: Limits,
    known: KnownHashes,
    recent: Recent,
    *,
    with_contents: bool,
    earlier: Sequence[Diagnostic] = (),
    is_new: bool = False,
) -> Iterator[Any]:
    """Read a folder as `read_folder` does, in steps; the last step yields the `Reading`.

    If ``is_new``, the caller will certainly store this folder. If a later folder then has a file
    with the same bytes, its result leaves out these bytes.
    """
    packed: list[Packed] = []
    texts = Texts()
    may_run = {file.path for file in found.files if file.mode & S_IXUSR}

    def take(path: str, content_hash: str, content: bytes) -> None:
        if path != found.document:
            texts.offer(path, content_hash, content, may_run=path in may_run)
        # The text of SKILL.md is stored with its version, and the texts of older versions in
        # history. So its bytes aren't packed here.
        if with_contents and path != found.document and not recent.is_stored(content_hash):
            packed.append(pack(content_hash, content))

    hashes, findings, unread, data = hash_files(root, found, known, limits, take)
    if is_new:
        recent.note_stored(one.hash for one in packed)
    yield None
    findings = [*found.problems, *findings]
    document = None
    if data is not None:
        document = parse_document(data, folder_name=found.name)
        if with_contents and document.text.encode() != data:
            packed.append(pack(digest(data), data))
        findings.extend(_placed(finding, found.document) for finding in document.diagnostics)
    yield None
    usable = document if document is not None and document.usable else None
    files = _listed(found, hashes)
    if usable:
        broken = check_specification(usable, folder_name=found.name, files=files)
        findings.extend(_unsaid(broken, usable, found))
    yield None
    if usable:
        check = partial(recent.findings, hashes.get(found.document or ""))
        findings.extend(_unsaid(check_security(usable, files=files, check=check), usable, found))
    yield None
    if usable:
        findings.extend(_check_texts(texts, usable, recent))
        unseen = hashes.keys() - texts.seen - {found.document}
        findings.extend(
            finding
            for finding in earlier
            if finding.path in unseen and finding.code in CONTENT_CODES
        )
    findings.sort(key=lambda finding: finding.sort_key)
    facts = found, data, document, hashes, tuple(findings), (*found.unread, *unread), tuple(packed)
    yield Reading(*facts)


def _listed(found: ScannedFolder, hashes: Mapping[str, str | None]) -> list[SkillFile]:
    return [
        SkillFile(file.path, file.size, hashes[file.path], bool(file.mode & S_IXUSR))
        for file in found.files
    ]


def _unsaid(
    findings: Iterable[Diagnostic], document: Document, found: ScannedFolder
) -> Iterator[Diagnostic]:
    """Yield the findings about SKILL.md, without problems that the parser has already reported."""
    said = {finding.code for finding in document.diagnostics}
    if "description-from-body" in said:
        said.add("description-missing")
    for finding in findings:
        if finding.code not in said:
            yield _placed(finding, found.document)


def _check_texts(texts: Texts, document: Document, recent: Recent) -> Iterator[Diagnostic]:
    defending = is_about_defence(document.name, document.description)
    for path, (content_hash, data) in texts.kept.items():
        check = partial(recent.findings, content_hash)
        yield from check_file(path, data, defending=defending, check=check)
    yield from texts.unchecked()


def _placed(finding: Diagnostic, document: str | None) -> Diagnostic:
    if finding.path is not None or finding.line is None:
        return finding
    return Diagnostic(
        finding.code, finding.severity, finding.message, finding.line, finding.fix, document
    )


def make_version(
    reading: Reading, source_id: int, scan_ns: int, now: str, previous: Previous | None
) -> NewVersion:
    """Return the database rows of a new version, from the result of reading its folder.

    ``scan_ns`` is the time at which the scan started, by the clock that sets file times.
    """
    found, document = reading.found, reading.document
    said = document or _nothing(found)
    times = [file.mtime_ns for file in found.files]
    created = said.created or (utc_text(min(times)) if times else now)
    front_matter = dump(said.front_matter)
    columns: dict[str, Any] = {
        **{field: getattr(said, field) for field in _COPIED_FIELDS},
        "uid": previous.uid if previous else f"{random.getrandbits(64):016x}",
        "replaces": previous.id if previous else None,
        "source_id": source_id,
        "folder": found.folder,
        "position": position(found.folder),
        "name_key": name_key(said.name),
        "category": said.category or _category_of(found.folder),
        "tags": "\n".join(said.tags),
        "created_at": previous.created_at if previous else created,
        "updated_at": utc_text(max(times)) if times else now,
        "indexed_at": now,
        "content_hash": reading.hashes.get(found.document) if found.document else None,
        "tree_hash": tree_hash(found, reading.hashes),
        "document": found.document,
        "bytes": sum(file.size for file in found.files),
        "file_count": len(found.files),
        # with an empty fingerprint, the next sync reads the folder again
        "fingerprint": "" if reading.unread else stamp(found),
        "racy": int(is_racy(found, scan_ns)),
        "status": _status(reading),
        "hidden": int(said.hidden),
        "held": 0,
        "required_tools": dump(said.required_tools),
        "parameters": dump(record(said.parameters)),
        "needs": front_matter if may_name_needs(front_matter) else None,
    }
    return NewVersion(
        columns,
        tags=said.tags,
        files=[
            {**file._asdict(), "inode": signed(file.inode), "hash": reading.hashes.get(file.path)}
            for file in found.files
        ],
        findings=reading.findings,
        text=None if document is None else document.text,
        contents=reading.contents,
        body_start=max(said.text.rfind(said.body), 0) if said.body else len(said.text),
        front_matter=front_matter,
    )


def _category_of(folder: str) -> str | None:
    """Return a category from the folder of a skill, for a SKILL.md that has no category.

    Catalogues often group skills in folders by category. A folder that only contains the skills of
    a repository, an agent or a plugin is not a category.
    """
    return _CONTAINER.sub("", os.path.dirname(folder)).rstrip("/") or None


def _nothing(found: ScannedFolder) -> Document:
    """Return an empty document for a folder whose SKILL.md is missing or unreadable."""
    return Document(text="", body="", body_line=1, front_matter={}, name=found.name, description="")


def _status(reading: Reading) -> str:
    if not reading.found.is_skill:
        return "no_document"
    grave = {finding.category for finding in reading.findings if finding.severity == "error"}
    if "format" in grave or reading.document is None:
        return "invalid"
    warned = grave or any(finding.severity == "warning" for finding in reading.findings)
    return "warning" if warned else "ok"


def security_errors(found: Iterable[Diagnostic]) -> set[str]:
    """Return the codes of the security errors among these findings."""
    return {one.code for one in found if (one.category, one.severity) == ("security", "error")}


class Task(NamedTuple):
    """New skill folders of one source to read; see `make_version`.

    If ``from_remote``, skills with security errors are quarantined.
    """

    root: str
    limits: Limits
    source_id: int
    scan_ns: int
    now: str
    folders: list[ScannedFolder]
    with_contents: bool
    from_remote: bool


def read_new(task: Task, recent: Recent) -> list[NewVersion]:
    """Read new skill folders and return their new versions.

    Each step (such as hashing or parsing) is done for all folders before the next step. So the code
    and data of the step stay in the processor's caches, which saves more than a tenth of the time.
    """
    kept = task.with_contents
    folders = [
        _steps(task.root, found, task.limits, {}, recent, with_contents=kept, is_new=True)
        for found in task.folders
    ]
    *_, readings = zip(*folders, strict=True)
    versions = [
        make_version(reading, task.source_id, task.scan_ns, task.now, None) for reading in readings
    ]
    for version in versions:
        version.columns["held"] = int(task.from_remote and bool(security_errors(version.findings)))
    return versions
