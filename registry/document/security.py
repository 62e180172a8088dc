"""What a person should look at before trusting a skill (CONVENTIONS.md, "Attacks", *Warn*).

Nothing here makes a skill unusable: many findings have honest reasons, and a registry that cries
wolf is switched off. One finding a code: the first place, and the lines of the others.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
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

MOST_PLACES: Final = 100
"""Places at which one check stops; a file of nothing but findings is known by then."""

NEAR: Final = 300
"""Characters around a match that are read as its context."""

LEAST_ENTROPY: Final = 3.0
"""Bits a character, below which a key is a placeholder; random base62 of 20 has about 4."""

LEAST_LETTERS: Final = 30
"""Different characters of 64 in a run of base64; fewer make a pattern or a path."""

COMMENT_LENGTH: Final = 4000
"""Characters of an HTML comment that are read."""

# One pass over the bytes tells what is there to look for: control characters, and the long runs of
# letters and digits without which there is neither a key nor base64.
_CLASSES = bytes(
    b"A"[0] if letter else b"\x01"[0] if control else b" "[0]
    for letter, control in (
        (chr(byte) in threats.ALPHANUMERIC, chr(byte) in threats.CONTROLS) for byte in range(256)
    )
)
_RUN = b"A" * threats.SHORTEST_RUN
_BASE64 = bytes(
    b"A"[0] if chr(byte) in threats.ALPHANUMERIC + "+/" else b" "[0] for byte in range(256)
)
_BASE64_RUN = b"A" * threats.BASE64_LENGTH
_CONTROL = re.compile(f"[{re.escape(threats.CONTROLS)}\x80-\x9f]")
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
    places: dict[str, list[_Place]] = {}
    for place in _scan(text):
        places.setdefault(place.code, []).append(place)
    for code, found in places.items():
        first, *others = sorted(found, key=lambda place: place.offset)
        line, more = _lines(text, first, others)
        yield _diagnostic(code, first.what + more, line)


def _scan(text: str) -> Iterator[_Place]:
    """Yield what is found in ``text``."""
    for hidden in islice(find_hidden(text), MOST_PLACES):
        yield _Place(*hidden)
    # One byte a character: offsets are those of the text, and looking for bytes is quick.
    data = text.encode("ascii", "replace")
    lower = data.lower()
    for check, needles in _CHECKS:
        for needle in needles:
            if needle in lower:
                yield from islice(check(text, lower), MOST_PLACES)
                break
    classes = data.translate(_CLASSES)
    if b"\x01" in classes or "\x9b" in text:
        yield from islice(_control(text), MOST_PLACES)
    if _RUN in classes or b"AIza" in data:
        yield from islice(_secrets(text, data), MOST_PLACES)
        if _BASE64_RUN in data.translate(_BASE64, b"\r\n"):
            yield from islice(_encoded_data(text), MOST_PLACES)


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


def _control(text: str) -> Iterator[_Place]:
    for match in _CONTROL.finditer(text):
        what = f"the control character U+{ord(match[0]):04X}, which terminals obey"
        yield _Place("control-character", match.start(), what)


def _piped(text: str, _: bytes) -> Iterator[_Place]:
    for match in threats.PIPED.finditer(text):
        start = match.start()
        yield from _executed(_statement(text, start), start, match[0])
    for match in threats.SUBSTITUTED.finditer(text):
        start = match.start()
        if threats.SUBSTITUTED_INTO.search(text[max(0, start - 30) : start]):
            yield from _executed(match[1], start, "")


def _statement(text: str, end: int) -> str:
    """Return the shell statement before ``end``: its line, and those that a backslash continues."""
    window = text[max(0, end - 2 * NEAR) : end]
    begin = window.rfind("\n")
    while begin > 0 and window[begin - 1] == "\\":
        begin = window.rfind("\n", 0, begin)
    begin = max(begin, window.rfind(";"), window.rfind("&&"))
    return window[begin + 1 :]


def _executed(statement: str, offset: int, into: str) -> Iterator[_Place]:
    shown = shorten((statement + into).lstrip("& ").strip())
    if "base64" in statement and threats.DECODE.search(statement):
        yield _Place("encoded-execution", offset, f"`{shown}` runs what it decodes, unseen")
        return
    # Without an address it is the pattern that is talked about, not a command.
    fetch = threats.FETCH.search(statement)
    if fetch and threats.ADDRESS.search(statement, fetch.end()):
        yield _Place("remote-execution", offset, f"`{shown}` runs what it downloads, unseen")


def _powershell(text: str, _: bytes) -> Iterator[_Place]:
    for match in threats.POWERSHELL.finditer(text):
        what = f"`{shorten(match[0])}` runs what it downloads, unseen"
        yield _Place("remote-execution", match.start(), what)


def _expansion(text: str, lower: bytes) -> Iterator[_Place]:
    if not any(part.startswith(b"`") for part in lower.split(b"!")[1:]):
        return
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


def _override(verb: bytes, _: str, lower: bytes) -> Iterator[_Place]:
    defending = any(word in lower for word in threats.DEFENDING)
    code = "instruction-override-quoted" if defending else "instruction-override"
    offset = lower.find(verb)
    while offset >= 0:
        end = offset + len(verb)
        if match := threats.OVERRIDE.match(lower, end):
            said = lower[offset : match.end()].decode("ascii")
            yield _Place(code, offset, f"the text says `{shorten(said)}`")
        offset = lower.find(verb, end)


def _archives(text: str, lower: bytes) -> Iterator[_Place]:
    if not any(suffix in lower for suffix in (b".zip", b".rar", b".7z")):
        return
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


def _encoded_data(text: str) -> Iterator[_Place]:
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


def _secrets(text: str, data: bytes) -> Iterator[_Place]:
    for needle, kind, pattern in threats.SECRETS:
        if needle not in data:
            continue
        for match in pattern.finditer(text):
            start, found = match.start(), match[0]
            if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
                continue  # the end of a longer word, such as `task-...`
            if threats.PLACEHOLDER.search(found) or _entropy(found[4:]) < LEAST_ENTROPY:
                continue
            if any(char.isdigit() for char in found):  # else it is a name in words
                yield _Place("secret", start, f"{kind}: `{found[:10].strip()}` and so on")


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

_CHECKS: Final[Sequence[tuple[_Check, Sequence[bytes]]]] = (
    (_piped, (b"curl", b"wget", b"base64 -")),
    (_powershell, (b"iex", b"invoke-expression")),
    (_expansion, (b"!",)),
    (_comments, (b"<!--",)),
    (_archives, (b"pass",)),
    (_pastes, (b"glot.io/", b"rentry.", b"stebin.com/raw/")),
    *((partial(_override, verb), (verb,)) for verb in threats.OVERRIDE_VERBS),
)
"""Each check, and the lower-case bytes of which one must occur before it can find anything."""
