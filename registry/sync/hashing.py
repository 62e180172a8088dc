"""Hash the files of a skill's folder, reading no more of them than needed."""

from collections.abc import Callable, Mapping
from stat import S_IXUSR
from typing import TypeAlias

from registry.disk.files import digest, read_inside, tree_digest
from registry.disk.paths import join
from registry.disk.scanned import FileStat, ScannedFolder
from registry.errors import FileChanging, FileTooLarge, SkillInaccessible
from registry.model import Diagnostic, Severity
from registry.settings import Limits

KnownHashes: TypeAlias = Mapping[str, tuple[tuple[int, ...], str | None]]
"""Per path the stat facts (mode, size, mtime, ctime, inode) and the hash that went with them."""


def hash_files(
    root: str,
    found: ScannedFolder,
    known: KnownHashes,
    limits: Limits,
    on_read: Callable[[str, str, bytes], None] = lambda _path, _hash, _data: None,
) -> tuple[dict[str, str | None], list[Diagnostic], bytes | None, bool]:
    """Hash the files of a folder, reading only those whose stat is not in ``known``.

    Returns the hashes, what went wrong, the document's bytes, and whether the document could not
    be read for a reason that may pass. ``on_read`` is given path, hash and bytes of each file.
    """
    home = join(root, found.folder)
    hashes: dict[str, str | None] = {}
    findings: list[Diagnostic] = []
    data: bytes | None = None
    transient = False
    for file in found.files:
        is_document = file.path == found.document
        before = known.get(file.path)
        if not is_document and before and before[1] and before[0] == tuple(file[1:]):
            hashes[file.path] = before[1]
            continue
        limit = limits.document_bytes if is_document else limits.skill_bytes
        try:
            content = read_inside(f"{home}/{file.path}", limit, home, root)
            hashes[file.path] = content_hash = digest(content.data)
            on_read(file.path, content_hash, content.data)
            if is_document:
                data = content.data
        except (OSError, FileTooLarge, SkillInaccessible, FileChanging) as error:
            hashes[file.path] = None
            findings.append(_unread(file, error, is_document=is_document, limit=limit))
            transient = transient or (is_document and not isinstance(error, FileTooLarge))
    return hashes, findings, data, transient


def content_now(root: str, found: ScannedFolder, limits: Limits) -> str | None:
    """Return the hash over all files of a folder, read now; None: one of them can't be read."""
    return tree_hash(found, hash_files(root, found, {}, limits)[0])


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
            code, message = "unreadable", f"it can't be read: {error.facts['reason']}"
            fix = "grant read access"
        case _:
            code, message, fix = "unreadable", f"it can't be read: {error}", "sync again"
    return Diagnostic(code, severity, message, fix=fix, path=file.path)


def tree_hash(found: ScannedFolder, hashes: Mapping[str, str | None]) -> str | None:
    """Return the hash over all files of a folder; None where one of them could not be read."""
    entries = []
    for file in found.files:
        content = hashes.get(file.path)
        if content is None:
            return None
        entries.append((file.path, bool(file.mode & S_IXUSR), content))
    return tree_digest(entries) if entries else None
