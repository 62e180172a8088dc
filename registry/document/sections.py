"""Write into the Markdown of a skill: its parameters, and the description of miniclaw's template.

What is found here is what `markdown` reads; lines of code and comments are no headings.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Final

from registry.document.markdown import (
    HEADING,
    TABLE_RULE,
    body_lines,
    read_parameters,
    read_template,
)
from registry.document.tables import NO_PARAMETERS, table
from registry.model import Parameter

_STRUCTURE: Final = re.compile(r"^([ \t]*)(?=#|```|~~~|<!--)", re.MULTILINE)
_PLACEHOLDER: Final = re.compile(r"(?i)[_*(]*(?:none|no parameters|n/a|-)[_*).]*")


@dataclass(frozen=True, slots=True)
class Section:
    """A `##` section: where its heading begins, its text begins, and the next heading begins.

    ``rows`` are the lines of text and their places; None in their place is code or a heading.
    """

    start: int
    text: int
    end: int
    rows: tuple[tuple[int, str] | None, ...]


def find_section(body: str, title: str) -> Section | None:
    """Return the first section of ``body`` below `## title`, which is the one that is read."""
    at = start = text = 0
    found = False
    rows: list[tuple[int, str] | None] = []
    source = StringIO(body, newline="")
    for whole, (_, line, code) in zip(source, body_lines(body), strict=True):
        heading = None if code else HEADING.match(line)
        depth = len(heading[1]) if heading else 0
        if found and 0 < depth <= 2:  # noqa: PLR2004 - `##`
            return Section(start, text, at, tuple(rows))
        if heading and depth == 2 and not found:  # noqa: PLR2004 - `##`
            found = heading[2].rstrip().rstrip("#").rstrip().casefold() == title
            start, text = at, at + len(whole)
        elif found:
            rows.append(None if code or heading else (at, line))
        at += len(whole)
    return Section(start, text, at, tuple(rows)) if found else None


def with_description(body: str, description: str, newline: str) -> str | None:
    """Return ``body`` with another text below `## Description`; None where that can't be done."""
    section = find_section(body, "description")
    if section is None or None in section.rows:
        return None
    rows = [row for row in section.rows if row and row[1].strip()]
    start = rows[0][0] if rows else section.text
    end = rows[-1][0] + len(rows[-1][1].rstrip()) if rows else start
    more = "" if rows else newline
    return body[:start] + description.replace("\n", newline) + more + body[end:]


def safe_text(text: str) -> str:
    """Return ``text`` with its own headings, fences and comments escaped, so it stays in place."""
    return _STRUCTURE.sub(r"\1\\", text.replace("\r\n", "\n").replace("\r", "\n"))


def with_parameters(body: str, parameters: Sequence[Parameter], newline: str) -> str:
    """Return ``body`` with ``parameters`` in the table below `## Parameters`.

    A missing section is added before `## Implementation`, else where it is read. The rest stays.
    """
    section = find_section(body, "parameters")
    if section is None:
        return _with_section(body, table(parameters, newline), newline) if parameters else body
    span = _table(section) or _placeholder(section)
    if span is None:
        start = end = section.text
        after = body[end:].lstrip(" \t")
        more = newline if not after or after.startswith(("\n", "\r")) else newline * 2
        lead = newline if body[:start].endswith(("\n", "\r")) else newline * 2
        return body[:start] + lead + table(parameters, newline) + more + body[end:]
    return body[: span[0]] + table(parameters, newline) + body[span[1] :]


def is_template(body: str) -> bool:
    """Tell whether ``body`` has the title of miniclaw's template."""
    return read_template(body).name is not None


def _table(section: Section) -> tuple[int, int] | None:
    """Return where the table that is read begins and ends."""
    rows = [row for row in section.rows if row]
    for index in range(1, len(rows)):
        head, rule = rows[index - 1][1].strip(), rows[index][1].strip()
        last = index
        if "|" in head and TABLE_RULE.fullmatch(rule) and read_parameters([head, rule, "|x|" * 9]):
            while last + 1 < len(rows) and "|" in rows[last + 1][1]:
                last += 1
            return rows[index - 1][0], rows[last][0] + len(rows[last][1])
    return None


def _placeholder(section: Section) -> tuple[int, int] | None:
    """Return where the words stand that say that there are none, if nothing else does."""
    rows = [row for row in section.rows if row is None or row[1].strip()]
    if len(rows) != 1 or rows[0] is None:
        return None
    at, line = rows[0]
    known = line.strip() == NO_PARAMETERS or _PLACEHOLDER.fullmatch(line.strip())
    return (at, at + len(line.rstrip())) if known else None


def _with_section(body: str, text: str, newline: str) -> str:
    added = f"## Parameters{newline}{text}{newline}"
    below = find_section(body, "implementation")
    if below:
        return body[: below.start] + added + newline + body[below.start :]
    gap = "" if not body.strip() else newline
    if body and not body.endswith(("\n", "\r")):
        gap += newline
    result = body + gap + added
    if read_template(result).parameters or (at := _first_heading(body)) is None:
        return result
    # A fence of code is never closed: what stands below it is not read.
    return body[:at] + added + newline + body[at:]


def _first_heading(body: str) -> int | None:
    at = 0
    for whole, (_, line, code) in zip(StringIO(body, newline=""), body_lines(body), strict=True):
        if not code and line.startswith("## "):
            return at
        at += len(whole)
    return None
