"""All toolsets by name.

A toolset's module is imported when the toolset is first used.
"""

import difflib
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from registry.errors import ToolsetNotFound
from registry.toolsets.base import Context, Toolset
from registry.toolsets.schemas import Tool

TOOLSETS: Final = ("native", "basic", "miniclaw", "ethos", "wave")

Definition: TypeAlias = tuple[Callable[[Context], Toolset], Sequence[Tool]]
"""The class of a toolset, and its tools, with descriptions that don't contain skills."""


def open_toolset(name: str, context: Context) -> Toolset:
    """Return the toolset with this name and the limits of the context.

    Raises `ToolsetNotFound`, `SourceUnclear`, `SourceNotFound`, `PersonalityNotFound`.
    """
    make, _ = _definition(name)
    return make(context)


def tools_of(name: str) -> Sequence[Tool]:
    """Return the tools of a toolset. Raises `ToolsetNotFound`."""
    return _definition(name)[1]


def _definition(name: str) -> Definition:
    match name:
        case "native":
            from registry.toolsets import native

            return native.NativeToolset, native.TOOLS
        case "basic":
            from registry.toolsets import basic

            return basic.BasicToolset, basic.TOOLS
        case "miniclaw":
            from registry.toolsets import miniclaw

            return miniclaw.MiniclawToolset, miniclaw.TOOLS
        case "ethos":
            from registry.toolsets import ethos

            return ethos.EthosToolset, ethos.TOOLS
        case "wave":
            from registry.toolsets import wave

            return wave.WaveToolset, wave.TOOLS
    near = difflib.get_close_matches(name, TOOLSETS, n=1, cutoff=0.4)
    raise ToolsetNotFound(name=name, similar=near, known=TOOLSETS)
