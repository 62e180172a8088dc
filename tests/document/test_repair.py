"""Broken YAML, read as a person reads it."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from registry.document.parse import parse_text
from registry.document.repair import MAX_ENTRIES, _Repair, repair, salvage
from registry.document.yaml_text import YamlReading, YamlRefused, read_mapping


def force(front):
    """Repair ``front`` although it may be valid."""
    reading = YamlReading()
    _Repair(reading, set()).mapping(front.removesuffix("\n").split("\n"), 1, depth=1)
    return reading


pytestmark = pytest.mark.usefixtures("parser")


@pytest.mark.parametrize(
    ("value", "expected", "code"),
    [
        pytest.param(">- Some text", "Some text", "yaml-block-text", id="text behind >-"),
        pytest.param(
            "> Some text\n  and more", "Some text and more", "yaml-block-text", id="text behind >"
        ),
        pytest.param("| One\n  two", "One\ntwo", "yaml-block-text", id="text behind |"),
        pytest.param(">-Some text", "Some text", "yaml-block-text", id="text glued to >-"),
        pytest.param("|\nNot indented", "Not indented", "yaml-indentation", id="text below |"),
        pytest.param("Use for: tea", "Use for: tea", "yaml-colon", id="colon"),
        pytest.param("Use for:", "Use for:", "yaml-colon", id="colon at the end"),
        pytest.param(
            "Use for: a\n  or: b", "Use for: a or: b", "yaml-colon", id="colon on two lines"
        ),
        pytest.param("Tea: #1 choice", "Tea: #1 choice", "yaml-colon", id="colon and number sign"),
        pytest.param("**Tea** made", "**Tea** made", "yaml-special-character", id="bold"),
        pytest.param("*tea*", "*tea*", "yaml-special-character", id="emphasis"),
        pytest.param("*tea", "*tea", "yaml-special-character", id="alias without anchor"),
        pytest.param("&tea", "&tea", "yaml-special-character", id="anchor without value"),
        pytest.param("&tea made", "&tea made", "yaml-special-character", id="silent anchor"),
        pytest.param("@me", "@me", "yaml-special-character", id="at sign"),
        pytest.param("`tea` made", "`tea` made", "yaml-special-character", id="backtick"),
        pytest.param("%tea", "%tea", "yaml-special-character", id="percent"),
        pytest.param(", and tea", ", and tea", "yaml-special-character", id="comma"),
        pytest.param("- tea", "- tea", "yaml-special-character", id="dash"),
        pytest.param("![tea](t.png)", "![tea](t.png)", "yaml-special-character", id="image"),
        pytest.param('"a" or "b"', '"a" or "b"', "yaml-quotes", id="text between quotes"),
        pytest.param('"say "hi" to me"', 'say "hi" to me', "yaml-quotes", id="quotes inside"),
        pytest.param("'it's tea'", "it's tea", "yaml-quotes", id="apostrophe"),
        pytest.param("\"it's", "it's", "yaml-quotes", id="never closed"),
        pytest.param(
            '"tea."\n  And more.', "tea. And more.", "yaml-quotes", id="text below quotes"
        ),
        pytest.param('"a \\"b\\" c" d"', 'a "b" c" d', "yaml-quotes", id="escaped quotes"),
        pytest.param('"a\\d"', "a\\d", "yaml-escape", id="unknown escape"),
        pytest.param('"\\U+1F4E7"', "\\U+1F4E7", "yaml-escape", id="unfinished escape"),
        pytest.param('"\\ud83d\\ude00 hi"', "\U0001f600 hi", "yaml-surrogates", id="JSON pair"),
        pytest.param('"\\ud83d hi"', "\ufffd hi", "yaml-surrogate-lone", id="half a JSON pair"),
        pytest.param("[a] [b]", "[a] [b]", "yaml-brackets", id="two brackets"),
        pytest.param("{TEA} maker", "{TEA} maker", "yaml-brackets", id="placeholder"),
        pytest.param("{{tea}} maker", "{{tea}} maker", "yaml-brackets", id="double placeholder"),
        pytest.param("[open", "[open", "yaml-brackets", id="open bracket"),
        pytest.param("One\nTwo", "One Two", "yaml-stray-line", id="text in column 0"),
        pytest.param(
            "One:  \n- two;  \n- three.  \nEnd",
            "One:\n- two;\n- three.\nEnd",
            "yaml-colon",
            id="Markdown list in column 0",
        ),
        pytest.param("One\n\n1. two", "One\n\n1. two", "yaml-stray-line", id="paragraphs"),
    ],
)
def test_a_broken_value_is_read_as_people_read_it(value, expected, code):
    text = f"---\nname: tea\ndescription: {value}\nlicense: MIT\n---\nBody\n"
    document = parse_text(text, folder_name="f")
    assert document.description == expected
    assert (document.name, document.license) == ("tea", "MIT")
    [finding] = document.diagnostics
    assert (finding.code, finding.severity) == (code, "warning")
    unindented = code in {"yaml-stray-line", "yaml-indentation"}
    first = next(n for n, line in enumerate(value.split("\n")[1:], 4) if line) if unindented else 3
    assert finding.line == first
    assert finding.fix


def test_one_broken_line_costs_no_other():
    front = (
        "name: tea\ndescription: Use: always\ntags:\n  - a\n  - b\n"
        "metadata:\n  version: 1.10\n  note: x: y\n  list: [a, b]\nlicense: MIT\n"
    )
    reading = repair(front, 2)
    assert reading.values == {
        "name": "tea",
        "description": "Use: always",
        "tags": ["a", "b"],
        "metadata": {"version": "1.10", "note": "x: y", "list": ["a", "b"]},
        "license": "MIT",
    }
    assert [(found.code, found.line) for found in reading.findings] == [
        ("yaml-colon", 3),
        ("yaml-colon", 9),
    ]
    assert reading.lines == {"name": 2, "description": 3, "tags": 4, "metadata": 7, "license": 11}


def test_an_item_of_a_list_is_repaired_alone():
    reading = repair('read_when:\n  - "tea" in message\n  - plain\n  - {a: 1}\n', 1)
    assert reading.values == {"read_when": ['"tea" in message', "plain", {"a": "1"}]}
    assert [(found.code, found.line) for found in reading.findings] == [("yaml-list", 2)]


def test_a_mapping_in_a_list_is_repaired_key_by_key():
    reading = repair("tools:\n  - name: a\n    use: x: y\n  - name: b\n", 1)
    assert reading.values == {"tools": [{"name": "a", "use": "x: y"}, {"name": "b"}]}


def test_tabs_as_indentation_are_read():
    reading = repair("metadata:\n\tauthor: me\n\ttags:\n\t\t- a\n", 1)
    assert reading.values == {"metadata": {"author": "me", "tags": ["a"]}}
    assert [found.code for found in reading.findings] == ["yaml-indentation"]


@pytest.mark.parametrize("value", ["[a, b", "[a,\n  b", '["a", b,'])
def test_a_list_that_is_not_closed_is_closed(value):
    document = parse_text(f"---\nname: tea\ndescription: D\ntags: {value}\n---\n", folder_name="f")
    assert document.tags == ("a", "b")
    [finding] = document.diagnostics
    assert (finding.code, finding.line) == ("yaml-brackets", 4)
    assert finding.fix == "add a `]` after the last item"


@pytest.mark.parametrize("value", ['"say "hi" to me"', "'it's tea'", '"*tea" is hot', '"open'])
def test_a_short_value_is_advised_as_it_should_be_written(value):
    text = "---\nname: tea\ndescription: {}\n---\nBody\n"
    broken = parse_text(text.format(value), folder_name="f")
    [finding] = broken.diagnostics
    advised = finding.fix.removeprefix("write the whole value as `").removesuffix("`")
    good = parse_text(text.format(advised), folder_name="f")
    assert (good.description, good.diagnostics) == (broken.description, ())


@pytest.mark.parametrize(
    ("value", "quoted"),
    [
        ("Use: now", '"Use: now"'),
        ('Say: "hi"', "'Say: \"hi\"'"),
        ('It\'s: "hi"', '"It\'s: \\"hi\\""'),
        (f'"say "hi" {"to me " * 20}"', f"'say \"hi\" {'to me ' * 20}'"),
        ('*"tea"* \\ it\'s', '"*\\"tea\\"* \\\\ it\'s"'),
    ],
)
def test_the_quotes_that_are_advised_are_those_that_hold_the_value(value, quoted):
    text = "---\nname: tea\ndescription: {}\n---\nBody\n"
    broken, good = (parse_text(text.format(one), folder_name="f") for one in (value, quoted))
    [finding] = broken.diagnostics
    assert ("single" in finding.fix) == quoted.startswith("'")
    assert ("backslash" in finding.fix) == ("\\" in quoted)
    assert (good.description, good.diagnostics) == (broken.description, ())


def test_control_characters_are_left_out():
    reading = repair("name: t\x07ea\ndescription: b\x80c\n", 2)
    assert reading.values == {"name": "tea", "description": "bc"}
    assert [(found.code, found.line) for found in reading.findings] == [("control-characters", 2)]


def test_keys_without_a_colon_are_read():
    document = parse_text("---\nname tea\ndescription Makes tea: green\n---\n", folder_name="f")
    assert (document.name, document.description) == ("tea", "Makes tea: green")
    found = [(finding.code, finding.line) for finding in document.diagnostics]
    assert found == [
        ("yaml-key-without-colon", 2),
        ("yaml-colon", 3),
        ("yaml-key-without-colon", 3),
    ]


def test_keys_translated_into_chinese_are_read():
    document = parse_text("---\n名称\uff1atea  \n描述\uff1a泡茶。\n---\n", folder_name="f")
    assert (document.name, document.description) == ("tea", "泡茶。")


def test_placeholders_are_names():
    document = parse_text("---\nname: {{name}}\ndescription: [TODO]\n---\n", folder_name="f")
    assert (document.name, document.description) == ("{{name}}", "[TODO]")
    assert document.usable


@pytest.mark.parametrize(
    "value",
    [
        pytest.param('{"a": {\n"b": 1\n}\n}', id="brackets"),
        pytest.param('"one\ntwo: three\n four"', id="double quotes"),
        pytest.param("'one\ntwo: three\n four'", id="single quotes"),
    ],
)
def test_a_value_may_run_on_in_column_0(value):
    front = f"metadata: {value}\n"
    expected = read_mapping(front).values
    reading = repair(f"name: a: b\n{front}license: MIT\n", 1)
    assert reading.values == {"name": "a: b", **expected, "license": "MIT"}


def test_lines_before_the_first_key_are_noted():
    reading = repair("> a quote\nname: tea: green\n", 5)
    assert reading.values == {"name": "tea: green"}
    assert [(found.code, found.line) for found in reading.findings] == [
        ("yaml-stray-line", 5),
        ("yaml-colon", 6),
    ]


@pytest.mark.parametrize(
    "front",
    [
        "a: b: c\nd: &x [y]\ne: *x\n",
        "a: b: c\nd: !own y\n",
        "a: b: c\nd: " + "[" * 20 + "\n",
        "a: b: c\nd:\n" + "".join(f"{'  ' * depth}k: \n" for depth in range(1, 20)),
    ],
    ids=["alias", "tag", "brackets", "indentation"],
)
def test_repair_refuses_what_is_refused_in_valid_yaml(front):
    with pytest.raises(YamlRefused):
        repair(front, 1)


def test_an_anchor_in_a_repaired_value_still_makes_its_alias_refused():
    with pytest.raises(YamlRefused):
        repair("a: &x text\nb: *x\n", 1)


def test_of_very_many_broken_keys_only_the_first_are_read():
    reading = repair("".join(f"k{number}: a: b\n" for number in range(MAX_ENTRIES + 50)), 1)
    assert len(reading.values) == MAX_ENTRIES
    assert reading.findings[-1].code == "yaml-too-many-keys"


def test_salvage_reads_name_and_description_without_yaml():
    reading = salvage("name: 'tea'\ndescription: >-\n  Makes\n  tea.\nx: !evil *y\n", 2)
    assert reading.values == {"name": "tea", "description": "Makes tea.", "x": "!evil *y"}


KEYS = st.from_regex(r"[a-z][a-z_-]{0,8}", fullmatch=True)
PRINTABLE = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufeff\u2028\u2029")
)
VALUES = st.recursive(
    PRINTABLE | st.none() | st.text(alphabet="ab:-*&!|>'\"[]{}#,%@` \n\\"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(KEYS, VALUES, max_size=5), st.sampled_from([None, False, True]))
def test_repair_never_changes_valid_yaml(values, flow):
    front = yaml.safe_dump(
        values, default_flow_style=flow, allow_unicode=True, width=30, sort_keys=False
    )
    if front.startswith("{"):
        return  # all in one pair of brackets: there are no entries
    reading = force(front)
    assert reading.values == values
    assert reading.findings == []
    assert reading.lines == read_mapping(front).lines


@given(st.text(alphabet="ab:-*&!|>'\"[]{}#,%@` \n\t\\\u3000\uff1a", max_size=60))
def test_a_broken_value_never_hides_name_and_description(text):
    value = " ".join(text.split())
    front = f"name: tea\nother: {value}\ndescription: Makes tea.\n"
    document = parse_text(f"---\n{front}---\nBody\n", folder_name="f")
    assert document.name == "tea"
    if document.usable and value[:1] not in {"'", '"', "[", "{"}:
        assert document.description == "Makes tea."
