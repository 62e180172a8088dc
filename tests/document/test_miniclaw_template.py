"""Documents by miniclaw's template, as they exist in the wild: without front matter."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.document.markdown import clean
from registry.document.parse import parse_text
from registry.document.render import render_miniclaw
from registry.model import Parameter

MOMENT = "2026-02-14T15:45:00Z"

TEMPLATE = """# Skill: {name}

## Description
{description}

## Parameters
{parameters_table}

## Implementation
{implementation}

## Metadata
- **Created**: {created_at}
- **Version**: 1.0.0
"""

CITY = "| Name | Type | Required | Description |\n|------|------|----------|-------------|\n"
CITY += "| city | string | Yes | Where |"


def filled(**facts):
    usual = {
        "name": "weather_lookup",
        "description": "Get weather information for a location",
        "parameters_table": CITY,
        "implementation": "Ask the weather service.",
        "created_at": MOMENT,
    }
    return TEMPLATE.format(**{**usual, **facts})


def read(text):
    return parse_text(text, folder_name="folder")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_template_filled_in_is_read_whole(newline, mark):
    document = read(mark + filled().replace("\n", newline))
    assert document.usable
    assert document.name == "weather_lookup"
    assert document.description == "Get weather information for a location"
    assert document.parameters == (Parameter("city", "string", "Where", True),)
    assert document.created == MOMENT
    assert document.version == "1.0.0"


@pytest.mark.parametrize(
    "created",
    [
        "2026-02-14T15:45:00+00:00",
        "2026-02-14T15:45:00.123456789+00:00",
        "2026-02-14T15:45:00.5Z",
        "2026-02-14T17:45:00+02:00",
        "2026-02-14T10:15:00-05:30",
        "2026-02-14 15:45:00 UTC",
    ],
)
def test_the_time_of_creation_is_read_as_utc(created):
    assert read(filled(created_at=created)).created == MOMENT


def test_a_time_that_is_none_is_told_and_the_rest_is_read():
    document = read(filled(created_at="last week"))
    assert document.usable
    assert document.created is None
    (line,) = [found.line for found in document.diagnostics if found.code == "date-unreadable"]
    assert "last week" in document.text.splitlines()[line - 1]


@pytest.mark.parametrize("words", ["", "None.", "None", "_No parameters_", "No parameters.", "-"])
def test_a_skill_may_have_no_parameters(words):
    document = read(filled(parameters_table=words))
    assert document.usable
    assert document.parameters == ()


@pytest.mark.parametrize("kind", ["string", "number", "boolean", "array", "object"])
@pytest.mark.parametrize(("word", "required"), [("Yes", True), ("No", False), ("true", True)])
def test_each_type_is_read_with_whether_it_is_required(kind, word, required):
    table = CITY.replace("| string | Yes |", f"| `{kind}` | {word} |")
    (found,) = read(filled(parameters_table=table)).parameters
    assert found == Parameter("city", kind, "Where", required)


def test_a_description_of_several_paragraphs_is_read_whole():
    description = "Get weather.\n\nUse it *before* a trip:\n- by place\n- by day"
    assert read(filled(description=description)).description == description


@pytest.mark.parametrize("missing", ["Parameters", "Implementation", "Metadata"])
def test_a_section_may_be_missing(missing):
    text = re.sub(rf"## {missing}\n.*?(?=\n## |\Z)", "", filled(), flags=re.DOTALL)
    document = read(text)
    assert document.usable
    assert document.name == "weather_lookup"
    assert document.description == "Get weather information for a location"
    assert (document.created is None) is (missing == "Metadata")
    assert (document.parameters == ()) is (missing == "Parameters")


WORDS = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8)
PROSE = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)
JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | PROSE,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(PROSE, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def parameter(draw):
    kind = draw(st.sampled_from(["string", "number", "boolean", "array", "object"]))
    description = clean(draw(st.text("|\\`*<br>/\n -#a", max_size=20) | PROSE))
    default = draw(st.none() | (PROSE if kind == "string" else JSON))
    name = draw(st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True))
    return Parameter(name, kind, description, draw(st.booleans()), default)


@given(
    PROSE,
    st.lists(parameter(), max_size=3, unique_by=lambda one: one.name),
    st.lists(PROSE).map("\n\n".join),
)
def test_what_is_written_says_the_same_without_its_front_matter(
    description, parameters, implementation
):
    text = render_miniclaw(
        name="make_tea",
        description=description,
        parameters=parameters,
        implementation=implementation,
        created_at=MOMENT,
    )
    whole, bare = read(text), read(text.split("\n---\n", 1)[1])
    assert bare.front_matter == {}
    assert repr(whole.parameters) == repr(tuple(parameters))
    for field in ("name", "description", "parameters", "created", "version"):
        assert repr(getattr(bare, field)) == repr(getattr(whole, field)), field


def test_the_written_body_is_the_template_filled_in():
    text = render_miniclaw(
        name="weather_lookup",
        description="Get weather information for a location",
        parameters=[],
        implementation="Ask the weather service.",
        created_at=MOMENT,
    )
    assert text.split("\n---\n\n", 1)[1] == filled(parameters_table="None.")
