"""Read and write miniclaw's Markdown template and its parameters.

Find the first words of a body.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import islice, pairwise
from typing import Final, NamedTuple

from registry.document.coerce import CONTROL
from registry.model import JsonValue, Parameter
from registry.text import shorten

NO_PARAMETERS: Final = "None."
COLUMNS: Final = ("Name", "Type", "Required", "Description", "Default")

_BREAK: Final = re.compile(r"(\\*)(\n|<br ?/?>)", re.IGNORECASE)
_LINE_END: Final = re.compile("\r\n|[\n\r\u2028\u2029]")
_NO_DEFAULT: Final = frozenset({"", "-", "\u2013", "\u2014", "none", "n/a", "null"})


def cell(text: str) -> str:
    """Return ``text`` on one line, escaped for a cell of a Markdown table."""
    return _BREAK.sub(_write_break, clean(text)).replace("|", "\\|")


def with_breaks(text: str) -> str:
    """Return the ``text`` of a table cell with each `<br>` as a line break.

    The caller must have unescaped the bars (``|``).
    """
    return _BREAK.sub(_read_break, text)


def default_cell(parameter: Parameter) -> str:
    """Return the table cell for the default of a parameter.

    Raises ValueError if the default doesn't have the parameter's type.
    """
    value = parameter.default
    if value is None:
        return ""
    if isinstance(value, str):
        plain = value == clean(value) and value.strip("`*") == value and "`" not in value
        plain = plain and "\n" not in value and "<br" not in value.casefold()
        if plain and value and read_default(value, parameter) == value:
            return f"`{value}`".replace("|", "\\|")
    elif parameter.type == "string":
        raise ValueError(f"the default of the parameter `{parameter.name}` is not a string")
    source = json.dumps(value, ensure_ascii=False, allow_nan=False)
    source = source if source.isprintable() else json.dumps(value)
    source = source.replace("`", "\\u0060").replace("<", "\\u003c")
    return f"`{source}`".replace("|", "\\|")


def read_default(text: str, parameter: Parameter) -> JsonValue:
    """Return the default of ``parameter`` from a table cell.

    ``text`` is the text of the cell without Markdown.
    """
    if text.casefold() in _NO_DEFAULT:
        return None
    if parameter.type == "string" and text[0] != '"':
        return text
    try:
        value: JsonValue = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def clean(text: str) -> str:
    """Return ``text`` in the form that a parameter allows: LF line ends, no control characters."""
    return CONTROL.sub("", _LINE_END.sub("\n", text)).strip()


def table(parameters: Iterable[Parameter], newline: str = "\n") -> str:
    """Return the Markdown table of ``parameters`` without a line end after it.

    Without parameters, return a sentence.
    """
    rows = [
        (
            cell(parameter.name),
            cell(parameter.type),
            "Yes" if parameter.required else "No",
            cell(parameter.description),
            default_cell(parameter),
        )
        for parameter in parameters
    ]
    if not rows:
        return NO_PARAMETERS
    lines = [COLUMNS, tuple("-" * len(column) for column in COLUMNS), *rows]
    return newline.join("| " + " | ".join(row) + " |" for row in lines)


def same_parameters(found: Sequence[Parameter], wanted: Sequence[Parameter]) -> bool:
    """Tell whether the parameters ``found`` in a document equal the ``wanted`` parameters.

    If a table cell can store a value only as text, the value and the text count as equal.
    """
    return len(found) == len(wanted) and all(
        (one.name, one.type, one.required) == (other.name, other.type, other.required)
        and clean(other.description) in {one.description, with_breaks(one.description)}
        and (one.default == other.default or _default(one) == other.default)
        for one, other in zip(found, wanted, strict=True)
    )


def _default(parameter: Parameter) -> JsonValue:
    text = parameter.default
    return read_default(text, parameter) if isinstance(text, str) else text


def _write_break(match: re.Match[str]) -> str:
    """Double the backslashes before a break.

    If the text itself contains `<br>`, add a backslash.
    """
    return match[1] * 2 + ("<br>" if match[2] == "\n" else "\\" + match[2])


def _read_break(match: re.Match[str]) -> str:
    kept = "\\" * (len(match[1]) // 2)
    return kept + (match[2] if len(match[1]) % 2 else "\n")


def _no_constant(name: str) -> JsonValue:
    raise ValueError(name)


MAX_PARAMETERS: Final = 200
FIRST_WORDS: Final = 1024
"""Maximum length of a description that is taken from the body, in characters.

This is the specification's limit for a description.
"""

MAX_INDENT: Final = 40
"""Maximum number of blanks and `>` marks before a code fence."""

_MAX_ROW: Final = 10_000
_MAX_LINES: Final = 1000
"""Number of lines at the top of a body in which to search for the first paragraph."""

_TITLE: Final = re.compile(r"skill[ \t]*[:\uff1a][ \t]*(\S.*)", re.IGNORECASE)
_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
# Each mark has a separate expression, because this is much faster than one expression for all
# marks.
_MARKS: Final = {mark: re.compile(f"{mark}{mark[0]}*") for mark in ("```", "~~~", "<!--")}
_BLANK: Final = re.compile(r"[^\S\r\n]*(?:[\r\n]|\Z)")
_FACT: Final = re.compile(r"[-*+][ \t]+\*\*([^*:]{1,40}?)[ \t]*:?\*\*[ \t]*:?[ \t]*(.*)")
_IMAGES: Final = re.compile(r"(?:\[?!\[[^\]\n]*\]\([^)\n]*\)(?:\]\([^)\n]*\))?\s*)+")
_HTML_ONLY: Final = re.compile(r"(?:<[^<>\n]{1,300}>\s*)+")
_CELL: Final = re.compile(r"(?<!\\)\|")
_TABLE_RULE: Final = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_YES: Final = frozenset({"yes", "y", "true", "required", "1", "x", "\u2713", "\u2705", "\u662f"})
_COLUMNS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("name", "parameter", "param", "argument"), "name"),
    **dict.fromkeys(("description", "meaning"), "description"),
    **dict.fromkeys(("required", "required?"), "required"),
    **dict.fromkeys(("default", "default value"), "default"),
    "type": "type",
}


@dataclass(frozen=True, slots=True)
class Template:
    """The values below the headings of miniclaw's template; a missing value is None or empty."""

    name: str | None = None
    description: str | None = None
    created: str | None = None
    created_line: int | None = None
    version: str | None = None
    parameters: tuple[Parameter, ...] = ()


class BodyLine(NamedTuple):
    """A line of a body: number (from 1), offsets, text, and whether it is code or a comment."""

    number: int
    start: int
    end: int
    text: str
    code: bool


@dataclass(slots=True)
class Section:
    """A `#` or `##` section: the offsets of its heading, of the text below, and of its end.

    In ``lines``, each line of code or comment, and each deeper heading, is replaced by None.
    """

    depth: int
    title: str
    start: int
    text: int
    end: int
    lines: list[BodyLine | None]


def read_template(body: str) -> Template:
    """Read the sections of miniclaw's template from ``body``.

    Line numbers count from 1 in ``body``. Headings inside code fences and comments are ignored. Any
    section may be missing.
    """
    sections = read_sections(body)
    titles = (_TITLE.match(section.title) for section in sections if section.depth == 1)
    lines: dict[str, list[BodyLine]] = {}
    for section in sections:
        if section.depth == 2 and any(section.lines):  # noqa: PLR2004 - `##`
            lines.setdefault(section.title.casefold(), [line for line in section.lines if line])
    facts = {  # `- **Label**: value`; if a label occurs several times, its first value counts
        fact[1].casefold(): (line.number, fact[2].strip())
        for line in reversed(lines.get("metadata", ()))
        if (fact := _FACT.fullmatch(line.text.strip()))
    }
    created = facts.get("created") or facts.get("created at")
    version = facts.get("version")
    description = "\n".join(line.text.rstrip() for line in lines.get("description", ()))
    return Template(
        name=next((title[1].strip() for title in titles if title), None),
        description=description.strip() or None,
        created=created[1] if created else None,
        created_line=created[0] if created else None,
        version=version[1] if version else None,
        parameters=read_parameters([line.text for line in lines.get("parameters", ())]),
    )


def read_sections(body: str) -> list[Section]:
    """Return the sections of ``body`` below headings of the first and the second level."""
    found: list[Section] = []
    for line in body_lines(body):
        heading = None if line.code else _HEADING.match(line.text)
        if heading and len(heading[1]) <= 2:  # noqa: PLR2004 - `##`
            if found:
                found[-1].end = line.start
            title = heading[2].rstrip()
            bare = title.rstrip("#")  # a space must come before the closing `#` marks
            title = bare.rstrip() if bare[-1:].isspace() else title
            found.append(Section(len(heading[1]), title, line.start, line.end, len(body), []))
        elif found:
            found[-1].lines.append(None if line.code or heading else line)
    return found


def has_template(body: str) -> bool:
    """Tell quickly whether ``body`` may contain sections of miniclaw's template."""
    if "## Parameters" in body or "## Metadata" in body or "## Description" in body:
        return True
    return body[:200].lstrip()[:8].casefold() == "# skill:"


def read_parameters(lines: Sequence[str]) -> tuple[Parameter, ...]:
    """Read the first Markdown table in ``lines`` that has a column for parameters."""
    if (found := find_table(lines)) is None:
        return ()
    start, end = found
    columns = _columns(lines[start])
    parameters: dict[str, Parameter] = {}
    for line in lines[start + 2 : end]:
        cells = dict(zip(reversed(columns), reversed(_cells(line, len(columns))), strict=True))
        name = _plain(cells.get("name", ""))
        if not name or name in parameters:
            continue
        parameter = Parameter(
            name=name,
            type=_plain(cells.get("type", "")) or "string",
            description=with_breaks(cells.get("description", "")),
            required=_plain(cells.get("required", "")).casefold() in _YES,
        )
        default = read_default(_plain(cells.get("default", "")), parameter)
        parameters[name] = replace(parameter, default=default)
        if len(parameters) == MAX_PARAMETERS:
            break
    return tuple(parameters.values())


def find_table(lines: Sequence[str]) -> tuple[int, int] | None:
    """Return the position of the parameter table; None if there is none.

    The position is the index of the header, and the index after the last row.
    """
    for start, (head, rule) in enumerate(pairwise(map(str.strip, lines))):
        if len(rule) > _MAX_ROW or "|" not in head or not _TABLE_RULE.fullmatch(rule):
            continue
        if "name" in _columns(head):
            rest = enumerate(lines[start + 2 :], start + 2)
            end = (index for index, row in rest if "|" not in row or len(row.strip()) > _MAX_ROW)
            return start, next(end, len(lines))
    return None


def first_paragraph(body: str) -> str | None:
    """Return the first paragraph of prose in ``body``, at most `FIRST_WORDS` characters.

    Headings, rules, images, badges, code, comments, tables and HTML are skipped.
    """
    words: list[str] = []
    length = 0
    for line in islice(body_lines(body), _MAX_LINES):
        text = "" if line.code else line.text.strip()
        if text.startswith("#") and _HEADING.match(text):
            text = ""
        text = text.lstrip("> ") if text.startswith(">") else text
        if text.startswith(("!", "[!")) and (images := _IMAGES.match(text)):
            text = text[images.end() :]
        if text.startswith("<") and _HTML_ONLY.fullmatch(text[:1000]):
            text = ""
        if not text.strip("-*_= \t") or text.startswith("|"):
            if words:
                break
            continue
        words.append(text)
        length += len(text)
        if length > FIRST_WORDS:
            break
    return shorten(" ".join(words), FIRST_WORDS, whole_words=True) if words else None


def body_lines(body: str) -> Iterator[BodyLine]:
    """Yield each line of ``body``, its offset, and whether it is code or a comment.

    A line ends where CommonMark ends it; other line ends of Unicode don't count.
    """
    spans = code_spans(body)
    start = end = at = 0
    for number, whole in enumerate(StringIO(body, newline=""), 1):
        while end <= at and start < len(body):
            start, end = next(spans, (len(body), len(body)))
        stop = at + len(whole)
        code = start < stop or whole.lstrip().startswith(("```", "~~~"))
        yield BodyLine(number, at, stop, whole.rstrip("\r\n"), code)
        at = stop


def code_spans(body: str, *, nested: bool = False) -> Iterator[tuple[int, int]]:
    """Yield the offsets of fenced code blocks and of comments on separate lines.

    As in CommonMark ("Fenced code blocks", "HTML blocks"), at most three spaces precede a fence. If
    ``nested``, a fence may also be in lists and quotes, at any indentation. A block without a
    closing fence ends with the body.
    """
    start = end = 0
    opened = ""
    found = [at for mark, run in _MARKS.items() if mark in body for at in run.finditer(body)]
    for match in sorted(found, key=re.Match.start):
        at, mark = match.start(), match[0]
        before = body[max(0, at - MAX_INDENT) : at].replace("\r", "\n").rpartition("\n")[2]
        if at < end or before.strip(" \t>") or len(before) == MAX_INDENT:
            continue  # this is inside a comment, or not at the beginning of a line
        comment = mark == "<!--"
        if not nested and (">" in before or not (comment or before in "   ")):
            continue
        if opened:
            if mark.startswith(opened) and _BLANK.match(body, match.end()):
                opened = ""
                yield start, match.end()
        elif not comment:
            start, opened = at, mark
        else:
            close = body.find("-->", match.end())
            end = close + 3 if close >= 0 else len(body)
            yield at, end
    if opened:
        yield start, len(body)


def _columns(head: str) -> list[str]:
    """Return the meaning of each column of a table; an unknown column has the meaning ""."""
    return [_COLUMNS.get(_plain(cell).casefold(), "") for cell in _cells(head)]


def _cells(row: str, count: int | None = None) -> list[str]:
    """Return the cells of a table's row.

    If ``count`` is given, exactly this number of cells is returned.
    """
    row = row.strip()
    row = row.removeprefix("|")
    if row.endswith("|") and not row.endswith("\\|"):
        row = row[:-1]
    cells = [cell.strip().replace("\\|", "|") for cell in _CELL.split(row)]
    if count is not None:
        cells = [*cells[:count], *[""] * (count - len(cells))]
    return cells


def _plain(cell: str) -> str:
    return cell.strip().strip("`*").strip()
