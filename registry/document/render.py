"""Write a SKILL.md that every client can load, and its Markdown sections."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from registry.document import coerce
from registry.document.dates import parse_date
from registry.document.markdown import (
    NO_PARAMETERS,
    Section,
    find_table,
    read_sections,
    read_template,
    same_parameters,
    table,
)
from registry.document.parse import parse_text
from registry.document.yaml_text import quoted, scalar, tag_text, tag_words, text_value
from registry.model import Parameter
from registry.text import is_encodable

_STRUCTURE: Final = re.compile(r"^([ \t]*)(?=#|```|~~~|<!--)", re.MULTILINE)
_PLACEHOLDER: Final = re.compile(r"(?i)[_*(]*(?:none|no parameters|n/a|-)[_*).]*")


def find_section(body: str, title: str) -> Section | None:
    """Return the first section of ``body`` with the heading `## title`.

    Readers also use the first section with this heading.
    """
    sections = (section for section in read_sections(body) if section.depth == 2)  # noqa: PLR2004
    return next((section for section in sections if section.title.casefold() == title), None)


def with_description(body: str, description: str, newline: str) -> str | None:
    """Return ``body`` with a new text below `## Description`; None if there is no such section."""
    section = find_section(body, "description")
    if section is None or None in section.lines:
        return None
    rows = [line for line in section.lines if line and line.text.strip()]
    start = rows[0].start if rows else section.text
    end = rows[-1].start + len(rows[-1].text.rstrip()) if rows else start
    more = "" if rows else newline
    return body[:start] + description.replace("\n", newline) + more + body[end:]


def safe_text(text: str) -> str:
    """Escape headings, fences and comments in ``text``, so that ``text`` can't end its section."""
    return _STRUCTURE.sub(r"\1\\", text.replace("\r\n", "\n").replace("\r", "\n"))


def with_parameters(body: str, parameters: Sequence[Parameter], newline: str) -> str:
    """Return ``body`` with ``parameters`` in the table below `## Parameters`.

    If the section is missing, it is added before `## Implementation`, or else at the first position
    where readers find it. All other sections stay unchanged.
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
    """Return the beginning and end of the parameter table that readers use.

    Returns None if there is no such table.
    """
    lines = [line for line in section.lines if line]
    if (found := find_table([line.text for line in lines])) is None:
        return None
    last = lines[found[1] - 1]
    return lines[found[0]].start, last.start + len(last.text)


def _placeholder(section: Section) -> tuple[int, int] | None:
    """Return where the section states that there are no parameters, if it has no other text.

    The result has the offsets of this sentence.
    """
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
    # Readers would not see a section below an unclosed code fence.
    return body[:at] + added + newline + body[at:]


FIRST_VERSION: Final = "1.0.0"


def render_document(
    *,
    name: str,
    description: str,
    body: str = "",
    tags: Iterable[str] = (),
    kind: str | None = None,
    created_at: str | None = None,
    parameters: Sequence[Parameter] = (),
) -> str:
    """Return a new SKILL.md, with ``parameters`` in a Markdown table below `## Parameters`.

    Control characters and outer spaces are removed. Raises ValueError if a value could not be read
    back unchanged; the message gives the reason.
    """
    text = body.strip("\r\n")
    text = with_parameters(text, parameters, "\n") if parameters else text
    facts = {"tags": tag_words(tags), "kind": kind and coerce.one_text(kind)}
    given = {key: value for key, value in facts.items() if value}
    wanted = {"name": coerce.clean_line(name), "description": prose_text(description), **given}
    metadata = {**facts, "tags": tag_text(tag_words(tags)), "created_at": _moment(created_at)}
    result = _front(name, description, metadata) + (f"\n{text.rstrip()}\n" if text.strip() else "")
    _check(result, wanted, parameters)
    return result


def render_miniclaw(
    *,
    name: str,
    description: str,
    parameters: Sequence[Parameter],
    implementation: str,
    created_at: str,
) -> str:
    """Return a new SKILL.md in the form of miniclaw's contract, with front matter above it.

    The Markdown can't contain some texts unchanged, such as a heading in the description. These
    texts are escaped in the Markdown, and the front matter has the exact value. Raises ValueError
    as `render_document` does.
    """
    facts = {"version": FIRST_VERSION, "created": _moment(created_at)}
    result = (
        _front(name, description, {"version": FIRST_VERSION, "created_at": facts["created"]})
        + f"\n# Skill: {name}\n\n"
        f"## Description\n{safe_text(prose_text(description))}\n\n"
        f"## Parameters\n{table(parameters)}\n\n"
        "## Implementation\n" + implementation.strip("\r\n") + "\n\n"
        f"## Metadata\n- **Created**: {facts['created']}\n- **Version**: {FIRST_VERSION}\n"
    )
    wanted = {"name": coerce.clean_line(name), "description": prose_text(description), **facts}
    _check(result, wanted, parameters)
    return result


def prose_text(text: str) -> str:
    """Return a description as readers will read it: no control characters, no outer spaces."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return coerce.CONTROL.sub("", text).strip()


def _front(name: str, description: str, metadata: Mapping[str, object]) -> str:
    """Return front matter with the non-empty fields; tags are quoted."""
    lines = [f"name: {scalar(coerce.clean_line(name))}"]
    lines.append(f"description: {text_value(prose_text(description))}")
    inner = {key: str(value) for key, value in metadata.items() if value}
    lines += ["metadata:"] if inner else []
    for key, value in inner.items():
        lines.append(f"  {key}: {quoted(value) if key == 'tags' else text_value(value, '    ')}")
    return "\n".join(["---", *lines, "---", ""])


def _moment(text: str | None) -> str | None:
    if text is None:
        return None
    moment = parse_date(text)
    if moment is None:
        raise ValueError(f"the time of creation is not a date: {text!r}")
    return moment


def _check(text: str, wanted: Mapping[str, object], parameters: Sequence[Parameter]) -> None:
    """Parse ``text`` and compare its fields with ``wanted``.

    Raises ValueError for the first field that differs.
    """
    if not is_encodable(text):
        raise ValueError("the text has half characters (surrogates)")
    if "\0" in text:
        raise ValueError("the text has NUL characters, which no skill can hold")
    document = parse_text(text, folder_name="")
    for field, value in wanted.items():
        if value == "":
            raise ValueError(f"the {field} is empty")
    if not document.usable:
        raise ValueError(f"the skill would be invalid: {document.diagnostics[0].message}")
    for field, value in wanted.items():
        if getattr(document, field) != value:
            raise ValueError(f"the {field} {coerce.not_read_back(field, value)}")
    if parameters and not same_parameters(document.parameters, parameters):
        raise ValueError("the parameters can't be written as a table that reads back")
