"""Take the markup out of a stretch of Markdown, so that it reads as a line of text."""

import re
from typing import Final

_MARKERS: Final = re.compile(r"\s*(?:(?:[-*+>]|\d{1,3}[.)]|#{1,6})\s+|(?:```|~~~)\S*)")
_LINK: Final = re.compile(r"!?\[([^\]\n]*)\]\([^)\n]*\)")
_EMPHASIS: Final = re.compile(r"(?<![\w*])([*_]{1,2})(?=[^\s*_])([^*_]*[^\s*_])\1(?![\w*])")


def plain(text: str) -> str:
    """Return ``text``, which may begin and end anywhere, as one line without markup."""
    lines = []
    for line in text.splitlines():
        told = line
        while (marker := _MARKERS.match(told)) is not None:
            told = told[marker.end() :]
        if not told.strip(" \t|:=*_-"):
            continue
        if told.lstrip().startswith("|"):
            told = told.replace("|", " ")
        lines.append(told)
    told = " ".join(" ".join(lines).split()).replace("**", "").replace("`", "")
    if "](" in told:
        told = _LINK.sub(r"\1", told)
    return _EMPHASIS.sub(r"\2", told) if "*" in told or "_" in told else told
