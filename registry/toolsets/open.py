"""All toolsets by name, each in a module of its own."""

import difflib
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, cast

from registry.errors import ToolsetNotFound
from registry.toolsets.context import Context, Tool, Toolset

if TYPE_CHECKING:
    from registry.api import SkillRegistry
    from registry.toolsets.context import Factory

TOOLSETS: Final = ("native", "basic", "miniclaw", "ethos", "wave")


def open_toolset(registry: "SkillRegistry", name: str, **limits: Any) -> Toolset:
    """Return a toolset for what `Context` is limited to.

    Raises `ToolsetNotFound`, and what the toolset needs: `SourceUnclear`, `SourceNotFound`,
    `PersonalityNotFound`.
    """
    if name not in TOOLSETS:
        near = difflib.get_close_matches(name, TOOLSETS, n=1, cutoff=0.4)
        raise ToolsetNotFound(name=name, similar=near, known=TOOLSETS)
    make = cast("Factory", import_module(f"registry.toolsets.{name}").make)
    return make(Context(registry, **limits))


def tools_of(name: str) -> Sequence[Tool]:
    """Return the tools of a toolset without a registry, so without a list of its skills."""
    tools: Sequence[Tool] = import_module(f"registry.toolsets.{name}").TOOLS
    return tools
