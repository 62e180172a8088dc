"""What a person should look at before trusting a skill (CONVENTIONS.md, "Attacks", *Warn*).

Nothing here makes a skill unusable: many findings have honest reasons, and a registry that cries
wolf is switched off. One finding a code: the first place, and the lines of the others.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from registry.document import threats
from registry.document.encoded import find_encoded, find_secrets, look
from registry.document.findings import Place, key_lines, printable
from registry.document.invisible import find_hidden
from registry.document.threats import FIXES, SECURITY_RULES
from registry.model import DOCUMENT_NAMES, Diagnostic, Document, SkillFile

__all__ = ["SECURITY_RULES", "check_security"]

MAX_LINES: Final = 5
"""Further lines that a message names."""

MAX_PLACES: Final = 100
"""Places at which one check stops; a file of nothing but findings is known by then."""

NEAR: Final = 300
"""Characters around a match that are read as its context."""

COMMENT_LENGTH: Final = 4000
"""Characters of an HTML comment that are read."""

_CONTROL = re.compile(f"[{re.escape(threats.CONTROLS)}\x80-\x9f]")
_CALL = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)


def check_security(document: Document, *, files: Sequence[SkillFile]) -> Iterator[Diagnostic]:
    """Yield what is suspicious in ``document`` and in the names of its ``files``."""
    yield from _check_declared(document)
    yield from _check_files(files)
    text = document.text
    places: dict[str, list[Place]] = {}
    for place in _scan(text):
        places.setdefault(place.code, []).append(place)
    for code, found in places.items():
        first, *others = sorted(found, key=lambda place: place.offset)
        line, more = _lines(text, first, others)
        yield _diagnostic(code, first.what + more, line)


def _scan(text: str) -> Iterator[Place]:
    """Yield what is found in ``text``."""
    yield from islice(find_hidden(text), MAX_PLACES)
    # One byte a character: offsets are those of the text, and looking for bytes is quick.
    data = text.encode("ascii", "replace")
    lower = data.lower()
    for check, needles in _CHECKS:
        for needle in needles:
            if needle in lower:
                yield from islice(check(text, lower), MAX_PLACES)
                break
    control, run = look(data)
    if control or "\x9b" in text:
        yield from islice(_control(text), MAX_PLACES)
    if run:
        yield from islice(find_secrets(text, data), MAX_PLACES)
        yield from islice(find_encoded(text, data), MAX_PLACES)


def _check_declared(document: Document) -> Iterator[Diagnostic]:
    """Check what the front matter asks for, and the fields that listings show."""
    for tool in document.allowed_tools:
        code = _broad(tool)
        if code:
            line = key_lines(document).get("allowed-tools")
            yield _diagnostic(code, f"`allowed-tools` has `{printable(tool)}`", line)
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
            yield _diagnostic("terminal-control", message, line)
        if shown not in document.text:  # else it is found where it stands
            for hidden in find_hidden(shown):
                yield _diagnostic(hidden.code, f"the {field} has {printable(hidden.what)}", line)


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
            message = f"the file `{printable(path)}` has characters that can't be shown in its name"
            yield _diagnostic("file-name-unprintable", message, path=path)
        folder, _, name = path.rpartition("/")
        if folder and name in DOCUMENT_NAMES:
            message = f"`{printable(path)}` is a skill inside this skill's folder"
            yield _diagnostic("nested-skill", message, path=path)


def _control(text: str) -> Iterator[Place]:
    for match in _CONTROL.finditer(text):
        what = f"the control character U+{ord(match[0]):04X}, which terminals obey"
        yield Place("terminal-control", match.start(), what)


def _piped(text: str, _: bytes) -> Iterator[Place]:
    for match in threats.PIPED.finditer(text):
        start = match.start()
        yield from _executed(_statement(text, start), start, match[0])
    for match in threats.SUBSTITUTED.finditer(text):
        start = match.start()
        if threats.SUBSTITUTED_INTO.search(text[max(0, start - 30) : start]):
            yield from _executed(match[1], start, "")


def _statement(text: str, end: int) -> str:
    """Return the shell statement before ``end``: its line, and those that a backslash continues."""
    window = text[max(0, end - NEAR) : end]
    begin = window.rfind("\n")
    while begin > 0 and window[begin - 1] == "\\":
        begin = window.rfind("\n", 0, begin)
    begin = max(begin, window.rfind(";"), window.rfind("&&"))
    return window[begin + 1 :]


def _executed(statement: str, offset: int, into: str) -> Iterator[Place]:
    if "base64" in statement and (decode := threats.DECODE.search(statement)):
        shown = printable(statement[max(0, decode.start() - 40) :].strip() + into)
        yield Place("encoded-execution", offset, f"`{shown}` runs what it decodes, unseen")
        return
    # Without an address it is the pattern that is talked about, not a command.
    fetch = threats.FETCH.search(statement)
    if fetch and threats.ADDRESS.search(statement, fetch.end()):
        shown = printable(statement[fetch.start() :] + into)
        yield Place("remote-execution", offset, f"`{shown}` runs what it downloads, unseen")


def _powershell(text: str, _: bytes) -> Iterator[Place]:
    for match in threats.POWERSHELL.finditer(text):
        command = text[match.start() : match.end() + NEAR].partition("\n")[0]
        what = f"`{printable(command)}` runs what it downloads, unseen"
        yield Place("remote-execution", match.start(), what)


def _expansion(text: str, lower: bytes) -> Iterator[Place]:
    if not any(part.startswith(b"`") for part in lower.split(b"!")[1:]):
        return
    for match in threats.EXPANSION.finditer(text):
        what = f"`{printable(match[0][2:-1])}` runs as soon as the skill is loaded"
        yield Place("command-expansion", match.start(), what)


def _comments(text: str, _: bytes) -> Iterator[Place]:
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start)
        stop = end if end >= 0 else len(text)
        if match := threats.COMMENT_ADDRESS.search(text, start, min(stop, start + COMMENT_LENGTH)):
            shown = printable(text[max(start + 4, match.start() - 20) : match.end() + 20].strip())
            yield Place("comment-instructions", match.start(), f"a comment says `{shown}`")
        start = text.find("<!--", end) if end >= 0 else -1


def _override(verb: bytes, _: str, lower: bytes) -> Iterator[Place]:
    defending = any(word in lower for word in threats.DEFENDING)
    code = "instruction-override-quoted" if defending else "instruction-override"
    offset = lower.find(verb)
    while offset >= 0:
        end = offset + len(verb)
        if match := threats.OVERRIDE.match(lower, end):
            said = lower[offset : match.end()].decode("ascii")
            yield Place(code, offset, f"the text says `{printable(said)}`")
        offset = lower.find(verb, end)


def _archives(text: str, lower: bytes) -> Iterator[Place]:
    if not any(suffix in lower for suffix in (b".zip", b".rar", b".7z")):
        return
    for match in threats.PASSWORD.finditer(text):
        near = _paragraph(text, match)
        if threats.ARCHIVE.search(near) and threats.OBTAINED.search(near):
            what = f"an archive is to be downloaded and opened with a password: `{match[0]}`"
            yield Place("archive-with-password", match.start(), what)


def _pastes(text: str, _: bytes) -> Iterator[Place]:
    for match in threats.PASTE.finditer(text):
        if threats.TOLD_TO_RUN.search(_paragraph(text, match)):
            what = f"`{printable(match[0])}` is an anonymous paste, and is to be run"
            yield Place("paste-site", match.start(), what)


def _paragraph(text: str, match: re.Match[str]) -> str:
    """Return what stands near ``match``, not beyond a blank line."""
    before = text[max(0, match.start() - NEAR) : match.start()].rpartition("\n\n")[2]
    return before + text[match.start() : match.end() + NEAR].partition("\n\n")[0]


def _lines(text: str, first: Place, others: Sequence[Place]) -> tuple[int, str]:
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
    named = ", ".join(map(str, lines[:MAX_LINES]))
    rest = f" and {len(lines) - MAX_LINES} more" if len(lines) > MAX_LINES else ""
    return line, f" (also on line{'s' if len(lines) > 1 else ''} {named}{rest})"


def _diagnostic(
    code: str, message: str, line: int | None = None, path: str | None = None
) -> Diagnostic:
    return Diagnostic(code, SECURITY_RULES[code].severity, message, line, FIXES[code], path)


_Check = Callable[[str, bytes], Iterator[Place]]

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
