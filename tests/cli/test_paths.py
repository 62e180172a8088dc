"""A path means the folder that is there, before any skill of that name."""

import pytest

from tests.conftest import write_skill


@pytest.fixture
def shop(cli, tmp_path, monkeypatch):
    """A project that is a source, with an installed skill; another source has its name as well."""
    write_skill(tmp_path / "team" / "sql-review", description="The team's.")
    write_skill(tmp_path / "home-skills" / "sql-review", description="Another.")
    for name in ("team", "home-skills"):
        assert cli("sync", str(tmp_path / name), "--name", name).exit_code == 0
    skills = tmp_path / "shop" / ".claude" / "skills"
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    write_skill(skills / "own")
    monkeypatch.chdir(skills.parent.parent)
    pulled = cli("pull", "team/sql-review", "-a", "claude-code", "-a", "cursor")
    assert pulled.exit_code == 0
    assert (skills / "sql-review").is_symlink()
    assert cli("sync", str(skills), "--name", "shop", "--scope", "project").exit_code == 0
    monkeypatch.chdir(skills)
    return skills


@pytest.mark.parametrize("given", ["sql-review/", "./sql-review", "sql-review/SKILL.md"])
def test_check_reads_the_skill_that_a_link_of_pull_leads_to(cli, shop, given):
    checked = cli("check", given, "--all")
    assert "no-document" not in checked.stdout
    assert checked.exit_code == 0, checked.output
    assert "1 skill checked" in checked.stderr


@pytest.mark.parametrize("given", ["sql-review/", "./sql-review"])
def test_show_of_a_folder_that_is_no_source_shows_no_other_skill(cli, shop, given):
    shown = cli("show", given)
    assert shown.exit_code == 1
    assert f"{shop}/sql-review exists; 'pull' installed it." in shown.stderr


def test_a_name_with_a_slash_at_its_end_means_the_folder_in_front_of_the_user(
    cli, shop, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path / "home-skills")
    assert "Another." in cli("show", "sql-review/").stdout
    assert cli("show", "sql-review").exit_code == 1
