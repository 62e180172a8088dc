"""Compare tags that name versions, such as ``v1.2``."""

import re
from collections.abc import Iterable
from typing import Final

_VERSION_TAG: Final = re.compile(
    r"(?P<prefix>(?:.*[^0-9.])?)(?P<numbers>[0-9]{1,9}(?:\.[0-9]{1,9}){0,3})"
)


def prefix_of(tag: str | None) -> str | None:
    """Return the text before the numbers of a version's tag, such as ``v``.

    Returns None if the tag doesn't name a version.
    """
    found = _VERSION_TAG.fullmatch(tag or "")
    return None if found is None else found["prefix"]


def newer_than(pin: str, tags: Iterable[str]) -> list[str]:
    """Return the tags of newer versions than the version's tag ``pin``, the newest first.

    Only tags with the prefix of the pin count. If the pin isn't one of the tags, for example
    because it is a branch, the result is empty.
    """
    prefix = prefix_of(pin)
    found = {
        tag: _numbers(match["numbers"])
        for tag in tags
        if (match := _VERSION_TAG.fullmatch(tag)) and match["prefix"] == prefix
    }
    if pin not in found:
        return []
    newer = [tag for tag, numbers in found.items() if numbers > found[pin]]
    return sorted(newer, key=lambda tag: found[tag], reverse=True)


def _numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, without zeros at the end: 1.0 equals 1."""
    return tuple(map(int, re.sub(r"(?:\.0+)+$", "", text).split(".")))
