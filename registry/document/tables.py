"""Parameters as the Markdown table of miniclaw's contract, written so that it reads back exactly.

A cell escapes `|` and `<br>` by a backslash, and a line break is `<br>`. A default is JSON where
it has to be, in a code span; of a parameter of type `string` it is text unless in JSON's quotes.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

from registry.document.shapes import CONTROL
from registry.model import JsonValue, Parameter

NO_PARAMETERS: Final = "None."
COLUMNS: Final = ("Name", "Type", "Required", "Description", "Default")

_BREAK: Final = re.compile(r"(\\*)(\n|<br ?/?>)", re.IGNORECASE)
_LINE_END: Final = re.compile("\r\n|[\n\r\u2028\u2029]")
_NO_DEFAULT: Final = frozenset({"", "-", "\u2013", "\u2014", "none", "n/a", "null"})


def cell(text: str) -> str:
    """Return ``text`` as a cell of a Markdown table, all on one line."""
    return _BREAK.sub(_write_break, clean(text)).replace("|", "\\|")


def with_breaks(text: str) -> str:
    """Return ``text`` of a cell, its bars read already, with each `<br>` as a line break."""
    return _BREAK.sub(_read_break, text)


def default_cell(parameter: Parameter) -> str:
    """Return the cell of a parameter's default; raises ValueError for what the type is not."""
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
    """Return the default that ``text``, without marks of Markdown, is for ``parameter``."""
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
    """Return ``text`` as a parameter can have it: single line ends, no control characters."""
    return CONTROL.sub("", _LINE_END.sub("\n", text)).strip()


def table(parameters: Iterable[Parameter], newline: str = "\n") -> str:
    """Return the table of ``parameters`` without a line end behind it, or words where none are."""
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


def same(found: Sequence[Parameter], wanted: Sequence[Parameter]) -> bool:
    """Tell whether ``found``, read from a document, are the parameters that were ``wanted``.

    A reader that leaves cells and defaults as their text has read them well.
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
    """Double the backslashes before a break; one more keeps a `<br>` of the text from being one."""
    return match[1] * 2 + ("<br>" if match[2] == "\n" else "\\" + match[2])


def _read_break(match: re.Match[str]) -> str:
    kept = "\\" * (len(match[1]) // 2)
    return kept + (match[2] if len(match[1]) % 2 else "\n")


def _no_constant(name: str) -> JsonValue:
    raise ValueError(name)
