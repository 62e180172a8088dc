"""What all toolsets do alike: what they offer and to whom, and how arguments reach a contract."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from registry.db.audit_context import acts
from registry.toolsets.base import Context, Json, Tool
from registry.toolsets.schemas import Style, described, given, own


class Toolset(ABC):
    """A named set of tools that honours one contract: a subclass for each.

    What is returned belongs to the caller, who may change it.
    """

    name: ClassVar[str]

    def __init__(self, context: Context, tools: Sequence[Tool]) -> None:
        """Offer ``tools``, or those of them that only read, where the context wants no others."""
        offered = (tool for tool in tools if tool.read_only or not context.read_only)
        self._tools = {tool.name: tool for tool in offered}

    def tools(self) -> Sequence[Tool]:
        """Return the tools; descriptions may carry the skills as they are now."""
        return tuple(map(own, self._current()))

    def schemas(self, style: Style, *, strict: bool = False) -> list[Json]:
        """Return the tools as a framework takes them; see `described`.

        Raises `UsageProblem` for a style that there is not.
        """
        return [described(tool, style, strict=strict) for tool in self._current()]

    def call(self, tool: str, arguments: Any) -> Json:
        """Run one tool and return what its contract says, errors included: nothing is raised.

        ``arguments`` may be anything a model sends, also an object as JSON text; a blank text or
        null is an empty object, and null for an argument that is not required is as good as leaving
        it out. A wrong type, text that is not JSON, a missing key, an unknown one where the
        contract has no room for it, and a tool that is not offered are answered with the contract's
        own error.
        """
        offered = self._tools.get(str(tool))
        if offered is None:
            return self._unknown(tool)
        sent = _parsed(arguments) if isinstance(arguments, str) else arguments
        with acts(f"{self.name} {offered.name}"):
            return self._run(offered.name, given(offered.parameters, {} if sent is None else sent))

    async def acall(self, tool: str, arguments: Any) -> Json:
        """Run one tool as `call` does, in a thread, so that the event loop goes on meanwhile.

        A task that is cancelled waits no longer, but the call runs to its end: a change is made
        whole or not at all.
        """
        import asyncio

        return await asyncio.to_thread(self.call, tool, arguments)

    def _current(self) -> Sequence[Tool]:
        """Return the tools as they are described at this moment."""
        return tuple(self._tools.values())

    @abstractmethod
    def _unknown(self, tool: object) -> Json:
        """Return the contract's answer to the call of a tool that is not offered."""

    @abstractmethod
    def _run(self, tool: str, arguments: Any) -> Json:
        """Run a tool that is offered; ``arguments`` are not checked."""


def _parsed(text: str) -> Any:
    """Return what a JSON text says, or the text itself where it is none."""
    try:
        return json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text
