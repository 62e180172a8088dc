"""Where the front matter begins and ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.document.frontmatter import ends_early, split, split_loosely
from registry.document.parse import parse_text

KEYS = "name: tea\ndescription: Makes tea.\n"


def codes(document):
    return {finding.code for finding in document.diagnostics}


@pytest.mark.parametrize(
    ("text", "front_line", "body", "body_line"),
    [
        pytest.param(f"---\n{KEYS}---\nBody\n", 2, "Body\n", 5, id="plain"),
        pytest.param(f"---\n{KEYS}---", 2, "", 4, id="nothing after the closing line"),
        pytest.param(f"---  \n{KEYS}--- \t\nBody", 2, "Body", 5, id="spaces after the lines"),
        pytest.param(f"---\u00a0\n{KEYS}---\u00a0\nBody", 2, "Body", 5, id="no-break spaces"),
        pytest.param(f"---\n{KEYS}---\n\n\nBody", 2, "\n\nBody", 5, id="blank lines stay"),
        pytest.param(f"---\n{KEYS}---\nBody\n".replace("\n", "\r\n"), 2, "Body\r\n", 5, id="CRLF"),
        pytest.param(f"---\r\n{KEYS}---\nBody\r\n", 2, "Body\r\n", 5, id="mixed line ends"),
        pytest.param(f"---\n{KEYS}---\nBody\n".replace("\n", "\r"), 2, "Body\r", 5, id="CR"),
    ],
)
def test_front_matter_stands_between_two_lines(text, front_line, body, body_line):
    parts = split(text)
    assert parts.fenced
    assert not parts.findings
    assert (parts.front_line, parts.body, parts.body_line) == (front_line, body, body_line)
    document = parse_text(text, folder_name="f")
    assert (document.name, document.description) == ("tea", "Makes tea.")
    assert document.diagnostics == ()


@pytest.mark.parametrize(
    "ruler",
    ["---", "-----", "***", "- - -", "--- x"],
    ids=["same", "long", "stars", "spaced", "text"],
)
def test_a_ruler_in_the_body_does_not_close_the_front_matter(ruler):
    document = parse_text(f"---\n{KEYS}---\n# Tea\n\n{ruler}\n\nMore\n", folder_name="f")
    assert document.body == f"# Tea\n\n{ruler}\n\nMore\n"
    assert dict(document.front_matter) == {"name": "tea", "description": "Makes tea."}


@pytest.mark.parametrize(
    "value",
    ["a --- b", "'--- x'", "|\n  ---\n  below", ">\n  above\n   ---\n  below"],
    ids=["in plain text", "quoted", "indented at the start", "indented in the middle"],
)
def test_dashes_in_a_value_do_not_close_the_front_matter(value):
    document = parse_text(f"---\nname: tea\ndescription: {value}\n---\nBody\n", folder_name="f")
    assert document.body == "Body\n"
    assert "---" in document.description
    assert document.diagnostics == ()


@pytest.mark.parametrize(
    ("text", "code", "body"),
    [
        pytest.param(
            f"\n\n---\n{KEYS}---\nBody\n", "front-matter-late", "Body\n", id="blank first"
        ),
        pytest.param(
            f"# Tea\n\nHello.\n\n---\n{KEYS}---\nBody\n",
            "front-matter-late",
            "Body\n",
            id="below a title",
        ),
        pytest.param(
            f"```markdown\n---\n{KEYS}---\nBody\n```\n",
            "front-matter-fenced",
            "Body\n",
            id="the whole file in a fence",
        ),
        pytest.param(
            f"# Tea\n\n```yaml\n{KEYS}```\nBody\n", "front-matter-fenced", "Body\n", id="in a fence"
        ),
        pytest.param(
            f"```yaml\n---\n{KEYS}---\n```\nBody\n",
            "front-matter-fenced",
            "Body\n",
            id="in a fence of its own",
        ),
        pytest.param(f"{KEYS}---\nBody\n", "front-matter-not-opened", "Body\n", id="not opened"),
        pytest.param(
            f"\n{KEYS}\n# Tea\n", "front-matter-not-closed", "\n# Tea\n", id="no `---` at all"
        ),
        pytest.param(
            "--- name: tea description: Makes tea. ---\nBody\n",
            "front-matter-not-opened",
            "Body\n",
            id="all on the opening line",
        ),
        pytest.param(
            "--- name: tea\ndescription: Makes tea.\n---\nBody\n",
            "front-matter-not-opened",
            "Body\n",
            id="one key on the opening line",
        ),
        pytest.param(
            f"---\n{KEYS}\n# Tea\nBody\n",
            "front-matter-not-closed",
            "\n# Tea\nBody\n",
            id="not closed",
        ),
        pytest.param(
            f"---\n{KEYS}# Tea\n",
            "front-matter-not-closed",
            "",
            id="a heading right below is taken for a comment",
        ),
        pytest.param(
            f"---\n{KEYS}## Tea\nBody\n",
            "front-matter-not-closed",
            "## Tea\nBody\n",
            id="subheading",
        ),
        pytest.param(
            f"---\n{KEYS}Body\n", "front-matter-not-closed", "Body\n", id="text right below"
        ),
        pytest.param(
            f"---\n{KEYS}---# Tea\nBody\n", "front-matter-not-closed", "# Tea\nBody\n", id="glued"
        ),
        pytest.param(
            f"---\n{KEYS}---# Tea\nBody\n\n---\n\nMore: text: here\n",
            "front-matter-not-closed",
            "# Tea\nBody\n\n---\n\nMore: text: here\n",
            id="glued, with a ruler far below",
        ),
        pytest.param(
            f"---\n{KEYS}\n# Tea\n\nSome text.\n\n---\n\nMore\n",
            "front-matter-not-closed",
            "\n# Tea\n\nSome text.\n\n---\n\nMore\n",
            id="closed only by a ruler far below",
        ),
        pytest.param(
            f"---\n{KEYS}----------\nBody\n", "front-matter-not-closed", "Body\n", id="long ruler"
        ),
        pytest.param(f"---\n{KEYS}...\nBody\n", "front-matter-not-closed", "Body\n", id="dots"),
        pytest.param(
            f"***\n\n{KEYS}-------\nBody\n", "front-matter-not-closed", "Body\n", id="other rulers"
        ),
        pytest.param(
            "---\n  name: tea\n  description: Makes tea.\n  ---\n\n  Body\n",
            "front-matter-not-closed",
            "\n  Body\n",
            id="all indented",
        ),
    ],
)
def test_front_matter_is_found_without_its_lines(text, code, body):
    document = parse_text(text, folder_name="f")
    assert (document.name, document.description) == ("tea", "Makes tea.")
    assert document.usable
    assert code in codes(document)
    assert document.body == body


def test_a_list_and_nested_keys_belong_to_front_matter_that_is_not_closed():
    front = f"{KEYS}tags:\n- a\n- b\n\nmetadata:\n  author: me\n# a comment\nlicense: MIT\n"
    document = parse_text(f"---\n{front}\nThe body.\n", folder_name="f")
    assert list(document.front_matter) == ["name", "description", "tags", "metadata", "license"]
    assert document.body == "\nThe body.\n"


@pytest.mark.parametrize(
    "text",
    [
        "# Tea\n\nMakes tea.\n",
        "Just text: with a colon\n",
        "---\n\n# Tea\n\nMakes tea.\n",
        "---\n",
        "------\n",
        "```python\nname = 1\n```\n\nText.\n",
        "# Tea\n\n---\n\nNote: the ruler is none of ours.\n",
    ],
)
def test_a_document_without_keys_is_all_body(text):
    assert split(text).front is None
    document = parse_text(text, folder_name="f")
    assert document.body == text
    assert document.body_line == 1
    assert document.front_matter == {}
    assert "front-matter-missing" in codes(document)


def test_rulers_around_a_comment_are_no_front_matter():
    document = parse_text("---\n\n# Tea\n---\n\nMakes tea.\n", folder_name="f")
    assert (document.name, document.description) == ("f", "Makes tea.")
    assert document.usable


def test_lines_are_counted_in_the_whole_file():
    document = parse_text(f"# Tea\n\n---\n{KEYS}---\nBody\n", folder_name="f")
    assert document.body_line == 7
    [late] = [found for found in document.diagnostics if found.code == "front-matter-late"]
    assert late.line == 4


@pytest.mark.parametrize(
    ("front", "early"),
    [
        ("name: a\n# a comment\nb: c\n", False),
        ("name: a\n\n# a comment\ntags: [b]\n", False),
        ("name: a\n\n# Heading\nText\n", True),
        ("name: a\n---# Heading\n", True),
        ("name: a\n  ---\n", True),
    ],
)
def test_markdown_inside_front_matter_is_noticed(front, early):
    assert ends_early(front) is early


@given(st.text(alphabet="-\n\r :#`*abname\ufeff\u2028\x85\x0b"), st.booleans())
def test_the_body_is_the_end_of_the_text(text, loosely):
    parts = split_loosely(text) if loosely else split(text)
    assert parts.body_line >= 1
    if "`" not in text:
        assert text.endswith(parts.body)
