"""Nothing that a skill says may steer a terminal, break a line, or crash the program."""

import json
import re
import unicodedata

import pytest

from tests.conftest import keep_library, write_skill

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")

# As YAML double-quoted text: a title bar, a screen clear, C1 CSI, an override, line breaks, a tab.
EVIL = '"evil \\e]0;owned\\a \\e[2J \\x9b31m \\u202Etxt.exe\\u202C a\\nb\\tc\\r\\u2028 \\u2066x"'


pytestmark = pytest.mark.reads


def fill(root):
    write_skill(
        root / "evil",
        name=EVIL,
        description=EVIL,
        extra=f"kind: {EVIL}\ncategory: {EVIL}\ntags: [{EVIL}]\nauthor: {EVIL}\nlicense: {EVIL}\n",
        body="# Body \x1b[31m red \x07 \x9b2J \u202egnp.exe\n\tindented\r\nline\x1b]8;;http://x\x07\n",
    )
    write_skill(root / "long", name="n" * 10_000, description="d" * 100_000)
    write_skill(root / "wörter", description="Ein 👩‍💻 schreibt \u0645\u06cc\u200c\u062e\u0648 🏴󠁧󠁢󠁥󠁮󠁧󠁿.")
    (root / "evil" / "\x1b[2Jfile\u202e\n.txt").write_text("x")


@pytest.fixture(scope="module")
def kept(new_database, tmp_path_factory):
    return keep_library(new_database(), tmp_path_factory.mktemp("hostile"), fill)


@pytest.fixture
def hostile(kept):
    return kept.root


COMMANDS = [
    ["list"],
    ["list", "--all", "--format", "table"],
    ["list", "--all", "--format", "names"],
    ["list", "--all", "--json"],
    ["list", "--all", "--format", "jsonl"],
    ["search", "evil", "red", "body"],
    ["search", "evil", "--all", "--format", "table"],
    ["search", "evil", "--json"],
    ["show", "mine/evil"],
    ["show", "mine/evil", "--json"],
    ["show", "mine/evil", "--files"],
    ["why", "mine/evil"],
    ["why", "mine/evil", "--json"],
    ["why", "mine/evil", "--query", "evil words"],
    ["why", "mine/evil", "--query", "evil words", "--format", "table"],
    ["why", "mine/long"],
    ["show", "mine/long"],
    ["tags"],
    ["kinds", "--format", "table"],
    ["categories", "--json"],
    ["check"],
    ["check", "--json"],
    ["check", "--verbose", "--format", "table"],
    ["sync", "--verify"],
    ["stats"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_control_character_is_printed_to_a_pipe(hostile, cli, command):
    ran = cli(*command)
    assert ran.exit_code in {0, 1}
    assert CONTROLS.findall(ran.output) == []


@pytest.mark.parametrize("command", [*COMMANDS, ["show", "mine/evil", "--raw"]], ids=" ".join)
def test_no_control_character_is_printed_to_a_terminal(hostile, terminal, command):
    ran = terminal(*command, NO_COLOR="1")
    assert ran.status in {0, 1}
    assert CONTROLS.findall(ran.out) == []


def test_a_listing_has_one_line_a_skill(hostile, cli):
    assert len(cli("list", "--all").stdout.splitlines()) == 3
    assert all(line.count("\t") == 1 for line in cli("list", "--all").stdout.splitlines())


@pytest.mark.both
def test_json_says_exactly_what_the_skill_says(hostile, process):
    skill = json.loads(process("show", "mine/evil", "--json").stdout)
    assert "\u202e" in skill["description"]
    assert "\x1b]8;;http://x\x07" in skill["body"]


def test_joiners_and_flags_stay(hostile, cli):
    listed = unicodedata.normalize("NFC", cli("list").stdout)
    assert "Ein 👩‍💻 schreibt \u0645\u06cc\u200c\u062e\u0648 🏴󠁧󠁢󠁥󠁮󠁧󠁿." in listed


@pytest.mark.parametrize(
    ("command", "encoding"),
    [
        (["list", "--all"], "ascii"),
        (["list", "--all"], "utf-16"),
        (["show", "wörter"], "ascii"),
        (["show", "wörter"], "latin-1"),
        (["show", "wörter"], "cp1252"),
        (["sync"], "ascii"),
    ],
)
def test_no_encoding_makes_it_fail(hostile, interpreter, command, encoding):
    ran = interpreter(*command, PYTHONIOENCODING=encoding)
    assert ran.status == 0, ran.err


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_json_in_every_encoding(hostile, interpreter, encoding):
    printed = interpreter("list", "--all", "--json", PYTHONIOENCODING=encoding).stdout
    described = [skill["description"] for skill in json.loads(printed)]
    assert any("👩‍💻" in text for text in described)


def test_json_is_not_escaped_where_the_stream_allows_it(hostile, interpreter):
    assert "Ein 👩‍💻" in interpreter("list", "--json", PYTHONIOENCODING="utf-8").out


def test_an_argument_that_is_no_text_is_refused(hostile, process, interpreter):
    for start, command in (
        (interpreter, ["show"]),
        (process, ["show"]),
        (process, ["list", "--tag"]),
        (process, ["search"]),
        (process, ["why"]),
        (process, ["check"]),
        (process, ["sync"]),
    ):
        ran = start(*command, b"\xff\xfe")
        assert "Internal error" not in ran.err
        assert "Traceback" not in ran.err


def test_a_name_with_ten_thousand_characters_is_refused_kindly(hostile, process):
    for command in (["show"], ["why"], ["check"]):
        ran = process(*command, "x" * 10_000)
        assert (ran.status, ran.out) == (1, "")
        assert "Internal error" not in ran.err
