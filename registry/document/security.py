"""Findings that a person should read before trusting a skill.

These findings don't make a skill invalid, because with too many false alarms, users would switch
the registry off. A file has at most one finding for each code. The finding shows the first
suspicious passage, and lists the lines of all others. Quoted examples of attacks have only the
severity ``info``.
"""

import re
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from registry.document import threats
from registry.document.behaviours import BEHAVIOUR_RULES
from registry.document.findings import Passage, key_lines, printable
from registry.document.scan import Kind, find_hidden, scan
from registry.document.threats import SECURITY_RULES
from registry.model import DOCUMENT_NAMES, Diagnostic, Document, Severity, SkillFile

__all__ = [
    "CONTENT_CODES",
    "SECURITY_RULES",
    "Texts",
    "check_file",
    "check_security",
    "check_text",
    "is_about_defence",
    "is_text",
]

MAX_LINES: Final = 5
"""Maximum number of further lines that a message lists."""

MAX_SKILL_BYTES: Final = 16 * 1024 * 1024
"""Maximum number of bytes of a skill's supporting files that are scanned.

The limit equals the default of the setting for the size of a skill.
"""

CONTENT_CODES: Final = BEHAVIOUR_RULES.keys() | {
    "bidi-control",
    "comment-instructions",
    "hidden-text",
    "secret",
    "zero-width-character",
    "command-expansion",
    "unchecked-text",
}
"""Codes of findings that supporting files can have."""

_SNIFFED: Final = 8192
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_PROSE: Final = (".md", ".markdown", ".mdx", ".txt", ".rst", ".html", ".htm", ".adoc")
_SCRIPTS: Final = tuple(
    ".sh .bash .zsh .fish .ps1 .psm1 .bat .cmd .py .pyw .js .mjs .cjs .ts .rb .pl .php .lua".split()
)
"""File name extensions of programs."""

_CONTROL = re.compile(f"[{re.escape(threats.CONTROLS)}\x80-\x9f]")
_LETTERS: Final = bytes(byte if chr(byte) in string.ascii_lowercase else 32 for byte in range(256))
_CALL = re.compile(r"(\w+)(?:\((.*)\))?", re.DOTALL)


def check_text(text: str, kind: Kind) -> Iterator[Diagnostic]:
    """Yield the suspicious passages in one text; these findings have no path."""
    places: dict[str, list[Passage]] = {}
    for place in scan(text, kind):
        places.setdefault(place.code, []).append(place)
    if hidden := _hidden(places):
        places.setdefault(hidden.code, []).append(hidden)
    for code, found in places.items():
        real = [place for place in found if not place.quoted]
        if code in threats.WEAKER and _is_said(text, found, places.get(threats.WEAKER[code], ())):
            continue
        first, *others = sorted(real or found, key=lambda place: place.offset)
        line, more = _lines(text, first, others)
        severity: Severity = SECURITY_RULES[code].severity if real else "info"
        message = first.what + more
        if not real:
            message += "; probably quoted as an example"
        yield Diagnostic(code, severity, message, line, SECURITY_RULES[code].fix)


CheckText: TypeAlias = Callable[[str, Kind], Iterable[Diagnostic]]
"""Returns the findings in a text, as `check_text` does."""


def check_security(
    document: Document,
    *,
    files: Sequence[SkillFile],
    check: CheckText = check_text,
) -> Iterator[Diagnostic]:
    """Yield the suspicious passages in ``document`` and in the names of its ``files``.

    ``check`` returns the findings in the text, for example from a cache.
    """
    yield from _check_declared(document)
    yield from _check_files(files)
    defending = is_about_defence(document.name, document.description)
    yield from check(document.text, Kind(defending=defending))


def kind_of(path: str, *, defending: bool) -> Kind:
    """Return the type of a supporting file, which depends on its name.

    ``defending`` tells whether the skill is about attacks and defence (`is_about_defence`).
    """
    name = path.lower()
    prose = name.endswith(_PROSE) or "." not in name.rpartition("/")[2]
    return Kind(prose=prose, document=False, defending=defending)


def check_file(
    path: str, data: bytes, *, defending: bool, check: CheckText = check_text
) -> Iterator[Diagnostic]:
    """Yield findings about suspicious passages in a supporting file, if the file is text.

    ``defending`` tells whether the skill is about attacks and defence (`is_about_defence`).
    ``check`` is used as in `check_security`.
    """
    if not is_text(path, data):
        return
    encoding = "utf-16" if data.startswith(_UTF16) else "utf-8"
    kind = kind_of(path, defending=defending)
    for finding in check(data.decode(encoding, "replace"), kind):
        yield replace(finding, path=path)


def is_text(path: str, data: bytes) -> bool:
    """Tell whether a file is text that a model or an interpreter would read."""
    # A shell ignores NUL characters, so a script may contain them.
    is_program = path.lower().endswith((*_SCRIPTS, *_PROSE)) or data.startswith((b"#!", *_UTF16))
    return is_program or b"\0" not in data[:_SNIFFED]


class Texts:
    """The supporting files of a skill that `check_file` must check.

    ``seen`` holds the paths of all files passed to `offer`. ``left_out`` holds the text files
    beyond the limit. At most `MAX_SKILL_BYTES` of a skill are stored, programs first.
    """

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.left_out: list[str] = []
        self.kept: dict[str, tuple[str, bytes]] = {}
        self._others: list[str] = []
        self._room = MAX_SKILL_BYTES

    def offer(self, path: str, content_hash: str, data: bytes, *, may_run: bool) -> None:
        """Store a file if it is text. ``may_run`` tells whether its mode allows execution."""
        self.seen.add(path)
        if not is_text(path, data):
            return
        self.kept[path] = content_hash, data
        self._room -= len(data)
        if not (may_run or path.lower().endswith(_SCRIPTS) or data.startswith(b"#!")):
            self._others.append(path)
        while self._room < 0:
            last = self._others.pop() if self._others else path
            self._room += len(self.kept.pop(last)[1])
            self.left_out.append(last)

    def unchecked(self) -> Iterator[Diagnostic]:
        """If text files were left out because of the limit, yield a finding about them."""
        if self.left_out:
            more = len(self.left_out) - 1
            others = f", nor {more} more file{'s' if more > 1 else ''}" if more else ""
            size = f"{MAX_SKILL_BYTES >> 20} MB of a skill's files are scanned"
            message = f"`{printable(self.left_out[0])}` was not scanned{others}: {size}"
            yield _diagnostic("unchecked-text", message, path=self.left_out[0])


def is_about_defence(name: str, description: str) -> bool:
    """Tell whether a skill is about attacks and defence, and therefore quotes attacks."""
    said = f"{name} {description}"
    words = said.lower().encode("ascii", "replace").translate(_LETTERS).split()
    if not threats.ABOUT_DEFENCE.isdisjoint(words):
        return True
    return not said.isascii() and any(word in said for word in threats.ABOUT_DEFENCE_ELSEWHERE)


def _hidden(places: Mapping[str, Sequence[Passage]]) -> Passage | None:
    """Return a finding `hidden-action` if a text manipulates the model and also does other harm.

    The text must contain two passages: an attempt to manipulate the model, and another such attempt
    or a risky action.
    """
    real = {code: [one for one in found if not one.quoted] for code, found in places.items()}
    codes = {code for code, found in real.items() if found}
    for code in sorted(codes & threats.MANIPULATES):
        beside = sorted((codes & (threats.MANIPULATES | threats.RISKY)) - {code})
        if beside and "hidden-action" not in codes:
            first = real[code][0]
            return Passage("hidden-action", first.offset, f"{first.what}, beside `{beside[0]}`")
    return None


def _is_said(text: str, found: Sequence[Passage], stronger: Sequence[Passage]) -> bool:
    """Tell whether a worse finding has a passage on the same line as each of these passages."""
    lines = {text.count("\n", 0, place.offset) for place in stronger}
    return bool(lines) and all(text.count("\n", 0, place.offset) in lines for place in found)


def _check_declared(document: Document) -> Iterator[Diagnostic]:
    """Check the permissions in the front matter, and the fields that lists of skills show."""
    for tool in document.allowed_tools:
        code = _broad(tool)
        if code:
            line = key_lines(document).get("allowed-tools")
            yield _diagnostic(code, f"`allowed-tools` has `{printable(tool)}`", line)
    for key, value in document.front_matter.items():
        if value and key.lower() == "hooks":
            message = "the front matter has `hooks`: commands that run automatically"
            yield _diagnostic("hooks", message, key_lines(document).get(key))
    for field, shown in (("name", document.name), ("description", document.description)):
        if shown.isprintable():
            continue
        line = key_lines(document).get(field)
        if match := _CONTROL.search(shown):
            message = f"the {field} has the control character U+{ord(match[0]):04X}"
            yield _diagnostic("terminal-control", message, line)
        if shown not in document.text:  # otherwise the check of the text already reports it
            for hidden in find_hidden(shown):
                yield _diagnostic(hidden.code, f"the {field} has {printable(hidden.what)}", line)


def _broad(tool: str) -> str | None:
    """Return the code for a permission that allows every command, else None.

    `Bash` without arguments has only the severity ``info``. Most authors mean "this skill needs a
    shell", and most clients read it in this sense. `Bash(*)` allows every command without
    confirmation.
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
            message = f"the file `{printable(path)}` has unprintable characters in its name"
            yield _diagnostic("file-name-unprintable", message, path=path)
        folder, _, name = path.rpartition("/")
        if folder and name in DOCUMENT_NAMES:
            message = f"`{printable(path)}` is a skill inside this skill's folder"
            yield _diagnostic("nested-skill", message, path=path)


def _lines(text: str, first: Passage, others: Sequence[Passage]) -> tuple[int, str]:
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
    rule = SECURITY_RULES[code]
    return Diagnostic(code, rule.severity, message, line, rule.fix, path)
