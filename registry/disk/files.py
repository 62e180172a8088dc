"""Read files of skills: never through a surprise, never half old and half new."""

import errno
import hashlib
import os
from dataclasses import dataclass
from stat import S_ISREG
from typing import Final

from registry.disk.links import Leads, follow
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


class IsLink(SkillInaccessible):
    """The file is a link: ``path``, ``reason``."""


def read_file(path: str, limit: int) -> Content:
    """Read the regular file at ``path``, at most ``limit`` bytes.

    A file that changes meanwhile is read again, up to three times. Raises `SkillInaccessible` (not
    a regular file, no permission, input/output error; `IsLink`), `FileTooLarge`, `FileChanging`;
    FileNotFoundError goes through.
    """
    for _ in range(ATTEMPTS):
        content = _read_once(path, limit)
        if content is not None:
            return content
    raise FileChanging(path=path)


def read_inside(path: str, limit: int, home: str, root: str) -> Content:
    """Read as `read_file`, and through a link that leads to a place in ``home`` or ``root``."""
    try:
        return read_file(path, limit)
    except IsLink:
        link = follow(path, home, (root,))
        if link.leads not in {Leads.INSIDE, Leads.KNOWN}:
            raise
        return read_file(link.target, limit)


def _read_once(path: str, limit: int) -> Content | None:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise IsLink(path=path, reason="it is a link") from error
        raise SkillInaccessible(path=path, reason=error.strerror or str(error)) from error
    try:
        before = os.fstat(descriptor)
        if not S_ISREG(before.st_mode):
            raise SkillInaccessible(path=path, reason="it is not a regular file")
        if before.st_size > limit:
            raise FileTooLarge(path=path, size=before.st_size, limit=limit)
        chunks, size = [], 0
        # No further than its size: whether it grew meanwhile, the second fstat tells.
        while size < before.st_size and (chunk := os.read(descriptor, CHUNK)):
            chunks.append(chunk)
            size += len(chunk)
        after = os.fstat(descriptor)
        now = os.lstat(path)
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
