"""Read files of skills: never through a surprise, never half old and half new."""

import errno
import hashlib
import os
from dataclasses import dataclass
from stat import S_ISREG
from typing import Final

from registry.errors import FileChanging, FileTooLarge, SkillInaccessible

ATTEMPTS: Final = 3
CHUNK: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file as they were at one moment, with the stat result of that moment."""

    data: bytes
    facts: os.stat_result


def _moment(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_ino, facts.st_dev, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


def read_file(path: str, limit: int, *, dir_fd: int | None = None, follow: bool = False) -> Content:
    """Read the regular file at ``path``, at most ``limit`` bytes.

    A file that changes meanwhile is read again, up to three times. ``follow`` allows a last
    component that is a link the caller has checked. Raises `SkillInaccessible` (not a regular
    file, no permission, input/output error), `FileTooLarge`, `FileChanging`; FileNotFoundError
    goes through.
    """
    for _ in range(ATTEMPTS):
        content = _read_once(path, limit, dir_fd, follow)
        if content is not None:
            return content
    raise FileChanging(path=path)


def _read_once(path: str, limit: int, dir_fd: int | None, follow: bool) -> Content | None:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags, dir_fd=dir_fd)
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise SkillInaccessible(path=path, reason=reason) from error
    try:
        before = os.fstat(descriptor)
        if not S_ISREG(before.st_mode):
            raise SkillInaccessible(path=path, reason="it is no regular file")
        if before.st_size > limit:
            raise FileTooLarge(path=path, size=before.st_size, limit=limit)
        chunks, size = [], 0
        while chunk := os.read(descriptor, CHUNK):
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:
                raise FileTooLarge(path=path, size=size, limit=limit)
        after = os.fstat(descriptor)
        now = os.stat(path, dir_fd=dir_fd, follow_symlinks=follow)
    except FileNotFoundError:
        return None  # replaced while it was read
    except OSError as error:
        raise SkillInaccessible(path=path, reason=error.strerror or str(error)) from error
    finally:
        os.close(descriptor)
    if _moment(before) == _moment(after) == _moment(now) and size == before.st_size:
        return Content(b"".join(chunks), after)
    return None


def digest(data: bytes) -> str:
    """Return the hash of ``data`` as the registry writes it: ``sha256:`` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tree_digest(files: "list[tuple[str, bool, str]]") -> str:
    """Return the hash over (relative path, executable bit, content hash) of all files, sorted."""
    total = hashlib.sha256()
    for path, executable, content in sorted(files):
        total.update(
            f"{path}\0{'x' if executable else '-'}\0{content}\n".encode("utf-8", "replace")
        )
    return "sha256:" + total.hexdigest()
