"""What a skill's folder looked like when it was read, and by which rules it was read."""

from typing import TYPE_CHECKING, Final

from registry.disk.scanned import ScannedFolder

if TYPE_CHECKING:
    from registry.document.dialects import Dialects

RULES: Final = "3"
"""The version of what is made of a folder's content: to be raised with every change of a rule.

The next sync then reads all skills again, those whose files did not change, too.
"""

MARK: Final = f"{RULES}:"
"""What stands before a fingerprint: by which rules, and with which dialects, a folder was read."""


def mark_of(dialects: "Dialects") -> str:
    """Return the mark of a folder that is read with these dialects."""
    return "+".join([RULES, *(f"{one.name}={one.version}" for one in dialects)]) + ":"


def stamp(found: ScannedFolder, mark: str = MARK) -> str:
    """Return the fingerprint of a folder as it is stored."""
    return mark + found.fingerprint


def is_current(stored: str, mark: str = MARK) -> bool:
    """Tell whether a stored fingerprint was taken by the rules of today."""
    return stored.startswith(mark)


def is_same(stored: str, found: ScannedFolder) -> bool:
    """Tell whether the files are as they were, by whatever rules they were read."""
    return stored.rpartition(":")[2] == found.fingerprint
