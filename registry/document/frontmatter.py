"""Find the beginning and end of the front matter, and parse it to JSON."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from registry.document.findings import finding
from registry.document.markdown import code_spans
from registry.model import Diagnostic, JsonValue

FOREIGN_KEYS: Final = {
    "名称": "name",
    "描述": "description",
    "版本": "version",
    "标签": "tags",
    "作者": "author",
    "工具": "tools",
}
"""Keys in Chinese from machine translation, with the English keys.

A full-width colon often follows these keys.
"""

_FOREIGN: Final = "|".join(FOREIGN_KEYS)
# The spaces include the no-break space that word processors insert.
_OPENING: Final = re.compile(r"---[ \t\u00a0\u3000]*(?:\r\n|\n|\r|\Z)")
_CLOSING: Final = re.compile(r"^" + _OPENING.pattern, re.MULTILINE)
LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+\Z")

KEY: Final = re.compile(
    r"""(?P<key>"[^"\n]{1,80}"|'[^'\n]{1,80}'|\{\{[^{}\n]{1,80}\}\}"""
    r"""|[\w$.<+][\w$./<>()+-]{0,60}(?:[ ][\w$./()+-]{1,60}){0,2})[ \t]*"""
    r"""(?::(?=\s|\Z)|(?<=""" + _FOREIGN.replace("|", ")\uff1a|(?<=") + ")\uff1a)"
)
"""Matches a line's key and its colon.

A key has at most three short words, so that sentences don't match.
"""

_KNOWN_KEY: Final = re.compile(
    r"(?:name|title|slug|description|version|metadata|license|author|tags)[ \t]*:(?=\s|\Z)"
    rf"|(?:{_FOREIGN})[ \t]*[:\uff1a]",
    re.IGNORECASE,
)
_NAMING_KEY: Final = re.compile(
    r"\s*(?:name|description|名称|描述)[ \t]*(?::(?=\s|\Z)|\uff1a)", re.IGNORECASE
)
SKILL_KEYS: Final = (
    "name|description|version|license|author|tags|metadata|homepage|user-invocable"
    "|disable-model-invocation|allowed-tools|compatibility|category|kind"
)
"""Common keys of skills, as a part of a pattern."""

_INLINE: Final = re.compile(rf"(?<!\s)\s{{1,80}}(?=(?:{SKILL_KEYS}):\s)")
_FENCE: Final = re.compile(
    r"\s*(?:`{3,}|~{3,})\s*(?:ya?ml|markdown|md|text|txt)?\s*", re.IGNORECASE
)
_RULER: Final = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,}|\u2014{1,3}|\.{3})\s*")
_GLUED: Final = re.compile(r"---(?=[^-\s])")
_HEADING: Final = re.compile(r"#{1,6}\s")
_MAX_END: Final = 128 * 1024
"""Number of characters in which to search for the end of a front matter without `---`."""

_MAX_START: Final = 60
"""Number of lines in which to search for the start of a front matter below other text."""


@dataclass(frozen=True, slots=True)
class Split:
    """The front matter and the body of a document; ``front`` is None without front matter.

    Line numbers count from 1. If ``fenced``, both `---` lines are in the usual positions.
    """

    front: str | None
    front_line: int
    body: str
    body_line: int
    fenced: bool = False
    findings: tuple[Diagnostic, ...] = field(default=())


def split(text: str) -> Split:
    """Split ``text`` at its `---` lines.

    If they are missing, split it at lines that look like front matter.
    """
    opening = _OPENING.match(text)
    closing = opening and _CLOSING.search(text, opening.end())
    if not (opening and closing):
        return split_loosely(text)
    front, end = text[opening.end() : closing.start()], closing.end()
    breaks = text.count("\n", 0, end) if "\n" in text else text.count("\r", 0, end)
    return Split(front, 2, text[end:], breaks + 1, fenced=True)


def split_loosely(text: str) -> Split:
    """Split ``text`` where its lines look like front matter, with or without `---` lines."""
    # Treat the text after the limit as one line, because a longer front matter is refused anyway.
    lines = LINE.findall(text, 0, _MAX_END)
    if len(text) > _MAX_END:
        lines.append(text[_MAX_END:])
    blank = 0
    while blank < len(lines) and not lines[blank].strip():
        blank += 1
    if blank == len(lines):
        return Split(None, 1, text, 1)
    first = lines[blank]
    if _OPENING.fullmatch(first):
        rest = range(blank + 1, len(lines))
        end = next((index for index in rest if _OPENING.fullmatch(lines[index])), None)
        if end is not None and blank:
            return _late(_cut(lines, blank + 1, end, end + 1, fenced=True), blank + 1)
        if _keys_follow(lines, blank + 1):
            return _until_no_key(lines, blank + 1)
    elif first.startswith("---") and (inline := _on_opening_line(lines, blank)):
        return inline
    elif _NAMING_KEY.match(first) and KEY.match(first):
        found = _until_no_key(lines, blank)
        message, fix = "the keys have no opening `---` line", "put a line `---` above them"
        return _noted(found, "front-matter-not-opened", message, blank + 1, fix)
    return _further_down(lines, blank) or Split(None, 1, text, 1)


def outer_keys(lines: Sequence[str]) -> list[tuple[int, int, re.Match[str]]]:
    """Return the keys with the same indentation as the first key.

    Each result is the index of the line, the indentation, and the match of `KEY`.
    """
    found: list[tuple[int, int, re.Match[str]]] = []
    for index, line in enumerate(lines):
        inner = line.lstrip(" ")
        place = len(line) - len(inner)
        if (not found or place <= found[0][1]) and (key := KEY.match(inner)):
            found.append((index, place, key))
    return found


def bare_key(key: str) -> str:
    """Return a key without its quotes."""
    return key[1:-1] if key[0] == key[-1] and key[0] in "\"'" else key


def ends_early(front: str) -> bool:
    """Tell whether ``front`` also contains Markdown.

    The reason is a horizontal rule in the body, which looks like a closing `---`.
    """
    lines = front.splitlines()
    for index, line in enumerate(lines):
        if _GLUED.match(line) or line.strip() == "---":
            return True
        heading = _HEADING.match(line) and (index == 0 or not lines[index - 1].strip())
        if heading and not any(_KNOWN_KEY.match(later) for later in lines[index + 1 :]):
            return True
    return False


def _cut(lines: Sequence[str], start: int, end: int, body: int, *, fenced: bool) -> Split:
    front = "".join(lines[start:end])
    return Split(front, start + 1, "".join(lines[body:]), body + 1, fenced)


def _noted(found: Split, code: str, message: str, line: int, fix: str) -> Split:
    return replace(found, findings=(finding(code, message, line, fix), *found.findings))


def _late(found: Split, line: int) -> Split:
    message = "the front matter does not begin on the first line"
    fix = "move `---` and the keys to the very top"
    return _noted(found, "front-matter-late", message, line, fix)


def _keys_follow(lines: Sequence[str], start: int) -> bool:
    for line in lines[start : start + _MAX_START]:
        if line.strip() and not line.lstrip().startswith("#"):
            return KEY.match(line.lstrip()) is not None
        if _HEADING.match(line) and not line.startswith("# "):
            return False
    return False


def _until_no_key(lines: Sequence[str], start: int) -> Split:
    """Collect lines that look like keys, values or comments.

    The first other line ends the front matter, and the number of this line is recorded.
    """
    end = start
    open_value = False
    indent: int | None = None
    for index in range(start, len(lines)):
        line = lines[index]
        if not line.strip():
            continue
        if index > start and (closed := _closed_by(lines, start, index)):
            return closed
        if indent is None:
            indent = len(line) - len(line.lstrip())
        inner = line[indent:] if not line[:indent].strip() else line
        if KEY.match(inner):
            open_value = True
        elif inner.startswith("#"):
            if index == start or not lines[index - 1].strip() or _HEADING.match(inner[1:]):
                break  # this is a heading, because a comment has no blank line before it
        elif not (inner[:1] in " \t" or (open_value and inner[:1] in "-]}")):
            break
        end = index + 1
    return _not_closed(_cut(lines, start, end, end, fenced=False), end + 1)


def _closed_by(lines: Sequence[str], start: int, index: int) -> Split | None:
    """If the line at ``index`` ends the front matter, return the front matter and the body."""
    line = lines[index]
    if _RULER.fullmatch(line) or _FENCE.fullmatch(line):
        exact = _OPENING.fullmatch(line) is not None
        found = _cut(lines, start, index, index + 1, fenced=exact)
        return found if exact else _not_closed(found, index + 1)
    if glued := _GLUED.match(line):
        found = _cut(lines, start, index, index + 1, fenced=False)
        body = line[glued.end() :].lstrip() + found.body
        return _not_closed(replace(found, body=body, body_line=index + 1), index + 1)
    return None


def _not_closed(found: Split, line: int) -> Split:
    message = "the front matter is not closed by a line `---`"
    fix = "put a line that is exactly `---` below the last key"
    return _noted(found, "front-matter-not-closed", message, line, fix)


def _on_opening_line(lines: Sequence[str], index: int) -> Split | None:
    """Read keys on the same line as the opening `---`."""
    text = lines[index].strip().lstrip("-").strip()
    if not _NAMING_KEY.match(text):
        return None
    alone = text.endswith("---")
    text = text.removesuffix("---").rstrip()
    front = "\n".join(_INLINE.split(text)) + "\n"
    rest = index + 1
    if alone:
        found = Split(front, index + 1, "".join(lines[rest:]), rest + 1)
    else:
        found = _until_no_key(lines, rest)
        found = replace(found, front=front + (found.front or ""), front_line=index + 1)
    message, fix = "keys are on the line of the opening `---`", "give each key a line of its own"
    return _noted(found, "front-matter-not-opened", message, index + 1, fix)


def _further_down(lines: Sequence[str], first: int) -> Split | None:
    """Find a front matter that is below other text or inside a code fence."""
    for index in range(first, min(len(lines), _MAX_START)):
        line = lines[index]
        fence = _FENCE.fullmatch(line) is not None
        if not (fence or _RULER.fullmatch(line)):
            continue
        start = index + 1
        while start < len(lines) and not lines[start].strip():
            start += 1
        if fence and start < len(lines) and _RULER.fullmatch(lines[start]):
            start += 1
        if not (start < len(lines) and KEY.match(lines[start])):
            continue
        found = _until_no_key(lines, start)
        if not any(_NAMING_KEY.match(row) for row in (found.front or "").splitlines()):
            continue
        if not fence:
            return _late(found, start + 1)
        message = "the front matter is inside a code fence"
        fix = "remove the lines of the fence, and begin the file with `---`"
        return _noted(_open_fence(found), "front-matter-fenced", message, index + 1, fix)
    return None


def _open_fence(found: Split) -> Split:
    """If a code fence surrounds the front matter, remove the fence's last line from the body."""
    body = found.body.lstrip()
    first, _, rest = body.partition("\n")
    if _FENCE.fullmatch(first):
        skipped = found.body[: len(found.body) - len(rest)]
        return replace(found, body=rest, body_line=found.body_line + skipped.count("\n"))
    body = found.body.rstrip()
    last = body.rpartition("\n")[2]
    opened = [start for start, _ in code_spans(body, nested=True)][-1:] or [0]
    if _FENCE.fullmatch(last) and opened[0] >= len(body) - len(last):
        return replace(found, body=body[: len(body) - len(last)])
    return found


_SCALARS: Final = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"null|Null|NULL|~|", "nN~\0"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
)


def front_matter_json(text: str) -> dict[str, JsonValue] | None:
    """Return the front matter of a valid SKILL.md; None if it isn't valid YAML.

    Aliases are refused here, although `parse_document` refused them earlier. The text may come from
    a database row that another user of a server wrote.
    """
    return _load(text, _loader())


def scalar_texts(text: str) -> dict[str, JsonValue]:
    """Parse YAML with every scalar as the text in the file; return {} if the YAML isn't valid."""
    import yaml

    return _load(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader)) or {}


def _load(text: str, loader: Any) -> dict[str, JsonValue] | None:
    import yaml

    front = split(text).front
    if front is None:
        return None
    try:
        values = yaml.load(front, Loader=loader)  # noqa: S506  # both are safe
        return _json(values, set()) if isinstance(values, dict) else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _json(value: Any, seen: set[int]) -> Any:
    """Return a value as JSON. Raises ValueError if an alias repeats it."""
    if isinstance(value, dict | list):
        if id(value) in seen:  # a few lines of nested aliases can expand beyond all memory
            raise ValueError("an alias")
        seen.add(id(value))
    if isinstance(value, dict):
        return {str(key): _json(entry, seen) for key, entry in value.items()}
    if isinstance(value, list):
        return [_json(entry, seen) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


@cache
def _loader() -> Any:
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader: Any = type("CoreLoader", (base,), {"yaml_implicit_resolvers": {}})
    for name, pattern, first in _SCALARS:
        tag = f"tag:yaml.org,2002:{name}"
        marks = [mark if mark != "\0" else "" for mark in first]
        loader.add_implicit_resolver(tag, re.compile(f"(?:{pattern})$"), marks)
    loader.add_constructor("tag:yaml.org,2002:int", _integer)
    return loader


def _integer(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
