"""Format numbers, sizes, times and texts for users; fit texts into columns."""

import re
import time
from collections.abc import Iterator, Sequence
from typing import Final, Literal
from unicodedata import category, east_asian_width

from registry.cli import escape
from registry.cli.session import Style

MAX_NAMED: Final = 10

STATUS_STYLES: Final[dict[str, Style]] = {
    "ok": "green",
    "warning": "yellow",
    "invalid": "red",
    "no document": "red",
    "shadowed": "dim",
    "deprecated": "yellow",
    "quarantined": "yellow",
    "yanked": "red",
}
INSTALL_STATES: Final = {"pulled": "installed", "behind": "outdated"}
"""Words for states of installed skills in the output, if the JSON has other words."""
SEVERITY_STYLES: Final[dict[str, Style]] = {"error": "red", "warning": "yellow", "info": "dim"}

_MINUTE: Final = 60
_DAY: Final = 86_400
_UNITS: Final = (
    (2 * 365 * _DAY, 365 * _DAY, "year"),
    (60 * _DAY, 30 * _DAY, "month"),
    (_DAY, _DAY, "day"),
    (3600, 3600, "hour"),
    (_MINUTE, _MINUTE, "minute"),
)
"""Units for ages: the unit's minimum age and its length, both in seconds, and its name."""

_STEP: Final = 1000
_TENTHS_BELOW: Final = 100

COMMIT: Final = 10
"""Number of characters of a commit to show."""


LOCAL: Final = "local"
"""The author of changes on this machine, if no server and no client names one."""


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with a noun, such as ``1 skill`` or ``2,981 skills``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Sequence[str]) -> str:
    """Return a list of names as text, such as ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def size(number: int) -> str:
    """Return a number of bytes, in decimal units."""
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < _STEP or unit == "GB":
            break
        value /= _STEP
    digits = 1 if unit != "B" and value < _TENTHS_BELOW else 0
    return f"{value:,.{digits}f} {unit}"


def moment(stamp: str | None, *, local: bool = False) -> str:
    """Return a timestamp without seconds, in UTC or in local time."""
    if not stamp:
        return "never"
    if local and (seconds := _seconds(stamp)) is not None:
        return time.strftime("%Y-%m-%d %H:%M %Z", time.localtime(seconds))
    return f"{stamp[:10]} {stamp[11:16]} UTC"


def ago(stamp: str, now: float) -> str:
    """Return the time between a timestamp and ``now`` (seconds since 1970) in words.

    Times in the future and texts in other forms are returned unchanged.
    """
    seconds = _seconds(stamp)
    if seconds is None or seconds > now + _MINUTE:
        return stamp
    passed = int(now - seconds)
    for least, length, unit in _UNITS:
        if passed >= least:
            return f"{count(passed // length, unit)} ago"
    return "just now"


def _seconds(stamp: str) -> float | None:
    """Convert a UTC timestamp (``2026-01-31T12:30:00Z``) to seconds since 1970.

    Returns None for a text in another form.
    """
    from datetime import datetime

    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError):
        return None


def state(status: str, *, shadowed: bool = False) -> str:
    """Return the word for a skill's status in the output."""
    return "shadowed" if shadowed else status.replace("_", " ")


def commit(version: str) -> str:
    """Return the version of a remote source, shortened if it is a commit or a digest."""
    return version.removeprefix("sha256:")[:COMMIT]


def address(url: str, ref: str | None, part: str | None = None, only: Sequence[str] = ()) -> str:
    """Return a remote address with the folder, the ref and the skills."""
    place = f"{url.rstrip('/')}/{part}" if part else url
    return "".join([place, f"#{ref}" if ref else "", *(f"@{one}" for one in only)])


Cut = Literal["end", "middle", "start"]

_EMOJI_STYLE: Final = "\ufe0f"


def width_of(text: str) -> int:
    """Return the width of ``text``, an escaped line, in columns.

    Terminals disagree about the width of emoji with several parts. This function adds the widths of
    the parts, so that a line never wraps.
    """
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def fit(text: str, width: int, cut: Cut = "end", *, ellipsis: str = "\u2026") -> str:
    """Return ``text``, shortened if it is longer than ``width`` columns."""
    if len(text) * 2 <= width or width_of(text) <= width:
        return text
    room = width - width_of(ellipsis)
    if room <= 0:
        return ellipsis[: max(width, 0)]
    if cut == "start":
        return ellipsis + _tail(text, room)
    if cut == "middle":
        tail = room * 2 // 3  # the end of a ref or path is more informative than its beginning
        return _head(text, room - tail) + ellipsis + _tail(text, tail)
    return _head(text, room).rstrip() + ellipsis


def wrap(text: str, width: int) -> Iterator[str]:
    """Yield ``text``, a paragraph, as lines of at most ``width`` columns."""
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
            while size > width:  # this word is longer than a line
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
        return 1  # the character before a variation selector is two columns wide
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
        index += 1  # a combining mark without a letter before it
    return text[index:]


def some_refs(refs: Sequence[str]) -> str:
    """Join refs with commas; list at most `MAX_NAMED` of them."""
    shown = ", ".join(map(escape.line, refs[:MAX_NAMED]))
    return shown + (f" and {len(refs) - MAX_NAMED:,} more" if len(refs) > MAX_NAMED else "")
