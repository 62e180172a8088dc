"""What a skill's folder looked like when it was read, and by which rules it was read."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from registry.db.interface import StatUpdates
from registry.disk.walk import ScannedFolder

if TYPE_CHECKING:
    from registry.document.dialects import Dialects

RULES: Final = "7"
"""The version of what is made of a folder's content: to be raised with every change of a rule.

The next sync then reads all skills again, those whose files did not change, too; until then a
check believes nothing that is stored.
"""

MARK: Final = f"{RULES}:"
"""What stands before a fingerprint: by which rules, and with which dialects, a folder was read."""


RACY_NS = 2_000_000_000
"""Timestamps this close to the scan's start may hide a later change of the same size."""


def mark_of(dialects: "Dialects") -> str:
    """Return the mark of a folder that is read with these dialects."""
    return "+".join([RULES, *(f"{one.name}={one.version}" for one in dialects)]) + ":"


def stamp(found: ScannedFolder, mark: str = MARK) -> str:
    """Return the fingerprint of a folder as it is stored."""
    return mark + found.fingerprint


def is_current(stored: str, mark: str) -> bool:
    """Tell whether a stored fingerprint was taken by the rules of today."""
    return stored.startswith(mark)


def is_same(stored: str, found: ScannedFolder) -> bool:
    """Tell whether the files are as they were, by whatever rules they were read."""
    return stored.rpartition(":")[2] == found.fingerprint


def is_racy(found: ScannedFolder, scan_ns: int) -> bool:
    """Tell whether the folder's times prove nothing, seen from the scan's start ``scan_ns``."""
    return found.newest_ns >= scan_ns - RACY_NS


def stamps_of(seen: Iterable[tuple[int, ScannedFolder, str]], scan_ns: int) -> StatUpdates:
    """Return the stat facts of versions as their folders were seen, each with its mark."""
    stamps = StatUpdates([], [])
    for version, found, mark in seen:
        stamps.versions.append((stamp(found, mark), int(is_racy(found, scan_ns)), version))
        for path, *facts, inode in found.files:
            stamps.files.append((*facts, signed(inode), version, path))
    return stamps


def signed(inode: int) -> int:
    """Return the number of an inode as a database holds it, in 64 bits with a sign."""
    return inode if inode < 1 << 63 else inode - (1 << 64)
