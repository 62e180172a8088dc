"""Tool schemas for frameworks, and conversion of the arguments that models send for them.

Each API accepts a different subset of JSON Schema, and refuses tools whose schemas use other
features. The rules come from the documentation of the APIs: OpenAI, "Structured Outputs",
"Supported schemas"; Anthropic, "Strict tool use"; Google, `Schema` of the Gemini API.
"""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from registry.errors import UsageProblem

Json: TypeAlias = dict[str, Any]
"""A JSON object: a schema, arguments or a result."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as a model sees it.

    ``parameters`` is the JSON Schema of its arguments. ``result`` is the JSON Schema of its result,
    if the contract defines a result. ``meta`` has other data from the contract. The hints have the
    meaning that MCP gives them, and describe the effect of a call.
    """

    name: str
    description: str
    parameters: Json
    result: Json | None = None
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    meta: Json = field(default_factory=dict)


TYPES: Final = ("string", "number", "boolean", "array", "object")
"""The types that a skill's parameter can have."""


def schema(properties: Mapping[str, Json], required: Sequence[str] = ()) -> Json:
    """Return the JSON Schema of an object with these properties."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def text(about: str) -> Json:
    """Return the JSON Schema of a text."""
    return {"type": "string", "description": about}


Style: TypeAlias = Literal["openai", "anthropic", "mcp", "gemini"]
STYLES: Final[tuple[str, ...]] = get_args(Style)

PAIR: Final = ("path", "content")
"""The keys of an item, if a list of items replaces an object with arbitrary keys."""


_OTHERS: Final = ("additionalProperties",)


def described(tool: Tool, style: str, *, strict: bool = False) -> Json:
    """Return a tool for the API of OpenAI, Anthropic or Gemini, or for MCP's tools/list.

    ``strict`` means the form for the strict modes of OpenAI and Anthropic. In this form, all
    properties are required, optional properties may be null, and objects allow no other properties.
    A list of ``{"path", "content"}`` replaces an object with arbitrary keys (``files``). Raises
    `UsageProblem` for an unknown style.
    """
    if style not in STYLES:
        known = ", ".join(STYLES)
        raise UsageProblem(message=f"there is no schema style '{style}'; known styles: {known}")
    about: Json = {"name": tool.name, "description": tool.description}
    if style == "gemini":
        parameters = gemini_schema(tool.parameters)
        # Gemini doesn't accept an object without properties, but it accepts a tool without
        # `parameters`.
        return {**about, "parameters": parameters} if parameters["properties"] else about
    plain = plain_schema(tool.parameters, closed=style == "openai")
    parameters = strict_schema(tool.parameters) if strict else plain
    marked = {"strict": True} if strict else {}
    if style == "openai":
        return {"type": "function", "function": {**about, "parameters": parameters, **marked}}
    if style == "anthropic":
        return {**about, "input_schema": parameters, **marked}
    entry: Json = {
        **about,
        "inputSchema": parameters,
        "annotations": {
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
    }
    if tool.result is not None:
        entry["outputSchema"] = deepcopy(tool.result)
    if tool.meta:
        entry["_meta"] = deepcopy(tool.meta)
    return entry


def own(tool: Tool) -> Tool:
    """Return a tool with copies of its schemas, so that the caller may change them."""
    return replace(
        tool,
        parameters=deepcopy(tool.parameters),
        result=deepcopy(tool.result),
        meta=deepcopy(tool.meta),
    )


def plain_schema(schema: Json, *, closed: bool) -> Json:
    """Return a schema that all converters accept.

    Each value has one type, and there is no ``additionalProperties``. `Toolset.call` still refuses
    unknown properties. If ``closed``, keep ``"additionalProperties": false``, which OpenAI's API
    accepts.
    """
    left_out = () if closed and schema.get("additionalProperties") is False else _OTHERS
    done = {key: deepcopy(schema[key]) for key in schema if key not in left_out}
    if "properties" in done:
        inner = done["properties"].items()
        done["properties"] = {name: plain_schema(one, closed=closed) for name, one in inner}
    if "items" in done:
        done["items"] = plain_schema(done["items"], closed=closed)
    return done | _type(schema)


def strict_schema(schema: Json, *, optional: bool = False) -> Json:
    """Return the schema in the form for the strict modes of model APIs.

    If ``optional``, the value may be null. The description states minimum, maximum and default,
    because this form has no keys for them.
    """
    schema = _as_pairs(schema)
    description = _description(schema, bounds=True)
    done: Json = {"type": _types(schema)[0]}
    if "enum" in schema:
        done["enum"] = [*schema["enum"]]
    if "properties" in schema:
        required = schema.get("required", ())
        done["properties"] = {
            name: strict_schema(one, optional=name not in required)
            for name, one in schema["properties"].items()
        }
        done |= {"required": list(schema["properties"]), "additionalProperties": False}
    if "items" in schema:
        done["items"] = strict_schema(schema["items"])
    if optional or "null" in _types(schema):
        # Pydantic writes optional values in this form, and all clients know it. Some clients don't
        # know a list of types.
        return {"anyOf": [done, {"type": "null"}], **description}
    return {**done, **description}


def gemini_schema(schema: Json, *, optional: bool = False) -> Json:
    """Return the schema for Gemini's function declarations, which are a subset of OpenAPI."""
    schema = _as_pairs(schema)
    kept = ("enum", "minimum", "maximum")
    done: Json = {key: deepcopy(schema[key]) for key in kept if key in schema}
    required = schema.get("required", ())
    if "properties" in schema:
        done["properties"] = {
            name: gemini_schema(one, optional=name not in required)
            for name, one in schema["properties"].items()
        }
    if required:
        done["required"] = list(required)
    if "items" in schema:
        done["items"] = gemini_schema(schema["items"])
    if optional or "null" in _types(schema):
        done["nullable"] = True
    return {**_type(schema), **_description(schema, bounds=False), **done}


def given(schema: Json, sent: Any) -> Any:
    """Convert arguments from strict modes to the tool's own form.

    Null values of optional arguments are removed. Lists of pairs become objects. Values that don't
    match the schema stay unchanged.
    """
    if isinstance(sent, list):
        if "items" in schema:
            return [given(schema["items"], one) for one in sent]
        return _from_pairs(sent) if _is_map(schema) else sent
    if not isinstance(sent, Mapping) or "properties" not in schema:
        return sent
    known, required = schema["properties"], schema.get("required", ())
    return {
        key: given(known.get(key, {}), value)
        for key, value in sent.items()
        if value is not None or key not in known or key in required
    }


def is_error(answer: Any) -> bool:
    """Tell whether the answer of any toolset is an error."""
    return bool(answer.get("error")) or answer.get("success") is False or answer.get("ok") is False


def _types(schema: Json) -> list[str]:
    kinds = schema["type"]
    return kinds if isinstance(kinds, list) else [kinds]


def _type(schema: Json) -> Json:
    return {"type": _types(schema)[0]}


def _description(schema: Json, *, bounds: bool) -> Json:
    """Return the description of a schema as a mapping.

    The description includes minimum, maximum and default, if the schema can't express them.
    """
    text = schema.get("description", "")
    notes = [
        f"{word}: {json.dumps(schema[key])}"
        for key, word in (("minimum", "least"), ("maximum", "most"), ("default", "default"))
        if key in schema and (bounds or key == "default")
    ]
    description = f"{text} ({', '.join(notes)})".lstrip() if notes else text
    return {"description": description} if description else {}


def _is_map(schema: Json) -> bool:
    """Tell whether a schema describes an object with arbitrary keys."""
    return "properties" not in schema and isinstance(schema.get("additionalProperties"), dict)


def _as_pairs(schema: Json) -> Json:
    if not _is_map(schema):
        return schema
    key, value = PAIR
    pair = {key: {"type": "string"}, value: schema["additionalProperties"]}
    entry = {"type": "object", "properties": pair, "required": list(PAIR)}
    return {"type": "array", "description": schema.get("description", ""), "items": entry}


def _from_pairs(sent: list[Any]) -> Any:
    """Convert a list of pairs to an object; return any other list unchanged."""
    key, value = PAIR
    if not all(isinstance(one, Mapping) and set(one) == set(PAIR) for one in sent):
        return sent
    if not all(isinstance(one[key], str) for one in sent):
        return sent
    found = {one[key]: one[value] for one in sent}
    return found if len(found) == len(sent) else sent
