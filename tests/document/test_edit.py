"""Changing documents: what was asked changes, every other byte stays."""

import itertools
import os

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from registry.document.edit import EditImpossible, edit_document
from registry.document.markdown import same_parameters
from registry.document.parse import parse_text
from registry.document.render import prose_text
from registry.document.yaml_text import tag_words
from registry.model import DOCUMENT_NAMES, Parameter

FIELDS = (
    "name description kind category version license author compatibility tags created "
    "required_tools allowed_tools parameters hidden"
).split()


def read(text):
    return parse_text(text, folder_name="folder")


def changed(before, after):
    """The lines that were taken away and those that came instead, without what both share."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    pairs = zip(old, new, strict=False)
    head = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    old, new = old[head:], new[head:]
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    return "".join(old), "".join(new)


def same_but(before, after, *fields):
    first, second = read(before), read(after)
    for field in FIELDS:
        if field not in fields:
            assert getattr(first, field) == getattr(second, field), field


def front(lines, body="\n# Tea\n"):
    return f"---\nname: tea\n{lines}---\n{body}"


@pytest.mark.parametrize(
    ("old", "value", "new"),
    [
        pytest.param("description: Old.\n", "New.", "description: New.\n", id="plain"),
        pytest.param('description: "Old."\n', "New.", 'description: "New."\n', id="double quotes"),
        pytest.param(
            "description: 'Old.'\n", "It's: so", "description: 'It''s: so'\n", id="single"
        ),
        pytest.param("description: Old.\n", "a: b", 'description: "a: b"\n', id="needs quotes"),
        pytest.param(
            "description: Old. # why\n", "New.", "description: New. # why\n", id="comment"
        ),
        pytest.param(
            "description: Old. # why\n", "a\nb", 'description: "a\\nb" # why\n', id="lines, comment"
        ),
        pytest.param(
            "description: >-\n  Old\n  text.\n\nlicense: MIT\n",
            "New.",
            "description: New.\n\nlicense: MIT\n",
            id="folded block",
        ),
        pytest.param(
            "description: |\n    Old\n\n    text.\n# note\nlicense: MIT\n",
            "a\n\nb",
            "description: |-\n  a\n\n  b\n# note\nlicense: MIT\n",
            id="literal block",
        ),
        pytest.param(
            "description: Old\n  goes on.\nlicense: MIT\n",
            "New.",
            "description: New.\nlicense: MIT\n",
            id="plain over lines",
        ),
        pytest.param(
            'description:\n  "Old\n  one."\n', "New.", 'description:\n  "New."\n', id="own line"
        ),
        pytest.param("Description : Old.\n", "New.", "Description : New.\n", id="capital, space"),
        pytest.param('"description": Old.\n', "New.", '"description": New.\n', id="quoted key"),
        pytest.param("description:\n", "New.", "description: New.\n", id="empty"),
        pytest.param(
            "description: # todo\n", "New.", "description: New. # todo\n", id="only comment"
        ),
        pytest.param("license: MIT\n", "New.", "license: MIT\ndescription: New.\n", id="missing"),
        pytest.param(
            "description: Old: with colon\nlicense: MIT\n",
            "New.",
            "description: New.\nlicense: MIT\n",
            id="broken, colon",
        ),
        pytest.param(
            "description: >- Old text\n  goes on\nlicense: MIT\n",
            "New.",
            "description: New.\nlicense: MIT\n",
            id="broken, text on the line of the block",
        ),
        pytest.param(
            "description: Old.\nargument-hint: [a] [b]: c\n",
            "New.",
            "description: New.\nargument-hint: [a] [b]: c\n",
            id="broken elsewhere",
        ),
        pytest.param(
            'description: "Old" and more\nlicense: MIT\n',
            "a\nb",
            "description: |-\n  a\n  b\nlicense: MIT\n",
            id="broken, quotes",
        ),
    ],
)
def test_a_description_is_changed_where_it_stands(old, value, new):
    for newline, mark in itertools.product(["\n", "\r\n"], ["", "\ufeff"]):
        text = mark + front(old).replace("\n", newline)
        assert edit_document(text, description=value) == mark + front(new).replace("\n", newline)


@pytest.mark.parametrize(
    ("old", "tags", "new"),
    [
        pytest.param("", ["a", "B"], 'metadata:\n  tags: "a, b"\n', id="none yet"),
        pytest.param(
            "metadata:\n    author: me # x\n\n",
            ["a"],
            'metadata:\n    author: me # x\n    tags: "a"\n\n',
            id="into metadata",
        ),
        pytest.param("metadata:\n", ["a"], 'metadata:\n  tags: "a"\n', id="empty metadata"),
        pytest.param("metadata: {}\n", ["a"], 'metadata: {tags: "a"}\n', id="empty braces"),
        pytest.param(
            'metadata: {"x": {"y": 1}}\n',
            ["a"],
            'metadata: {"x": {"y": 1}, "tags": "a"}\n',
            id="JSON metadata",
        ),
        pytest.param("metadata: text\n", ["a"], 'metadata: text\ntags: "a"\n', id="no mapping"),
        pytest.param("tags: [a, 'B', c] # x\n", ["b", "d"], "tags: ['B', d] # x\n", id="list"),
        pytest.param(
            "tags:\n  # one\n  - Alpha # first\n  - beta\n  - 'gamma'\nlicense: MIT\n",
            ["gamma", "alpha", "new"],
            "tags:\n  # one\n  - 'gamma'\n  - Alpha # first\n  - new\nlicense: MIT\n",
            id="block list, another order",
        ),
        pytest.param(
            "tags:\n- a # first\n# on b\n- 'b'\nlicense: MIT\n",
            ["a", "b", "c"],
            "tags:\n- a # first\n# on b\n- 'b'\n- c\nlicense: MIT\n",
            id="block list, one more",
        ),
        pytest.param(
            "tags:\n  - a\n  - b\nlicense: MIT\n",
            [],
            "tags: []\nlicense: MIT\n",
            id="block list, none",
        ),
        pytest.param("tags: a, b\n", ["b"], "tags: b\n", id="comma text"),
        pytest.param("tags: 'a, b'\n", ["b", "c"], "tags: 'b, c'\n", id="quoted comma text"),
        pytest.param("tags: '[\"a\"]'\n", ["b"], "tags: '[\"b\"]'\n", id="JSON text"),
        pytest.param("tags:\n", ["a", "b"], "tags: [a, b]\n", id="no value"),
        pytest.param(
            "metadata:\n  hermes:\n    tags: [a, b]\n    x: y\n",
            ["b", "c"],
            "metadata:\n  hermes:\n    tags: [b, c]\n    x: y\n",
            id="hermes",
        ),
        pytest.param(
            "metadata: {openclaw: {keywords: [a], emoji: x}}\n",
            ["b"],
            "metadata: {openclaw: {keywords: [b], emoji: x}}\n",
            id="openclaw in braces",
        ),
        pytest.param(
            "tags: [a, b]\nkeywords: [b, c]\nmetadata:\n  tags: d\n",
            ["b", "e"],
            'tags: [b, e]\nkeywords: [b]\nmetadata:\n  tags: ""\n',
            id="several places",
        ),
        pytest.param(
            "tags: [a]\nmetadata: {x: y: z}\n",
            ["b"],
            "tags: [b]\nmetadata: {x: y: z}\n",
            id="broken elsewhere",
        ),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_tags_are_changed_in_their_own_shape(old, tags, new, newline):
    text = front(f"description: Makes tea.\n{old}").replace("\n", newline)
    result = edit_document(text, tags=tags)
    assert result == front(f"description: Makes tea.\n{new}").replace("\n", newline)
    assert read(result).tags == tuple(tag.casefold() for tag in tags)
    same_but(text, result, "tags")


@pytest.mark.parametrize(
    ("old", "kind", "new"),
    [
        pytest.param("", "workflow", "metadata:\n  kind: workflow\n", id="none yet"),
        pytest.param("kind: companion\n", "workflow", "kind: workflow\n", id="top"),
        pytest.param("type: companion\n", "workflow", "type: workflow\n", id="type"),
        pytest.param(
            "ethos:\n  kind: a\ntype: b\n", "c", "ethos:\n  kind: c\ntype: b\n", id="ethos"
        ),
        pytest.param(
            "metadata:\n  ethos: {kind: 'a', x: 1}\n",
            "c, d",
            "metadata:\n  ethos: {kind: 'c, d', x: 1}\n",
            id="ethos in metadata",
        ),
        pytest.param("metadata: {kind: a}\n", "c, d", 'metadata: {kind: "c, d"}\n', id="braces"),
        pytest.param("kind: a\ntype: b\n", "", 'kind: ""\ntype: ""\n', id="taken away"),
    ],
)
def test_a_kind_is_changed_where_it_is_read(old, kind, new):
    text = front(f"description: Makes tea.\n{old}")
    result = edit_document(text, kind=kind)
    assert result == front(f"description: Makes tea.\n{new}")
    assert read(result).kind == (kind or None)


@pytest.mark.parametrize(
    ("old", "body", "new"),
    [
        pytest.param("\n# Tea\n", "# New\n\nText", "\n# New\n\nText\n", id="blank line kept"),
        pytest.param("# Tea\n", "# New\n", "# New\n", id="no blank line"),
        pytest.param("\n# Tea", "# New", "\n# New", id="no final newline"),
        pytest.param("\n\n# Tea\n", "\n# New", "\n\n# New\n", id="two blank lines"),
        pytest.param("", "# New", "\n# New\n", id="no body yet"),
        pytest.param("\n# Tea\n", "", "", id="taken away"),
        pytest.param("\n# Tea\n", "\n# Tea\n", "\n# Tea\n", id="the same"),
        pytest.param("\n# Tea\n", "---\nname: x\n---\n", "\n---\nname: x\n---\n", id="rulers"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_body_is_replaced_below_the_front_matter(old, body, new, newline):
    text = front("description: a: b\n", old).replace("\n", newline)
    expected = front("description: a: b\n", new).replace("\n", newline)
    body = body.replace("\n", newline) if body == old else body
    assert edit_document(text, body=body) == expected


TEMPLATE = """\
# Skill: tea

## Description
Makes tea.

## Parameters
| Name | Type |
|------|------|
| cups | number |

More on these.

## Implementation
1. Boil.

## Metadata
- **Created**: 2026-02-14T15:45:00Z
- **Version**: 1.0.0"""

CUPS = [Parameter("cups", "number", "How | many", required=True, default="2")]


def test_the_template_without_front_matter_is_changed_in_its_section():
    result = edit_document(TEMPLATE, description="Brews\ntea.")
    assert result == TEMPLATE.replace("Makes tea.", "Brews\ntea.")
    same_but(TEMPLATE, result, "description")


def test_a_description_that_the_section_cannot_hold_gets_front_matter():
    result = edit_document(TEMPLATE, description="a\n## Parameters\nb")
    assert result.endswith(TEMPLATE)
    same_but(TEMPLATE, result, "description")


def test_the_section_of_the_template_follows_the_front_matter():
    text = f"---\nname: tea\ndescription: Makes tea.\n---\n\n{TEMPLATE}"
    result = edit_document(text, description="# Brews")
    assert 'description: "# Brews"\n' in result
    assert "## Description\n\\# Brews\n" in result
    assert result.count("Makes tea.") == 0
    other = text.replace("description: Makes", "description: Always makes")
    assert edit_document(other, description="Brews.").endswith(TEMPLATE)


def test_tags_of_a_document_without_front_matter_get_some():
    assert edit_document("# Tea\n\nMakes tea.\n", tags=["a"], folder_name="tea") == (
        '---\nname: tea\ndescription: Makes tea.\nmetadata:\n  tags: "a"\n---\n\n# Tea\n\nMakes tea.\n'
    )
    result = edit_document(TEMPLATE, tags=["a"])
    assert result.endswith(TEMPLATE)
    same_but(TEMPLATE, result, "tags")


def test_parameters_are_replaced_in_their_table():
    result = edit_document(TEMPLATE, parameters=CUPS)
    assert changed(TEMPLATE, result)[0] == "| Name | Type |\n|------|------|\n| cups | number |\n"
    assert '| cups | number | Yes | How \\| many | `"2"` |\n\nMore on these.\n' in result
    same_but(TEMPLATE, result, "parameters")
    assert edit_document(result, parameters=CUPS) == result
    none = edit_document(result, parameters=[])
    assert "## Parameters\nNone.\n\nMore" in none
    assert read(none).parameters == ()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("\n# Tea", "\n# Tea\n\n## Parameters\n{}\n"),
        (
            "\n# Tea\n\n## Implementation\nx\n",
            "\n# Tea\n\n## Parameters\n{}\n\n## Implementation\nx\n",
        ),
        ("\n## Parameters\nNone.\n\n## B\n", "\n## Parameters\n{}\n\n## B\n"),
        ("\n## Parameters\n\n## B\n", "\n## Parameters\n\n{}\n\n## B\n"),
        ("\n## Parameters", "\n## Parameters\n\n{}\n"),
        ("", "\n## Parameters\n{}\n"),
        ("# A\n## B\n```\nopen\n", "# A\n## Parameters\n{}\n\n## B\n```\nopen\n"),
    ],
)
def test_a_missing_table_is_added(body, expected):
    result = edit_document(front("description: a\n", body), parameters=CUPS)
    found = read(result)
    assert same_parameters(found.parameters, CUPS)
    lines = [line for line in found.body.splitlines() if line.startswith("|")]
    assert len(lines) == 3
    assert found.body == expected.format("\n".join(lines))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "parameters:\n  - name: a\n    type: string\nlicense: MIT\n",
            'parameters:\n  - name: cups\n    type: number\n    description: How | many\n    required: true\n    default: "2"\nlicense: MIT\n',
        ),
        (
            "parameters: [{name: a}] # x\n",
            'parameters: [{name: cups, type: number, description: How | many, required: true, default: "2"}] # x\n',
        ),
    ],
)
def test_parameters_in_the_front_matter_are_replaced_there(old, new):
    text = front(f"description: a\n{old}")
    assert edit_document(text, parameters=CUPS) == front(f"description: a\n{new}")


@pytest.mark.parametrize(
    ("text", "edit", "reason"),
    [
        (front("description: a\n"), {"description": " "}, "needs a description"),
        (front("description: a\0\n"), {"description": "b"}, "NUL"),
        ("--- name: tea description: a ---\n# Tea\n", {"description": "b"}, "same line"),
        (front("description: a\n"), {"tags": ["x" * 200]}, "tags"),
        (front("description: a\ntags: {b: c}\n"), {"tags": ["d"]}, "unknown format"),
        (
            front('description: a\nmetadata: \'{"tags": ["a"]}\'\n'),
            {"tags": ["d"]},
            "inside a text",
        ),
        (
            front("description: a\nparameters:\n  - name: a\n    enum: [1]\n"),
            {"parameters": CUPS},
            "more than would be kept",
        ),
        (
            front("description: a\n", "# Tea\n```\nopen\n"),
            {"parameters": CUPS},
            "parameters",
        ),
        (front("description: a\n"), {"description": "x" * 70_000}, "."),
        ("---\nname tea\ndescription a\n---\n", {"description": "e"}, "broken YAML"),
        (front("license: &a MIT\nx: *a\ny: [\n"), {"kind": "e"}, "."),
    ],
)
def test_what_would_do_damage_is_refused(text, edit, reason):
    with pytest.raises(EditImpossible, match=reason):
        edit_document(text, **edit)


def test_several_fields_change_at_once():
    text = front("description: a\n")
    assert edit_document(text, description="b", tags=["c"], kind="d", body="e") == (
        '---\nname: tea\ndescription: b\nmetadata:\n  tags: "c"\n  kind: d\n---\n\ne\n'
    )


# Documents of many dialects, put together from parts.

DESCRIPTIONS = [
    "description: Makes tea.",
    'description: "Makes: tea"  # note',
    "description: 'It''s tea'",
    "description: >-\n  Makes\n  tea.",
    "description: |\n  Makes\n\n    tea.\n",
    "description: Makes: tea",
    "description: **Makes** tea",
    "description: >- Makes\n  tea",
    "Description: Makes\n  tea.",
]
TAGS = [
    "tags: [a, b]",
    "tags:\n  - a\n  - B # x",
    "tags:\n- 'a'\n\n- b",
    "tags: a, b",
    'tags: "a b"',
    "keywords: [a]\ntags: [b, c]",
    "metadata:\n  tags: 'a, b'\n  x: y",
    "metadata:\n  hermes:\n    tags:\n      - a\n    emoji: x",
    'metadata: {"openclaw": {"tags": ["a"], "emoji": "x"}}',
    "metadata:\n  author: me",
    "metadata: {author: me, x: [1, 2]}",
    "",
]
KINDS = ["kind: workflow", "type: skill", "ethos:\n  kind: companion", ""]
OTHERS = [
    "license: MIT  # comment",
    "# a comment",
    "",
    "allowed-tools: Bash(git:*) Read",
    "version: 1.10",
    "hooks:\n    a:\n        - b: c",
    "argument-hint: [file] [mode]",
    "date: 2026-01-15",
    "x: '%'",
]
OTHER_LINES = {
    "name: tea",
    "---",
    *(line for other in OTHERS for line in other.split("\n") if line),
}
BODIES = [
    "",
    "\n# Tea\n",
    "# Tea",
    "\n\n---\n\nText\n---\n",
    "\n# Skill: tea\n\n## Description\nx\n",
]


@st.composite
def documents(draw):
    parts = [
        draw(st.sampled_from(DESCRIPTIONS)),
        draw(st.sampled_from(TAGS)),
        draw(st.sampled_from(KINDS)),
        *draw(st.lists(st.sampled_from(OTHERS), max_size=3, unique=True)),
    ]
    lines = ["---", "name: tea", *draw(st.permutations(parts)), "---"]
    text = "\n".join(lines) + "\n" + draw(st.sampled_from(BODIES))
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    # Of broken front matter, a comment below a blank line may be taken for the body's first heading.
    assume(all(finding.code != "front-matter-not-closed" for finding in read(text).diagnostics))
    return draw(st.sampled_from(["", "\ufeff"])) + text.replace("\n", newline)


WORDS = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\0")
) | st.sampled_from(
    ["a: b", "- x", "yes", "it's", '"q"', "a\nb", "#", "[x", "{", "a\n\n b\n", "---", "*"]
)


@given(documents(), WORDS)
def test_a_new_description_changes_nothing_else(text, value):
    value = prose_text(value)
    assume(value)
    result = edit_document(text, description=value)
    assert read(result).description == value
    assert read(result).body == read(text).body
    same_but(text, result, "description")
    old, _ = changed(text, result)
    assert old.count("\n") <= 5
    assert not set(old.splitlines()) & OTHER_LINES
    assert edit_document(result, description=value) == result


@given(documents(), st.lists(st.sampled_from("a b c new x:y".split()) | WORDS, max_size=4))
def test_new_tags_change_nothing_else(text, tags):
    tags = [tag for tag in tags if all(len(word) <= 100 for word in tag_words([tag]))]
    result = edit_document(text, tags=tags)
    assert read(result).tags == tag_words(tags)
    assert read(result).body == read(text).body
    same_but(text, result, "tags")
    assert edit_document(result, tags=tags) == result


@given(documents(), WORDS)
def test_a_new_kind_changes_nothing_else(text, kind):
    kind = " ".join(prose_text(kind).split())
    assume(kind)
    result = edit_document(text, kind=kind)
    assert read(result).kind == kind
    assert read(result).body == read(text).body
    same_but(text, result, "kind")
    old, _ = changed(text, result)
    assert old.count("\n") <= 2


@given(documents(), WORDS)
@example("---\nname: a\ndescription: b\n---", "c")
def test_a_new_body_changes_nothing_above_it(text, body):
    result = edit_document(text, body=body)
    head = text[: len(text) - len(read(text).body)]
    assert result.startswith(head)
    assert read(result).body.split() == body.split()


@given(documents())
def test_present_values_change_nothing(text):
    document = read(text)
    assert text == edit_document(
        text,
        description=document.description,
        tags=document.tags,
        kind=document.kind,
        body=document.body,
        parameters=document.parameters,
    )


def test_almost_every_real_skill_can_be_changed(corpus):
    refused = count = 0
    for folder, _, names in os.walk(corpus):
        for name in names:
            path = os.path.join(folder, name)
            if name not in DOCUMENT_NAMES or not os.path.isfile(path):
                continue
            with open(path, encoding="utf-8", errors="replace", newline="") as file:
                text = file.read()
            count += 1
            try:
                result = edit_document(text, description="New: words", tags=["new", "x"])
            except EditImpossible:
                refused += 1
                continue
            assert read(result).description == "New: words", path
            assert read(result).tags == ("new", "x"), path
            same_but(text, result, "description", "tags", *(() if text[:3] == "---" else ["name"]))
    assert count > 200
    assert refused <= max(2, count // 400)
