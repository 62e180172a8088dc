"""Write into the Markdown of a skill: its parameters, and the description of miniclaw's template.

What is found here is what `markdown` reads; lines of code and comments are not headings.
"""

import re
from collections.abc import Sequence
from typing import Final

from registry.document.markdown import Section, find_table, read_sections, read_template
from registry.document.tables import NO_PARAMETERS, table
from registry.model import Parameter

_STRUCTURE: Final = re.compile(r"^([ \t]*)(?=#|```|~~~|<!--)", re.MULTILINE)
_PLACEHOLDER: Final = re.compile(r"(?i)[_*(]*(?:none|no parameters|n/a|-)[_*).]*")


def find_section(body: str, title: str) -> Section | None:
    """Return the first section of ``body`` below `## title`, which is the one that is read."""
    sections = (section for section in read_sections(body) if section.depth == 2)  # noqa: PLR2004
    return next((section for section in sections if section.title.casefold() == title), None)


def with_description(body: str, description: str, newline: str) -> str | None:
    """Return ``body`` with another text below `## Description`; None where that can't be done."""
    section = find_section(body, "description")
    if section is None or None in section.lines:
        return None
    rows = [line for line in section.lines if line and line.text.strip()]
    start = rows[0].start if rows else section.text
    end = rows[-1].start + len(rows[-1].text.rstrip()) if rows else start
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
        start = section.text
        after = body[start:].lstrip(" \t")
        more = newline if not after or after.startswith(("\n", "\r")) else newline * 2
        lead = newline if body[:start].endswith(("\n", "\r")) else newline * 2
        return body[:start] + lead + table(parameters, newline) + more + body[start:]
    return body[: span[0]] + table(parameters, newline) + body[span[1] :]


def is_template(body: str) -> bool:
    """Tell whether ``body`` has the title of miniclaw's template."""
    return read_template(body).name is not None


def _table(section: Section) -> tuple[int, int] | None:
    """Return where the table that is read begins and ends."""
    lines = [line for line in section.lines if line]
    if (found := find_table([line.text for line in lines])) is None:
        return None
    last = lines[found[1] - 1]
    return lines[found[0]].start, last.start + len(last.text)


def _placeholder(section: Section) -> tuple[int, int] | None:
    """Return where the words stand that say that there are none, if nothing else does."""
    lines = [line for line in section.lines if line is None or line.text.strip()]
    if len(lines) != 1 or (line := lines[0]) is None:
        return None
    known = line.text.strip() == NO_PARAMETERS or _PLACEHOLDER.fullmatch(line.text.strip())
    return (line.start, line.start + len(line.text.rstrip())) if known else None


def _with_section(body: str, text: str, newline: str) -> str:
    added = f"## Parameters{newline}{text}{newline}"
    below = find_section(body, "implementation")
    if below:
        return body[: below.start] + added + newline + body[below.start :]
    gap = "" if not body.strip() else newline
    if body and not body.endswith(("\n", "\r")):
        gap += newline
    result = body + gap + added
    headings = (section.start for section in read_sections(body) if section.depth == 2)  # noqa: PLR2004
    if read_template(result).parameters or (at := next(headings, None)) is None:
        return result
    # A fence of code is never closed: what stands below it is not read.
    return body[:at] + added + newline + body[at:]
