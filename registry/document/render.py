"""Make a new SKILL.md that every client can load, the strict ones too.

The fields of the specification stand at the top, everything else as texts below `metadata`
(CONVENTIONS.md, "Writing"). What was written is read again before it is returned.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from registry.document import shapes, tables
from registry.document.dates import parse_date
from registry.document.parse import parse_text
from registry.document.scalars import quoted, scalar, tag_text, tag_words, text_value
from registry.document.sections import safe_text, with_parameters
from registry.model import Parameter
from registry.text import is_encodable

FIRST_VERSION: Final = "1.0.0"


def render_document(
    *,
    name: str,
    description: str,
    body: str = "",
    tags: Iterable[str] = (),
    kind: str | None = None,
    version: str | None = FIRST_VERSION,
    created_at: str | None = None,
    parameters: Sequence[Parameter] = (),
) -> str:
    """Return the text of a new SKILL.md.

    ``parameters`` become a Markdown table below `## Parameters` in the body. Control characters
    are left out, and spaces at the edges. Raises ValueError, with the reason in words, for what
    can't be read back as it was given.
    """
    text = body.strip("\r\n")
    text = with_parameters(text, parameters, "\n") if parameters else text
    facts = {"version": version, "tags": tag_words(tags), "kind": kind and shapes.one_text(kind)}
    given = {key: value for key, value in facts.items() if value}
    wanted = {"name": shapes.clean_line(name), "description": prose_text(description), **given}
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
    """Return the text of a new SKILL.md by miniclaw's contract, with front matter above it.

    What the Markdown can't hold exactly, as a heading in the description, is escaped there; the
    front matter counts. Raises ValueError as `render_document` does.
    """
    facts = {"version": FIRST_VERSION, "created": _moment(created_at)}
    result = (
        _front(name, description, {"version": FIRST_VERSION, "created_at": facts["created"]})
        + f"\n# Skill: {name}\n\n"
        f"## Description\n{safe_text(prose_text(description))}\n\n"
        f"## Parameters\n{tables.table(parameters)}\n\n"
        "## Implementation\n" + implementation.strip("\r\n") + "\n\n"
        f"## Metadata\n- **Created**: {facts['created']}\n- **Version**: {FIRST_VERSION}\n"
    )
    wanted = {"name": shapes.clean_line(name), "description": prose_text(description), **facts}
    _check(result, wanted, parameters)
    return result


def prose_text(text: str) -> str:
    """Return a description as it is read back: without control characters, edges trimmed."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return shapes.CONTROL.sub("", text).strip()


def _front(name: str, description: str, metadata: Mapping[str, object]) -> str:
    """Return front matter with what is not empty; tags are quoted, as they may look like a list."""
    lines = [f"name: {scalar(shapes.clean_line(name))}"]
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
    """Read ``text`` and raise ValueError for the first field that doesn't come back."""
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
            raise ValueError(f"the {field} would not be read back as given")
    if parameters and not tables.same(document.parameters, parameters):
        raise ValueError("the parameters can't be written as a table that reads back")
