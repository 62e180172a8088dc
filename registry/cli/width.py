"""Measure how many columns a text takes on a terminal, and make it fit."""

import re
from collections.abc import Iterator
from typing import Final, Literal
from unicodedata import category, east_asian_width

Cut = Literal["end", "middle", "start"]

_EMOJI_STYLE: Final = "\ufe0f"


def width_of(text: str) -> int:
    """Return the columns that ``text`` (one line, escaped) takes.

    Terminals disagree about joined emoji: the parts are added up, so that a line never wraps.
    """
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def fit(text: str, width: int, cut: Cut = "end", *, ellipsis: str = "\u2026") -> str:
    """Return ``text``, shortened to at most ``width`` columns where it is longer."""
    if len(text) * 2 <= width or width_of(text) <= width:
        return text
    room = width - width_of(ellipsis)
    if room <= 0:
        return ellipsis[: max(width, 0)]
    if cut == "start":
        return ellipsis + _tail(text, room)
    if cut == "middle":
        tail = room * 2 // 3  # the end of a ref or path tells more than its beginning
        return _head(text, room - tail) + ellipsis + _tail(text, tail)
    return _head(text, room).rstrip() + ellipsis


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return ``text`` filled up to ``width`` columns."""
    space = " " * (width - width_of(text))
    return space + text if right else text + space


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield ``text`` (one paragraph) in lines of at most ``width`` columns."""
    width = max(width, 1)
    line, used = "", 0
    for piece in re.findall(r"\s+|\S+", text):
        size = width_of(piece)
        if used + size <= width:
            line, used = line + piece, used + size
            continue
        if line.strip():
            yield line.rstrip()
        line, used = "", 0
        if not piece.isspace():
            while size > width:  # text without spaces, a long word
                head = _head(piece, width) or piece[0]
                yield head
                piece = piece[len(head) :]  # noqa: PLW2901  # the rest of the word
                size = width_of(piece)
            line, used = piece, size
    if line.strip():
        yield line.rstrip()


def _width(char: str) -> int:
    if char < "\u0300":
        return 1
    if char == _EMOJI_STYLE:
        return 1  # what it follows is drawn two columns wide
    if category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def _head(text: str, room: int) -> str:
    if text.isascii():
        return text[:room]
    used = 0
    for index, char in enumerate(text):
        used += _width(char)
        if used > room:
            return text[:index]
    return text


def _tail(text: str, room: int) -> str:
    if text.isascii():
        return text[len(text) - room :]
    used, index = 0, len(text)
    while index and used + _width(text[index - 1]) <= room:
        index -= 1
        used += _width(text[index])
    while index < len(text) and _width(text[index]) == 0:
        index += 1  # a mark without the letter that it belongs to
    return text[index:]
