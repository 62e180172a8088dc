"""All toolsets by name, each in a module of its own, imported when it is asked for."""

import difflib
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Final

from registry.errors import ToolsetNotFound
from registry.toolsets.base import Context, Tool, Toolset

TOOLSETS: Final = ("native", "basic", "miniclaw", "ethos", "wave")


def open_toolset(name: str, context: Context) -> Toolset:
    """Return a toolset for what the context is limited to.

    Raises `ToolsetNotFound`, and what the toolset needs: `SourceUnclear`, `SourceNotFound`,
    `PersonalityNotFound`.
    """
    toolset: Toolset = getattr(_module(name), f"{name.title()}Toolset")(context)
    return toolset


def tools_of(name: str) -> Sequence[Tool]:
    """Return the tools of a toolset. Raises `ToolsetNotFound`."""
    tools: Sequence[Tool] = _module(name).TOOLS
    return tools


def _module(name: str) -> ModuleType:
    if name not in TOOLSETS:
        near = difflib.get_close_matches(name, TOOLSETS, n=1, cutoff=0.4)
        raise ToolsetNotFound(name=name, similar=near, known=TOOLSETS)
    return import_module(f"registry.toolsets.{name}")
