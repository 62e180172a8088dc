"""The commands that a message prints mean exactly the skill of its sentence."""

import shlex

import pytest

from tests.conftest import write_skill
from tests.home import git


@pytest.fixture
def team(cli, tmp_path):
    """A repository with a skill `deploy`, synced as the source `team`."""
    folder = tmp_path / "upstream"
    write_skill(folder / "skills" / "deploy", description="The team's.")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "-c", "user.name=S", "-c", "user.email=s@example.com", "commit", "-qm", "one")
    assert cli("sync", f"file://{folder}", "--name", "team").exit_code == 0
    return folder


@pytest.fixture
def project(team, tmp_path, monkeypatch):
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def commands(text):
    """Return the commands of a printed line, as arguments."""
    return [shlex.split(one)[1:] for one in text.rpartition("run: ")[2].split(" && ")]


class TestRenameOfARemoteSkill:
    def test_the_printed_commands_rename_the_copy_and_no_skill_of_the_same_name(
        self, cli, team, tmp_path, monkeypatch
    ):
        write_skill(tmp_path / "mine" / "other")
        own = write_skill(tmp_path / "shop" / ".claude" / "skills" / "deploy")
        (tmp_path / "shop" / ".git").mkdir()
        cli("sync", str(tmp_path / "mine"), "--name", "mine")
        cli("sync", str(own.parent), "--name", "shop", "--scope", "project")
        monkeypatch.chdir(tmp_path / "shop")
        settings = tmp_path / "settings.yaml"
        settings.write_text("default_source: mine\n")
        refused = cli("rename", "team/deploy", "dep", "--config", str(settings))
        assert refused.exit_code == 1
        first, second = commands(refused.stderr)
        assert first == ["import", f"file://{team}", *"--skill deploy --source mine".split()]
        assert second == ["rename", "mine/deploy", "dep"]
        for one in (first, second):
            assert cli(*one).exit_code == 0
        assert own.is_dir()
        assert (tmp_path / "mine" / "dep" / "SKILL.md").exists()

    def test_the_only_own_source_is_named(self, cli, team, tmp_path):
        write_skill(tmp_path / "mine" / "other")
        cli("sync", str(tmp_path / "mine"), "--name", "mine")
        for one in commands(cli("rename", "deploy", "dep").stderr):
            assert cli(*one).exit_code == 0
        assert (tmp_path / "mine" / "dep" / "SKILL.md").exists()

    def test_of_several_own_sources_the_user_chooses_one(self, cli, team, tmp_path):
        for name in ("mine", "other"):
            write_skill(tmp_path / name / f"skill-of-{name}")
            cli("sync", str(tmp_path / name), "--name", name)
        refused = cli("rename", "deploy", "dep")
        assert "a source of your own, choose it as SOURCE ('mine' or 'other') and run: " in (
            refused.stderr
        )
        assert commands(refused.stderr)[1] == ["rename", "SOURCE/deploy", "dep"]

    def test_an_installed_skill_with_the_new_name_is_not_named(
        self, cli, team, tmp_path, monkeypatch
    ):
        write_skill(team / "skills" / "dep")
        git(team, "add", "-A")
        git(team, "-c", "user.name=S", "-c", "user.email=s@example.com", "commit", "-qm", "two")
        assert cli("sync", "team").exit_code == 0
        (tmp_path / "shop" / ".git").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / "shop")
        assert cli("pull", "dep", "-a", "codex").exit_code == 0
        assert "--remove" not in cli("rename", "team/deploy", "dep").stderr


def test_a_dry_run_says_what_would_happen_to_edits(cli, project):
    assert cli("pull", "deploy", "-a", "claude-code").exit_code == 0
    document = project / ".claude" / "skills" / "deploy" / "SKILL.md"
    document.write_text("Edited.")
    planned = cli("pull", "--theirs", "--dry-run")
    assert "deploy would replace your edits: SKILL.md differs" in planned.stderr
    assert document.read_text() == "Edited."
    assert "deploy replaced your edits: SKILL.md differs" in cli("pull", "--theirs").stderr


def test_a_merge_by_hand_is_kept_with_the_printed_command(cli, team, project):
    assert cli("pull", "deploy", "-a", "claude-code").exit_code == 0
    upstream = team / "skills" / "deploy" / "SKILL.md"
    document = project / ".claude" / "skills" / "deploy" / "SKILL.md"
    document.write_text(f"{document.read_text()}\nMine.\n")
    upstream.write_text(f"{upstream.read_text()}\nTheirs.\n")
    git(team, "-c", "user.name=S", "-c", "user.email=s@example.com", "commit", "-qam", "two")
    assert cli("sync", "team").exit_code == 0
    merged = f"{upstream.read_text()}\nMine.\n"
    document.write_text(merged)
    left = cli("pull")
    assert "an update is available" in left.stderr
    (way,) = [one for one in left.stderr.splitlines() if one.startswith("After you merged")]
    assert way.endswith("run: skill-registry pull --keep deploy")
    kept = cli("pull", "--keep", "deploy")
    assert (kept.exit_code, kept.stdout.partition("\t")[0]) == (0, "unchanged")
    assert "deploy was not changed: your edits stay" in kept.stderr
    assert document.read_text() == merged
    checked = cli("pull", "--check")
    assert checked.stdout.startswith("edited\t")
    assert "an update is available" not in checked.stderr
    assert cli("pull", "--theirs").exit_code == 0
    assert document.read_text() == upstream.read_text()
    assert cli("pull", "--check").exit_code == 0


def test_keeping_edits_requires_names(cli, project):
    for wrong in (["--keep"], ["--keep", "--theirs", "deploy"], ["--keep", "--check", "deploy"]):
        assert cli("pull", *wrong).exit_code == 2


def test_a_rename_names_links_that_lead_nowhere_and_copies(cli, tmp_path):
    for name in ("one", "two"):
        write_skill(tmp_path / name / "pdf", description="Reads PDF files.")
    link = tmp_path / "two" / "reader"
    link.symlink_to(tmp_path / "one" / "pdf")
    for name in ("one", "two"):
        cli("sync", str(tmp_path / name), "--name", name)
    renamed = cli("rename", "one/pdf", "reading")
    assert f"The link '{link}' now leads nowhere." in renamed.stderr
    assert "1 copy is unchanged: " in renamed.stderr
