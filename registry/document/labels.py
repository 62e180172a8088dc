"""The labels of versions, such as ``1.2.0``: their allowed form and their order."""

import re
from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Any, Final, TypeVar

from registry.model import Diagnostic, Severity

T = TypeVar("T")

MAX_LENGTH: Final = 64
"""Maximum number of characters of a label."""

_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")

RULE: Final = (
    f"a version has up to {MAX_LENGTH} letters, digits, `.`, `_`, `+` and `-`, "
    "and begins with a letter or digit"
)
"""The rule for labels, for messages."""

REUSED: Final = "version-reused"
"""Code of the finding that a label already belongs to other files."""

REUSED_FINDING: Final[tuple[Severity, str, str]] = (
    "info",
    "the version `@` has other files already",
    "if others use this version, write a new `version`",
)
"""Severity, message and fix of the finding `REUSED`; ``@`` is the label."""

# Semantic Versioning 2.0.0, https://semver.org: numbers without leading zeros.
_NUMBER: Final = r"(?:0|[1-9]\d*)"
_SEMVER: Final = re.compile(
    rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][\dA-Za-z-]*))*))?"
    r"(?:\+[\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*)?",
    re.ASCII,
)


def is_label(text: str) -> bool:
    """Tell whether a text can be the label of a version."""
    return _LABEL.fullmatch(text) is not None


def split(handle: str) -> tuple[str, str] | None:
    """Split ``NAME@LABEL`` at the last ``@``; return None if there is no label."""
    name, at, label = handle.rpartition("@")
    return (name, label) if at and name and is_label(label) else None


def reused(label: str, path: str | None) -> Diagnostic:
    """Return the finding `REUSED` about the skill file ``path``."""
    severity, message, fix = REUSED_FINDING
    return Diagnostic(REUSED, severity, message.replace("@", label), fix=fix, path=path)


def ordered(some: Iterable[T], label: Callable[[T], str], time: Callable[[T], Any]) -> list[T]:
    """Sort versions, the oldest first: by SemVer, else by PEP 440, else by time.

    SemVer and PEP 440 are used only if all labels follow the standard. Equal versions are sorted by
    time.
    """
    found = sorted(some, key=time)
    for rule in (_semver, _pep440):
        keys = [rule(label(one)) for one in found]
        if all(key is not None for key in keys):
            pairs = sorted(zip(keys, found, strict=True), key=cmp_to_key(_compare))
            return [one for _, one in pairs]
    return found


def _compare(one: tuple[Any, Any], other: tuple[Any, Any]) -> int:
    return int(one[0] > other[0]) - int(one[0] < other[0])


def _semver(label: str) -> Any:
    """Return a sort key by SemVer's rules, without build metadata.

    Returns None if the label isn't SemVer.
    """
    found = _SEMVER.fullmatch(label)
    if found is None:
        return None
    *numbers, early = found.groups()
    # A pre-release comes before the release, and numbers come before other words.
    words = [
        (0, int(one), "") if one.isdigit() else (1, 0, one) for one in (early or "").split(".")
    ]
    return [int(number) for number in numbers], early is None, words


def _pep440(label: str) -> Any:
    from packaging.version import InvalidVersion, Version

    try:
        return Version(label)
    except InvalidVersion:
        return None
