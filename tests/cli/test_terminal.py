"""What people see: tables that fit, colour that can be switched off, messages after the data."""

import re

import pytest

from registry.cli.formatting import width_of
from tests.cli.conftest import fill as usual
from tests.conftest import keep_library, write_skill

pytestmark = pytest.mark.reads

CODES = re.compile(r"\x1b\[[0-9;]*m")


def fill(root):
    usual(root)
    write_skill(
        root / "a-name-of-a-skill-that-goes-on-and-on-until-it-reaches-its-limit",
        description="A description that is long enough to be cut on any terminal. " * 8,
    )
    write_skill(
        root / "chinese",
        description="在做出任何重大商业决策时可以咨询由四位战略顾问组成的虚拟顾问团队。" * 5,
    )
    write_skill(root / "emoji", description="👩‍💻 Pair programming 👨‍👩‍👧 with families 🏴󠁧󠁢󠁥󠁮󠁧󠁿. " * 6)


@pytest.fixture(scope="module")
def wide(new_database, tmp_path_factory):
    return keep_library(new_database(), tmp_path_factory.mktemp("wide"), fill)


@pytest.fixture
def wide_library(wide):
    return wide.root


@pytest.fixture
def database(request, database):
    wide = "wide_library" in request.fixturenames
    return request.getfixturevalue("wide").database if wide else database


@pytest.mark.parametrize("columns", [1, 10, 20, 40, 80, 200, 500])
@pytest.mark.parametrize(
    "command",
    [["list"], ["list", "--all"], ["search", "form", "decision"], ["tags"], ["source", "list"]],
    ids=" ".join,
)
def test_no_line_is_wider_than_the_terminal(wide_library, terminal, command, columns):
    if columns < 40 and command[0] == "search":
        pytest.skip("a snippet has an indent")
    ran = terminal(*command, columns=columns)
    assert ran.status == 0
    lines = CODES.sub("", ran.out).splitlines()
    notes = 1  # the last line is a message, which the terminal may wrap
    assert [line for line in lines[:-notes] if width_of(line) > columns] == []


def test_a_table_at_80_columns(library, terminal):
    out = terminal("list", NO_COLOR="1").out
    assert re.sub(r"\d+ years ago", "N years ago", out) == (
        "SKILL      KIND      UPDATED      DESCRIPTION\n"
        "haiku                N years ago  Write a haiku about anything.\n"
        "pdf-forms  workflow  N years ago  Fill PDF forms from a table of values.\n"
        "review               N years ago  Review a pull request.\n"
        "3 skills\n"
    )


def test_a_table_at_40_columns(library, terminal):
    assert terminal("list", columns=40, NO_COLOR="1").out == (
        "SKILL      DESCRIPTION\n"
        "haiku      Write a haiku about anything.\n"
        "pdf-forms  Fill PDF forms from a table…\n"
        "review     Review a pull request.\n"
        "3 skills\n"
    )


def test_a_table_says_how_many_of_how_many(library, terminal):
    assert terminal("list", "--limit", "1", NO_COLOR="1").out.endswith("1 of 3 skills\n")


def test_all_shows_what_is_the_matter(library, terminal):
    out = terminal("list", "--all", NO_COLOR="1").out
    assert re.search(r"^broken +invalid ", out, re.MULTILINE)


def test_colour_appears_on_a_terminal_only_and_can_be_switched_off(library, terminal, process):
    assert "\x1b[" in terminal("list").out
    assert "\x1b" not in terminal("list", NO_COLOR="1").out
    assert "\x1b" not in terminal("list", TERM="dumb").out
    assert "\x1b" not in process("list", "--format", "table").out


def test_search_lights_up_the_words(library, terminal):
    out = terminal("search", "fill").out
    assert "\x1b[1;33mFill\x1b[0m" in out
    assert out.splitlines()[-1].endswith("1 of 1 hit\x1b[0m")


def test_show_fits_and_keeps_paths_in_one_piece(wide_library, terminal):
    out = terminal("show", "pdf-forms", columns=40, NO_COLOR="1").out
    assert f"Folder      {wide_library}/pdf-forms\n" in out
    assert "Fill PDF forms from a table of values.\n" in out


def test_findings_are_grouped_below_their_skill(library, terminal):
    out = terminal("check", "broken", NO_COLOR="1").out
    assert out.startswith(f"broken  {library}/broken\n  SKILL.md")


def test_why_is_a_paragraph(library, terminal):
    out = terminal("why", "haiku", NO_COLOR="1").out
    assert (
        out
        == f"haiku: listed\n  {library}/haiku\n  info listed\n    in the registry, nothing shadows or hides it\n"
    )


def test_facts_are_aligned(library, terminal):
    assert "Skills              4 in 1 source\n" in terminal("stats", NO_COLOR="1").out


def test_sync_on_a_terminal_ends_with_its_summary(library, terminal):
    lines = terminal("sync", NO_COLOR="1").out.splitlines()
    assert re.fullmatch(r"0 added, .* 4 unchanged, 1 invalid \(\d+\.\d s\)", lines[0])


def test_columns_of_the_environment_count(library, terminal, process):
    narrow = process("list", "--format", "table", COLUMNS="30")
    assert max(map(width_of, narrow.out.splitlines())) <= 30


def test_the_time_that_a_list_is_sorted_by_is_shown(library, terminal):
    out = terminal("list", "--sort", "created", columns=100, NO_COLOR="1").out
    assert out.startswith("SKILL      KIND      TAGS            CREATED")
    assert "UPDATED" not in out
    assert out.index("haiku") < out.index("pdf-forms") < out.index("review")


def test_a_table_in_a_pipe_has_times_in_utc(library, process):
    assert " 2023-11-14T22:13:20Z " in process("list", "--format", "table", COLUMNS="100").out
    assert "2024-06-01T00:00:00Z" in process("list", "--sort", "created", "--format", "table").out
    assert "2023-11-14 22:13 UTC" in process("show", "haiku").out


def test_one_skill_has_its_times_in_the_zone_of_the_terminal(library, terminal):
    assert "2023-11-15 07:13 HERE" in terminal("show", "haiku", TZ="HERE-9").out
    assert "2023-11-14 22:13 UTC" in terminal("show", "haiku", TZ="UTC").out


@pytest.mark.parametrize("command", [["source", "list"], ["history", "haiku"]], ids=" ".join)
def test_listings_say_how_long_ago_something_was(library, terminal, process, command):
    assert re.search("just now|minutes? ago", terminal(*command, columns=160, NO_COLOR="1").out)
    assert " ago" not in process(*command, "--format", "table", COLUMNS="160").out


@pytest.fixture(scope="module")
def many(new_database, tmp_path_factory):
    def fill(root):
        for number in range(40):
            lines = "".join(f"Line {number}.{line}.\n" for line in range(30))
            body = f"{lines}- **Needle**: in `hay`.\n"
            write_skill(root / f"body-{number:02}", description="Sews.", body=body)
        write_skill(root / "about", description="Find the needle.", body="# Needle\n\nneedle\n")

    return keep_library(new_database(), tmp_path_factory.mktemp("many"), fill)


class TestSearch:
    @pytest.fixture
    def database(self, many):
        return many.database

    def test_the_best_hits_of_a_search_fit_on_the_screen(self, terminal, process):
        out = terminal("search", "needle", rows=40, NO_COLOR="1").out
        assert out.startswith("about  Find the needle.\n")
        assert out.count("\n") <= 38
        assert out.endswith("18 of 41 hits\n")
        assert terminal("search", "needle", "--limit", "30", rows=40).out.count("body-") == 29
        assert process("search", "needle").out.count("\n") == 20

    def test_a_match_in_the_description_is_not_told_again(self, terminal, process):
        lines = terminal("search", "needle", NO_COLOR="1").out.splitlines()
        assert lines[0] == "about  Find the needle."
        assert lines[1] == "body-00  Sews."
        assert process("search", "needle").out.startswith("about\tFind the needle.\n")

    def test_a_place_that_matched_has_no_markup(self, terminal, process):
        for out in (
            terminal("search", "needle", NO_COLOR="1").out,
            process("search", "needle").out,
        ):
            assert "Line 0.29. Needle: in hay." in out
            assert "**" not in out

    def test_a_match_that_the_first_line_cuts_off_is_shown_below_it(self, terminal):
        out = terminal("search", "needle", columns=20, NO_COLOR="1").out
        assert out.startswith("about  Find the nee…\n    Find the needle.\n")
