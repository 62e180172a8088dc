"""Hash the files of a skill's folder, reading no more of them than needed."""

from collections.abc import Callable, Mapping
from stat import S_IXUSR
from typing import NamedTuple, TypeAlias

from registry.disk.beneath import Folder
from registry.disk.files import digest, open_home, read_inside, tree_digest
from registry.disk.paths import called_on_disk, join
from registry.disk.walk import FileStat, ScannedFolder, inaccessible, unreadable
from registry.errors import FileChanging, FileTooLarge, SkillInaccessible
from registry.model import Diagnostic, Severity
from registry.settings import Limits

KnownHashes: TypeAlias = Mapping[str, tuple[tuple[int, ...], str | None]]
"""Per path the stat facts (mode, size, mtime, ctime, inode) and the hash that went with them."""


class Hashed(NamedTuple):
    """What reading the files of a folder gave.

    ``unread`` are those of the ``findings`` that prove nothing of the skill: the disk does not give
    a file out, or not the document at this moment. ``data`` are the document's bytes.
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
    """Hash the files of a folder, reading only those whose stat is not in ``known``.

    ``on_read`` is given path, hash and bytes of each file.
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
    """Return the hash over all files of a folder, read now; None: one of them can't be read."""
    return tree_hash(found, hash_files(root, found, {}, limits).hashes)


def whole_hash(root: str, found: ScannedFolder, limits: Limits) -> str | None:
    """Return `content_now`. Raises `SkillInaccessible` where the disk does not give a part out."""
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
    """Return the hash over all files of a folder; None where one of them could not be read."""
    if found.unread:
        return None
    entries = []
    for file in found.files:
        content = hashes.get(file.path)
        if content is None:
            return None
        entries.append((file.path, bool(file.mode & S_IXUSR), content))
    return tree_digest(entries) if entries else None
