"""Read files of skills safely: no links, no special files, and no partly written files."""

import errno
import hashlib
import os
from dataclasses import dataclass
from stat import S_ISREG
from typing import Final

from registry.disk.beneath import GONE, PASS, READ, Folder, reason_of
from registry.disk.paths import ROOT, is_below, join
from registry.errors import FileChanging, FileTooLarge, SkillInaccessible

ATTEMPTS: Final = 3
CHUNK: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file and its stat result, read at the same moment."""

    data: bytes
    facts: os.stat_result


def _moment(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_ino, facts.st_dev, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


class IsLink(SkillInaccessible):
    """The file, or a folder on its path, is a link; the details are ``path`` and ``reason``."""

    code = SkillInaccessible.code


def open_home(root: str, folder: str) -> Folder:
    """Open a skill's folder, to read all its files from there.

    Raises `SkillInaccessible`, `IsLink`.
    """
    try:
        source = Folder.passing(root)
        if folder == ROOT:
            return source
        with source:
            return source.folder(folder, PASS)
    except OSError as error:
        raise _refused(join(root, folder), error) from error


def read_file(path: str, limit: int) -> Content:
    """Read the regular file at ``path``, which comes from the user.

    The file may have at most ``limit`` bytes. If the file changes while it is being read, it is
    read again, up to three times. If it still changes, this raises `FileChanging`. Raises
    FileNotFoundError if the file doesn't exist, `FileTooLarge` if it exceeds the limit, and
    `IsLink` if it is a link. Raises `SkillInaccessible` if it isn't a regular file or can't be
    read.
    """
    return _read(None, path, path, limit)


def read_below(folder: Folder, path: str, limit: int) -> Content:
    """Read the file at ``path`` in an open folder, without following links.

    Raises the errors of `read_file`.
    """
    whole = folder.path_of(path)
    try:
        if "/" not in path:
            return _read(folder.fd, path, whole, limit)
        above, _, name = path.rpartition("/")
        with folder.folder(above, PASS) as holder:
            return _read(holder.fd, name, whole, limit)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _refused(whole, error) from error
    except UnicodeEncodeError as error:  # no file system can have a file with this name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), whole) from error


def read_inside(home: Folder, path: str, limit: int, root: str | None = None) -> Content:
    """Read a file as `read_below` does, but follow links that stay in ``home`` or in ``root``.

    The target of a link is then opened without following links. A broken link raises
    FileNotFoundError.
    """
    try:
        return read_below(home, path, limit)
    except IsLink as link:
        try:
            target = os.path.realpath(home.path_of(path), strict=True)
        except OSError as error:
            if error.errno in GONE:
                raise _refused(home.path_of(path), error) from error
            raise link from error
        if is_below(target, home.path):
            return read_below(home, os.path.relpath(target, home.path), limit)
        if root is None or not is_below(target, root):
            raise
        with open_home(root, ROOT) as source:
            return read_below(source, os.path.relpath(target, root), limit)


def _refused(path: str, error: OSError) -> Exception:
    """Return the error for a file that can't be opened."""
    if error.errno in GONE:
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    kind = IsLink if error.errno == errno.ELOOP else SkillInaccessible
    return kind(path=path, reason=reason_of(error))


def _read(holder: int | None, name: str, path: str, limit: int) -> Content:
    """Read the file ``name`` in the open folder ``holder``; ``path`` is for messages."""
    for _ in range(ATTEMPTS):
        content = _read_once(holder, name, path, limit)
        if content is not None:
            return content
    raise FileChanging(path=path)


def _read_once(holder: int | None, name: str, path: str, limit: int) -> Content | None:
    try:
        descriptor = os.open(name, READ, dir_fd=holder)
    except OSError as error:
        raise _refused(path, error) from error
    try:
        before = os.fstat(descriptor)
        if not S_ISREG(before.st_mode):
            raise SkillInaccessible(path=path, reason="it is not a regular file")
        if before.st_size > limit:
            raise FileTooLarge(path=path, size=before.st_size, limit=limit)
        chunks, size = [], 0
        # Read only as many bytes as the file had at the beginning. The second fstat shows whether
        # it became larger.
        while size < before.st_size and (chunk := os.read(descriptor, CHUNK)):
            chunks.append(chunk)
            size += len(chunk)
        after = os.fstat(descriptor)
        now = os.stat(name, dir_fd=holder, follow_symlinks=False)
    except FileNotFoundError:
        return None  # another process replaced the file while it was being read
    except OSError as error:
        raise SkillInaccessible(path=path, reason=error.strerror or str(error)) from error
    finally:
        os.close(descriptor)
    if _moment(before) == _moment(after) == _moment(now) and size == before.st_size:
        return Content(b"".join(chunks), after)
    return None


def digest(data: bytes) -> str:
    """Return the hash of ``data`` in the registry's format: ``sha256:`` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tree_digest(files: "list[tuple[str, bool, str]]") -> str:
    """Return the hash over all files of a skill.

    For each file, sorted by path, it includes the relative path, the executable bit and the hash of
    the bytes.
    """
    total = hashlib.sha256()
    for path, executable, content in sorted(files):
        total.update(
            f"{path}\0{'x' if executable else '-'}\0{content}\n".encode("utf-8", "replace")
        )
    return "sha256:" + total.hexdigest()
