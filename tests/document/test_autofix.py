"""What can be mended without judgement: the same skill, in YAML that everybody reads."""

import os
from dataclasses import fields

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from registry.document.autofix import CHECK_ONLY_RULES, FIXABLE, autofix, untidy
from registry.document.frontmatter import split
from registry.document.parse import parse_document
from registry.model import DOCUMENT_NAMES, Document

SAID = [field.name for field in fields(Document) if field.name not in {"text", "diagnostics"}]


def everything(code):
    assert code in FIXABLE
    return True


def mended(text, folder="tea", wanted=everything):
    """Return the text after it was mended, and the codes of what was."""
    found = autofix(text.encode(), folder_name=folder, wanted=wanted)
    return (text, ()) if found is None else (found.data.decode(), found.codes)


def codes(data):
    document = parse_document(data, folder_name="tea")
    found = [*document.diagnostics, *untidy(data, document)]
    return {finding.code for finding in found}


@pytest.mark.parametrize(
    ("value", "expected", "code"),
    [
        ("Use for: tea", '"Use for: tea"', "yaml-colon"),
        ('Say "hi": now', "'Say \"hi\": now'", "yaml-colon"),
        ("**Tea** made", '"**Tea** made"', "yaml-special-character"),
        ("@me", '"@me"', "yaml-special-character"),
        ("`tea` made", '"`tea` made"', "yaml-special-character"),
        ('"say "hi" to me"', 'say "hi" to me', "yaml-quotes"),
        ("'it's tea'", "it's tea", "yaml-quotes"),
        ('"a\\d"', '"a\\\\d"', "yaml-escape"),
        ('"\\ud83d\\ude00 hi"', '"\U0001f600 hi"', "yaml-surrogates"),
        ("[a] [b]", '"[a] [b]"', "yaml-brackets"),
        ("{TEA} maker", '"{TEA} maker"', "yaml-brackets"),
        (">- Some text", "Some text", "yaml-block-text"),
        ("| One\n  two", "|-\n  One\n  two", "yaml-block-text"),
        ("|\nNot indented", "Not indented", "yaml-indentation"),
        ("One\nTwo", "One Two", "yaml-stray-line"),
        ("For:  \n1. you;  \n2. me.", "|-\n  For:\n  1. you;\n  2. me.", "yaml-colon"),
    ],
)
def test_a_value_that_had_to_be_repaired_is_written_as_it_is_read(value, expected, code):
    text = "---\nname: tea # mine\ndescription: {}\nlicense:   MIT\n---\n\nBody  \n"
    assert codes(text.format(value).encode()) == {code}
    assert mended(text.format(value)) == (text.format(expected), (code,))
    assert codes(text.format(expected).encode()) == set()


@pytest.mark.parametrize(
    ("lines", "expected", "code"),
    [
        ("tags: [a, b", "tags: [a, b]", "yaml-brackets"),
        ("tags: [a,\n  b,", "tags: [a,\n  b,]", "yaml-brackets"),
        ("metadata:\n  tags: [a, b\n  x: 1", "metadata:\n  tags: [a, b]\n  x: 1", "yaml-brackets"),
        ("metadata:\n  note: x: y\n  z: 1", 'metadata:\n  note: "x: y"\n  z: 1', "yaml-colon"),
        ("metadata:\n\tx: 1\n\ty: 2", "metadata:\n  x: 1\n  y: 2", "yaml-indentation"),
        (
            'when:\n  -   "tea" in text\n  - plain # so',
            "when:\n  -   '\"tea\" in text'\n  - plain # so",
            "yaml-list",
        ),
        ("use:\n  - name: a\n    on: x: y", 'use:\n  - name: a\n    on: "x: y"', "yaml-colon"),
        ("use:\n  - on: x: y\n    b: 1", 'use:\n  - on: "x: y"\n    b: 1', "yaml-colon"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_only_the_broken_lines_of_lists_and_mappings_are_written_anew(
    lines, expected, code, newline
):
    text = "---\nname: tea\ndescription: Makes tea.\n{}\nlicense: MIT\n---\nBody\n"
    broken, good = (text.format(one).replace("\n", newline) for one in (lines, expected))
    assert mended(broken) == (good, (code,))
    assert codes(good.encode()) == set()


@pytest.mark.parametrize(
    "lines",
    [
        'metadata: {"a": \\["b"]}',
        "triggers:\n  one: a: b\n  two\nthree",
        'note: "a" or "b"',
        "note: x: y\n# about the next\nlast: 1",
        "note: x: y\nversion\uff1a 1",
        "name: again",
        "text that belongs to nothing: well",
        'note: "\\ud83d hi"',
        "a: &x [y]\nb: *x",
        "note: x: y\x07",
    ],
)
def test_what_a_person_has_to_decide_is_left_alone(lines):
    text = f"---\nname: tea\ndescription: Makes tea.\n{lines}\n---\nBody\n"
    assert codes(text.encode()) or "nothing" in lines
    assert mended(text) == (text, ())


@pytest.mark.parametrize("tags", ["\ttags: [x", "  tags: [x, y]", "\ttags:\n\t- x"])
@pytest.mark.parametrize("value", ["Makes tea.", "Makes tea: green.", '"Makes tea."'])
def test_a_key_that_is_indented_below_a_value_is_left_to_a_person(value, tags):
    text = f"---\nname: tea\ndescription: {value}\n{tags}\n---\nBody\n"
    assert mended(text) == (text, ())
    [finding] = parse_document(text.encode(), folder_name="tea").diagnostics
    assert (finding.code, finding.line) == ("yaml-indentation", 4)
    assert finding.message == "`tags` is indented below `description`, which has a value"


@pytest.mark.parametrize(
    "text",
    [
        "# Tea\n\nWithout front matter: that is another matter.\n",
        "name: tea\ndescription: Use: now\n\nBody\n",
        "---\nname: tea\ndescription: Use: now\nBody\n",
        "",
    ],
)
def test_front_matter_without_its_two_lines_is_left_alone(text):
    assert mended(text) == (text, ())


def test_a_byte_order_mark_goes_and_nothing_else():
    text = "---\nname: tea\ndescription: Makes tea.\n---\nBody\n"
    assert mended("\ufeff" + text) == (text, ("byte-order-mark",))


def test_spaces_behind_the_delimiters_go_and_nothing_else():
    text = "---\nname: tea\ndescription: Makes tea.  \n---\nBody  \n---  \n"
    wide = text.replace("---\n", "--- \t\n", 2)
    assert codes(wide.encode()) == {"front-matter-spaces"}
    assert mended(wide) == (text, ("front-matter-spaces",))


@pytest.mark.parametrize("usual", ["\n", "\r\n"])
def test_of_line_ends_the_most_frequent_stay(usual):
    text = "---\nname: tea\ndescription: Makes tea.\n---\nBody\n".replace("\n", usual)
    other = {"\n": "\r\n", "\r\n": "\n"}[usual]
    mixed = text.replace(f"tea{usual}", f"tea{other}")
    assert "line-ends-mixed" in codes(mixed.encode())
    assert mended(mixed) == (text, ("line-ends-mixed",))


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("tags: [one, One, two]", "tags: [one, two]"),
        ('tags: ["#PyTorch", ML]', 'tags: ["PyTorch", ML]'),
        ("tags:\n  - '#one'\n  - two # so\n  - two", "tags:\n  - one\n  - two # so"),
        ("tags: '#one #two'", "tags: 'one, two'"),
        ("tags: one;two", "tags: one, two"),
        ("metadata:\n  tags: one, one", "metadata:\n  tags: one"),
    ],
)
def test_tags_are_written_as_they_are_read_each_once(tags, expected):
    text = "---\nname: tea\ndescription: Makes tea.\n{}\n---\nBody\n"
    assert codes(text.format(tags).encode()) == {"tags-spelling"}
    assert mended(text.format(tags)) == (text.format(expected), ("tags-spelling",))
    assert codes(text.format(expected).encode()) == set()


@pytest.mark.parametrize("tags", ["[SEO, Next.js]", '"[a, b]"', "a, b", "{a: b}", "", "[[a], b]"])
def test_tags_that_everybody_reads_keep_their_case_and_shape(tags):
    text = f"---\nname: tea\ndescription: Makes tea.\ntags: {tags}\n---\nBody\n"
    assert mended(text) == (text, ()) or tags == "[[a], b]"


@pytest.mark.parametrize("name", ["Green Tea", "green_tea", '"GREEN-TEA"', "Green  Tea"])
def test_a_name_that_differs_from_the_folder_in_case_and_spaces_alone_becomes_the_folders(name):
    text = "---\nname: {}\ndescription: Makes tea.\n---\nBody\n"
    quoted = '"' if name.startswith('"') else ""
    changed, done = mended(text.format(name), "green-tea")
    assert changed == text.format(f"{quoted}green-tea{quoted}")
    assert "name-differs-from-folder" in done
    assert set(done) <= {"name-characters", "name-differs-from-folder", "name-upper-case"}


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("Black Tea", "green-tea"),
        ("Green Tea", "Green Tea"),
        ("C++", "c"),
        ("green/tea", "green-tea"),
    ],
)
def test_another_name_is_left_alone(name, folder):
    text = f"---\nname: {name}\ndescription: Makes tea.\n---\nBody\n"
    assert mended(text, folder) == (text, ())


def test_only_what_is_asked_for_is_mended():
    text = "\ufeff---\nname: tea\ndescription: Use: now\nnote: *x\n---\nBody\n"
    changed, done = mended(text, wanted=lambda code: code == "yaml-colon")
    assert done == ("yaml-colon",)
    assert changed == text.replace("Use: now", '"Use: now"')


PIECES = (
    "a: b - * & ! | >- ' \" [ ] { } # , % @ ` \\d \\ud83d\\ude00 tea #tea tags: \u3000 \u00a0 \uff1a"
).split(" ")


@given(
    st.lists(
        st.sampled_from([*PIECES, " ", ": ", "\n", "\n  ", "\n  - ", "\t", "\r"]), max_size=25
    ).map("".join),
    st.sampled_from(["note", "tags", "description", "metadata", "Tags"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_whatever_stands_there_says_the_same_after_it_was_mended(text, key, newline):
    data = f"---\nname: tea\n{key}: {text}\nlicense: MIT\n---\nBody\n".replace(
        "\n", newline
    ).encode()
    found = autofix(data, folder_name="tea", wanted=everything)
    if found is None:
        return
    assert autofix(found.data, folder_name="tea", wanted=everything) is None
    before, after = (parse_document(one, folder_name="tea") for one in (data, found.data))
    for field in set(SAID) - {"body", "body_line", "front_matter"}:
        assert getattr(after, field) == getattr(before, field)
    if "tags-spelling" not in found.codes:
        assert after.front_matter == before.front_matter
    assert after.body.replace("\r\n", "\n") == before.body.replace("\r\n", "\n")


def test_every_code_of_its_own_has_a_rule():
    assert CHECK_ONLY_RULES.keys() <= FIXABLE


def test_a_real_skill_says_the_same_after_it_was_mended_and_twice_is_as_once(corpus):
    changed = valid = 0
    for place, _, names in os.walk(corpus):
        for name in set(names) & set(DOCUMENT_NAMES):
            path = os.path.join(place, name)
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                data = file.read()
            folder = os.path.basename(place)
            found = autofix(data, folder_name=folder, wanted=everything)
            if found is None:
                continue
            changed += 1
            assert autofix(found.data, folder_name=folder, wanted=everything) is None, path
            before, after = (parse_document(one, folder_name=folder) for one in (data, found.data))
            left = SAID
            if "name-differs-from-folder" in found.codes:
                assert after.name == folder
                left = [one for one in left if one not in {"name", "front_matter"}]
            if "tags-spelling" in found.codes:
                left = [one for one in left if one != "front_matter"]
            for field in set(left) - {"body", "body_line"}:
                assert getattr(after, field) == getattr(before, field), path
            assert after.body.replace("\r\n", "\n") == before.body.replace("\r\n", "\n"), path
            gone = {f.code for f in before.diagnostics} - {f.code for f in after.diagnostics}
            if any(code.startswith("yaml-") for code in found.codes):
                assert gone, path
            broken = ("yaml-", "control-", "front-matter-")
            if not any(f.code.startswith(broken) for f in after.diagnostics):
                assert isinstance(yaml.safe_load(split(after.text).front), dict), path
                valid += any(code.startswith("yaml-") for code in gone)
    assert changed > 25
    assert valid > 7
