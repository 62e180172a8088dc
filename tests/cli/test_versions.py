"""Versions on the command line: going back to one, and which skill has them."""

import pytest

from tests.cli.conftest import Cli


def labels(cli: Cli, name: str) -> list[str]:
    return [one.split("\t")[0] for one in cli("version", "list", name).stdout.splitlines()]


def test_restore_of_a_version_brings_back_its_files_and_undo_takes_that_back(library, cli):
    document = library / "haiku" / "SKILL.md"
    first = document.read_bytes()
    cli("version", "add", "haiku", "1.0")
    cli("update", "haiku", "--description", "Changed.")
    second = document.read_bytes()
    assert cli("restore", "haiku@1.0").stdout == f"Restored haiku: {library / 'haiku'}\n"
    assert document.read_bytes() == first
    cli("undo", "--yes")
    assert document.read_bytes() == second != first


def test_after_a_yank_of_the_current_files_the_version_before_is_offered(library, cli):
    for label in ("1.0", "1.1", "1.2"):
        cli("update", "haiku", "--description", f"Writes {label}.")
        cli("version", "add", "haiku", label)
    cli("version", "yank", "haiku@1.1", "--reason", "It is wrong.")
    told = cli("version", "yank", "haiku@1.2", "--reason", "It is wrong.").stderr
    command = "skill-registry restore haiku@1.0"
    assert f"To go back to the version before, run: {command}\nTo offer it again" in told
    assert cli(*command.split()[1:]).exit_code == 0
    assert "Writes 1.0." in (library / "haiku" / "SKILL.md").read_text()


def test_for_a_skill_of_a_server_it_is_told_where_the_label_is_written(library, cli):
    ran = cli("version", "add", "elsewhere", "2.0")
    assert ran.exit_code == 1
    assert "write the label into its front matter (metadata: version: '2.0')" in ran.stderr
    assert "front matter" not in cli("show", "elsewhere").stderr


def test_restore_names_the_versions_that_a_skill_has(library, cli):
    cli("version", "add", "haiku", "1.0")
    ran = cli("restore", "haiku@2.0")
    assert ran.exit_code == 1
    assert "The skill 'haiku' has no version '2.0'; it has 1.0." in ran.stderr


@pytest.mark.parametrize("more", [["--source", "mine"], ["ballad"]], ids=" ".join)
def test_a_version_is_restored_alone(library, cli, more):
    cli("version", "add", "haiku", "1.0")
    ran = cli("restore", "haiku@1.0", *more)
    assert ran.exit_code != 0
    assert cli("undo", "--list").stdout == ""


def test_a_version_belongs_to_the_original_and_not_to_its_installed_copy(
    library, cli, tmp_path, monkeypatch
):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    cli("pull", "haiku", "--agent", "claude-code")
    cli("sync", str(project / ".claude" / "skills"), "--scope", "project", "--name", "here")
    refused = cli("version", "add", "here/haiku", "1.0")
    assert refused.exit_code == 1
    assert "it is the installed copy of mine/haiku; add the version to mine/haiku" in refused.stderr
    assert cli("version", "add", "mine/haiku", "1.0").exit_code == 0
    assert labels(cli, "mine/haiku") == ["1.0"]
    (project / ".claude" / "skills" / "haiku" / "note.txt").write_text("mine")
    cli("sync", "here")
    assert cli("version", "add", "here/haiku", "1.0").exit_code == 0


def test_the_owner_of_a_yanked_skill_is_told_where_it_still_is(library, cli):
    cli("version", "add", "haiku", "1.0")
    yanked = cli("version", "yank", "haiku@1.0", "--reason", "It is wrong.")
    assert yanked.stderr == (
        "These are the current files of haiku, so listings, searches, tools and new installs "
        "leave out the skill. You still see it in: skill-registry list --all\n"
        "To offer it again, edit it, or run: skill-registry version yank haiku@1.0 --undo\n"
    )
    assert "haiku" not in cli("list", "--format", "names").stdout
    assert "haiku" in cli("list", "--all", "--format", "names").stdout
    of_its_day = ("--created-since", "2025-01-01", "--created-until", "2025-01-02")
    missed = "1 that is {} would match; --all {} it."
    listed = cli("list", *of_its_day).stderr
    assert missed.format("yanked", "lists") in listed
    assert missed.format("yanked", "finds") in cli("search", "haiku").stderr
    told = "its files are a yanked version (1.0: It is wrong.): listings, searches and new installs"
    assert told in cli("why", "haiku").stdout
    refused = cli("pull", "haiku@1.0", "--to", str(library.parent / "there"))
    way = "To list its versions, run: skill-registry version list haiku"
    assert refused.stderr == f"Error: Version 1.0 of 'haiku' was yanked: It is wrong. {way}\n"
    assert cli("version", "yank", "haiku@1.0", "--undo").exit_code == 0
    assert "haiku" in cli("list", "--format", "names").stdout
