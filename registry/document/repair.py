"""Repair broken front matter key by key, so that a bad line affects only the value of one key."""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final, NamedTuple

from registry.document.findings import finding, printable
from registry.document.frontmatter import FOREIGN_KEYS, KEY, SKILL_KEYS, bare_key, outer_keys
from registry.document.yaml_text import (
    MAX_NESTING,
    Broken,
    YamlReading,
    read_mapping,
    read_value,
    scalar,
    text_value,
)
from registry.model import JsonValue

_BLOCK: Final = re.compile(r"([|>])[+-]?[1-9]?[+-]?(?:[ \t]+|(?=[^\s\d+-])|\Z)")
_LISTLIKE: Final = re.compile(r"(?:[-*+\u2022]|\d{1,3}[.)\u3001]|[(\uff08]\d{1,3}[)\uff09])\s?")
_PAIR: Final = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)
_HALF: Final = re.compile(r"(?<!\\)((?:\\\\)*)\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_BAD_ESCAPE: Final = re.compile(
    r"\\(?:\\|[\"/abefnrtv0 N_LP\t\n]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|(\\)"
)
_TABS: Final = re.compile(r"^[ \t]*\t[ \t]*", re.MULTILINE)
_OPEN_LIST: Final = re.compile(r"\[[^\[\]{}]*")
_UNESCAPE: Final = re.compile(r"\\([\"\\/nt])")
_PLAIN_ESCAPES: Final = {"n": "\n", "t": "\t"}


MAX_SHOWN: Final = 60
"""Maximum number of characters of a value that the fix of a finding shows."""


class Text(NamedTuple):
    """The text of a repaired value, and a description of the problem."""

    value: str
    code: str
    message: str
    fix: str


def in_quotes(text: str, what: str = "the value") -> str:
    """Return the advice how to quote ``text`` so that YAML reads it unchanged."""
    if '"' not in text and "\\" not in text:
        return f"put {what} in double quotes"
    if "'" not in text:
        return f"put {what} in single quotes"
    return f'put {what} in double quotes, with a backslash before each `"` and `\\` inside'


def closed(text: str, head: str, rest: Sequence[str]) -> Iterator[Text]:
    """Yield a broken value with the closing bracket that its list lacks."""
    if _OPEN_LIST.fullmatch("\n".join((head, *rest))):
        message = "the list is not closed"
        yield Text(text.rstrip() + "]\n", "yaml-brackets", message, "add a `]` after the last item")


def untangle(original: str) -> Iterator[Text]:
    """Yield attempts to correct a broken value: first for each type of escape, then for tabs."""
    text = _PAIR.sub(_join, original)
    message = "a character is written as two JSON escapes, which is not YAML"
    yield Text(text, "yaml-surrogates", message, "write the character itself")
    text = _BAD_ESCAPE.sub(lambda match: "\\\\" if match[1] else match[0], text)
    message = "the double quotes contain a backslash that starts no escape"
    yield Text(text, "yaml-escape", message, "use single quotes, or double the backslash")
    text = _HALF.sub("\\1\N{REPLACEMENT CHARACTER}", text)
    message = "half of a character is written as a JSON escape; it is read as U+FFFD"
    yield Text(text, "yaml-surrogate-lone", message, "write the character itself")
    text = _TABS.sub(lambda tabs: tabs[0].replace("\t", "  "), original)
    yield Text(text, "yaml-indentation", "the lines are indented by tabs", "indent by two spaces")


def plain_text(head: str, rest: Sequence[str]) -> Text:
    """Return ``head`` and the lines below as the text that a person reads.

    ``head`` is the text after the key's colon.
    """
    if block := _BLOCK.match(head):
        return _block_text(head[block.end() :], block[1], rest)
    value = fold([head, *rest])
    fix = in_quotes(value)
    if head[:1] in ('"', "'"):
        value = _unquote(head, rest)
        code, message = "yaml-quotes", "the quotes do not enclose the whole value"
        fix = f"{in_quotes(value)}, once around all of it"
        if len(value) <= MAX_SHOWN and value.isprintable():
            fix = f"write the whole value as `{scalar(value)}`"
    elif head[:1] in ("[", "{"):
        code = "yaml-brackets"
        message = "the value begins with a bracket but is not a YAML list or mapping"
        if head[0] == "{" and ":" in head:
            fix = f"correct its brackets and quotes, or {fix}"
    elif ": " in value or head.endswith(":"):
        code, message = "yaml-colon", "a value without quotes contains a colon and a space"
    elif head and not (head[0].isalnum() or ord(head[0]) > 127):  # noqa: PLR2004 - not ASCII
        code = "yaml-special-character"
        message = f"the value begins with `{head[0]}`, which has a meaning in YAML"
    else:
        code, message = "yaml-stray-line", "lines of the value are not valid YAML in their place"
        fix = "indent these lines by two spaces below `|`"
    return Text(value, code, message, fix)


def _block_text(first: str, mark: str, rest: Sequence[str]) -> Text:
    """Return the text of a YAML block that begins with ``mark``.

    ``first`` is the text on the same line as ``mark``.
    """
    rows = [first, *rest] if first else list(rest)
    value = "\n".join(row.strip() for row in rows).strip() if mark == "|" else fold(rows)
    if not first:
        message = f"the text below `{mark}` is not indented"
        return Text(value, "yaml-indentation", message, "indent it by two spaces")
    fix = f"move the text to the next line, indented, or remove the `{mark}`"
    return Text(value, "yaml-block-text", f"the text begins on the line of `{mark}`", fix)


def fold(lines: Sequence[str]) -> str:
    """Join ``lines`` as YAML folds text.

    Line breaks of Markdown lists, and hard breaks, are kept.
    """
    text = ""
    hard = True
    for line in lines:
        row = line.strip()
        if not row:
            text += "" if hard else "\n"
            hard = True
            continue
        text += ("" if not text else "\n") if hard or _LISTLIKE.match(row) else " "
        text += row
        hard = line.endswith("  ")
    return text.strip()


def _unquote(head: str, rest: Sequence[str]) -> str:
    mark = head[0]
    first = head[1:]
    if rest and first.endswith(mark) and not first.endswith("\\" + mark):
        # More text follows below the closing quote. A person reads both as one text.
        text = fold([first[:-1], *rest])
    else:
        text = fold([head, *rest])
        if len(text) > 1 and text[-1] == mark and not _closes_early(text):
            text = text[1:-1]
        elif mark not in text[1:]:
            text = text[1:]
    if mark == "'":
        return text.replace("''", "'").strip()
    return _UNESCAPE.sub(lambda match: _PLAIN_ESCAPES.get(match[1], match[1]), text).strip()


def _closes_early(text: str) -> bool:
    """Tell whether the text ends after the second quote.

    In `"a" or "b"`, the text ends there; in `"say "hi" to"`, it doesn't end there.
    """
    mark = text[0]
    second = text.find(mark, 1)
    return second < len(text) - 1 and text[second - 1] != " " and not text[second + 1].isalnum()


def _join(match: re.Match[str]) -> str:
    high, low = int(match[2], 16), int(match[3], 16)
    return match[1] + chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))


MAX_ENTRIES: Final = 1000
"""Maximum number of keys that are repaired one by one.

Ordinary front matter has some dozens of keys.
"""

_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff\ud800-\udfff]"
)
_KEY_WITHOUT_COLON: Final = re.compile(r"^(name|description)[ \t]+(?=\S)", re.IGNORECASE)
_NAMING_KEY: Final = re.compile(r"[ \t]*[\"']?(?:name|description)[\"']?[ \t]*:", re.IGNORECASE)
_DESCRIPTION: Final = re.compile(r"[ \t]+[\"']?description[\"']?[ \t]*:", re.IGNORECASE)
_INNER_KEY: Final = re.compile(rf"[ \t]+({SKILL_KEYS})[ \t]*:(?=\s|\Z)")
_ITEM: Final = re.compile(r"([ \t]*)-(?:[ \t]+|\Z)")
_PROSE: Final = frozenset({"name", "description", "license", "compatibility"})
"""Keys whose values are never lists; brackets are part of their text."""

_MAX_JOINED: Final = 16
"""Maximum number of next keys that are tried as part of an unclosed quote or bracket."""

_MAX_JOINED_TEXT: Final = 1 << 18
"""Maximum number of characters that are parsed again in all these attempts.

This limits the time for hostile text.
"""

_FOREIGN: Final = re.compile(
    rf"^([ \t]*)({'|'.join(FOREIGN_KEYS)})[ \t]*\uff1a[ \t]*", re.MULTILINE
)


class Patch(NamedTuple):
    """Valid YAML for a repaired value.

    The patch replaces ``rows`` lines from ``line``, but keeps the first ``keep`` characters.
    ``text`` is the new YAML of the repaired value, on one or more lines. ``code`` is the code of
    the finding.
    """

    code: str
    line: int
    rows: int
    keep: int
    text: str


@dataclass(slots=True)
class _BrokenKey:
    """A key, the text after its colon, and the lines below; ``line`` is the line of the key."""

    key: str
    head: str
    rest: list[str]
    line: int
    first: str

    @property
    def text(self) -> str:
        return "\n".join((self.first, *self.rest, ""))

    @property
    def indent(self) -> int:
        """The characters before the key."""
        return len(self.first) - len(self.first.lstrip(" "))


def repair(front: str, line: int) -> YamlReading:
    """Parse ``front``, which isn't valid YAML, in the way in which a person reads it.

    ``line`` is the line of the file on which ``front`` begins. Values that are valid YAML are
    parsed as in `read_mapping`. Raises `Refused` under the same conditions as `read_mapping`.
    """
    reading = YamlReading()
    cleaned = _CONTROL.sub("", front)
    anchors: set[str] = set()
    if cleaned != front:
        bad = _CONTROL.search(front)
        at = line + (front.count("\n", 0, bad.start()) if bad else 0)
        message = "the front matter has control characters, which were left out"
        reading.findings.append(finding("control-characters", message, at, "delete them"))
        with suppress(Broken):
            again = read_mapping(cleaned, line, anchors)
            again.findings = reading.findings + again.findings
            return again
    lines = _lines(cleaned)
    for number, (row, completed) in enumerate(zip(lines, _with_colons(lines), strict=True)):
        if row != completed:
            message = f"`{printable(row)}` has no colon after its key"
            code, fix = "yaml-key-without-colon", "write `key: value`"
            reading.findings.append(finding(code, message, line + number, fix))
            lines[number] = completed
    _Repair(reading, anchors).mapping(lines, line, depth=1)
    return reading


def patches(front: str, line: int) -> list[Patch]:
    """Return the replacements that turn ``front`` into valid YAML with the result of `repair`.

    Only values are replaced. Problems that a person must decide get no replacement: a line without
    a key, a comment inside a value, an invalid key. Raises `Refused`.
    """
    lines = _lines(front)
    if _CONTROL.search(front) or _FOREIGN.search(front) or lines != _with_colons(lines):
        return []
    repairing = _Repair(YamlReading(), set())
    repairing.mapping(lines, line, depth=1)
    return repairing.patches


def salvage(front: str, line: int) -> YamlReading:
    """Read the outermost keys of ``front`` as plain text, without YAML."""
    reading = YamlReading()
    lines = _with_colons(_lines(_CONTROL.sub("", front)))
    for entry in _entries(lines, line):
        if len(reading.values) >= MAX_ENTRIES:
            break
        if entry.key not in reading.values:
            reading.values[entry.key] = plain_text(entry.head, entry.rest)[0]
            reading.lines[entry.key] = entry.line
    return reading


def _lines(front: str) -> list[str]:
    """Return the lines of ``front`` with Chinese keys translated into English."""
    text = front.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")
    text = _FOREIGN.sub(lambda match: f"{match[1]}{FOREIGN_KEYS[match[2]]}: ", text)
    return text.split("\n")


def _with_colons(lines: list[str]) -> list[str]:
    """Return ``lines`` with a colon after name and description if it is missing.

    If either of them already has a colon, no line changes.
    """
    if any(_NAMING_KEY.match(row) for row in lines):
        return lines
    return [_KEY_WITHOUT_COLON.sub(r"\1: ", row) for row in lines]


class _Repair:
    """A parser of lines that are not valid YAML; it fills one `YamlReading`."""

    def __init__(self, reading: YamlReading, anchors: set[str]) -> None:
        self.reading = reading
        self.anchors = anchors
        self.left = MAX_ENTRIES
        self.to_join = _MAX_JOINED_TEXT
        self.patches: list[Patch] = []

    def note(self, code: str, message: str, line: int, fix: str) -> None:
        self.reading.findings.append(finding(code, message, line, fix))

    def mapping(self, lines: Sequence[str], line: int, depth: int) -> dict[str, JsonValue]:
        """Read ``lines`` as the keys and values of one mapping.

        The values of the outermost mapping are stored in the reading.
        """
        values: dict[str, JsonValue] = self.reading.values if depth == 1 else {}
        entries = deque(_entries(lines, line))
        first = entries[0].line - line if entries else len(lines)
        for number, row in enumerate(lines[:first], line):
            if (text := row.lstrip(" ")) and not text.startswith("#"):
                message = f"`{printable(text)}` is not `key: value`, and was not read"
                fix = "indent the line below its key, or remove it"
                self.note("yaml-stray-line", message, number, fix)
                break
        while entries:
            entry = entries.popleft()
            self.left -= 1
            if self.left < 0:
                message = f"the front matter is broken and has more than {MAX_ENTRIES} keys"
                fix = "correct the YAML; the keys after this line were not read"
                self.note("yaml-too-many-keys", message, entry.line, fix)
                break
            if entry.key in values:
                message = f"`{printable(entry.key, 40)}` occurs twice; the first one counts"
                self.note("yaml-duplicate-key", message, entry.line, "remove one of the two")
                continue
            key, value = self.entry(entry, entries, depth)
            values.setdefault(key, value)
            if depth == 1:
                self.reading.lines.setdefault(key, entry.line)
        return values

    def entry(
        self, entry: _BrokenKey, below: deque[_BrokenKey], depth: int
    ) -> tuple[str, JsonValue]:
        """Read a key and its value as YAML; if the value isn't valid, repair it.

        If more lines belong to the value, they are removed from ``below``.
        """
        with suppress(Broken):
            return self._only(read_mapping(entry.text, entry.line, self.anchors))
        if joined := self._joined(entry, below):
            return joined
        if self._unnested(entry, below):
            return self.entry(entry, below, depth)
        attempts = untangle(entry.text)
        if entry.key.casefold() not in _PROSE:
            attempts = chain(closed(entry.text, entry.head, entry.rest), attempts)
        for change, code, message, fix in attempts:
            if change == entry.text:
                continue
            try:
                read = self._only(read_mapping(change, entry.line, self.anchors))
            except Broken:
                continue
            self.note(code, f"`{printable(entry.key, 40)}`: {message}", entry.line, fix)
            text = change.removesuffix("\n")[entry.indent :]
            rows = 1 + text.count("\n")
            self.patches.append(Patch(code, entry.line, rows, entry.indent, text))
            return read
        return entry.key, self._value(entry, depth)

    def _joined(self, entry: _BrokenKey, below: deque[_BrokenKey]) -> tuple[str, JsonValue] | None:
        """Parse ``entry`` together with the next keys, until its quotes or brackets are closed."""
        if entry.head[:1] not in ('"', "'", "[", "{"):
            return None
        text = entry.text
        for count, more in enumerate(islice(below, _MAX_JOINED), 1):
            text += more.text
            self.to_join -= len(text)
            if self.to_join < 0:
                break
            try:
                read = self._only(read_mapping(text, entry.line, self.anchors))
            except Broken:
                continue
            for _ in range(count):
                below.popleft()
            return read
        return None

    def _unnested(self, entry: _BrokenKey, below: deque[_BrokenKey]) -> bool:
        """If the name has a value, move keys that are indented below it to the name's level."""
        is_name = entry.key.casefold() == "name" and entry.head
        if not (is_name and entry.rest and _DESCRIPTION.match(entry.rest[0])):
            return False
        at = entry.line + 1
        message = "`description` is indented below `name`, which has a value"
        self.note("yaml-indentation", message, at, "indent it like `name`")
        below.extendleft(reversed(list(_entries(entry.rest, at))))
        entry.rest.clear()
        return True

    def _only(self, reading: YamlReading) -> tuple[str, JsonValue]:
        """Return the only key of ``reading`` and its value.

        With any other number of keys, it isn't YAML.
        """
        if len(reading.values) != 1:
            raise Broken("not a single key")
        self.reading.findings += reading.findings
        return next(iter(reading.values.items()))

    def _value(self, entry: _BrokenKey, depth: int) -> JsonValue:
        """Return the value of a key whose text is not valid YAML."""
        rows = [row for row in entry.rest if row.strip() and not row.lstrip().startswith("#")]
        if not entry.head and rows and depth < MAX_NESTING:
            at = entry.line + 1
            if _ITEM.match(rows[0]):
                return self._list(entry, depth)
            if KEY.match(rows[0].lstrip()) and rows[0][:1] in " \t":
                return self.mapping(entry.rest, at, depth + 1)
        value, code, message, fix = plain_text(entry.head, entry.rest)
        for number, row in enumerate(entry.rest if entry.head else (), 1):
            if inner := _INNER_KEY.match(row):
                # The line may be a key or a part of the value, so there is no patch.
                shown = printable(entry.key, 40)
                message = f"`{inner[1]}` is indented below `{shown}`, which has a value"
                fix = f"indent it like `{shown}`, or put the whole value in quotes"
                self.note("yaml-indentation", message, entry.line + number, fix)
                return value
        at = entry.line
        if code in {"yaml-stray-line", "yaml-indentation"}:
            outside = (row.strip() != "" and row[0] not in " \t" for row in entry.rest)
            at += next((number for number, bad in enumerate(outside, 1) if bad), 0)
        self.note(code, f"`{printable(entry.key, 40)}`: {message}", at, fix)
        self._replace_text(entry, code, value)
        return value

    def _replace_text(self, entry: _BrokenKey, code: str, value: str) -> None:
        """Record the replacement of a value, unless the text could also mean another value."""
        rows = "\n".join((entry.first, *entry.rest)).rstrip(" \t\n").split("\n")
        inside = " " * (entry.indent + 1)
        runs_on = any(row.strip() and not row.startswith((inside, "\t")) for row in rows[1:])
        doubtful = entry.head.startswith("{") or runs_on
        if (
            not entry.head
            or (doubtful and entry.key.casefold() not in _PROSE)
            or (code == "yaml-quotes" and value.startswith(('"', "'")))
            or any(row.lstrip().startswith("#") for row in rows)
        ):
            return
        keep = len(entry.first.rstrip()) - len(entry.head)
        text = text_value(value, " " * (entry.indent + 2))
        gap = "" if entry.first[:keep].endswith((" ", "\t")) else " "
        self.patches.append(Patch(code, entry.line, len(rows), keep, gap + text))

    def _list(self, entry: _BrokenKey, depth: int) -> list[JsonValue]:
        """Read the lines below a key as a list, one item after another."""
        items: list[JsonValue] = []
        for at, rows in _items(entry.rest, entry.line + 1):
            with suppress(Broken):
                items.append(read_value("\n".join(rows), at, self.anchors))
                continue
            if KEY.match(rows[0].lstrip()) and depth < MAX_NESTING:
                items.append(self.mapping(rows, at, depth + 1))
                continue
            text = fold(rows)
            items.append(text)
            message = (
                f"`{printable(entry.key, 40)}`: the item `{printable(text, 40)}` is not valid YAML"
            )
            self.note("yaml-list", message, at, in_quotes(text, "the item"))
            keep = len(rows[0]) - len(rows[0].lstrip())
            filled = "\n".join(rows).rstrip(" \t\n").count("\n") + 1
            self.patches.append(Patch("yaml-list", at, filled, keep, scalar(text)))
        return items


def _items(lines: Sequence[str], line: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, lines) of each item; a space replaces the dash of its first line."""
    item: list[str] = []
    start = line
    indent: int | None = None
    for number, row in enumerate(lines, line):
        match = _ITEM.match(row)
        if match and (indent is None or len(match[1]) <= indent):
            if item:
                yield start, item
            indent = len(match[1]) if indent is None else indent
            start, item = number, [" " * match.end() + row[match.end() :]]
        elif item:
            item.append(row)
    if item:
        yield start, item


def _entries(lines: Sequence[str], line: int) -> Iterator[_BrokenKey]:
    """Yield the keys with their lines.

    All keys with the same indentation as the first key belong to the mapping.
    """
    keys = outer_keys(lines)
    ends = [*(index for index, _, _ in keys[1:]), len(lines)]
    for (index, place, key), end in zip(keys, ends, strict=False):
        head = lines[index][place + key.end() :].strip()
        rest = list(lines[index + 1 : end])
        yield _BrokenKey(bare_key(key["key"]), head, rest, line + index, lines[index])
