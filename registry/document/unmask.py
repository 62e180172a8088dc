"""Remove disguises from a text, so that a search sees the text as a shell or a reader does.

The module joins continued lines. It removes invisible characters, and quotes and escapes inside the
names of commands. It replaces look-alike letters by Latin letters, and decodes escaped letters.
"""

import re
import string
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NamedTuple, TypeAlias

from registry.document.findings import Passage, printable
from registry.text import LIKE_LATIN

_Edit: TypeAlias = tuple[int, int, str]
"""The beginning and the end of a passage of a text, and its replacement."""

_NAMES: Final = (
    "curl wget bash zsh dash fish eval exec base64 openssl python python3 perl ruby node netcat"
    " ncat telnet socat powershell pwsh iex invoke-expression iwr irm invoke-webrequest"
    " downloadstring certutil mshta rundll32 regsvr32 bitsadmin osascript sudo chmod crontab xxd"
    " mkfifo nohup launchctl scp rsync rclone whoami id_rsa passwd"
).split()
"""Names of commands and files that attackers often disguise; no ordinary word contains them."""

_NAMED: Final = re.compile(r"(?<![a-z0-9])(" + "|".join(map(re.escape, _NAMES)) + r")(?![a-z0-9])")
_NOISE: Final = b"'\"`^\\"
"""Characters that a shell removes from a word."""

_IN_WORDS: Final = (string.ascii_letters + string.digits + "_-").encode()
_CLASSES: Final = bytes(
    ord("#" if byte in _NOISE else "a" if byte in _IN_WORDS else " ") for byte in range(256)
)
_INSIDE: Final = re.compile(b"#(?<=a#)#{0,23}a")
_ALPHA: Final = bytes(ord("a" if chr(byte) in string.ascii_letters else " ") for byte in range(256))
_EMPTY: Final = re.compile(rb"(?<=[a-z])\$\{[a-z_]\w{0,20}\}(?=[a-z])")
"""Matches a variable inside a word; an attacker leaves this variable empty."""

_SPACED: Final = re.compile(r"(?<![A-Za-z])(?:[A-Za-z] {1,3}){11,400}[A-Za-z](?![A-Za-z])")
"""Matches words whose letters have spaces between them."""
_WORD: Final = 64
"""Maximum number of characters before and after a quote that count as the same word."""

_CONTINUED: Final = re.compile(r"\\\r?\n([ \t]*)")
_BACKTICK: Final = re.compile(r"(?<!`)`\r?\n[ \t]*")
_ESCAPED: Final = re.compile(r"&#(?:x([0-9a-fA-F]{2})|0{0,4}([0-9]{2,3}));|\\u00([2-7][0-9a-fA-F])")
_UNSEEN: Final = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]+")
_LATIN: Final = frozenset(string.ascii_letters)

_WIDE: Final = "\uff01"
"""The first full-width letter; mathematical letters come after it."""

_CHINESE: Final = "\uff0c\uff08\uff09\uff1a\uff1b\uff1f\uff01"
"""Full-width punctuation that is common in Chinese texts: , ( ) : ; ? !"""

_FORMULA: Final = re.compile("[\U0001d400-\U0001d7ff]")


class Plain(NamedTuple):
    """A text without disguises.

    ``shifts`` are pairs of an offset in this text and a number. From this offset on, the offset in
    the original text is larger by this number. ``found`` holds the names of commands that were
    disguised.
    """

    text: str
    shifts: Sequence[tuple[int, int]] = ()
    found: Sequence[Passage] = ()

    def original(self, offset: int) -> int:
        """Return the offset in the original text for an offset in this text."""
        number = bisect_right(self.shifts, (offset, len(self.text) * 4 + 1 << 32))
        return offset + (self.shifts[number - 1][1] if number else 0)


def unmask(text: str, beyond: str, *, prose: bool) -> Plain:
    """Return the text without disguises.

    ``beyond`` holds the characters outside ASCII.
    """
    if beyond:
        text = _as_latin(text, beyond)
    lower = text.encode("ascii", "replace").lower()
    edits = list(_edits(text, lower, beyond, prose=prose))
    found = []
    for begin, end, bare, name in _disguised(lower):
        edits.append((begin, end, bare))
        said = printable(text[begin:end].replace("\n", "\\n"))
        found.append(Passage("assembled-command", begin, f"`{said}` is `{name}` in disguise"))
    if not edits:
        return Plain(text)
    edits.sort(key=lambda edit: (edit[0], -edit[1]))
    parts, shifts, done, length = [], [], 0, 0
    for begin, end, plain in edits:
        if begin < done:
            continue  # an earlier replacement includes this passage
        parts += [text[done:begin], plain]
        length += begin - done + len(plain)
        done = end
        shifts.append((length, end - length))
    return Plain("".join([*parts, text[done:]]), shifts, found)


def _edits(text: str, lower: bytes, beyond: str, *, prose: bool) -> Iterator[_Edit]:
    if b"\\" in lower:
        for match in _CONTINUED.finditer(text):
            yield match.start(), match.end(), " " if match[1] else ""
    if b"-\n" in lower if prose else b"`\n" in lower or b"`\r\n" in lower:
        yield from _wrapped(text, prose=prose)
    if prose and b" a a a a " in lower.translate(_ALPHA):
        for match in _SPACED.finditer(text):
            words = re.split(" {2,3}", match[0])
            yield match.start(), match.end(), " ".join(one.replace(" ", "") for one in words)
    if b"&#" in lower or b"\\u00" in lower:
        for match in _ESCAPED.finditer(text):
            code = int(match[2]) if match[2] else int(match[1] or match[3], 16)
            if (plain := chr(code)).isascii() and plain.isprintable():
                yield match.start(), match.end(), plain
    if beyond and _UNSEEN.search(beyond):
        yield from ((match.start(), match.end(), "") for match in _UNSEEN.finditer(text))


def _wrapped(text: str, *, prose: bool) -> Iterator[_Edit]:
    """Yield edits that join lines: at a hyphen in prose, or at a backtick in PowerShell."""
    if not prose:
        yield from ((match.start(), match.end(), " ") for match in _BACKTICK.finditer(text))
        return
    place = text.find("-\n")
    while place >= 0:
        if text[max(0, place - 1)].isalpha() and text[place + 2 : place + 3].islower():
            yield place, place + 2, ""
        place = text.find("-\n", place + 2)


def _disguised(lower: bytes) -> Iterator[tuple[int, int, str, str]]:
    """Yield names of commands that contain quotes, escapes or line ends, and their plain names."""
    if b"\\" in lower:
        lower = lower.replace(b"\\\r\n", b"\\\\\\").replace(b"\\\n", b"\\\\")
    if b"$@" in lower:
        lower = lower.replace(b"$@", b"\\\\")
    if b"${" in lower:
        lower = _EMPTY.sub(lambda match: b"\\" * len(match[0]), lower)
    classes = lower.translate(_CLASSES)
    done = 0
    for inside in _INSIDE.finditer(classes):
        place = inside.start()
        if place < done:
            continue
        begin = 1 + max(place - _WORD, classes.rfind(b" ", max(0, place - _WORD), place))
        end = classes.find(b" ", place, place + _WORD)
        done = end if end >= 0 else min(len(classes), place + _WORD)
        bare = lower[begin:done].translate(None, _NOISE).decode()
        named = _NAMED.search(bare)
        if named and named[1].encode() not in lower[begin:done]:
            yield begin, done, bare, named[1]


def _as_latin(text: str, beyond: str) -> str:
    """Return the text with look-alike letters replaced by Latin letters; its length stays the same.

    Full-width and mathematical letters are always replaced. Other letters are replaced only in
    words that also have a Latin letter.
    """
    alike, letter = _alike()
    there = "".join({*letter.findall(beyond), *_FORMULA.findall(beyond)})
    if not there:
        return text
    parts, done = [], 0
    for match in re.finditer(f"[{re.escape(there)}]+", text):
        begin, end = match.span()
        beside = text[max(0, begin - 1) : begin] + text[end : end + 1]
        if match[0][0] >= _WIDE or any(map(_LATIN.__contains__, beside)):
            parts += [text[done:begin], match[0].translate(alike)]
            done = end
    return "".join([*parts, text[done:]])


@cache
def _alike() -> tuple[dict[int, str], re.Pattern[str]]:
    """Return a map from look-alike letters to Latin letters, and an expression that finds them."""
    found = dict(LIKE_LATIN)
    for one, latin in LIKE_LATIN.items():
        capital = chr(one).upper()
        if len(capital) == 1:
            found.setdefault(ord(capital), latin.upper())
    wide = (one for one in range(0xFF01, 0xFF5F) if chr(one) not in _CHINESE)
    for one in (*wide, *range(0x1D400, 0x1D800)):
        plain = unicodedata.normalize("NFKC", chr(one))
        if plain.isascii() and len(plain) == 1:
            found[one] = plain
    letters = {one: latin for one, latin in found.items() if latin != "-"}
    # Letters outside the basic plane would make the search slow.
    basic = "".join(chr(one) for one in letters if not _FORMULA.match(chr(one)))
    return letters, re.compile(f"[{re.escape(basic)}]")
