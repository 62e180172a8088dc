"""Convert and check the paths of skills; define the order in which a walk visits folders."""

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from registry.text import folded

ROOT = "."
"""The stored path of a skill whose folder is the root of its source."""

IGNORED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
"""Folders that contain no skills and aren't part of a skill.

The list comes from the specification's guide for clients.
"""

ARCHIVES: Final = (".zip", ".tar", ".tar.gz", ".tgz", ".skill")
"""File endings of archives."""

STATE_SUFFIX = ".skill-registry"
"""Ending of the names of folders with the registry's own data.

A search for skills skips these folders.
"""

PART_BYTES: Final = 255
"""Maximum length of a file's or folder's name on common file systems, in bytes."""

PATH_BYTES: Final = 1024
"""Maximum length of a path in a skill's folder, in bytes; real paths are much shorter."""

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

_TOOLS: Final = re.compile(r"(?:^|/)(?:\.(?:git|hg|svn)[ .]*|git~[0-9]+[ .]*)(?::[^/]*)?(?:/|$)")
"""Matches folders of version control, in all spellings that Windows accepts.

Git has the same list (`is_ntfs_dotgit`).
"""

_UNSTORABLE: Final = re.compile(r"[\ud800-\udfff\0]|\\(?=x(?:5c|[89a-f][0-9a-f]))")
_STORED: Final = re.compile(r"\\x(5c|[89a-f][0-9a-f])")
_LOW = str.maketrans({chr(code): "\x03" for code in range(4)})


def is_ignored(name: str) -> bool:
    """Tell whether a sync skips folders with this name and all their contents."""
    return name in IGNORED or (name.startswith(".") and name.endswith(STATE_SUFFIX))


def storable(path: str) -> str:
    """Return ``path`` in its stored form: bytes that aren't UTF-8 become escapes.

    If a backslash would look like the beginning of an escape, it is also escaped. So different
    paths have different stored forms.
    """
    if "\\" not in path and path.isascii():
        return path
    return _UNSTORABLE.sub(lambda m: f"\\x{ord(m.group()) & 0xFF:02x}", path)


def called_on_disk(path: str) -> str:
    """Return the path on disk whose stored form is ``path``."""
    if "\\" not in path:
        return path
    return _STORED.sub(lambda m: os.fsdecode(bytes.fromhex(m[1])), path)


def position(folder: str) -> str:
    """Return the key by which stored folders are sorted into the order of the walk.

    In this order, children come before their parent. In a key, ``/`` sorts before all characters of
    names, and the end of a path sorts directly after all its children. So Python and SQL can
    compare keys as plain text.
    """
    if folder == ROOT:
        return "\U0010ffff\U0010ffff"
    return _ordered(folder).replace("/", "\x01") + "\x02"


def entry_order(name: str) -> str:
    """Return the key by which the entries of a folder are sorted.

    The order is the same as with `position`.
    """
    return _ordered(storable(name))


def _ordered(path: str) -> str:
    return path if path.isprintable() else path.translate(_LOW)


def is_below(path: str, root: str) -> bool:
    """Tell whether ``path`` is ``root`` or inside it; both are absolute paths without links."""
    return path == root or path.startswith(root if root.endswith(os.sep) else root + os.sep)


def is_safe_relative(path: str) -> bool:
    """Tell whether ``path`` can be the relative path of a file in a skill's folder.

    Absolute paths, ``..``, backslashes, drives and NUL are refused.
    """
    if not path or "\\" in path or "\0" in path or path.startswith("/") or path[1:2] == ":":
        return False
    return ".." not in path.split("/")


@lru_cache(maxsize=1024)
def check_path(path: str) -> str | None:
    """Return why a file of a skill must not be copied to this path; None if it may be copied.

    Folders of version control are refused in all spellings that a file system accepts, because
    their files can make the user's tools run programs.
    """
    reason = None
    if not is_safe_relative(path):
        reason = "it leads out of the skill's folder"
    elif _CONTROL.search(path):
        reason = "it has control characters"
    elif _TOOLS.search(folded(path)):
        reason = "version control systems reserve this name"
    elif any(part in {"", "."} or is_ignored(part) for part in path.split("/")):
        reason = "a file of a skill can't have such a path"
    elif len(path) > PART_BYTES // 4 and _is_long(path):
        reason = "it is too long"
    return reason


def check_paths(paths: Iterable[str]) -> tuple[str, str] | None:
    """Return the first path to which a file must not be copied, and the reason.

    Returns None if all paths are allowed. Two paths must not mean the same file on a common file
    system. A path must not be both a file and a folder.
    """
    known = list(paths)
    seen: dict[str, str] = {}
    for path in known:
        reason = check_path(path)
        if reason is not None:
            return path, reason
        other = seen.setdefault(folded(path), path)
        if other != path:
            return path, f"on many file systems it is the same file as {other!r}"
    for path in known:
        above = folded(path)
        while above := above.rpartition("/")[0]:
            if above in seen:
                return path, f"{seen[above]!r} is both a file and a folder"
    return None


def _is_long(path: str) -> bool:
    parts = path.encode().split(b"/")
    return max(map(len, parts)) > PART_BYTES or sum(map(len, parts)) + len(parts) > PATH_BYTES


def join(root: str, folder: str) -> str:
    """Return the absolute path of ``folder`` below ``root``."""
    return root if folder == ROOT else f"{root.rstrip('/')}/{folder}"
