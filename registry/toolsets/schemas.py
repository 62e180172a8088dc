"""Tools as frameworks take them: the same JSON Schema in the envelope of each."""

from typing import Any, Final

from registry.toolsets.base import Json, Tool

STYLES: Final = ("openai", "anthropic", "mcp")


def described(tool: Tool, style: str) -> Json:
    """Return a tool as the APIs of OpenAI or Anthropic, or MCP's tools/list, have it."""
    about: Json = {"name": tool.name, "description": tool.description}
    if style == "openai":
        return {"type": "function", "function": {**about, "parameters": tool.parameters}}
    if style == "anthropic":
        return {**about, "input_schema": tool.parameters}
    entry: Json = {
        **about,
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
