"""What all toolsets share: how a tool is described and called. A contract is a file of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from registry.service import SkillRegistry

Json: TypeAlias = dict[str, Any]
"""A JSON object; schemas, arguments and results are such."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool as a model sees it; ``parameters`` is a JSON Schema of its arguments.

    The hints are MCP's: what calling the tool does to the world.
    """

    name: str
    description: str
    parameters: Json
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True


@dataclass(frozen=True, slots=True)
class Context:
    """What a toolset is bound to; toolsets use what their contract knows of.

    ``source``: the one source of contracts that know a single skills folder. ``personality``: the
    visibility policy, by its name in the settings. ``workdir``: the project of contracts that
    tell project skills from personal ones.
    """

    registry: "SkillRegistry"
    source: str | None = None
    personality: str | None = None
    workdir: str | None = None


class Toolset(Protocol):
    """A named set of tools that honours one contract."""

    name: str

    def tools(self) -> Sequence[Tool]:
        """Return the tools; descriptions may carry the skills as they are now."""

    def call(self, tool: str, arguments: Any) -> Json:
        """Run one tool and return what its contract says, errors included: nothing is raised.

        ``arguments`` may be anything a model sends: a wrong type, a missing or unknown key or a
        tool that does not exist is answered with the contract's own error.
        """


Factory: TypeAlias = Callable[[Context], Toolset]


def schema(properties: Mapping[str, Json], required: Sequence[str] = ()) -> Json:
    """Return the JSON Schema of an object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}
