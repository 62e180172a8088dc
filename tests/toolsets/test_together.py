"""All toolsets on one registry: what one makes, the others list and read."""

import json

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.errors import PersonalityNotFound, SourceNotFound, SourceUnclear, ToolsetNotFound
from registry.toolsets.open import TOOLSETS, tools_of

MAKERS = {
    "python": lambda registry, name: registry.create(
        name, description="Says hello.", body="# Hi\n"
    ),
    "native": lambda registry, name: registry.toolset("native").call(
        "create_skill", {"name": name, "description": "Says hello.", "body": "# Hi\n"}
    ),
    "miniclaw": lambda registry, name: registry.toolset("miniclaw").call(
        "create_skill", {"name": name, "description": "Says hello.", "implementation": "# Hi"}
    ),
}

READERS = {
    "native": (
        lambda answer: [skill["ref"] for skill in answer["skills"]],
        lambda name: ("read_skill", {"name": name}),
        lambda answer: answer["body"],
    ),
    "basic": (
        lambda answer: answer["skills"],
        lambda name: ("get_skill", {"skill_name": name}),
        lambda answer: answer["documentation"],
    ),
    "miniclaw": (
        lambda answer: [skill["name"] for skill in answer["skills"]],
        lambda name: ("read_skill", {"name": name}),
        lambda answer: answer["content"],
    ),
    "ethos": (
        lambda answer: [
            line.split("**")[1] for line in answer["value"].splitlines() if "**" in line
        ],
        lambda name: ("skill_view", {"name": name}),
        lambda answer: answer["value"],
    ),
    "wave": (
        None,
        lambda name: ("Skill", {"skill_name": name}),
        lambda answer: answer["content"],
    ),
}


@pytest.mark.parametrize(
    "maker", ["python", pytest.param("native", marks=pytest.mark.both), "miniclaw"]
)
@pytest.mark.parametrize("reader", READERS)
def test_what_one_makes_the_others_list_and_read(mine, maker, reader):
    MAKERS[maker](mine, "hello")
    toolset = mine.toolset(reader)
    names, call, text = READERS[reader]
    if names is None:
        assert "**hello** (personal): Says hello." in toolset.tools()[0].description
    else:
        assert "hello" in names(toolset.call(toolset.tools()[reader == "miniclaw"].name, {}))
    assert "# Hi" in text(toolset.call(*call("hello")))


def test_a_name_that_only_one_contract_allows_is_read_by_all(mine):
    MAKERS["miniclaw"](mine, "say_hello")
    for reader, (_, call, text) in READERS.items():
        assert "# Hi" in text(mine.toolset(reader).call(*call("say_hello"))), reader


def test_an_unknown_toolset_source_or_personality_is_refused_when_it_is_asked_for(mine):
    with pytest.raises(ToolsetNotFound, match="Did you mean 'native'"):
        mine.toolset("natve")
    for name in ("native", "basic", "wave", "ethos", "miniclaw"):
        with pytest.raises(SourceNotFound):
            mine.toolset(name, source="nowhere")
    with pytest.raises(PersonalityNotFound):
        mine.toolset("ethos", personality="nobody")


def test_the_toolset_of_one_folder_needs_to_know_which(registry, root):
    with pytest.raises(SourceUnclear):
        registry.toolset("basic")
    for name in ("a", "b"):
        (root / name / "x").mkdir(parents=True)
        registry.sync(str(root / name), name=name)
    with pytest.raises(SourceUnclear, match=r"^Several sources could be read: 'a' or 'b'\.$"):
        registry.toolset("basic")
    assert registry.toolset("basic", source="b").call("list_skills", {}) == {"skills": ["x"]}


@pytest.mark.parametrize("name", TOOLSETS)
def test_every_schema_is_valid(name):
    for tool in tools_of(name):
        jsonschema.Draft202012Validator.check_schema(tool.parameters)
        if tool.result is not None:
            jsonschema.Draft202012Validator.check_schema(tool.result)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["name", "skill_name", "query", "path", "limit", "offset", "description", "tags", "files"]
)


@pytest.mark.both
@pytest.mark.parametrize("toolset", TOOLSETS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(arguments=JSON | st.dictionaries(KEYS, JSON, max_size=4), data=st.data())
def test_no_arguments_raise_and_every_answer_can_be_sent(mine, toolset, arguments, data):
    tools = [tool.name for tool in tools_of(toolset) if tool.read_only]
    tool = data.draw(st.sampled_from([*tools, "no_such_tool"]))
    answer = mine.toolset(toolset).call(tool, arguments)
    assert isinstance(answer, dict)
    json.dumps(answer, ensure_ascii=False, allow_nan=False).encode()
