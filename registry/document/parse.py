"""Parse a SKILL.md into a `Document`, even if it has errors."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any, Final

from registry.document.dates import parse_date
from registry.document.fields import normalise
from registry.document.findings import finding, printable
from registry.document.frontmatter import Split, ends_early, split, split_loosely
from registry.document.markdown import Template, first_paragraph, has_template, read_template
from registry.document.repair import repair, salvage
from registry.document.yaml_text import SURROGATES, Broken, YamlReading, YamlRefused, read_mapping
from registry.model import Diagnostic, Document

FRONT_MATTER_BYTES: Final = 64 * 1024

MAX_FINDINGS: Final = 10
"""Maximum number of findings with the same code.

The last of them reports the number of further findings.
"""

_PLACEHOLDER: Final = re.compile(
    r"(?i)\s*(?:use when this capability is needed|one sentence - what this skill does and when to "
    r"invoke it|(?:add|write|insert) (?:a |the |your )?description(?: here)?"
    r"|(?:a |the |your |brief |short |skill )*description(?: here| of the skill)?"
    r"|to ?do|tbd|fixme|\[to ?do[^\]]{0,200}\]|n/a)"
    r"[.:!\u2026]*\s*"
)
"""Matches a description that a template or program wrote, and that doesn't describe the skill."""

_MARK: Final = "\ufeff"
_BINARY_SHARE: Final = 10
"""If more than one in this number of characters is NUL, the file is binary."""


def parse_document(data: bytes, *, folder_name: str) -> Document:
    """Parse the bytes of a SKILL.md; problems become diagnostics, not exceptions.

    ``folder_name`` is the name if the file has none. An invalid file has a diagnostic of severity
    ``error``, and those parts of its name and description that were readable.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"the file is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}"
        found = finding("not-utf8", message, line, "save the file with the encoding UTF-8")
        rest = _parse(data.decode("utf-8", "replace"), folder_name)
        return replace(rest, diagnostics=(found, *rest.diagnostics))
    return _parse(text, folder_name)


def parse_text(text: str, *, folder_name: str) -> Document:
    """Parse the text of a skill file, as `parse_document` does."""
    if not text.isascii():
        text = SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)
    return _parse(text, folder_name)


def _parse(text: str, folder_name: str) -> Document:
    findings: list[Diagnostic] = []
    text = _clean(text, findings)
    if not text.strip():
        found = finding("empty", "the file is empty", 1, "write the skill, or delete the folder")
        return Document(
            text=text,
            body=text,
            body_line=1,
            front_matter={},
            name=folder_name,
            description="",
            diagnostics=(found, *findings),
        )
    parts = split(text)
    reading = YamlReading()
    if parts.front is not None:
        parts, reading = _read_front(text, parts, findings)
    findings += reading.findings
    fields, unread = normalise(reading)
    findings += unread
    if parts.front is None:
        message = "the file has no front matter; the folder and the text give name and description"
        fix = "begin the file with `---`, `name:`, `description:` and `---`"
        findings.append(finding("front-matter-missing", message, 1, fix))
    elif not reading.values and all(found.severity != "error" for found in findings):
        fix = "write `name:` and `description:` between the `---` lines"
        message = "the front matter has no keys"
        findings.append(finding("front-matter-empty", message, parts.front_line, fix))
    _complete(parts, fields, folder_name, findings)
    return Document(
        text=text,
        body=parts.body,
        body_line=parts.body_line,
        front_matter=reading.values,
        diagnostics=_few(findings),
        **fields,
    )


def _few(findings: list[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return ``findings`` sorted by severity, at most `MAX_FINDINGS` of each code."""
    findings.sort(key=lambda found: found.sort_key)
    counts = Counter(found.code for found in findings)
    if not counts or max(counts.values()) <= MAX_FINDINGS:
        return tuple(findings)
    kept: list[Diagnostic] = []
    seen: Counter[str] = Counter()
    for found in findings:
        seen[found.code] += 1
        more = counts[found.code] - MAX_FINDINGS
        if seen[found.code] == MAX_FINDINGS and more > 0:
            found = replace(found, message=f"{found.message} (and {more} more like this)")  # noqa: PLW2901
        if seen[found.code] <= MAX_FINDINGS:
            kept.append(found)
    return tuple(kept)


def _clean(text: str, findings: list[Diagnostic]) -> str:
    """Return ``text`` without the characters that readers and databases can't store."""
    if text.startswith(_MARK):
        fix = "save the file as UTF-8 without a byte order mark"
        message = "the file begins with a byte order mark"
        findings.append(finding("byte-order-mark", message, 1, fix))
        text = text[1:]
    if count := text.count("\0"):
        line = text.count("\n", 0, text.index("\0")) + 1
        code, fix = "nul-characters", "delete the NUL characters"
        message = f"the file has {count} NUL characters, which were left out"
        if count * _BINARY_SHARE > len(text):
            code, fix = "not-text", "save the file as text with the encoding UTF-8"
            message = f"{count} of {len(text)} characters are NUL: the file is UTF-16 or not text"
        findings.append(finding(code, message, line, fix))
        text = text.replace("\0", "")
    return text


def _read_front(text: str, parts: Split, findings: list[Diagnostic]) -> tuple[Split, YamlReading]:
    """Parse the front matter of ``parts``.

    If the front matter ends before its `---` line, the returned parts are corrected.
    """
    limit = FRONT_MATTER_BYTES
    front, line = parts.front or "", parts.front_line
    if parts.fenced and _size(front, limit) > limit and ends_early(front):
        parts = split_loosely(text)
        front, line = parts.front or "", parts.front_line
    if _size(front, limit) > limit:
        message = f"the front matter is larger than {limit} bytes"
        fix = "keep only the keys that help to find the skill; move the rest into the body"
        too_large = finding("front-matter-too-large", message, line, fix)
        findings += (*parts.findings, too_large)
        return parts, salvage(front[:limit], line)
    try:
        try:
            reading = read_mapping(front, line)
        except Broken:
            if parts.fenced and ends_early(front):
                parts = split_loosely(text)
                return parts, _repaired(parts, findings)
            reading = repair(front, line)
        if not reading.values and parts.fenced and front.strip():
            # The first `---` is a horizontal rule; the parser mistook it for the start of front
            # matter.
            other = split_loosely(text)
            if other.front is None or other.front_line != line:
                return other, _repaired(other, findings)
    except YamlRefused as refused:
        findings += (*parts.findings, refused.diagnostic)
        return parts, salvage(front, line)
    findings += parts.findings
    return parts, reading


def _repaired(parts: Split, findings: list[Diagnostic]) -> YamlReading:
    """Parse front matter without `---` lines, and repair it if needed. Raises `YamlRefused`."""
    findings += parts.findings
    if parts.front is None:
        return YamlReading()
    try:
        return read_mapping(parts.front, parts.front_line)
    except Broken:
        return repair(parts.front, parts.front_line)


def _size(front: str, limit: int) -> int:
    """Return the size of ``front`` in bytes.

    If it has more characters than the limit, in characters.
    """
    if len(front) > limit or len(front) * 4 <= limit:
        return len(front)
    return len(front.encode())


def _complete(
    parts: Split, fields: dict[str, Any], folder_name: str, findings: list[Diagnostic]
) -> None:
    """Fill fields that the front matter doesn't have with values from the body."""
    body = parts.body
    template = Template()
    if has_template(body):
        template = read_template(body)
        fields["version"] = fields.get("version") or template.version
        fields["parameters"] = fields.get("parameters") or template.parameters
        if fields.get("created") is None and template.created:
            fields["created"] = parse_date(template.created)
            if fields["created"] is None:
                message = f"`**Created**` is not a date: `{printable(template.created, 40)}`"
                line = parts.body_line - 1 + (template.created_line or 1)
                fix = "write e.g. `2026-01-15T09:30:00Z`"
                findings.append(finding("date-unreadable", message, line, fix))
    if "name" not in fields:
        fields["name"] = template.name or folder_name
        if template.name is None or parts.front is not None:
            message = f"the skill has no name, so its name is `{printable(fields['name'], 40)}`"
            fix = "add `name:` to the front matter"
            findings.append(finding("name-missing", message, parts.front_line, fix))
    if "description" in fields:
        written = fields["description"]
        used = first_paragraph(body) if _PLACEHOLDER.fullmatch(written) else None
        if used:
            message = f"the description is a placeholder: `{printable(written, 40)}`"
            fix = "write what the skill does and when to use it"
            findings.append(finding("description-placeholder", message, parts.front_line, fix))
            fields["description"] = used
        return
    description = template.description
    if description is None or parts.front is not None:
        description = description or first_paragraph(body)
        code = "description-from-body"
        message = "the skill has no description; the first words of its body are used"
        if description is None:
            code = "description-missing"
            message = "the skill has no description, and no body to take one from"
        fix = "add `description:` with what the skill does and when to use it"
        findings.append(finding(code, message, parts.front_line, fix))
    fields["description"] = description or ""
