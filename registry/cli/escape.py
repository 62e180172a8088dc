"""Escape text from skills, so that it can't control a terminal."""

import re
from functools import cache
from typing import Final

_FLAG: Final = "\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"
_HARMFUL: Final = (
    "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f"  # control characters, including ESC
    "\u2028\u2029"  # line and paragraph separators
    "\u202a-\u202e\u2066-\u2069"  # bidirectional overrides and isolates
    "\ud800-\udfff"  # lone surrogates, which no stream can encode
    "\U000e0000-\U000e007f"  # tag characters: invisible text, except in the flag emoji above
)
_IN_JSON: Final = "[\\x7f-\\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
_NAMED: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def line(text: str) -> str:
    """Escape ``text`` for a single line, such as a name, a ref or a path."""
    if text.isprintable():
        return text
    return _pattern(f"{_FLAG}|[{_HARMFUL}\\t\\n]").sub(_escaped, text)


def prose(text: str) -> str:
    """Escape ``text`` for a single line, and turn line breaks into spaces."""
    if "  " not in text and text.isprintable():
        return text
    return line(" ".join(text.split()))


def text(text: str) -> str:
    """Escape multi-line ``text``; keep line breaks and tabs."""
    return _pattern(f"{_FLAG}|[{_HARMFUL}]").sub(_escaped, text.replace("\r\n", "\n"))


def json_text(text: str) -> str:
    """Escape control characters that `json` leaves unescaped; the JSON value stays the same."""
    # The first two checks are fast. The third check is six times faster than the search.
    if (text.isascii() and "\x7f" not in text) or text.isprintable():
        return text
    return _pattern(_IN_JSON).sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Compile the pattern at its first use, because most output has nothing to escape."""
    return re.compile(text)


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    if len(char) > 1:
        return char  # this is part of a flag emoji
    return _NAMED.get(char) or char.encode("unicode_escape", "surrogatepass").decode("ascii")
