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
