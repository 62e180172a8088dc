"""Documents without front matter: the template of miniclaw's contract, first paragraphs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.document.markdown import FIRST_WORDS, first_paragraph, read_parameters, read_template
from registry.document.parse import parse_text
from registry.model import Parameter

TEMPLATE = """\
# Skill: weather_lookup

## Description
Get the weather
for a location.

## Parameters

| Name | Type | Required | Description | Default |
|------|:----:|----------|-------------|---------|
| `location` | string | Yes | City \\| place | |
| units | string | No | Unit | celsius |

## Implementation
1. Ask.

```markdown
# Skill: other
## Description
Not this one.
## Metadata
- **Created**: 2020-01-01
```

## Metadata
- **Created**: 2026-02-14T15:45:00Z
- **Version**: 1.0.0
"""


def test_a_document_by_the_template_is_read_whole():
    document = parse_text(TEMPLATE, folder_name="f")
    assert document.usable
    assert document.name == "weather_lookup"
    assert document.description == "Get the weather\nfor a location."
    assert document.created == "2026-02-14T15:45:00Z"
    assert document.version == "1.0.0"
    assert document.parameters == (
        Parameter("location", "string", "City | place", required=True),
        Parameter("units", "string", "Unit", required=False, default="celsius"),
    )
    assert [finding.code for finding in document.diagnostics] == ["front-matter-missing"]
    assert document.body == TEMPLATE


def test_front_matter_wins_over_the_template():
    front = "---\nname: a\ndescription: b\nversion: '2'\ncreated: 2025-01-01\n---\n"
    document = parse_text(front + TEMPLATE, folder_name="f")
    assert (document.name, document.description, document.version) == ("a", "b", "2")
    assert document.created == "2025-01-01T00:00:00Z"
    assert len(document.parameters) == 2
    assert document.diagnostics == ()


def test_front_matter_without_a_creation_time_takes_the_templates():
    document = parse_text(f"---\nname: a\ndescription: b\n---\n{TEMPLATE}", folder_name="f")
    assert document.created == "2026-02-14T15:45:00Z"


def test_sections_inside_code_and_comments_do_not_count():
    body = "```\n## Metadata\n- **Version**: 1\n```\n<!--\n## Metadata\n- **Version**: 2\n-->\n"
    assert read_template(body).version is None


def test_a_fence_is_closed_only_by_one_of_its_kind():
    body = "````\n```\n## Metadata\n- **Version**: 1\n````\n## Metadata\n- **Version**: 2\n"
    assert read_template(body).version == "2"


def test_closing_marks_of_a_heading_stand_behind_a_space():
    assert read_template("# Skill: tea #\n").name == "tea"
    assert read_template("# Skill: c#\n").name == "c#"


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        pytest.param(
            "Parameter | Required? | Description\n--|--|--\na | ✓ | A\nb | optional | B",
            (("a", "string", "A", True), ("b", "string", "B", False)),
            id="without outer bars",
        ),
        pytest.param(
            "| Type | Name |\n|-|-|\n| number | **a** |\n| x | |\n\n| y | b |",
            (("a", "number", "", False),),
            id="other order, row without a name, end at a blank line",
        ),
        pytest.param(
            "| Name | Type |\n|-|-|\n| a |\n| b | int | more | cells |\n| a | again |",
            (("a", "string", "", False), ("b", "int", "", False)),
            id="rows of other lengths, a name twice",
        ),
        pytest.param("| Colour | Hex |\n|-|-|\n| red | f00 |", (), id="no parameters at all"),
        pytest.param("| Name | Type |\nno rule", (), id="no table"),
        pytest.param("None.", (), id="text"),
    ],
)
def test_parameter_tables_are_read_liberally(table, expected):
    found = read_parameters(table.splitlines())
    assert tuple((p.name, p.type, p.description, p.required) for p in found) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("Hello.", "Hello."),
        ("# Title\n\nTwo\nlines.\n\nMore.", "Two lines."),
        ("Title\n=====\n\nText.", "Title"),
        ("\n---\n\nText.", "Text."),
        ("[![badge](a)](b) ![c](d)\n\nText.", "Text."),
        ("![a](b) Text.", "Text."),
        ("<p align='center'>\n<img src='x'>\n</p>\n\nText.", "Text."),
        ("<!-- one\ntwo -->\nText.", "Text."),
        ("```\ncode\n```\nText.", "Text."),
        ("~~~\n```\n~~~\nText.", "Text."),
        ("> Quoted\n> text.", "Quoted text."),
        ("| a | b |\n|---|---|\n\nText.", "Text."),
        ("- one\n- two", "- one - two"),
        ("Text.\n# Title", "Text."),
        ("# Only\n\n## Headings\n", None),
        ("```\nnever closed", None),
        ("", None),
    ],
)
def test_the_first_paragraph_is_the_first_text(body, expected):
    assert first_paragraph(body) == expected


def test_a_long_paragraph_is_cut_between_words():
    text = first_paragraph("word " * 1000)
    assert len(text) <= FIRST_WORDS
    assert text.endswith("word…")
    assert len(first_paragraph("x" * 5000)) == FIRST_WORDS


@given(st.text(alphabet="#-|*`~<!>[]() \n:=Skil_"))
def test_no_body_is_a_failure(body):
    read_template(body)
    first_paragraph(f"## Description\n{body}\n## Parameters\n{body}\n## Metadata\n{body}")
    read_template(f"## Description\n{body}\n## Parameters\n{body}\n## Metadata\n{body}")
