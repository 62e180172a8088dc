"""What a toolset is: tools as a model sees them, and one way to call them.

A contract is a file of its own; what all of them share is here.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from registry.core import Core
from registry.model import Parameter, Scope
from registry.text import shorten

Json: TypeAlias = dict[str, Any]
"""A JSON object; schemas, arguments and results are such."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as a model sees it; ``parameters`` is a JSON Schema of its arguments.

    ``result`` is the JSON Schema of what it returns, where the contract has one; ``meta`` what else
    the contract says of the tool. The hints are MCP's: what calling the tool does to the world.
    """

    name: str
    description: str
    parameters: Json
    result: Json | None = None
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    meta: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Context:
    """What a toolset is bound to; toolsets use what their contract knows of.

    ``source``: the one source that is shown and written to; contracts that know a single skills
    folder need one. ``scope``: the one scope that is shown. ``personality``: the visibility policy,
    by its name in the settings. ``environ``: the variables that skills may need. Of projects it
    shows what ``core`` sees from where it is. ``read_only``: only tools that change nothing.
    """

    core: Core
    source: str | None = None
    scope: Scope | None = None
    personality: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    read_only: bool = False


MAX_SHOWN: Final = 200
"""Characters of what a model sent that an answer repeats."""


TYPES: Final = ("string", "number", "boolean", "array", "object")
"""What a parameter of a skill may be."""


def schema(properties: Mapping[str, Json], required: Sequence[str] = ()) -> Json:
    """Return the JSON Schema of an object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def text(about: str) -> Json:
    """Return the JSON Schema of a text."""
    return {"type": "string", "description": about}


def parameter(name: str, entry: Mapping[str, Any]) -> Parameter:
    """Return a skill's parameter; what ``entry`` does not say has its usual value."""
    return Parameter(
        name=name,
        type=entry.get("type", TYPES[0]),
        description=entry.get("description", ""),
        required=entry.get("required", False),
        default=entry.get("default"),
    )


def shown(value: object) -> str:
    """Return what a model sent, as an answer repeats it: encodable, and not for pages."""
    try:
        text = "" if value is None else str(value)
    except RecursionError:
        text = "\N{HORIZONTAL ELLIPSIS}"
    return shorten(text, MAX_SHOWN).encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Return ``text`` on one line, for lists that have a line for each skill."""
    if text.isprintable():  # as nearly all are: six times as fast
        return text
    return " ".join(text.split())
