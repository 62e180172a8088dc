"""Tools as frameworks take them: the same JSON Schema in the envelope of each."""

from typing import Any, Final, Literal, TypeAlias

from registry.toolsets.base import Json, Tool

Style: TypeAlias = Literal["openai", "anthropic", "mcp"]
STYLES: Final = ("openai", "anthropic", "mcp")


def described(tool: Tool, style: str) -> Json:
    """Return a tool as the APIs of OpenAI or Anthropic, or MCP's tools/list, have it."""
    if style == "openai":
        function = {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        }
        return {"type": "function", "function": function}
    if style == "anthropic":
        return {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.parameters,
        }
    return _for_mcp(tool)


def _for_mcp(tool: Tool) -> Json:
    entry: Json = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.parameters,
        "annotations": {
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
    }
    if tool.result is not None:
        entry["outputSchema"] = tool.result
    if tool.meta:
        entry["_meta"] = tool.meta
    return entry


def is_error(answer: Any) -> bool:
    """Tell whether an answer, of whichever contract, is an error."""
    return bool(answer.get("error")) or answer.get("success") is False or answer.get("ok") is False
