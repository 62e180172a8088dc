"""Dialects of front matter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.document.coerce import MAX_TAG_LENGTH, MAX_TAGS
from registry.document.parse import parse_text
from registry.model import Parameter


def parse(front):
    head = "" if "\nname" in f"\n{front}".lower() else "name: tea\n"
    head += "" if "\ndescription" in f"\n{front}".lower() else "description: Makes tea.\n"
    return parse_text(f"---\n{head}{front}\n---\nBody\n", folder_name="tea")


def codes(document):
    return [finding.code for finding in document.diagnostics]


@pytest.mark.parametrize(
    ("front", "tags"),
    [
        ("tags: [b, a]", ("b", "a")),
        ("tags:\n  - One Two\n  - ONE  two\n  -\n  - three", ("one two", "three")),
        ("tags: a, b,c", ("a", "b", "c")),
        ("tags: a", ("a",)),
        ("tags: machine learning", ("machine learning",)),
        ("tags: '#a #b'", ("a", "b")),
        ("tags: a|b; c", ("a", "b", "c")),
        ('tags: \'["a", "b"]\'', ("a", "b")),
        ("tags: '[a, ''b'', c]'", ("a", "b", "c")),
        ("tags: [1, 2.0, yes]", ("1", "2.0", "yes")),
        ("tags: [[a], [b]]", ("a", "b")),
        ("tags: ['a, b']", ("a", "b")),
        ('tags: ["a\\nb", "c\\u0007d"]', ("a", "b", "cd")),
        ("tags: [Straße]", ("strasse",)),
        ("tags:", ()),
        ("tags: null", ()),
        ("tags: []", ()),
        ("tags: ''", ()),
        ("Tags: [a]", ("a",)),
        ("keywords: [a]", ("a",)),
        ("tags: [a]\nkeywords: b", ("a", "b")),
        ("metadata:\n  tags: a, b", ("a", "b")),
        ("metadata:\n  hermes:\n    tags: [a]", ("a",)),
        ("metadata:\n  openclaw:\n    tags: [a]\n    keywords: [b]", ("a", "b")),
        ("metadata:\n  clawdbot: {tags: [a]}", ("a",)),
        ('metadata: {"openclaw": {"tags": ["a"]}}', ("a",)),
        ('metadata: \'{"openclaw": {"tags": ["a", 1]}}\'', ("a", "1")),
        ('metadata:\n  openclaw: \'{"tags": ["a"]}\'', ("a",)),
        ("keywords: [d]\ntags: [a]\nmetadata:\n  tags: [b, a]\n  hermes: {tags: c}", tuple("abcd")),
    ],
)
def test_tags_are_gathered_from_all_places_and_shapes(front, tags):
    document = parse(front)
    assert document.tags == tags
    assert document.diagnostics == ()


def test_tags_of_an_unknown_shape_are_a_warning():
    document = parse("tags:\n  - {a: b}\nkeywords: [c]")
    assert document.tags == ("c",)
    [finding] = document.diagnostics
    assert (finding.code, finding.severity, finding.line) == ("value-shape", "warning", 4)


@pytest.mark.parametrize(
    "front",
    [
        "tags: [" + ", ".join(f"t{n}" for n in range(MAX_TAGS + 1)) + "]",
        "tags: [a, " + "b" * (MAX_TAG_LENGTH + 1) + "]",
    ],
    ids=["many", "long"],
)
def test_tags_have_a_limit(front):
    document = parse(front)
    assert 0 < len(document.tags) <= MAX_TAGS
    assert all(len(tag) <= MAX_TAG_LENGTH for tag in document.tags)
    assert codes(document) == ["tags-over-limit"]


@pytest.mark.parametrize(
    ("front", "field", "expected"),
    [
        ("kind: workflow", "kind", "workflow"),
        ("ethos: {kind: a}\ntype: b", "kind", "a"),
        ("metadata: {ethos: {kind: a}, kind: b}", "kind", "a"),
        ("metadata: {kind: a}\ntype: b", "kind", "a"),
        ("type: b", "kind", "b"),
        ("kind:\ntype: b", "kind", "b"),
        ("", "kind", None),
        ("category: a\ndomain: b", "category", "a"),
        ("metadata: {category: a}", "category", "a"),
        ("metadata: {openclaw: {category: a}}", "category", "a"),
        ("metadata: {hermes: {category: a}}", "category", "a"),
        ("domain: b", "category", "b"),
        ("category: [a, b]", "category", "a, b"),
        ("version: 1.10", "version", "1.10"),
        ("version: 1", "version", "1"),
        ("version: 'v1'\nmetadata: {version: 2.0}", "version", "2.0"),
        ("author: Ann", "author", "Ann"),
        ("author: [Ann, Bob]", "author", "Ann, Bob"),
        ("author: {name: Ann, url: x}", "author", "Ann"),
        ("metadata: {authors: [{name: Ann}, Bob]}", "author", "Ann, Bob"),
        ("metadata: {skill-author: Ann}", "author", "Ann"),
        ("author: Bob\nmetadata: {author: Ann}", "author", "Ann"),
        ("license: MIT", "license", "MIT"),
        ("license: {name: MIT}", "license", "MIT"),
        ("compatibility: Needs git", "compatibility", "Needs git"),
        ("created_at: 2026-01-02", "created", "2026-01-02T00:00:00Z"),
        ("createdAt: 2026-01-02", "created", "2026-01-02T00:00:00Z"),
        ("date_added: '2026-01-02'", "created", "2026-01-02T00:00:00Z"),
        ("date: 2026-01-02", "created", "2026-01-02T00:00:00Z"),
        ("metadata: {created: 2026-01-02}", "created", "2026-01-02T00:00:00Z"),
        ("created: soon\ndate: 2026-01-02", "created", "2026-01-02T00:00:00Z"),
        ("date: 2026-01-01\ncreated: 2026-01-02", "created", "2026-01-02T00:00:00Z"),
        ("required_tools: [bash, read]", "required_tools", ("bash", "read")),
        ("required_tools: bash, read", "required_tools", ("bash", "read")),
        ("metadata: {hermes: {requires_tools: [bash]}}", "required_tools", ("bash",)),
        ("metadata: {required_tools: [bash]}", "required_tools", ("bash",)),
        ("allowed-tools: Bash(git:*) Read", "allowed_tools", ("Bash(git:*)", "Read")),
        (
            "allowed-tools: Bash(git add, git *), Read",
            "allowed_tools",
            ("Bash(git add, git *)", "Read"),
        ),
        ("allowed_tools: [Read, 'Bash(a b)']", "allowed_tools", ("Read", "Bash(a b)")),
        ("tools: Read, Web Search", "allowed_tools", ("Read", "Web Search")),
        ('allowed-tools: \'["Read", "Write"]\'', "allowed_tools", ("Read", "Write")),
        ("allowed-tools: '[Read, Write]'", "allowed_tools", ("Read", "Write")),
        ("allowed-tools: Bash(open", "allowed_tools", ("Bash(open",)),
        ("allowed-tools:\n  - Read\n  - Read", "allowed_tools", ("Read",)),
        ("allowed-tools: ''", "allowed_tools", ()),
        ("disable-model-invocation: true", "hidden", True),
        ("disable_model_invocation: 'Yes'", "hidden", True),
        ("disableModelInvocation: 1", "hidden", True),
        ("disable-model-invocation: off", "hidden", False),
        ("", "hidden", False),
        ("NAME: Green Tea", "name", "Green Tea"),
        ("name: 1.10", "name", "1.10"),
        ("name: true", "name", "true"),
        ("name: Tea / Green: best".replace(": best", " best"), "name", "Tea / Green best"),
        ("Description: |\n  One\n\n  two", "description", "One\n\ntwo"),
        ("description: [a, b]", "description", "[a, b]"),
    ],
)
def test_a_field_is_read_from_its_dialects(front, field, expected):
    assert getattr(parse(front), field) == expected


@pytest.mark.parametrize(
    ("front", "line"),
    [
        ("version: {a: b}", 4),
        ("kind: {a: b}", 4),
        ("author: {url: x}", 4),
        ("metadata: [a]", 4),
        ("metadata: some text", 4),
        ("allowed-tools: {a: b}", 4),
        ("tools:\n  - {name: a}", 4),
        ("disable-model-invocation: maybe", 4),
        ("parameters: text", 4),
        ("parameters: [{type: string}]", 4),
        ("compatibility: {a: b}", 4),
    ],
)
def test_an_unknown_shape_is_a_warning_and_no_failure(front, line):
    document = parse(front)
    assert document.usable
    [finding] = document.diagnostics
    assert (finding.code, finding.severity, finding.line) == ("value-shape", "warning", line)
    assert document.front_matter.keys() - {"name", "description"}


def test_an_unreadable_date_is_noted_once_and_harms_nothing():
    document = parse("created: soon\ndate: later")
    assert document.created is None
    [finding] = document.diagnostics
    assert (finding.code, finding.severity, finding.line) == ("date-unreadable", "info", 4)
    assert "soon" in finding.message


@pytest.mark.parametrize(
    "front",
    [
        "parameters:\n  - {name: city, type: string, required: true, description: Where, default: Rome}\n  - {name: days, type: number}",
        "parameters: {type: object, required: [city], properties: {city: {type: string, description: Where, default: Rome}, days: {type: number}}}",
        "parameters: {city: {type: string, required: yes, description: Where, default: Rome}, days: {type: number}}",
    ],
    ids=["list", "schema", "mapping"],
)
def test_parameters_are_read_from_front_matter(front):
    assert parse(front).parameters == (
        Parameter("city", "string", "Where", required=True, default="Rome"),
        Parameter("days", "number", "", required=False),
    )


def test_control_characters_in_a_name_are_left_out_with_a_warning():
    document = parse('name: "te\\u0007a\\npot"\ndescription: "Ma\\u0000kes\\ttea."')
    assert document.name == "tea pot"
    assert document.description == "Makes\ttea."
    assert codes(document) == ["control-characters", "control-characters"]


@pytest.mark.parametrize("name", ["Ünï cödé", "👩‍💻 helper", "a/b:c", "می‌خواهم"])
def test_a_name_keeps_its_text(name):
    document = parse(f"name: '{name}'")
    assert document.name == name
    assert document.diagnostics == ()


def test_the_front_matter_stays_as_it_was():
    document = parse("Version: 1.10\ndate: 2026-01-01\nx: {y: [~, 0x1F]}")
    assert document.front_matter == {
        "name": "tea",
        "description": "Makes tea.",
        "Version": "1.10",
        "date": "2026-01-01",
        "x": {"y": [None, "0x1F"]},
    }


@given(
    st.dictionaries(
        st.sampled_from(
            "tags kind version author created updated tools allowed-tools requires platforms "
            "parameters metadata user-invocable keywords license ethos".split()
        ),
        st.sampled_from(
            ["x", "[a, {b: c}]", "{a: [b]}", "~", "[]", "{}", "[[[a]]]", "{name: {a: b}}", "'[1,'"]
        ),
    )
)
def test_no_shape_of_any_key_is_a_failure(values):
    document = parse("\n".join(f"{key}: {value}" for key, value in values.items()))
    assert document.usable
    assert set(codes(document)) <= {"value-shape", "date-unreadable"}
