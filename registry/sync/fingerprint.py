"""What a skill's folder looked like when it was read, and by which rules it was read."""

from typing import Final

from registry.disk.scanned import ScannedFolder

RULES: Final = "3"
"""The version of what is made of a folder's content: to be raised with every change of a rule.

The next sync then reads all skills again, those whose files did not change, too.
"""

_MARK: Final = f"{RULES}:"


def stamp(found: ScannedFolder) -> str:
    """Return the fingerprint of a folder as it is stored."""
    return _MARK + found.fingerprint


def is_current(stored: str) -> bool:
    """Tell whether a stored fingerprint was taken by the rules of today."""
    return stored.startswith(_MARK)


def is_same(stored: str, found: ScannedFolder) -> bool:
    """Tell whether the files are as they were, by whatever rules they were read."""
    return stored.rpartition(":")[2] == found.fingerprint
