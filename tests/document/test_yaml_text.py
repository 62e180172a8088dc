"""YAML whose scalars keep their text."""

import contextlib
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from registry.document import yaml_text
from registry.document.yaml_text import MAX_NESTING, Broken, YamlRefused, read_mapping


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.10", "1.10"),
        ("1", "1"),
        ("yes", "yes"),
        ("on", "on"),
        ("true", "true"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02 03:04:05", "2026-01-02 03:04:05"),
        ("0x1F", "0x1F"),
        ("0o17", "0o17"),
        ("1_000", "1_000"),
        (".inf", ".inf"),
        ("12:30:45", "12:30:45"),
        ("=", "="),
        ("", None),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("nUll", "nUll"),
        ("'~'", "~"),
        ('"null"', "null"),
        ("''", ""),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        (">-\n  two\n  lines\n", "two lines"),
        ("[a, 1.0, ~]", ["a", "1.0", None]),
        ("{a: {b: 1}}", {"a": {"b": "1"}}),
        ("!!str 1", "1"),
        ("!!int 1", "1"),
        ("value # comment", "value"),
    ],
)
def test_a_scalar_keeps_its_text(text, value):
    assert read_mapping(f"key: {text}").values == {"key": value}


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("1.0: v", "1.0"),
        ("yes: v", "yes"),
        ("null: v", "null"),
        ("2026-01-01: v", "2026-01-01"),
        ("[a, b]: v", "[a, b]"),
        ("{{name}}: v", "{{name}}"),
        ("? [a, {b: c}]\n: v", "[a, {b: c}]"),
        ('"quoted key": v', "quoted key"),
    ],
)
def test_a_key_of_any_shape_is_its_text(text, key):
    assert read_mapping(text).values == {key: "v"}


@pytest.mark.usefixtures("parser")
def test_of_a_key_that_occurs_twice_the_first_counts():
    reading = read_mapping("a: 1\nb: {c: 1, c: 2}\na: 2\n", line=10)
    assert reading.values == {"a": "1", "b": {"c": "1"}}
    found = [(finding.code, finding.line) for finding in reading.findings]
    assert found == [("yaml-duplicate-key", 11), ("yaml-duplicate-key", 12)]


@pytest.mark.usefixtures("parser")
def test_the_line_of_each_outermost_key_is_known():
    reading = read_mapping("# comment\na: 1\nb:\n  inner: x\nc: 2\n", line=2)
    assert reading.lines == {"a": 3, "b": 4, "c": 6}


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_nothing_is_an_empty_mapping(text):
    assert read_mapping(text).values == {}


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        pytest.param("a: &x {b: c}\nd: *x\n", "yaml-alias", 2, id="alias of a mapping"),
        pytest.param("a: &x [b]\nd:\n  - *x\n", "yaml-alias", 3, id="alias in a list"),
        pytest.param("a: &x [b]\n? [*x]\n: c\n", "yaml-alias", 2, id="alias in a key"),
        pytest.param("a: &a [x]\nb: &b [*a, *a]\n", "yaml-alias", 2, id="a billion laughs"),
        pytest.param("base: &b {c: d}\nmore:\n  <<: *b\n", "yaml-alias", 3, id="merge key"),
        pytest.param("a: !custom b\n", "yaml-tag", 1, id="own tag"),
        pytest.param("a: !<tag:example.com,2000:x> b\n", "yaml-tag", 1, id="verbatim tag"),
        pytest.param("a: !!python/object:os.system [b]\n", "yaml-tag", 1, id="Python object"),
        pytest.param("a:\n  - !!binary aGk=\n", "yaml-tag", 2, id="binary"),
        pytest.param("? !x a\n: b\n", "yaml-tag", 1, id="tagged key"),
        pytest.param("a: " + "[" * 50_000, "yaml-depth", 1, id="brackets"),
        pytest.param("a: " + "{b: " * 10_000, "yaml-depth", 1, id="braces"),
        pytest.param("a:\n  " + "- " * 30_000, "yaml-depth", 2, id="dashes"),
        pytest.param("? " * 30_000, "yaml-depth", 1, id="question marks"),
        pytest.param("? " + "[" * 30_000, "yaml-depth", 1, id="brackets in a key"),
    ],
)
def test_what_no_honest_skill_needs_is_refused(text, code, line):
    with pytest.raises(YamlRefused) as refused:
        read_mapping(text)
    assert (refused.value.diagnostic.code, refused.value.diagnostic.line) == (code, line)
    assert refused.value.diagnostic.severity == "error"


@pytest.mark.usefixtures("parser")
def test_nesting_up_to_the_limit_is_read():
    text = "a: " + "[" * (MAX_NESTING - 1) + "]" * (MAX_NESTING - 1)
    assert list(read_mapping(text).values) == ["a"]
    with pytest.raises(YamlRefused):
        read_mapping("a: " + "[" * MAX_NESTING + "]" * MAX_NESTING)


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: *bold* text", id="Markdown emphasis"),
        pytest.param("a: *word", id="alias without anchor"),
        pytest.param("a: &word text", id="anchor before text"),
        pytest.param("a: &word", id="anchor before nothing"),
        pytest.param("a: ![badge](https://example.com/x.svg)", id="Markdown image"),
        pytest.param('a: "\\ud83d\\ude00"', id="JSON surrogates"),
        pytest.param('"\\ud83d": a', id="JSON surrogate in a key"),
        pytest.param('a: "\\UFFFFFFFF"', id="no such character"),
        pytest.param("a: b: c", id="two colons"),
        pytest.param("just text", id="text"),
        pytest.param("- a\n- b", id="list"),
        pytest.param("a: 1\n--- \nb: 2", id="two documents"),
        pytest.param("a: [b", id="open bracket"),
        pytest.param("a: \x07", id="control character"),
    ],
)
def test_what_people_meant_otherwise_is_broken(text):
    with pytest.raises(Broken):
        read_mapping(text)


@pytest.mark.usefixtures("parser")
def test_an_anchor_that_nobody_repeats_is_harmless():
    assert read_mapping("a: &x [b]\n").values == {"a": ["b"]}


PRINTABLE = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufeff\u2028\u2029")
)
VALUES = st.recursive(
    PRINTABLE | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PRINTABLE, inner, max_size=3),
    max_leaves=10,
)
FRONT_MATTER = st.dictionaries(PRINTABLE, VALUES, max_size=5)


@given(FRONT_MATTER, st.sampled_from([None, False, True]), st.booleans())
def test_what_yaml_renders_is_read_again(values, flow, wide):
    text = yaml.safe_dump(
        values, default_flow_style=flow, allow_unicode=wide, width=40, sort_keys=False
    )
    assert read_mapping(text).values == values


@given(st.text())
def test_any_text_is_read_broken_or_refused(text):
    with contextlib.suppress(Broken, YamlRefused):
        json.dumps(read_mapping(text).values).encode()


@given(st.text(alphabet="ab:-*&!|>'\"[]{}#,%@` \n\t\\?~<"))
def test_both_parsers_read_the_same(text):
    def outcome():
        try:
            reading = read_mapping(text)
        except Broken:
            return "broken"
        except YamlRefused as refused:
            return refused.diagnostic.code
        return reading.values, reading.lines

    expected = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_text, "_parser", lambda: (yaml.SafeLoader, True))
        pure = outcome()
    # What only one of them refuses is repaired from there on.
    assert pure == expected or "broken" in (pure, expected)
