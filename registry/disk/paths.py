"""How folders are named in the database, and in which order they are walked."""

import os
import re
from pathlib import PurePosixPath

ROOT = "."
"""The folder of a skill that lies at the root of its source."""

IGNORED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
"""Folders that hold no skills and belong to none (guide for clients: skip `.git` and the like)."""

STATE_SUFFIX = ".skill-registry"
"""Ending of the registry's own state folders, which other programs and we never scan."""

_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")
_LOW = str.maketrans({chr(code): "\x03" for code in range(4)})


def is_ignored(name: str) -> bool:
    """Tell whether a folder of this name is passed over with all it holds."""
    return name in IGNORED or (name.startswith(".") and name.endswith(STATE_SUFFIX))


def storable(path: str) -> str:
    """Return ``path`` with bytes that are not UTF-8 shown as escapes, so that it can be stored."""
    if path.isascii():
        return path
    return _UNSTORABLE.sub(lambda m: f"\\x{ord(m.group()) & 0xFF:02x}", path)


def position(folder: str) -> str:
    """Return the sort key that puts folders in the walk's order: children before their parent.

    ``/`` sorts before and the end of a path right after every child, whatever characters the
    names hold, so the key can be compared as plain text, in Python and in SQL alike.
    """
    if folder == ROOT:
        return "\U0010ffff\U0010ffff"
    return entry_order(folder).replace("/", "\x01") + "\x02"


def entry_order(name: str) -> str:
    """Return the key by which the entries of one folder are visited (agrees with `position`)."""
    return name if name.isprintable() else name.translate(_LOW)


def is_below(path: str, root: str) -> bool:
    """Tell whether the absolute, resolved ``path`` is ``root`` or lies inside it."""
    return path == root or path.startswith(root if root.endswith(os.sep) else root + os.sep)


def is_safe_relative(path: str) -> bool:
    """Tell whether ``path`` can name a file inside a skill's folder.

    Absolute paths, ``..``, backslashes, drives and NUL are refused (CONVENTIONS, Attacks).
    """
    if not path or "\\" in path or "\0" in path or path.startswith("/") or path[1:2] == ":":
        return False
    return ".." not in PurePosixPath(path).parts


def join(root: str, folder: str) -> str:
    """Return the absolute path of ``folder`` below ``root``."""
    return root if folder == ROOT else f"{root.rstrip('/')}/{folder}"
