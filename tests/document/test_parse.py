"""Whole documents: bytes in, a value out, whatever they are."""

import json

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from registry.document.findings import PARSER_RULES
from registry.document.parse import FRONT_MATTER_BYTES, MAX_FINDINGS, parse_document, parse_text
from registry.model import SEVERITIES

HEAD = b"---\nname: tea\ndescription: Makes tea.\n"
MIB = 1 << 20


def parse(data):
    if isinstance(data, str):
        data = data.encode()
    return parse_document(data, folder_name="folder")


def codes(document):
    return [finding.code for finding in document.diagnostics]


def test_a_sound_document_has_no_findings():
    text = "---\nname: tea\ndescription: Makes tea.\n---\n\n# Tea\n"
    document = parse(text)
    assert document.usable
    assert document.diagnostics == ()
    assert document.text == text
    assert (document.body, document.body_line) == ("\n# Tea\n", 5)


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\t", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(data):
    document = parse(data)
    assert not document.usable
    assert codes(document)[0] == "empty"
    assert (document.name, document.description) == ("folder", "")


def test_a_byte_order_mark_is_dropped_and_noted():
    document = parse(b"\xef\xbb\xbf" + HEAD + b"---\nBody")
    assert document.name == "tea"
    assert document.text.startswith("---")
    assert [(f.code, f.severity) for f in document.diagnostics] == [("byte-order-mark", "info")]


def test_bytes_that_are_no_utf8_are_an_error_with_their_place():
    document = parse(HEAD + b"---\nBody\ncaf\xe9\n")
    assert not document.usable
    assert (document.name, document.description) == ("tea", "Makes tea.")
    [finding] = document.diagnostics
    assert (finding.code, finding.line) == ("not-utf8", 6)
    assert str(len(HEAD) + 12) in finding.message
    assert "0xe9" in finding.message


def test_utf16_is_an_error():
    assert codes(parse("---\nname: tea\n".encode("utf-16-le")))[0] == "not-text"
    assert "not-utf8" in codes(parse("---\nname: tea\n".encode("utf-16")))


def test_a_few_nul_characters_are_left_out():
    document = parse(HEAD.replace(b"Makes", b"Ma\0kes") + b"---\nBo\0dy\n")
    assert document.usable
    assert document.description == "Makes tea."
    assert "\0" not in document.text
    assert [(f.code, f.line) for f in document.diagnostics] == [("nul-characters", 3)]


def test_lone_surrogates_in_a_text_become_replacement_characters():
    document = parse_text("---\nname: \ud800\ndescription: x\n---\n\udfff", folder_name="f")
    assert document.name == "\ufffd"
    assert document.body == "\ufffd"


def test_without_a_name_the_folder_gives_it():
    document = parse("---\ndescription: Makes tea.\n---\n")
    assert document.name == "folder"
    assert codes(document) == ["name-missing"]


@pytest.mark.parametrize("value", ["", "''", "~", '"  "'])
def test_an_empty_name_or_description_is_a_missing_one(value):
    document = parse(f"---\nname: {value}\ndescription: {value}\n---\nMakes tea.\n")
    assert document.usable
    assert (document.name, document.description) == ("folder", "Makes tea.")
    assert set(codes(document)) == {"name-missing", "description-from-body"}


@pytest.mark.parametrize(
    "value",
    ["Use when this capability is needed.", "TODO", "'[TODO: what it does]'", "Description"],
)
def test_a_placeholder_is_replaced_by_the_first_words_of_the_body(value):
    document = parse(f"---\nname: tea\ndescription: {value}\n---\n# Tea\n\nMakes tea.\n")
    assert document.usable
    assert document.description == "Makes tea."
    assert codes(document) == ["description-placeholder"]
    kept = parse(f"---\nname: tea\ndescription: {value}\n---\n# Tea\n")
    assert kept.description == value.strip("'")


def test_a_description_that_only_ends_like_a_placeholder_is_kept():
    text = "Makes tea. Use when this capability is needed."
    document = parse(f"---\nname: tea\ndescription: {text}\n---\nPour.\n")
    assert (document.description, codes(document)) == (text, [])


def test_without_description_and_text_a_document_is_not_usable():
    document = parse("---\nname: tea\n---\n\n# Tea\n\n```\ncode\n```\n")
    assert not document.usable
    assert codes(document) == ["description-missing"]
    assert document.name == "tea"


def test_front_matter_without_keys_is_noted():
    document = parse("---\n---\nMakes tea.\n")
    assert set(codes(document)) == {"front-matter-empty", "name-missing", "description-from-body"}


def test_front_matter_over_the_limit_is_an_error_that_still_names_the_skill():
    document = parse(HEAD + b"notes: " + b"x" * FRONT_MATTER_BYTES + b"\n---\nBody\n")
    assert not document.usable
    assert codes(document) == ["front-matter-too-large"]
    assert (document.name, document.description) == ("tea", "Makes tea.")


def test_the_limit_counts_bytes():
    def usable(size):
        words, more = divmod(size - len("description: \n"), 3)
        return parse("---\ndescription: " + "\u8336" * words + "x" * more + "\n---\n").usable

    assert usable(FRONT_MATTER_BYTES)
    assert not usable(FRONT_MATTER_BYTES + 1)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("a: &x [y]\nb: *x", "yaml-alias"),
        ("a: !!python/object:os.system {}", "yaml-tag"),
        ("a: !own b", "yaml-tag"),
        ("a: " + "[" * 50_000, "yaml-depth"),
    ],
)
def test_a_refused_document_still_has_a_name(line, code):
    document = parse(HEAD + line.encode() + b"\n---\nBody\n")
    assert not document.usable
    assert codes(document) == [code]
    assert document.diagnostics[0].line in {4, 5}
    assert (document.name, document.description) == ("tea", "Makes tea.")


def test_one_kind_of_finding_is_not_repeated_without_end():
    many = "".join(f"k{number}: a: b\n" for number in range(100))
    document = parse(HEAD + many.encode() + b"---\nBody\n")
    assert codes(document) == ["yaml-colon"] * MAX_FINDINGS
    assert "90 more" in document.diagnostics[-1].message
    assert len(document.front_matter) == 102


def test_every_code_has_a_severity_and_a_meaning():
    for code, rule in PARSER_RULES.items():
        assert code == code.lower().replace("_", "-")
        assert rule.severity in SEVERITIES
        assert rule.meaning


HOSTILE = {
    "brackets": "a: " + "[" * 60_000,
    "dashes": "a:\n  " + "- " * 30_000,
    "braces": "a: " + "{a: " * 15_000,
    "question marks": "? " * 30_000,
    "indentation": "\n".join(" " * depth + "a:" for depth in range(350)),
    "a billion laughs": "\n".join(
        [
            "a: &a [x, x]",
            *(f"{b}: &{b} [*{a}, *{a}]" for a, b in zip("abcdefg", "bcdefgh", strict=True)),
        ]
    ),
    "broken keys": "\n".join(f"k{number}: v: w" for number in range(6_000)),
    "open quotes": "\n".join(f'k{number}: "v' for number in range(6_000)),
    "long open quotes": "\n".join(f'k{number}: "{"v" * 5_000}' for number in range(12)),
    "broken items": "l: a: b\nm:\n" + '- "a" b\n' * 7_000,
    "broken at every depth": "".join(f"{' ' * depth}a: \n" for depth in range(14))
    + "".join(f"{' ' * 14}k{number}: a: b\n" for number in range(1_500)),
    "surrogates": 'a: "' + "\\ud83d" * 10_000 + '"',
    "backslashes": 'a: "' + "\\" * 60_001 + '"',
    "exclamation marks": "a: " + "!" * 60_000,
    "anchors": "a: " + "&a " * 20_000,
    "tabs": "\t" * 60_000,
    "spaces": "a: b" + " " * 60_000 + ": c",
    "one long word": "a" * 60_000,
    "JSON": "metadata: '" + '{"a":' * 10_000 + "'",
    "tools": "tools: " + "(" * 60_000,
    "commas": "tags: '" + "," * 60_000 + "'",
}
BODIES = {
    "nothing but rulers": "---\n" * (MIB // 4),
    "one long ruler": "-" * MIB,
    "never closed": "---\n" + "a: b\n" * (MIB // 5),
    "spaces on the opening line": "--- name: a" + " " * MIB + "b",
    "descriptions on the opening line": "--- name: a" + " description: b" * (MIB // 15),
    "fences": "```\n" * (MIB // 4),
    "blank lines in a fence": "```yaml\nname: a\n---\n" + "\n" * MIB,
    "headings": "# a\n" * (MIB // 4),
    "one long row": "## Parameters\n|name|\n|-|\n" + "|a" * (MIB // 2),
    "one long rule": "## Parameters\n|name|\n" + "|-" * (MIB // 2),
    "images": "![" * (MIB // 2),
    "tags": "<a" * (MIB // 2),
    "comments": "<!--" * (MIB // 4),
    "facts": "## Metadata\n- **" + "a " * (MIB // 2),
    "a title of spaces": "# Skill: " + " " * MIB + "a",
    "NUL characters": "\0" * MIB,
}


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("front", HOSTILE.values(), ids=HOSTILE)
def test_hostile_front_matter_is_answered(front):
    """A recursion would crash here, and a regex that backtracks would never come back."""
    document = parse(HEAD + front.encode() + b"\n---\nBody\n")
    assert document.name == "tea"
    assert document.description.startswith("Makes tea.")
    assert len(document.diagnostics) <= 2 * MAX_FINDINGS


@pytest.mark.parametrize("text", BODIES.values(), ids=BODIES)
def test_a_hostile_file_is_answered(text):
    document = parse(text)
    assert len(document.diagnostics) <= 2 * MAX_FINDINGS
    assert document.name


def sound(document):
    json.dumps(document.front_matter).encode()
    document.text.encode()
    document.name.encode()
    document.description.encode()
    assert all(
        PARSER_RULES[finding.code].severity == finding.severity for finding in document.diagnostics
    )
    assert all(finding.line is None or finding.line >= 1 for finding in document.diagnostics)
    assert document.usable == all(f.severity != "error" for f in document.diagnostics)
    assert document.usable <= bool(document.name and document.description)


@given(st.binary(max_size=400))
@example(b"---\n\xff\n---\n")
@example(b"---\n[")
@example(b"--- name: a\n")
@example(b"name:")
def test_no_bytes_are_a_failure(data):
    sound(parse(data))


@given(
    st.text(alphabet="ab:-*&!|>'\"[]{}#,%@` \n\r\t\\?~<.\0\ufeff\u2028\x85名称\uff1a", max_size=200)
)
def test_no_front_matter_is_a_failure(text):
    sound(parse(f"---\n{text}\n---\n{text}"))
    sound(parse(text))
    sound(parse(f"---\nname: a\ndescription: b\n{text}"))


WORDS = st.text(
    st.characters(
        exclude_categories=["Cs", "Cc", "Cn", "Zs", "Zl", "Zp"], exclude_characters="\ufeff"
    ),
    min_size=1,
)


@given(WORDS, WORDS, st.booleans())
def test_name_and_description_come_back_as_they_were_written(name, description, wide):
    front = yaml.safe_dump({"name": name, "description": description}, allow_unicode=wide)
    document = parse(f"---\n{front}---\nBody\n")
    assert (document.name, document.description) == (name, description)
    assert document.diagnostics == ()
