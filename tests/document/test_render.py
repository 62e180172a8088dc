"""New documents: what is given is what is read back, by us and by strict loaders."""

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from registry.document.coerce import MAX_WORD_LENGTH
from registry.document.markdown import (
    cell,
    clean,
    default_cell,
    read_default,
    same_parameters,
    with_breaks,
)
from registry.document.parse import parse_text
from registry.document.render import prose_text, render_document, render_miniclaw
from registry.document.rules import check_specification
from registry.document.yaml_text import block, scalar, tag_text, tag_words
from registry.model import Parameter

NASTY = [
    "yes",
    "No",
    "null",
    "~",
    "3.10",
    "0x1F",
    "1e3",
    "2026-01-15",
    "12:30:45",
    ".inf",
    "=",
    "<<",
    "- item",
    "? key",
    "a: b",
    "a:",
    "a #b",
    "# a",
    "*bold* text",
    "&anchor",
    "!tag",
    "|",
    "> quoted",
    "%TAG",
    "@at",
    "`code`",
    "[a]",
    "{a}",
    "'single'",
    '"double"',
    'it\'s "both"',
    "back\\slash",
    "---",
    "a\n---\nb",
    "--- a",
    "...",
    "a\n\n\nb",
    "a\n  b\n\tc",
    "a  \nb",
    "\u00a0a",
    "a\u2028b",
    "a\ufeffb",
    "\U0001f468\u200d\U0001f469",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "\u4e2d\u6587\uff1a\u63cf\u8ff0",
    "a\tb",
    "name: x\ndescription: y",
    "\U000e0041",
    "x" * 5000,
]

CHARACTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\0")
PROSE = (st.sampled_from(NASTY) | st.text(CHARACTERS) | st.text(alphabet=":#-\n '\"\\|>ab")).filter(
    prose_text
)
LINE = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")))
JSON = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | LINE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(LINE, inner, max_size=3),
    max_leaves=5,
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)


@st.composite
def parameter(draw):
    kind = draw(st.sampled_from(["string", "number", "boolean", "array", "object"]))
    default = draw(st.none() | (LINE if kind == "string" else JSON))
    text = draw(st.text(CHARACTERS, max_size=30) | st.text(alphabet="\\|<br> />\n"))
    return Parameter(draw(NAMES), kind, prose_text(text), draw(st.booleans()), default)


PARAMETERS = st.lists(parameter(), max_size=4, unique_by=lambda one: one.name)


def read(text):
    return parse_text(text, folder_name="folder")


def strict(text):
    """The front matter as a loader of YAML 1.1 with its types sees it."""
    return yaml.safe_load(text.split("\n---\n")[0].removeprefix("---\n"))


def test_a_new_document_is_written_plainly():
    text = render_document(
        name="tea",
        description="Makes tea. Use it at five.",
        body="# Tea\n\nBoil water.\n",
        tags=["Kitchen", "hot drinks"],
        kind="workflow",
        created_at="2026-01-15T09:30:00Z",
    )
    assert text == (
        "---\n"
        "name: tea\n"
        "description: Makes tea. Use it at five.\n"
        "metadata:\n"
        '  tags: "kitchen, hot drinks"\n'
        "  kind: workflow\n"
        '  created_at: "2026-01-15T09:30:00Z"\n'
        "---\n"
        "\n"
        "# Tea\n"
        "\n"
        "Boil water.\n"
    )
    document = read(text)
    assert document.diagnostics == ()
    assert document.created == "2026-01-15T09:30:00Z"
    assert list(check_specification(document, folder_name="tea", files=())) == []


def test_a_document_may_have_no_body_and_no_metadata():
    text = render_document(name="tea", description="Makes tea.")
    assert text == "---\nname: tea\ndescription: Makes tea.\n---\n"


def test_parameters_become_a_table():
    given = [Parameter("cups", "number", "How many", required=True, default=None)]
    text = render_document(
        name="tea",
        description="Makes tea.",
        body="# Tea",
        parameters=given,
    )
    assert "| cups | number | Yes | How many |  |\n" in text
    assert read(text).parameters == tuple(given)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"name": ""}, "the name is empty"),
        ({"description": " \n"}, "the description is empty"),
        ({"body": "a\0b"}, "NUL"),
        ({"body": "a\ud800"}, "surrogates"),
        ({"created_at": "soon"}, "not a date"),
        ({"tags": ["x" * 200]}, "tags"),
        ({"name": "x" * 201}, "the name has more than 200 characters"),
        ({"kind": "x" * 201}, "the kind has more than 200 characters"),
        ({"parameters": [Parameter("`a`", "string", "", True)]}, "parameters"),
        ({"parameters": [Parameter("a", "string", "", True, 5)]}, "not a string"),
        ({"description": "x" * 70_000}, "invalid"),
    ],
)
def test_what_would_not_come_back_is_refused(facts, reason):
    with pytest.raises(ValueError, match=reason):
        render_document(**{"name": "tea", "description": "Makes tea.", **facts})


@given(PROSE, PROSE, st.text(CHARACTERS), st.lists(st.text(CHARACTERS), max_size=4))
@example("a", "b", "---\nname: c\n---\n", ["[a", "b]"])
@example("a" * 250, "b" * 250, "", [])
@example("a", "b", "    indented\n", ['"a"', "#b #c", "d,e"])
def test_every_text_comes_back(name, description, body, tags):
    name = " ".join(prose_text(name).split())[:MAX_WORD_LENGTH].strip()
    tags = [tag for tag in tags if all(len(word) <= 100 for word in tag_words([tag]))]
    # A word that reading would strip once more, as '#"a', is refused instead of changed.
    tags = [tag for tag in tags if tag_words(tag_words([tag])) == tag_words([tag])]
    text = render_document(name=name, description=description, body=body, tags=tags)
    document = read(text)
    assert document.name == name
    assert document.description == prose_text(description)
    assert document.tags == tag_words(tags)
    assert document.version is None
    assert document.body.strip() == body.strip()
    front = strict(text)
    assert (front["name"], front["description"]) == (name, prose_text(description))
    assert all(isinstance(value, str) for value in front.get("metadata", {}).values())


@given(st.sampled_from(NASTY) | st.text(CHARACTERS), st.sampled_from(["", "'", '"']))
def test_scalars_are_read_as_the_text_by_every_loader(text, like):
    for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        assert yaml.load(f"a: {scalar(text, like=like)}\nb: c", Loader=loader) == {
            "a": text,
            "b": "c",
        }
        assert yaml.load(f"a: {{b: {scalar(text, like=like, flow=True)}}}", Loader=loader) == {
            "a": {"b": text}
        }
        if shown := block(text, "  ", "\r\n"):
            assert yaml.load(f"a: {shown}\r\nb: c", Loader=loader) == {"a": text, "b": "c"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text", "plain text"),
        ("it's", "it's"),
        ("a: b", '"a: b"'),
        ('say "a: b"', "'say \"a: b\"'"),
        ('a: b\'s "c"', '"a: b\'s \\"c\\""'),
        ("C:\\new: 'x'", "\"C:\\\\new: 'x'\""),
        ("yes", '"yes"'),
        ("1.0.0", '"1.0.0"'),
        ('"x"', "'\"x\"'"),
        ("a\nb", '"a\\nb"'),
        ("a\u200db", "a\u200db"),
    ],
)
def test_quotes_stand_only_where_they_must(text, expected):
    assert scalar(text) == expected


@pytest.mark.parametrize(
    ("tags", "expected"),
    [(("a", "b c"), "a, b c"), ((), ""), (("[a", "b]"), '["[a", "b]"]')],
)
def test_tags_are_one_text(tags, expected):
    assert tag_text(tags) == expected


@given(PROSE, PARAMETERS, st.text(CHARACTERS))
@example("## Parameters\n| Name |\n|--|\n| no |", [Parameter("a", "string", "", True)], "")
@example("```\nopen", [], "## Metadata\n- **Created**: 2020-01-01")
@example("<!-- open\u2028## Parameters", [Parameter("a", "string", "", False)], "<!--")
def test_a_document_by_miniclaws_contract_comes_back(description, parameters, implementation):
    text = render_miniclaw(
        name="make_tea",
        description=description,
        parameters=parameters,
        implementation=implementation,
        created_at="2026-02-14T15:45:00Z",
    )
    document = read(text)
    assert document.name == "make_tea"
    assert document.description == prose_text(description)
    assert same_parameters(document.parameters, parameters)
    assert document.created == "2026-02-14T15:45:00Z"
    assert document.version == "1.0.0"
    assert implementation.strip("\r\n") in text


def test_the_contracts_sections_are_all_there():
    text = render_miniclaw(
        name="make_tea",
        description="Makes tea.",
        parameters=[Parameter("cups", "number", "How | many", required=False, default=2)],
        implementation="1. Boil.",
        created_at="2026-02-14T15:45:00Z",
    )
    assert text.split("---\n", 2)[2] == (
        "\n# Skill: make_tea\n"
        "\n## Description\nMakes tea.\n"
        "\n## Parameters\n"
        "| Name | Type | Required | Description | Default |\n"
        "| ---- | ---- | -------- | ----------- | ------- |\n"
        "| cups | number | No | How \\| many | `2` |\n"
        "\n## Implementation\n1. Boil.\n"
        "\n## Metadata\n- **Created**: 2026-02-14T15:45:00Z\n- **Version**: 1.0.0\n"
    )


@given(st.text(alphabet="ab\\|<>br/\n ") | st.text(CHARACTERS))
def test_a_cell_holds_any_text_on_one_line(text):
    source = cell(text)
    assert "\n" not in source
    assert with_breaks(source.strip().replace("\\|", "|")) == clean(text)


@given(parameter())
def test_a_default_comes_back_with_its_type(one):
    source = default_cell(one)
    assert "\n" not in source
    value = read_default(source.replace("\\|", "|").strip("`*"), one)
    assert value == one.default
    assert type(value) is type(one.default)
