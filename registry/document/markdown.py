"""The Markdown-only template of miniclaw's contract, and the first words of any body."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from itertools import islice
from typing import Final

from registry.document.tables import read_default, with_breaks
from registry.model import Parameter

MOST_PARAMETERS: Final = 200
FIRST_WORDS: Final = 1024
"""Characters of a description taken from the body: the specification's limit."""

_LONGEST_ROW: Final = 10_000
_MOST_LINES: Final = 1000
"""Lines from the top among which a first paragraph is looked for."""

_TITLE: Final = re.compile(r"#[ \t]+skill[ \t]*[:\uff1a][ \t]*(\S.*)", re.IGNORECASE)
HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(\S.*)")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_FACT: Final = re.compile(r"[-*+][ \t]+\*\*([^*:]{1,40}?)[ \t]*:?\*\*[ \t]*:?[ \t]*(.*)")
_IMAGES: Final = re.compile(r"(?:\[?!\[[^\]\n]*\]\([^)\n]*\)(?:\]\([^)\n]*\))?\s*)+")
_HTML_ONLY: Final = re.compile(r"(?:<[^<>\n]{1,300}>\s*)+")
_CELL: Final = re.compile(r"(?<!\\)\|")
TABLE_RULE: Final = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_YES: Final = frozenset({"yes", "y", "true", "required", "1", "x", "\u2713", "\u2705", "\u662f"})
_COLUMNS: Final[Mapping[str, str]] = {
    "name": "name",
    "parameter": "name",
    "param": "name",
    "argument": "name",
    "type": "type",
    "description": "description",
    "meaning": "description",
    "required": "required",
    "required?": "required",
    "default": "default",
    "default value": "default",
}


@dataclass(frozen=True, slots=True)
class Template:
    """What the template's headings say; None or empty where they are missing."""

    name: str | None = None
    description: str | None = None
    created: str | None = None
    created_line: int | None = None
    version: str | None = None
    parameters: tuple[Parameter, ...] = ()


def read_template(body: str) -> Template:
    """Read the sections of miniclaw's template from ``body``; lines count from 1 in it.

    Headings inside code fences and comments are none. Any section may be missing.
    """
    title: str | None = None
    section = ""
    sections: dict[str, list[tuple[int, str]]] = {}
    for number, line, code in body_lines(body):
        if not code and line.lstrip(" ").startswith("#") and (heading := HEADING.match(line)):
            depth, text = len(heading[1]), heading[2].rstrip().rstrip("#").rstrip()
            if depth == 1 and title is None:
                found = _TITLE.match(line.strip())
                title = found[1].strip() if found else None
            section = text.casefold() if depth == 2 else section if depth > 2 else ""  # noqa: PLR2004
            if depth == 2 and section in sections:  # noqa: PLR2004 - `##`
                section = ""
            continue
        if section in {"description", "parameters", "metadata"} and not code:
            sections.setdefault(section, []).append((number, line))
    facts = dict(_facts(sections.get("metadata", ())))
    created = facts.get("created") or facts.get("created at")
    version = facts.get("version")
    return Template(
        name=title,
        description=_paragraphs(sections.get("description", ())),
        created=created[1] if created else None,
        created_line=created[0] if created else None,
        version=version[1] if version else None,
        parameters=read_parameters([line for _, line in sections.get("parameters", ())]),
    )


def has_template(body: str) -> bool:
    """Tell at little cost whether ``body`` may hold parts of the template."""
    return (
        "## Parameters" in body
        or "## Metadata" in body
        or "## Description" in body
        or body[:200].lstrip()[:8].casefold() == "# skill:"
    )


def read_parameters(lines: Sequence[str]) -> tuple[Parameter, ...]:
    """Read the first Markdown table of ``lines`` whose header names a parameter column."""
    rows = iter(line.strip() for line in lines)
    previous = ""
    for row in rows:
        if len(row) <= _LONGEST_ROW and "|" in previous and TABLE_RULE.fullmatch(row):
            columns = [_COLUMNS.get(_plain(cell).casefold(), "") for cell in _cells(previous)]
            if "name" in columns:
                return tuple(islice(_table(columns, rows), MOST_PARAMETERS))
        previous = row
    return ()


def first_paragraph(body: str) -> str | None:
    """Return the first paragraph of ``body`` that says something, in at most `FIRST_WORDS`.

    Skips headings, rulers, images and badges, code, comments, tables and HTML.
    """
    words: list[str] = []
    length = 0
    for _, line, code in islice(body_lines(body), _MOST_LINES):
        text = "" if code else line.strip()
        if text.startswith("#") and HEADING.match(text):
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
    return _cut(" ".join(words)) if words else None


def _cut(text: str) -> str:
    if len(text) <= FIRST_WORDS:
        return text
    text = text[: FIRST_WORDS - 1]
    space = text.rfind(" ", FIRST_WORDS // 2)
    return (text[:space] if space > 0 else text).rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def body_lines(body: str) -> Iterator[tuple[int, str, bool]]:
    """Yield (line number, line, whether it is code or comment) for each line of ``body``.

    A line ends as in CommonMark, not at everything that Unicode takes for a line end.
    """
    fence = ""
    comment = False
    for number, whole in enumerate(StringIO(body, newline=None), 1):
        line = whole.removesuffix("\n")
        text = line.strip()
        if comment:
            comment = "-->" not in text
            yield number, line, True
            continue
        if fence or text.startswith(("```", "~~~")):
            mark = _FENCE.match(line)
            if not fence:
                if mark:
                    fence = mark[1]
            elif mark and mark[1].startswith(fence) and text == mark[1]:
                fence = ""
            yield number, line, True
            continue
        if text.startswith("<!--"):
            comment = "-->" not in text[4:]
            yield number, line, True
            continue
        yield number, line, False


def _facts(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield (label, (line, value)) of the lines ``- **Label**: value``, the last one first."""
    for number, line in reversed(lines):
        fact = _FACT.fullmatch(line.strip())
        if fact:
            yield fact[1].casefold(), (number, fact[2].strip())


def _paragraphs(lines: Sequence[tuple[int, str]]) -> str | None:
    return "\n".join(line.rstrip() for _, line in lines).strip() or None


def _table(columns: Sequence[str], rows: Iterator[str]) -> Iterator[Parameter]:
    seen: set[str] = set()
    for row in rows:
        if "|" not in row or len(row) > _LONGEST_ROW:
            return
        cells = dict(zip(reversed(columns), reversed(_cells(row, len(columns))), strict=True))
        name = _plain(cells.get("name", ""))
        if not name or name in seen:
            continue
        seen.add(name)
        parameter = Parameter(
            name=name,
            type=_plain(cells.get("type", "")) or "string",
            description=with_breaks(cells.get("description", "")),
            required=_plain(cells.get("required", "")).casefold() in _YES,
        )
        default = read_default(_plain(cells.get("default", "")), parameter)
        yield parameter if default is None else replace(parameter, default=default)


def _cells(row: str, count: int | None = None) -> list[str]:
    """Return the cells of a table's row; with ``count``, exactly so many."""
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
