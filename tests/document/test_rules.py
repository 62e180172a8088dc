"""The rules of the Agent Skills specification: for each, a document that breaks it and one not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.document import rules
from registry.document.rules import FORMAT_RULES, check_specification, is_strict
from registry.model import Diagnostic, Document, SkillFile

SOUND = {"name": "tea", "description": "Makes tea."}


def document(front=SOUND, body="# Tea\n", diagnostics=()):
    head = "---\n" + "".join(f"{key}: {value}\n" for key, value in front.items()) + "---\n"
    return Document(
        text=head + body,
        body=body,
        body_line=head.count("\n") + 1,
        front_matter=front,
        name=str(front.get("name") or "folder"),
        description=str(front.get("description") or ""),
        diagnostics=diagnostics,
    )


def files(*paths):
    return [SkillFile(path, 1, None, executable=False) for path in paths]


def check(front=SOUND, body="# Tea\n", *, folder="tea", paths=()):
    return list(check_specification(document(front, body), folder_name=folder, files=files(*paths)))


def codes(findings):
    return [finding.code for finding in findings]


def with_name(name):
    return {"name": name, "description": "Makes tea."}


# The name.


@pytest.mark.parametrize("name", ["tea", "a", "7", "green-tea-2", "a" * 64])
def test_a_strict_name_has_no_findings(name):
    assert check(with_name(name), folder=name) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(None, ["name-missing"], id="null"),
        pytest.param("  ", ["name-missing"], id="blank"),
        pytest.param(["tea"], ["name-not-text"], id="a list"),
        pytest.param({"tea": None}, ["name-not-text"], id="a mapping"),
        pytest.param("a" * 65, ["name-too-long"], id="65 letters"),
        pytest.param("Tea", ["name-upper-case"], id="upper case"),
        pytest.param("-tea", ["name-hyphen-edge"], id="a leading hyphen"),
        pytest.param("tea-", ["name-hyphen-edge"], id="a trailing hyphen"),
        pytest.param("green--tea", ["name-hyphen-double"], id="two hyphens"),
        pytest.param("green tea", ["name-characters"], id="a space"),
        pytest.param("green_tea", ["name-characters"], id="an underscore"),
        pytest.param("owner/tea", ["name-characters"], id="a slash"),
        pytest.param("th\u00e9", ["name-not-ascii"], id="an accent"),
        pytest.param("\u8336", ["name-not-ascii"], id="Chinese"),
        pytest.param("claude-tea", ["name-reserved-word"], id="a reserved word"),
    ],
)
def test_each_breach_of_the_name_has_its_code(name, expected):
    folder = name if isinstance(name, str) and name.strip() else "tea"
    assert codes(check(with_name(name), folder=folder)) == expected


def test_all_breaches_of_a_name_are_found_at_once():
    name = "-Green__T\u00e9" + "a" * 64 + "--"
    assert set(codes(check(with_name(name), folder="tea"))) == {
        "name-too-long",
        "name-upper-case",
        "name-hyphen-edge",
        "name-hyphen-double",
        "name-characters",
        "name-not-ascii",
        "name-differs-from-folder",
    }


def test_a_missing_name_is_proposed_from_the_folder():
    [finding] = check({"description": "Makes tea."}, folder="Green Tea")
    assert finding.code == "name-missing"
    assert finding.line is None
    assert "`name: green-tea`" in finding.fix


def test_a_name_that_is_not_the_folders_names_both():
    [finding] = check(with_name("tea"), folder="coffee")
    assert (finding.code, finding.line) == ("name-differs-from-folder", 2)
    assert "`tea`" in finding.message
    assert "`coffee`" in finding.message


def test_names_are_compared_after_nfkc():
    composed, decomposed, wide = "th\u00e9", "the\u0301", "\uff54\uff45\uff41"
    assert "name-differs-from-folder" not in codes(check(with_name(composed), folder=decomposed))
    assert check(with_name(wide), folder="tea") == []


@pytest.mark.parametrize("name", ["\u8336", "!!!", "-", "\u0661"])
def test_a_proposed_name_is_always_allowed(name):
    for finding in check(with_name(name), folder=name):
        _, proposed, rest = (finding.fix or "").partition("write `name: ")
        if proposed:
            assert is_strict(rest.partition("`")[0])


# The other fields.


@pytest.mark.parametrize("field", ["name", "description"])
def test_what_the_parser_said_is_not_said_again(field):
    front = {key: value for key, value in SOUND.items() if key != field}
    said = Diagnostic(f"{field}-missing", "warning", "The parser's words.")
    for diagnostics, expected in (((), [f"{field}-missing"]), ((said,), [])):
        found = check_specification(
            document(front, diagnostics=diagnostics), folder_name="tea", files=()
        )
        assert codes(found) == expected


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        pytest.param({"description": "x" * 1024}, [], id="description of 1024"),
        pytest.param({"description": "x" * 1025}, ["description-too-long"], id="of 1025"),
        pytest.param({"description": None}, ["description-missing"], id="no description"),
        pytest.param({"description": " \n"}, ["description-missing"], id="a blank description"),
        pytest.param({"description": ["x"]}, ["description-not-text"], id="a list"),
        pytest.param({"license": "MIT"}, [], id="license"),
        pytest.param({"license": {"name": "MIT"}}, ["license-not-text"], id="license mapping"),
        pytest.param({"compatibility": "x" * 500}, [], id="compatibility of 500"),
        pytest.param({"compatibility": "x" * 501}, ["compatibility-too-long"], id="of 501"),
        pytest.param({"compatibility": None}, ["compatibility-empty"], id="compatibility null"),
        pytest.param({"compatibility": ["git"]}, ["compatibility-not-text"], id="as a list"),
        pytest.param({"metadata": {"version": "1.10"}}, [], id="metadata of text"),
        pytest.param({"metadata": None}, [], id="empty metadata"),
        pytest.param({"metadata": "x"}, ["metadata-not-mapping"], id="metadata of no mapping"),
        pytest.param({"metadata": {"tags": ["a"]}}, ["metadata-not-text"], id="metadata list"),
        pytest.param({"metadata": {"a": {"b": "c"}}}, ["metadata-not-text"], id="nested"),
        pytest.param({"metadata": {"a": None}}, ["metadata-not-text"], id="metadata null"),
        pytest.param({"allowed-tools": "Read Bash(git:*)"}, [], id="tools with spaces"),
        pytest.param({"allowed-tools": "Bash(git add, git rm)"}, [], id="comma in parentheses"),
        pytest.param({"allowed-tools": None}, [], id="no tools"),
        pytest.param({"allowed-tools": "Read, Grep"}, ["allowed-tools-commas"], id="commas"),
        pytest.param({"allowed-tools": ["Read"]}, ["allowed-tools-not-text"], id="tools list"),
        pytest.param({"version": "1.0"}, ["key-unknown"], id="an unknown key"),
        pytest.param({"Name": "tea"}, ["key-unknown"], id="a second name"),
        pytest.param({"allowed_tools": "Read"}, ["key-spelling"], id="an underscore"),
        pytest.param({"License": ["MIT"]}, ["key-spelling", "license-not-text"], id="both"),
    ],
)
def test_each_field_has_its_rule(added, expected):
    assert codes(check(SOUND | added)) == expected


def test_a_key_in_upper_case_is_found_and_its_value_counts():
    [finding] = check({"Name": "tea", "description": "Makes tea."})
    assert (finding.code, finding.line) == ("key-spelling", 2)
    assert finding.fix == "write `name` in lower case"


def test_a_key_of_a_client_is_not_to_be_moved():
    [finding] = check(SOUND | {"argument-hint": "[file]"})
    assert finding.code == "key-unknown"
    assert "metadata" not in finding.fix


def test_many_unknown_keys_end_in_one_finding():
    findings = check(SOUND | {f"key{number}": "x" for number in range(1000)})
    assert len(findings) == rules.MAX_KEYS + 1
    assert "990 more keys" in findings[-1].message


def test_a_list_of_tools_is_proposed_as_one_text():
    [finding] = check(SOUND | {"allowed-tools": ["Read", "Bash(git:*)"]})
    assert "`allowed-tools: Read Bash(git:*)`" in finding.fix


# The body.


@pytest.mark.parametrize(("lines", "expected"), [(500, []), (501, ["body-too-many-lines"])])
def test_a_body_of_more_than_500_lines_is_advised_against(lines, expected):
    findings = check(body="x\n" * lines)
    assert codes(findings) == expected
    assert all(finding.severity == "info" for finding in findings)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("word " * 4000, [], id="5000 tokens"),
        pytest.param("word " * 4001, ["body-too-many-tokens"], id="a word more"),
        pytest.param("\u8336" * 6666, [], id="Chinese, 20 KB"),
        pytest.param("\u8336" * 6700, ["body-too-many-tokens"], id="Chinese, more"),
    ],
)
def test_a_body_of_more_than_5000_tokens_is_advised_against(body, expected):
    assert codes(check(body=body)) == expected


# References.

PATHS = ("SKILL.md", "notes.md", "scripts/run.py", "references/a b.md", "assets/deep/er/x.svg")


@pytest.mark.parametrize(
    "body",
    [
        "[notes](notes.md)",
        "[notes](./notes.md#part 'Title')",
        "[notes](notes.md?raw=1)",
        "[this](SKILL.md) and [all](.)",
        "[spaces](<references/a b.md>) and [escaped](references/a%20b.md)",
        "[folder](scripts/) and [folder](references)",
        "Run `scripts/run.py --help`.",
        "Run `python ./scripts/run.py`.",
        "\u8fd0\u884cscripts/run.py\u3002",
        "[web](https://example.org/a.md) [mail](mailto:a@example.org) [anchor](#scripts/x.py)",
        "[root](/docs/a.md) [home](~/scripts/a.py)",
        "~/scripts/a.py $HOME/scripts/a.py {baseDir}/scripts/a.py src/scripts/a.py",
        "scripts/<name>.py, scripts/*.py, scripts/{a,b}.py, scripts/ and scripts/...",
        "[text](url), [text](path/to/file.md), [text]({{file}}.md), `[text](gone.md)`",
        "```sh\npython scripts/gone.py\n```\n",
        "> ~~~\n> [gone](gone.md)\n> ~~~\n",
        "- item\n\n      ```\n      scripts/gone.py\n      ```\n",
        "````\n```\nscripts/gone.py\n````\n",
        "```\nscripts/gone.py in a fence without an end",
        "<!--\n[gone](gone.md)\n-->",
    ],
)
def test_references_that_lead_to_a_file_or_elsewhere_are_no_finding(body):
    assert check(body=body, paths=PATHS) == []


@pytest.mark.parametrize(
    ("body", "code", "target"),
    [
        ("[x](gone.md)", "reference-missing", "gone.md"),
        ("[x](./references/gone.md#part)", "reference-missing", "references/gone.md"),
        ("![x](assets/gone.png 'Title')", "reference-missing", "assets/gone.png"),
        ("Read `references/gone.md`.", "reference-missing", "references/gone.md"),
        ("See references/gone.md.", "reference-missing", "references/gone.md"),
        ("\u53c2\u89c1references/gone.md\u3002", "reference-missing", "references/gone.md"),
        ("```\n```\nscripts/gone.py", "reference-missing", "scripts/gone.py"),
        ("Inline ```code``` is no fence. [x](gone.md)", "reference-missing", "gone.md"),
        ("`code` [x](gone.md) `code`", "reference-missing", "gone.md"),
        ("[x](Notes.md)", "reference-missing", "Notes.md"),
        ("[x](../other/SKILL.md)", "reference-outside", "../other/SKILL.md"),
        ("[x](references/../../up.md)", "reference-outside", "../up.md"),
        ("Run ../scripts/run.py", "reference-outside", "../scripts/run.py"),
        ("[x](assets/deep/er/x.svg)", "reference-deep", "assets/deep/er/x.svg"),
    ],
)
def test_references_that_lead_nowhere_are_found(body, code, target):
    [finding] = check(body=body, paths=PATHS)
    assert finding.code == code
    assert f"`{target}`" in finding.message


def test_a_reference_is_found_once_at_its_first_line():
    body = "# Tea\n\nsee references/gone.md\n\n[again](references/gone.md)\n"
    [finding] = check(body=body)
    assert finding.line == 4 + 1 + 2


def test_a_reference_first_named_in_a_fence_is_found_behind_it():
    [finding] = check(body="```\nscripts/gone.py\n```\n\nRun scripts/gone.py.\n")
    assert finding.line == 4 + 1 + 4


def test_many_missing_references_end_in_a_count():
    body = "".join(f"[x](gone{number}.md)\n" for number in range(1000))
    findings = [found for found in check(body=body) if found.code == "reference-missing"]
    assert len(findings) == rules.MAX_FINDINGS + 1
    assert findings[-1].message.startswith("990 more")


# Every finding.


def test_every_code_has_a_meaning_and_no_rule_is_an_error():
    for code, rule in FORMAT_RULES.items():
        assert code == code.lower().replace("_", "-")
        assert rule.severity in {"warning", "info"}
        assert rule.meaning[0].islower() or rule.meaning.startswith("`")


def test_messages_never_carry_what_steers_a_terminal():
    name = "\x1b[31mred\u202e" + "x" * 500
    for finding in check(with_name(name) | {name: "x", "compatibility": [name]}):
        assert finding.message.isprintable()
        assert len(finding.message) < 400
        assert (finding.fix or "").isprintable()


VALUES = st.recursive(
    st.none() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


@given(
    front=st.dictionaries(st.sampled_from(rules.FIELDS) | st.text(max_size=12), VALUES),
    body=st.text() | st.text("[](.)/`~\n <>scripte"),
    folder=st.text(min_size=1),
)
def test_any_document_is_checked_without_an_error(front, body, folder):
    for finding in check(front, body, folder=folder):
        assert finding.severity == FORMAT_RULES[finding.code].severity
        assert finding.line is None or finding.line >= 1


@given(st.from_regex(r"[a-z0-9]+(-[a-z0-9]+){0,4}", fullmatch=True).filter(lambda n: len(n) < 65))
def test_any_strict_name_is_accepted(name):
    assert set(codes(check(with_name(name), folder=name))) <= {"name-reserved-word"}


@pytest.mark.parametrize(
    "pattern",
    [
        "[a](b.md)",
        "](",
        "](" + "a" * 299,
        "scripts/",
        "../",
        "```\n",
        "``` ",
        "`",
        "<",
        "~~~",
        "\n",
    ],
)
def test_hostile_repetition_costs_no_more_than_its_length(pattern):
    body = pattern * ((1 << 20) // len(pattern))  # a minute and more where a rule is quadratic
    check(body=body)


def test_a_document_without_front_matter_is_checked_too():
    bare = replace(document(), front_matter={}, text="# Tea\n", body="# Tea\n", body_line=1)
    found = check_specification(bare, folder_name="tea", files=())
    assert codes(found) == ["name-missing", "description-missing"]
