"""What all toolsets share: how a tool is described and called. A contract is a file of its own."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from registry.model import Scope
from registry.toolsets.base import Json, Tool, Toolset

if TYPE_CHECKING:
    from registry.api import SkillRegistry

__all__ = ["Context", "Factory", "Json", "Tool", "Toolset", "one_line", "schema", "shown"]


@dataclass(frozen=True, slots=True)
class Context:
    """What a toolset is bound to; toolsets use what their contract knows of.

    ``source``: the one source that is shown and written to; contracts that know a single skills
    folder need one. ``scope``: the one scope that is shown. ``personality``: the visibility policy,
    by its name in the settings. ``workdir``: the folder of the project whose skills are shown;
    without it those of all projects are. ``environ``: the variables that skills may need.
    """

    registry: "SkillRegistry"
    source: str | None = None
    scope: Scope | None = None
    personality: str | None = None
    workdir: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)


Factory: TypeAlias = Callable[[Context], Toolset]

MOST_SHOWN: Final = 200
"""Characters of what a model sent that an answer repeats."""


def schema(properties: Mapping[str, Json], required: Sequence[str] = ()) -> Json:
    """Return the JSON Schema of an object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def shown(value: object) -> str:
    """Return what a model sent, as an answer repeats it: encodable, and not for pages."""
    text = "" if value is None else str(value)
    text = text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + "\u2026"
    return text.encode("utf-8", "replace").decode()


def one_line(text: str) -> str:
    """Return ``text`` on one line, for lists that have a line for each skill."""
    if text.isprintable():  # as nearly all are: six times as fast
        return text
    return " ".join(text.split())
