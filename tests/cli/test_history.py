"""history, diff, show --revision, restore --revision and db prune, as people call them."""

import json


def test_what_a_skill_was_like_is_listed_shown_compared_and_brought_back(cli, library):
    cli("update", "haiku", "--description", "Write a haiku in three lines.")
    listed = json.loads(cli("history", "haiku", "--json").stdout)
    assert [(one["number"], one["current"]) for one in listed] == [(2, True), (1, False)]
    assert cli("history", "haiku").stdout.splitlines()[0].split("\t")[::4] == ["2", "current"]
    assert "Write a haiku about anything." in cli("show", "haiku", "--revision", "1").stdout
    told = cli("diff", "haiku").stdout
    assert "-description: Write a haiku about anything.\n" in told
    assert "+description: Write a haiku in three lines.\n" in told
    assert cli("restore", "haiku", "--revision", "1").stdout.startswith("Restored haiku")
    assert "Write a haiku about anything." in (library / "haiku" / "SKILL.md").read_text()
    assert cli("db", "prune", "--keep", "0").stdout == "Forgot 1 revision and 1 content.\n"
    assert cli("diff", "haiku").output == "Nothing is different.\n"


def test_a_revision_that_is_not_there_is_named(cli, library):
    result = cli("show", "haiku", "--revision", "5")
    assert result.exit_code == 1
    assert "has no revision 5; it has 1" in result.output
    assert cli("restore", "haiku", "--revision", "1", "--source", "mine").exit_code == 2


def test_a_diff_on_a_terminal_is_painted(terminal, cli, library):
    cli("update", "haiku", "--description", "Three lines.")
    assert "\x1b[32m+description: Three lines.\x1b[0m" in terminal("diff", "haiku").out
