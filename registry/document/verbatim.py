"""Front matter as JSON, just as another reader of YAML would have it (SEP-2640, `frontmatter`).

The registry itself keeps every scalar's text (`yaml_text`); clients compare with a parser of their
own, by YAML 1.2's core schema, in which dates and `yes` are texts.
"""

import math
import re
from functools import cache
from typing import Any, Final

from registry.document.frontmatter import split
from registry.model import JsonValue

_SCALARS: Final = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"null|Null|NULL|~|", "nN~\0"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
)


def front_matter_json(text: str) -> dict[str, JsonValue] | None:
    """Return the front matter of a skill file that can be used, or None if it is not valid YAML.

    Such a file has no aliases and no deep nesting: `parse_document` refuses them. The text may be
    a server's row, which whoever writes there may have put: aliases are refused here as well.
    """
    return _load(text, _loader())


def scalar_texts(text: str) -> dict[str, JsonValue]:
    """Return the same with every scalar as the text it is written as; empty if it is not valid."""
    import yaml

    return _load(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader)) or {}


def _load(text: str, loader: Any) -> dict[str, JsonValue] | None:
    import yaml

    front = split(text).front
    if front is None:
        return None
    try:
        values = yaml.load(front, Loader=loader)  # noqa: S506  # safe loaders with fewer types
        return _json(values, set()) if isinstance(values, dict) else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _json(value: Any, seen: set[int]) -> Any:
    """Return a value as JSON has it. Raises ValueError for one that an alias repeats."""
    if isinstance(value, dict | list):
        if id(value) in seen:  # a few lines of aliases stand for more than any memory holds
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
