"""`list --agent` shows what an agent sees on disk, and what is known of it."""

import json
import shutil
from pathlib import Path

import pytest

from registry.disk.agents import agents
from registry.model import Skill
from tests.conftest import write_skill


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def seen(ran):
    return {one["name"]: (one["state"], one["where"]) for one in json.loads(ran.stdout)}


def test_each_folder_is_told_with_its_state(library, cli, project, tmp_path, root):
    cli("pull", "haiku", "review", "--agent", "claude-code", "--agent", "codex")
    cli("pull", "pdf-forms", "--agent", "claude-code", "--global")
    (project / ".agents/skills/review/SKILL.md").write_text("Mine now.")
    write_skill(project / ".claude/skills/strange", name="Strange \x1b[31m", description="Of old.")
    (project / ".claude/skills/empty").mkdir()
    write_skill(tmp_path / "home/.claude/skills/own")
    cli("sync", str(tmp_path / "home/.claude/skills"))
    ran = cli("list", "--agent", "claude-code", "--json")
    assert seen(ran) == {
        "haiku": ("pulled", "project"),
        "review": ("edited", "project"),
        "Strange [31m": ("unknown", "project"),
        "own": ("registered", "global"),
        "pdf-forms": ("pulled", "global"),
    }
    by_name = {one["name"]: one for one in json.loads(ran.stdout)}
    assert set(by_name["haiku"]) == {*Skill.KEYS, "state", "where", "place"}
    assert set(by_name["Strange [31m"]) == set(by_name["haiku"])
    assert by_name["Strange [31m"]["ref"] is None
    assert by_name["Strange [31m"]["description"] == "Of old."
    haiku = json.loads(cli("show", "haiku", "--json").stdout)
    assert {key: by_name["haiku"][key] for key in Skill.KEYS} == {
        key: haiku[key] for key in Skill.KEYS
    }
    assert by_name["haiku"]["place"] == str(project / ".claude/skills/haiku")
    assert set(seen(cli("list", "--agent", "claude-code", "--global", "--json"))) == {
        "own",
        "pdf-forms",
    }


def test_what_is_behind_missing_or_gone_is_told(library, cli, project, root):
    cli("pull", "haiku", "review", "pdf-forms", "--agent", "codex")
    write_skill(root / "haiku", description="Another.", age=None)
    cli("sync")
    assert cli("delete", "review").exit_code == 0
    shutil.rmtree(project / ".agents/skills/pdf-forms")
    assert seen(cli("list", "--agent", "codex", "--json")) == {
        "haiku": ("behind", "project"),
        "review": ("gone", "project"),
        "pdf-forms": ("missing", "project"),
    }


def test_agents_that_look_into_one_folder_see_the_same(library, cli, project):
    cli("pull", "haiku", "--agent", "codex")
    assert seen(cli("list", "--agent", "zed", "--json")) == {"haiku": ("pulled", "project")}
    assert seen(cli("list", "--agent", "trae", "--json")) == {}


@pytest.mark.parametrize(
    ("agent", "place"),
    [
        ("codex", ".codex/skills"),
        ("codex", "~/.codex/skills"),
        ("cursor", "~/.claude/skills"),
        ("github-copilot", ".github/skills"),
        ("gemini-cli", ".gemini/skills"),
        ("opencode", ".claude/skills"),
    ],
)
def test_further_folders_that_an_agent_reads_are_listed(library, cli, project, agent, place):
    folder = Path(place).expanduser() if place.startswith("~") else project / place
    write_skill(folder / "own")
    where = "global" if place.startswith("~") else "project"
    assert seen(cli("list", "--agent", agent, "--json")) == {"own": ("unknown", where)}


def test_codex_home_moves_the_folder_that_codex_reads(library, cli, project, tmp_path, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    write_skill(tmp_path / "codex" / "skills" / "own")
    assert seen(cli("list", "--agent", "codex", "--json")) == {"own": ("unknown", "global")}


def test_agents_lists_all_agents_the_installed_ones_first(cli, tmp_path):
    (tmp_path / "home" / ".trae").mkdir()
    listed = json.loads(cli("agents", "--json").stdout)
    assert (listed[0]["agent"], listed[0]["installed"]) == ("trae", True)
    assert len(listed) == len(agents())
    by_name = {one["agent"]: one for one in listed}
    assert by_name["codex"]["project"] == ".agents/skills"
    assert "$CODEX_HOME/skills" in by_name["codex"]["reads"]


def test_agents_shows_real_folders_and_whole_ids(cli, monkeypatch):
    def rows(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = cli("agents", "--format", "table").stdout.splitlines()
        assert max(map(len, lines)) <= columns
        return {line.split()[0]: line.split() for line in lines}

    assert rows(80).keys() == {"AGENT", *agents()}
    assert rows(80)["claude-code"][-2:] == [".claude/skills", "~/.claude/skills"]
    assert ".codex/skills," in rows(160)["codex"]
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/opt/claude")
    assert rows(80)["claude-code"][-1] == "/opt/claude/skills"


def test_an_unknown_agent_is_answered_with_the_command_that_lists_them(library, cli):
    refused = cli("pull", "haiku", "--agent", "nope")
    assert refused.stderr.endswith(
        "Error: No agent named 'nope'. To list all agents, run: skill-registry agents\n"
    )
    assert "Did you mean 'codex'" in cli("pull", "haiku", "--agent", "codx").stderr


def test_the_lines_have_state_name_and_folder(library, cli, project):
    cli("pull", "haiku", "--agent", "codex")
    ran = cli("list", "--agent", "codex")
    assert ran.stdout == f"installed\thaiku\tproject\t{project}/.agents/skills/haiku\n"
    assert cli("list", "--agent", "codex", "--format", "names").stdout == "haiku\n"


def test_what_makes_no_sense_is_said(library, cli):
    assert "can't be combined with filters" in cli("list", "--agent", "codex", "--tag", "x").stderr
    assert "--global requires --agent" in cli("list", "--global").stderr
    assert "Did you mean 'codex'" in cli("list", "--agent", "codx").stderr
    assert "Roo Code sees no skills" in cli("list", "--agent", "roo").stderr


def test_a_skill_that_was_pulled_for_another_agent_is_listed_as_pulled(library, cli, project):
    cli("pull", "haiku", "--agent", "claude-code")
    write_skill(project / ".claude/skills/own")
    assert seen(cli("list", "--agent", "cursor", "--json")) == {
        "haiku": ("pulled", "project"),
        "own": ("unknown", "project"),
    }


def test_a_pull_tells_that_the_agent_loads_a_personal_skill_instead(
    library, cli, project, tmp_path
):
    personal = write_skill(tmp_path / "home/.claude/skills/haiku")
    planned = cli("pull", "haiku", "review", "-a", "claude-code", "--dry-run")
    assert "Claude Code loads" not in planned.stderr
    pulled = cli("pull", "haiku", "review", "-a", "claude-code", "-a", "codex")
    assert pulled.exit_code == 0
    assert pulled.stderr.count("loads") == 1
    _, _, told = pulled.stderr.partition(f"Claude Code loads haiku from {personal}, not the others")
    _, _, way = told.partition("because it prefers personal skills to a project's skills. To see ")
    why = cli(*way.splitlines()[0].partition("run: skill-registry ")[2].split())
    assert f"it loads the one in {personal}" in why.stdout


def test_why_names_the_folder_that_an_agent_reads_a_skill_from(library, cli, project):
    cli("pull", "haiku", "--agent", "codex")
    told = cli("why", "haiku", "--agent", "codex").stdout
    assert f"Codex reads it from {project}/.agents/skills/haiku" in told
    told = cli("why", "haiku", "--agent", "trae").stdout
    assert "Trae does not read it" in told


def test_why_says_which_of_two_skills_of_one_name_claude_code_loads(cli, project, tmp_path):
    for folder, text in ((project, "One."), (tmp_path / "home", "Two.")):
        write_skill(folder / ".claude/skills/pdf", description=text)
        assert cli("sync", str(folder / ".claude/skills")).exit_code == 0
    told = cli("why", "pdf", "--agent", "claude-code", "--json").stdout
    by_path = {one["path"]: one["reasons"][-1]["message"] for one in json.loads(told)}
    because = "because it prefers personal skills to a project's skills"
    loaded = f"it loads the one in {tmp_path}/home/.claude/skills/pdf, {because}"
    assert len(by_path) == 2
    assert all(told.endswith(loaded) for told in by_path.values())
    listed = cli("list", "-a", "claude-code").stderr
    assert f"Claude Code loads pdf from {tmp_path}/home/.claude/skills/pdf, not the" in listed


def test_why_advises_no_pull_over_a_namesake_of_the_project(cli, project, tmp_path):
    write_skill(project / ".claude/skills/pdf", description="Mine.")
    write_skill(tmp_path / "codex/pdf", description="Another.")
    for folder in (project / ".claude/skills", tmp_path / "codex"):
        assert cli("sync", str(folder)).exit_code == 0
    told = json.loads(cli("why", "codex/pdf", "--agent", "claude-code", "--json").stdout)
    assert [one["fix"] for one in told[0]["reasons"] if one["code"] == "agent"] == [None]


def test_in_the_home_folder_each_skill_is_listed_once(library, cli, tmp_path, monkeypatch):
    """The home folder is a project for somebody who works right in it."""
    home = tmp_path / "home"
    monkeypatch.chdir(home)
    write_skill(home / ".claude/skills/own")
    cli("pull", "haiku", "--agent", "claude-code")
    cli("pull", "review", "--agent", "claude-code", "--global")
    rows = json.loads(cli("list", "--agent", "claude-code", "--json").stdout)
    assert [(one["name"], one["state"], one["where"]) for one in rows] == [
        ("haiku", "pulled", "project"),
        ("own", "unknown", "global"),
        ("review", "pulled", "global"),
    ]
    told = cli("why", "haiku", "--agent", "claude-code").stdout
    assert told.count("Claude Code reads it from") == 1


def test_a_pull_by_name_says_how_to_install_the_namesake_instead(library, cli, tmp_path, project):
    write_skill(tmp_path / "other" / "haiku", body="Another one.\n")
    cli("sync", str(tmp_path / "other"), "--name", "other", "--scope", "bundled")
    pulled = cli("pull", "haiku", "--agent", "claude-code")
    way = "skill-registry pull --agent=claude-code --force other/haiku"
    told = f"Another skill has the same name: other/haiku. To install it instead, run: {way}\n"
    assert told in pulled.stderr
    assert cli(*way.split()[1:]).stdout.startswith("updated\tother/haiku")
    assert "Another skill" not in cli("pull", "review", "--agent", "claude-code").stderr


def test_why_says_how_an_agent_comes_to_load_a_namesake_that_it_does_not_read(
    library, cli, tmp_path, project
):
    home = tmp_path / "home"
    write_skill(home / ".claude/skills/haiku", body="My own.\n")
    cli("sync", str(home / ".claude/skills"), "--name", "claude")
    told = cli("why", "haiku").stderr
    way = "skill-registry rename claude/haiku NEW && skill-registry pull mine/haiku"
    assert told == (
        f"Claude Code loads haiku from {home}/.claude/skills/haiku.\n"
        f"To load the other one, rename or remove this one: {way} --agent claude-code --global\n"
    )
    for command in way.replace("NEW", "own-haiku").split(" && "):
        words = command.split()[1:]
        agent = ["--agent", "claude-code", "--global"] if words[0] == "pull" else []
        ran = cli(*words, *agent)
        assert ran.exit_code == 0
    listed = json.loads(cli("list", "--agent", "claude-code", "--json").stdout)
    assert {one["name"] for one in listed} == {"haiku", "own-haiku"}


def test_of_several_skills_of_a_name_it_is_said_which_an_agent_loads(
    library, cli, tmp_path, project
):
    home = tmp_path / "home"
    for base in (home / ".claude", home / ".codex", project / ".claude", project / ".codex"):
        write_skill(base / "skills" / "haiku")
    cli("sync", str(home / ".claude/skills"), "--name", "claude")
    claude = (
        f"Claude Code loads haiku from {home}/.claude/skills/haiku, not the others of its name, "
        "because it prefers personal skills to a project's skills.\n"
    )
    codex = "Codex reads 2 skills named haiku; which of them it loads is not documented.\n"
    assert claude in cli("list", "--agent", "claude-code").stderr
    assert codex in cli("list", "--agent", "codex").stderr
    told = cli("why", "haiku").stderr
    rename = "rename or remove this one: skill-registry rename claude/haiku NEW\n"
    assert f"{claude}To load the other one, {rename}" in told
    alone = cli("why", "haiku", "--agent", "claude-code")
    assert f"it loads the one in {home}/.claude/skills/haiku" in alone.stdout
    assert alone.stderr.endswith(f"To load the other one, {rename}")
    assert codex in told
    assert "loads" not in cli("why", "review").stderr
