"""What a person should look at before trusting a skill (CONVENTIONS.md, "Attacks", *Warn*).

Nothing here makes a skill unusable: many findings have honest reasons, and a registry that cries
wolf is switched off. One finding a code: the first place, and the lines of the others.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from math import log2
from typing import Final, NamedTuple

from registry.document import threats
from registry.document.findings import key_lines, shorten
from registry.document.invisible import find_hidden, name_skeleton
from registry.document.threats import FIXES, SECURITY_RULES
from registry.model import DOCUMENT_NAMES, Diagnostic, Document, SkillFile

__all__ = ["SECURITY_RULES", "check_security", "name_skeleton"]

MOST_LINES: Final = 5
"""Further lines that a message names."""

NEAR: Final = 300
"""Characters around a match that are read as its context."""

LEAST_ENTROPY: Final = 3.0
"""Bits a character, below which a key is a placeholder; random base62 of 20 has about 4."""

LEAST_LETTERS: Final = 30
"""Different characters of 64 in a run of base64; fewer make a pattern or a path."""

COMMENT_LENGTH: Final = 4000
"""Characters of an HTML comment that are read."""

_TO_RUNS = bytes(
    0x41 if chr(byte).isascii() and (chr(byte).isalnum() or byte in b"+/") else 0x20
    for byte in range(256)
)
_RUN = b"A" * threats.BASE64_LENGTH
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_STATEMENT_END = re.compile(r"(?<!\\)\n|;|&&")
_CALL = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)


class _Place(NamedTuple):
    """A finding before it is put into words: its code, its place in the text, what is there."""

    code: str
    offset: int
    what: str


def check_security(document: Document, *, files: Sequence[SkillFile]) -> Iterator[Diagnostic]:
    """Yield what is suspicious in ``document`` and in the names of its ``files``."""
    yield from _check_declared(document)
    yield from _check_files(files)
    text = document.text
    data = text.encode("utf-8", "surrogatepass").lower()
    places: dict[str, list[_Place]] = {}
    for place in _scan(text, data):
        places.setdefault(place.code, []).append(place)
    for code, found in places.items():
        first, *others = sorted(found, key=lambda place: place.offset)
        line, more = _lines(text, first, others)
        yield _diagnostic(code, first.what + more, line)


def _scan(text: str, data: bytes) -> Iterator[_Place]:
    """Yield what is found in ``text``; ``data`` is its lower-case UTF-8, for quick looks."""
    if len(data) != len(text):
        for hidden in find_hidden(text):
            yield _Place(*hidden)
    for needles, check in _CHECKS:
        for needle in needles:
            if needle in data:
                yield from check(text, data)
                break
    if _RUN in data.translate(_TO_RUNS, b"\r\n"):
        yield from _encoded_data(text, data)
    for secret in threats.SECRETS:
        if secret.needle in data:
            yield from _secrets(text, secret)


def _check_declared(document: Document) -> Iterator[Diagnostic]:
    """Check what the front matter asks for, and the fields that listings show."""
    for tool in document.allowed_tools:
        code = _broad(tool)
        if code:
            line = key_lines(document).get("allowed-tools")
            yield _diagnostic(code, f"`allowed-tools` has `{shorten(tool)}`", line)
    for key, value in document.front_matter.items():
        if value and key.lower() == "hooks":
            message = "the front matter has `hooks`, commands that run by themselves"
            yield _diagnostic("hooks", message, key_lines(document).get(key))
    for field, shown in (("name", document.name), ("description", document.description)):
        if shown.isprintable():
            continue
        line = key_lines(document).get(field)
        if match := _CONTROL.search(shown):
            message = f"the {field} has the control character U+{ord(match[0]):04X}"
            yield _diagnostic("control-character", message, line)
        if shown not in document.text:  # else it is found where it stands
            for hidden in find_hidden(shown):
                yield _diagnostic(hidden.code, f"the {field} has {shorten(hidden.what)}", line)


def _broad(tool: str) -> str | None:
    """Return the code for a tool that allows any command, None for others.

    A bare `Bash` is only noted: most authors mean "this skill needs a shell", and most clients
    read it so; `Bash(*)` was written to be asked nothing.
    """
    if tool == "*":
        return "allowed-tools-broad"
    match = _CALL.fullmatch(tool)
    if not match or match[1].lower() not in threats.SHELLS:
        return None
    if match[2] is None:
        return "allowed-tools-shell"
    return "allowed-tools-broad" if threats.ANY_COMMAND.fullmatch(match[2].strip()) else None


def _check_files(files: Sequence[SkillFile]) -> Iterator[Diagnostic]:
    for file in files:
        path = file.path
        if not path.isprintable():
            message = f"the file `{shorten(path)}` has characters that can't be shown in its name"
            yield _diagnostic("file-name-unprintable", message, path=path)
        folder, _, name = path.rpartition("/")
        if folder and name in DOCUMENT_NAMES:
            message = f"`{shorten(path)}` is a skill inside this skill's folder"
            yield _diagnostic("nested-skill", message, path=path)


def _control(text: str, _: bytes) -> Iterator[_Place]:
    for match in _CONTROL.finditer(text):
        what = f"the control character U+{ord(match[0]):04X}, which terminals obey"
        yield _Place("control-character", match.start(), what)


def _piped(text: str, _: bytes) -> Iterator[_Place]:
    for match in threats.PIPED.finditer(text):
        start = match.start()
        statement = text[max(0, start - 2 * NEAR) : start]
        if "curl" in statement or "wget" in statement or "base64" in statement:
            begin = max((end.end() for end in _STATEMENT_END.finditer(statement)), default=0)
            yield from _executed(statement[begin:], start, match[0])
    for match in threats.SUBSTITUTED.finditer(text):
        yield from _executed(match[1], match.start(), "")


def _executed(statement: str, offset: int, into: str) -> Iterator[_Place]:
    shown = shorten((statement + into).strip())
    if threats.DECODE.search(statement):
        yield _Place("encoded-execution", offset, f"`{shown}` runs what it decodes, unseen")
    elif threats.DOWNLOAD.search(statement):
        yield _Place("remote-execution", offset, f"`{shown}` runs what it downloads, unseen")


def _powershell(text: str, _: bytes) -> Iterator[_Place]:
    for match in threats.POWERSHELL.finditer(text):
        what = f"`{shorten(match[0])}` runs what it downloads, unseen"
        yield _Place("remote-execution", match.start(), what)


def _expansion(text: str, _: bytes) -> Iterator[_Place]:
    for match in threats.EXPANSION.finditer(text):
        what = f"`{shorten(match[0][2:-1])}` runs as soon as the skill is loaded"
        yield _Place("command-expansion", match.start(), what)


def _comments(text: str, _: bytes) -> Iterator[_Place]:
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start)
        stop = end if end >= 0 else len(text)
        if match := threats.COMMENT_ADDRESS.search(text, start, min(stop, start + COMMENT_LENGTH)):
            shown = shorten(text[max(start + 4, match.start() - 20) : match.end() + 20].strip())
            yield _Place("comment-instructions", match.start(), f"a comment says `{shown}`")
        start = text.find("<!--", end) if end >= 0 else -1


def _override(text: str, data: bytes) -> Iterator[_Place]:
    defending = any(word in data for word in threats.DEFENDING)
    code = "instruction-override-quoted" if defending else "instruction-override"
    for match in threats.OVERRIDE.finditer(text):
        yield _Place(code, match.start(), f"the text says `{shorten(match[0])}`")


def _archives(text: str, _: bytes) -> Iterator[_Place]:
    for match in threats.PASSWORD.finditer(text):
        near = _paragraph(text, match)
        if threats.ARCHIVE.search(near) and threats.OBTAINED.search(near):
            what = f"an archive is to be downloaded and opened with a password: `{match[0]}`"
            yield _Place("archive-with-password", match.start(), what)


def _pastes(text: str, _: bytes) -> Iterator[_Place]:
    for match in threats.PASTE.finditer(text):
        if threats.TOLD_TO_RUN.search(_paragraph(text, match)):
            what = f"`{shorten(match[0])}` is an anonymous paste, and is to be run"
            yield _Place("paste-site", match.start(), what)


def _paragraph(text: str, match: re.Match[str]) -> str:
    """Return what stands near ``match``, not beyond a blank line."""
    before = text[max(0, match.start() - NEAR) : match.start()].rpartition("\n\n")[2]
    return before + text[match.start() : match.end() + NEAR].partition("\n\n")[0]


def _encoded_data(text: str, _: bytes) -> Iterator[_Place]:
    for match in threats.BASE64_RUN.finditer(text):
        if len(match[0]) < threats.BASE64_LENGTH:
            continue
        before = text[max(0, match.start() - 60) : match.start()]
        if re.search(r"data:(?:image|font|audio|video)/[\w.+-]+;base64,$", before):
            continue
        if "PRIVATE KEY-----" in before:  # a finding of its own
            continue
        run = "".join(match[0].split())
        kinds = (str.isupper, str.islower, str.isdigit)
        if not all(any(map(kind, run)) for kind in kinds) or len(set(run)) < LEAST_LETTERS:
            continue  # one alphabet alone is a sequence or a number, few letters a pattern
        try:
            decoded = base64.b64decode(run[: len(run) // 4 * 4].encode("ascii"), validate=True)
        except (ValueError, binascii.Error):
            continue
        what = f"{len(run)} characters of base64"
        if decoded.isascii() and (said := decoded.decode("ascii")).replace("\n", "").isprintable():
            what += f" that say `{shorten(said)}`"
        yield _Place("encoded-data", match.start(), what)


def _secrets(text: str, secret: threats.Secret) -> Iterator[_Place]:
    for match in secret.pattern.finditer(text):
        start, found = match.start(), match[0]
        if start and (text[start - 1].isalnum() or (text[start - 1] in "_-" and found[0] != "-")):
            continue  # the end of a longer word, such as `task-...`
        if threats.PLACEHOLDER.search(found) or _entropy(found[4:]) < LEAST_ENTROPY:
            continue
        if not any(char.isdigit() for char in found):
            continue
        yield _Place("secret", start, f"{secret.kind}: `{found[:10].strip()}` and so on")


def _entropy(text: str) -> float:
    """Return Shannon's bits a character."""
    counts = (text.count(char) / len(text) for char in set(text))
    return -sum(share * log2(share) for share in counts)


def _lines(text: str, first: _Place, others: Sequence[_Place]) -> tuple[int, str]:
    line = 1 + text.count("\n", 0, first.offset)
    lines: list[int] = []
    offset, last = first.offset, line
    for other in others:
        last += text.count("\n", offset, other.offset)
        offset = other.offset
        if last not in (line, *lines[-1:]):
            lines.append(last)
    if not lines:
        return line, ""
    named = ", ".join(map(str, lines[:MOST_LINES]))
    rest = len(lines) - MOST_LINES
    return line, f" (also on line {named}{f' and {rest} more' if rest > 0 else ''})"


def _diagnostic(
    code: str, message: str, line: int | None = None, path: str | None = None
) -> Diagnostic:
    return Diagnostic(code, SECURITY_RULES[code].severity, message, line, FIXES[code], path)


_Check = Callable[[str, bytes], Iterator[_Place]]

_CHECKS: Final[tuple[tuple[tuple[bytes, ...], _Check], ...]] = (
    ((b"\x1b", b"\x00", b"\x07", b"\x08", b"\xc2\x9b"), _control),
    ((b"curl", b"wget", b"base64"), _piped),
    ((b"iex", b"invoke-expression"), _powershell),
    ((b"!`",), _expansion),
    ((b"<!--",), _comments),
    ((b"ignore", b"disregard", b"forget", b"override", b"bypass"), _override),
    ((b".zip", b".rar", b".7z"), _archives),
    ((b"glot.io/", b"rentry.", b"pastebin.com/", b"paste.ee/", b"hastebin.com/"), _pastes),
)
"""Each check and the bytes without which it can find nothing."""
