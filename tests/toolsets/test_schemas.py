"""The tools as frameworks take them: what their public documents, and their converters, accept.

The rules are written down here one by one, so that a schema which breaks one names it:

- OpenAI, "Structured Outputs", "Supported schemas": the root is an object; every object has
  ``additionalProperties: false`` and requires all its properties; what is optional is a union with
  null (``anyOf``, as pydantic has it: of a list of types not all frameworks know); ``default`` is
  refused; at most 5 levels of objects and 5,000 properties.
- Anthropic, "Strict tool use": the same shape; bounds of numbers and lengths of texts are refused.
- Gemini API, `Schema`: a part of OpenAPI 3.0; one ``type``, ``nullable``, an ``enum`` only of
  texts, no empty object; any other field is refused, and with it the request.
- MCP, tools/list: ``inputSchema`` is a JSON Schema of an object; clients hand it on to any of the
  above.
"""

import json
import re

import jsonschema
import pytest

from registry.api import SkillRegistry
from registry.errors import UsageProblem
from registry.settings import Settings
from registry.toolsets.open import TOOLSETS
from registry.toolsets.schemas import STYLES
from tests.conftest import keep_library, write_skill

KEYS = {"type", "description", "enum", "properties", "required", "items"}
STRICT_KEYS = KEYS | {"additionalProperties"}
GEMINI_KEYS = KEYS | {"nullable", "minimum", "maximum"}
NAMES = {"openai": "function", "anthropic": "input_schema", "mcp": "inputSchema"}


@pytest.fixture(scope="module")
def kept(new_database, tmp_path_factory):
    """One skill, which is only read."""

    def fill(root):
        write_skill(root / "haiku", description="Write a haiku.")

    return keep_library(new_database(), tmp_path_factory.mktemp("kept"), fill)


@pytest.fixture(scope="module")
def kept_library(kept):
    with SkillRegistry.open(kept.database, settings=Settings()) as registry:
        yield registry


@pytest.fixture
def library(request):
    """The module's, made when this test has a home of its own."""
    return request.getfixturevalue("kept_library")


@pytest.fixture
def toolsets(library):
    return {name: library.toolset(name) for name in TOOLSETS}


def parameters(entry, style):
    """Return the schema of the arguments in an entry of a style, None where it has none."""
    if style == "openai":
        return entry["function"]["parameters"]
    return entry.get({"gemini": "parameters"}.get(style, NAMES.get(style)))


def is_nullable(schema):
    """Tell whether a schema is another one or null, as pydantic writes it."""
    others = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    assert "anyOf" not in schema or len(others) == len(schema["anyOf"]) - 1 == 1
    return "anyOf" in schema


def parts(schema, depth=1):
    """Yield a schema and all schemas in it, with how deep they are; of a choice what is no null."""
    if is_nullable(schema):
        assert set(schema) <= {"anyOf", "description"}
        schema = schema["anyOf"][0]
    yield schema, depth
    for one in schema.get("properties", {}).values():
        yield from parts(one, depth + 1)
    if "items" in schema:
        yield from parts(schema["items"], depth)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from parts(schema["additionalProperties"], depth + 1)


def each(toolset, style, *, strict=False):
    """Yield every part of every schema of a toolset, with the tool's name and the depth."""
    for entry in toolset.schemas(style, strict=strict):
        schema = parameters(entry, style)
        name = entry.get("name") or entry["function"]["name"]
        for part, depth in () if schema is None else parts(schema):
            yield name, part, depth


EVERY = [(style, strict) for style in STYLES for strict in (False, True)]


@pytest.mark.parametrize(("style", "strict"), EVERY)
class TestEveryStyle:
    def test_it_is_json_schema_of_an_object_and_json(self, toolsets, style, strict):
        for name, toolset in toolsets.items():
            entries = toolset.schemas(style, strict=strict)
            assert entries, name
            assert json.loads(json.dumps(entries, allow_nan=False)) == entries, name
            for entry in entries:
                schema = parameters(entry, style)
                if schema is None:
                    assert style == "gemini"
                    continue
                jsonschema.Draft202012Validator.check_schema(schema)
                assert schema["type"] == "object", entry

    def test_every_value_has_a_type_and_every_name_is_one_that_all_take(
        self, toolsets, style, strict
    ):
        for toolset in toolsets.values():
            for tool, part, _ in each(toolset, style, strict=strict):
                assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", tool)
                assert isinstance(part.get("type"), str), (tool, part)
                for key in part.get("properties", {}):
                    assert re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", key)
                if part["type"] == "array":
                    assert "items" in part

    def test_what_is_returned_is_the_callers_own(self, toolsets, style, strict):
        for name, toolset in toolsets.items():
            before = json.dumps(toolset.schemas(style, strict=strict))
            entries = toolset.schemas(style, strict=strict)
            for entry in entries:
                spoil(entry)
            assert json.dumps(entries) != before, name
            assert json.dumps(toolset.schemas(style, strict=strict)) == before, name


def spoil(value):
    """Change every object and list in a value."""
    for inner in list(value.values() if isinstance(value, dict) else value):
        if isinstance(inner, dict | list):
            spoil(inner)
    if isinstance(value, dict):
        value["spoilt"] = True
    else:
        value.append("spoilt")


@pytest.mark.parametrize("name", TOOLSETS)
def test_the_tools_are_the_callers_own(library, toolsets, name):
    before = [(one.parameters, one.result, one.meta) for one in toolsets[name].tools()]
    kept = json.dumps(before)
    for facts in before:
        for value in facts:
            if value is not None:
                spoil(value)
    for toolset in (toolsets[name], library.toolset(name)):
        again = [(one.parameters, one.result, one.meta) for one in toolset.tools()]
        assert json.dumps(again) == kept


@pytest.mark.parametrize("name", TOOLSETS)
@pytest.mark.parametrize("style", ["openai", "anthropic", "mcp"])
class TestPlain:
    def test_nothing_is_said_of_other_properties_and_nothing_is_a_choice(
        self, toolsets, name, style
    ):
        for entry in toolsets[name].schemas(style):
            assert "anyOf" not in json.dumps(parameters(entry, style))
        for tool, part, _ in each(toolsets[name], style):
            if style != "openai":
                assert "additionalProperties" not in part, tool
            assert part.get("additionalProperties", False) is False, tool


def test_closed_objects_are_served_as_closed_in_the_style_openai(toolsets):
    for name in TOOLSETS:
        closed = {
            tool.name: "additionalProperties" in tool.parameters for tool in toolsets[name].tools()
        }
        served = {
            entry["function"]["name"]: "additionalProperties" in entry["function"]["parameters"]
            for entry in toolsets[name].schemas("openai")
        }
        assert served == closed
    (skill,) = toolsets["wave"].schemas("openai")
    assert skill["function"]["parameters"]["additionalProperties"] is False


@pytest.mark.parametrize("name", TOOLSETS)
@pytest.mark.parametrize("style", ["openai", "anthropic", "mcp"])
class TestStrict:
    def test_objects_are_closed_and_all_their_properties_required(self, toolsets, name, style):
        seen = 0
        for tool, part, depth in each(toolsets[name], style, strict=True):
            assert set(part) <= STRICT_KEYS, (tool, part)
            assert depth <= 5
            if part["type"] == "object":
                assert part["additionalProperties"] is False
                assert part["required"] == list(part["properties"])
                seen += 1
        assert seen

    def test_what_is_optional_may_be_null_and_nothing_else_may(self, toolsets, name, style):
        required = {
            tool.name: tool.parameters.get("required", []) for tool in toolsets[name].tools()
        }
        for entry in toolsets[name].schemas(style, strict=True):
            tool = entry.get("name") or entry["function"]["name"]
            for key, part in parameters(entry, style)["properties"].items():
                assert is_nullable(part) == (key not in required[tool]), (tool, key)
                for inner, _ in parts(part):
                    assert None not in inner.get("enum", ())

    def test_the_mode_is_named_where_the_api_has_a_key_for_it(self, toolsets, name, style):
        for entry in toolsets[name].schemas(style, strict=True):
            marked = entry["function"] if style == "openai" else entry
            assert marked.get("strict") == (None if style == "mcp" else True)
        for entry in toolsets[name].schemas(style):
            assert "strict" not in (entry["function"] if style == "openai" else entry)


@pytest.mark.parametrize("name", TOOLSETS)
@pytest.mark.parametrize("strict", [False, True])
class TestGemini:
    def test_only_what_its_schema_has_is_said(self, toolsets, name, strict):
        for tool, part, _ in each(toolsets[name], "gemini", strict=strict):
            assert set(part) <= GEMINI_KEYS, (tool, part)
            assert isinstance(part["type"], str)
            if "enum" in part:
                assert part["type"] == "string"
                assert all(isinstance(one, str) and one for one in part["enum"])
            if part["type"] == "object":
                assert part["properties"], tool
                assert set(part.get("required", ())) <= set(part["properties"])

    def test_what_is_optional_is_nullable(self, toolsets, name, strict):
        for _, part, _ in each(toolsets[name], "gemini", strict=strict):
            for key, one in part.get("properties", {}).items():
                if key not in part.get("required", ()):
                    assert one["nullable"] is True


@pytest.mark.parametrize("style", ["openai", "gemini"])
def test_what_a_shape_cannot_say_stands_in_the_description(toolsets, style):
    entries = toolsets["native"].schemas(style, strict=True)
    listing = next(one for one in entries if "list_skills" in json.dumps(one)[:80])
    told = parameters(listing, style)["properties"]["limit"]["description"]
    assert "default: 20" in told
    assert ("most: 200" in told) == (style == "openai")


def test_a_style_that_there_is_not_is_refused(toolsets):
    with pytest.raises(UsageProblem, match="known styles: openai, anthropic, mcp, gemini"):
        toolsets["native"].schemas("cohere")
