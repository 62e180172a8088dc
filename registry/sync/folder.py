"""One folder on disk into one version for the database."""

import os
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from stat import S_IXUSR
from typing import Any, Final

from registry.db.versions import NewVersion, Packed, dump, pack
from registry.disk.files import digest
from registry.disk.paths import position
from registry.disk.walk import ScannedFolder
from registry.document.dialects import Dialects
from registry.document.parse import parse_document
from registry.document.rules import check_specification
from registry.document.security import (
    CONTENT_CODES,
    Texts,
    check_file,
    check_security,
    is_about_defence,
    kind_of,
)
from registry.model import Diagnostic, Document, SkillFile, record
from registry.settings import Limits
from registry.sync.fingerprint import MARK, is_racy, mark_of, signed, stamp
from registry.sync.hashing import KnownHashes, hash_files, tree_hash
from registry.sync.recent import Recent
from registry.text import name_key, utc_text

_SAID: Final = "name description kind version license author compatibility".split()
"""Columns that are fields of a `Document`."""


@dataclass(frozen=True, slots=True)
class Previous:
    """What a version takes over from the one it replaces."""

    id: int
    uid: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A folder as it was read: its document, the hash of each file, and all findings.

    ``data`` is None where the document could not be read. ``unread`` are the findings about what
    the disk does not give out (no permission, input/output error): they prove nothing, so that what
    was known before is kept. ``mark``: by which rules it was read.
    """

    found: ScannedFolder
    data: bytes | None
    document: Document | None
    hashes: Mapping[str, str | None]
    findings: tuple[Diagnostic, ...]
    unread: tuple[Diagnostic, ...] = ()
    contents: tuple[Packed, ...] = ()
    mark: str = MARK


def read_folder(
    root: str,
    found: ScannedFolder,
    limits: Limits,
    known: KnownHashes,
    *,
    with_contents: bool = False,
    told: Sequence[Diagnostic] = (),
    dialects: Dialects = (),
    recent: Recent | None = None,
) -> Reading:
    """Read one skill folder whole: hash its files, parse and check its document, check the others.

    ``with_contents``: the bytes that were read are kept, too, but for those that were stored of
    late. ``told``: what was found before, and still holds of files that are ``known`` and so not
    read again.
    """
    packed: list[Packed] = []
    texts = Texts()
    recent = recent or Recent()
    may_run = {file.path for file in found.files if file.mode & S_IXUSR}

    def take(path: str, content_hash: str, content: bytes) -> None:
        if path != found.document:
            texts.offer(path, content_hash, content, may_run=path in may_run)
        # A document is stored as text already, and kept when another takes its place.
        if with_contents and path != found.document and not recent.is_stored(content_hash):
            packed.append(pack(content_hash, content))

    hashes, findings, unread, data = hash_files(root, found, known, limits, take)
    findings = [*found.problems, *findings]
    unread = [*found.unread, *unread]
    document = None
    if data is not None:
        document = parse_document(data, folder_name=found.name, dialects=dialects)
        if with_contents and document.text.encode() != data:
            packed.append(pack(digest(data), data))
        findings.extend(_placed(finding, found.document) for finding in document.diagnostics)
        if document.usable:
            # What the parser has said already, and had to work round, is not said again.
            said = {finding.code for finding in document.diagnostics}
            if "description-from-body" in said:
                said.add("description-missing")
            files = [
                SkillFile(file.path, file.size, hashes[file.path], file.path in may_run)
                for file in found.files
            ]
            for rule in (
                check_specification(document, folder_name=found.name, files=files),
                check_security(document, files=files),
            ):
                findings.extend(
                    _placed(finding, found.document) for finding in rule if finding.code not in said
                )
            defending = is_about_defence(document.name, document.description)
            for path, (content_hash, text) in texts.kept.items():
                findings.extend(_check_once(recent, path, content_hash, text, defending))
            findings.extend(texts.unchecked())
            unseen = {file.path for file in found.files} - texts.seen - {found.document}
            findings.extend(
                finding
                for finding in told
                if finding.path in unseen and finding.code in CONTENT_CODES
            )
    findings.sort(key=lambda finding: finding.sort_key)
    facts = found, data, document, hashes, tuple(findings), tuple(unread), tuple(packed)
    return Reading(*facts, mark=mark_of(dialects))


def _check_once(
    recent: Recent, path: str, content_hash: str, text: bytes, defending: bool
) -> Sequence[Diagnostic]:
    """Check a supporting file, or return what was found in another of the same content."""
    key = content_hash, kind_of(path, defending=defending)
    found = recent.found(key)
    if found is None:
        found = list(check_file(path, text, defending=defending))
        recent.note_found(key, found)
        return found
    return [replace(finding, path=path) for finding in found]


def _placed(finding: Diagnostic, document: str | None) -> Diagnostic:
    if finding.path is not None or finding.line is None:
        return finding
    return Diagnostic(
        finding.code, finding.severity, finding.message, finding.line, finding.fix, document
    )


def make_version(
    reading: Reading, source_id: int, scan_ns: int, now: str, previous: Previous | None
) -> NewVersion:
    """Build the rows of one version. ``scan_ns``: when the scan began, by the disk's clock."""
    found, document = reading.found, reading.document
    said = document or _nothing(found)
    times = [file.mtime_ns for file in found.files]
    created = said.created or (utc_text(min(times)) if times else now)
    columns: dict[str, Any] = {
        **{field: getattr(said, field) for field in _SAID},
        "uid": previous.uid if previous else f"{random.getrandbits(64):016x}",
        "replaces": previous.id if previous else None,
        "source_id": source_id,
        "folder": found.folder,
        "position": position(found.folder),
        "name_key": name_key(said.name),
        # The folders between source and skill are what catalogues use as categories.
        "category": said.category or os.path.dirname(found.folder) or None,
        "tags": "\n".join(said.tags),
        "created_at": previous.created_at if previous else created,
        "updated_at": utc_text(max(times)) if times else now,
        "indexed_at": now,
        "content_hash": reading.hashes.get(found.document) if found.document else None,
        "tree_hash": tree_hash(found, reading.hashes),
        "document": found.document,
        "bytes": sum(file.size for file in found.files),
        "file_count": len(found.files),
        # What could not be read must look changed to the next sync.
        "fingerprint": "" if reading.unread else stamp(found, reading.mark),
        "racy": int(is_racy(found, scan_ns)),
        "status": _status(reading),
        "hidden": int(said.hidden),
        "held": 0,
        "required_tools": dump(said.required_tools),
        "parameters": dump(record(said.parameters)),
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
        front_matter=dump(said.front_matter),
    )


def _nothing(found: ScannedFolder) -> Document:
    """Return what a folder says whose document is not there, or can't be read."""
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
    """Return the codes of the security errors among some findings."""
    return {one.code for one in found if (one.category, one.severity) == ("security", "error")}


def read_new(
    root: str,
    found: ScannedFolder,
    limits: Limits,
    source_id: int,
    scan_ns: int,
    now: str,
    *,
    with_contents: bool,
    from_remote: bool,
    dialects: Dialects = (),
    recent: Recent | None = None,
) -> NewVersion:
    """Read a folder of which nothing is stored. From a remote source it is held back for errors."""
    reading = read_folder(
        root, found, limits, {}, with_contents=with_contents, dialects=dialects, recent=recent
    )
    version = make_version(reading, source_id, scan_ns, now, None)
    version.columns["held"] = int(from_remote and bool(security_errors(version.findings)))
    return version
