"""One folder on disk into one version for the database."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from stat import S_IXUSR
from typing import Any

from registry.db.writes.revisions import Packed, pack
from registry.db.writes.versions import NewVersion, dump
from registry.disk.files import digest
from registry.disk.found import Found
from registry.disk.paths import ROOT, position
from registry.document import parse_document
from registry.document.rules import check_specification
from registry.document.security import check_security
from registry.model import Diagnostic, Document, SkillFile
from registry.settings import Limits
from registry.sync.hashing import KnownHashes, hash_files, tree_hash
from registry.text import name_key, utc_text

RACY_NS = 2_000_000_000
"""Timestamps this close to the scan's start may hide a later change of the same size."""


@dataclass(frozen=True, slots=True)
class Previous:
    """What a version takes over from the one it replaces."""

    id: int
    uid: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Reading:
    """A folder as it was read: its document, the hash of each file, and all findings.

    ``data`` is None where the document could not be read; ``transient`` says that the reason may
    pass (no permission, changing), so that what was known before should be kept.
    """

    found: Found
    data: bytes | None
    document: Document | None
    hashes: Mapping[str, str | None]
    findings: tuple[Diagnostic, ...]
    transient: bool = False
    contents: tuple[Packed, ...] = ()


def is_racy(found: Found, scan_ns: int) -> bool:
    """Tell whether the folder's times prove nothing, seen from the scan's start ``scan_ns``."""
    return found.newest_ns >= scan_ns - RACY_NS


def read_folder(
    root: str, found: Found, limits: Limits, known: KnownHashes, *, keep: bool = False
) -> Reading:
    """Read one skill folder whole: hash its files, parse and check its document.

    ``keep``: the bytes that were read are kept, too.
    """
    packed: list[Packed] = []

    def take(path: str, content_hash: str, content: bytes) -> None:
        # A document is stored as text already, and kept when another takes its place.
        if keep and path != found.document:
            packed.append(pack(content_hash, content))

    hashes, findings, data, transient = hash_files(root, found, known, limits, take)
    findings = [*found.problems, *findings]
    document = None
    if data is not None:
        document = parse_document(data, folder_name=found.name)
        if keep and document.text.encode() != data:
            packed.append(pack(digest(data), data))
        findings.extend(_placed(finding, found.document) for finding in document.diagnostics)
        if document.usable:
            # What the parser has said already, and had to work round, is not said again.
            told = {finding.code for finding in document.diagnostics}
            if "description-from-body" in told:
                told.add("description-missing")
            files = [
                SkillFile(file.path, file.size, hashes[file.path], bool(file.mode & S_IXUSR))
                for file in found.files
            ]
            for rule in (
                check_specification(document, folder_name=found.name, files=files),
                check_security(document, files=files),
            ):
                findings.extend(
                    _placed(finding, found.document) for finding in rule if finding.code not in told
                )
    findings.sort(key=lambda finding: finding.sort_key)
    return Reading(found, data, document, hashes, tuple(findings), transient, tuple(packed))


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
    columns: dict[str, Any] = {
        "uid": previous.uid if previous else f"{random.getrandbits(64):016x}",
        "replaces": previous.id if previous else None,
        "source_id": source_id,
        "folder": found.folder,
        "position": position(found.folder),
        "name": document.name if document else found.name,
        "description": document.description if document else "",
        "kind": document.kind if document else None,
        "category": (document.category if document else None) or _folders_between(found.folder),
        "version": document.version if document else None,
        "license": document.license if document else None,
        "author": document.author if document else None,
        "compatibility": document.compatibility if document else None,
        "tags": "\n".join(document.tags) if document else "",
        "created_at": _created(reading, previous, now),
        "updated_at": utc_text(max((file.mtime_ns for file in found.files), default=0))
        if found.files
        else now,
        "indexed_at": now,
        "content_hash": digest(reading.data) if reading.data is not None else None,
        "tree_hash": tree_hash(found, reading.hashes),
        "document": found.document,
        "bytes": sum(file.size for file in found.files),
        "file_count": len(found.files),
        # What could not be read for a passing reason must look changed to the next sync.
        "fingerprint": "" if reading.transient else found.fingerprint,
        "racy": int(is_racy(found, scan_ns)),
        "status": _status(reading),
        "hidden": int(document.hidden) if document else 0,
        "required_tools": dump(document.required_tools) if document else "[]",
        "parameters": dump([_parameter(p) for p in document.parameters]) if document else "[]",
    }
    columns["name_key"] = name_key(columns["name"])
    return NewVersion(
        columns,
        tags=document.tags if document else (),
        files=file_rows(found, reading.hashes),
        findings=reading.findings,
        text=document.text if document else None,
        contents=reading.contents,
        body_start=_body_start(document) if document else 0,
        front_matter=dump(document.front_matter) if document else "{}",
    )


def _body_start(document: Document) -> int:
    found = document.text.rfind(document.body) if document.body else len(document.text)
    return max(found, 0)


def file_rows(found: Found, hashes: Mapping[str, str | None]) -> Sequence[dict[str, Any]]:
    """Build the rows of skill_files, without the version's id."""
    return [
        {
            "path": file.path,
            "mode": file.mode,
            "size": file.size,
            "mtime_ns": file.mtime_ns,
            "ctime_ns": file.ctime_ns,
            "inode": file.inode if file.inode < 1 << 63 else file.inode - (1 << 64),
            "hash": hashes.get(file.path),
        }
        for file in found.files
    ]


def _parameter(parameter: Any) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "type": parameter.type,
        "description": parameter.description,
        "required": parameter.required,
        "default": parameter.default,
    }


def _status(reading: Reading) -> str:
    if not reading.found.is_skill:
        return "no_document"
    worst = {finding.severity for finding in reading.findings}
    if "error" in worst or reading.document is None:
        return "invalid"
    return "warning" if "warning" in worst else "ok"


def _created(reading: Reading, previous: Previous | None, now: str) -> str:
    if previous:
        return previous.created_at
    if reading.document and reading.document.created:
        return reading.document.created
    files = reading.found.files
    return utc_text(min(file.mtime_ns for file in files)) if files else now


def _folders_between(folder: str) -> str | None:
    """Return the folders between source and skill, which catalogues use as categories."""
    if folder == ROOT or "/" not in folder:
        return None
    return folder.rsplit("/", 1)[0]
