"""What a toolset is: tools as a model sees them, and one way to call them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

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
