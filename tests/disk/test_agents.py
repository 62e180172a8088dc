"""The table of agents is the contract's, and says where each looks on this machine."""

import json
import os
import re

import pytest

from registry.disk import agents
from registry.errors import AgentNotFound
from tests.conftest import REPOSITORY

CONTRACT = REPOSITORY.parent / "shared" / "contracts" / "skills-cli.md"


def row(line):
    """Return a line of the contract's table in the words of ours."""
    found = [cell.strip() for cell in line.strip().strip("|").split("|")]
    quoted = [re.findall("`([^`]*)`", cell) for cell in found]
    return quoted[0][0], found[1], quoted[2][0], quoted[3][:1], quoted[4]


def test_the_table_is_the_contracts_row_by_row():
    if not CONTRACT.exists():
        pytest.skip("the contracts are not beside this checkout")
    lines = CONTRACT.read_text().splitlines()
    rows = [row(line) for line in lines if re.match(r"\| `[a-z0-9-]+` \|.*\|.*\|.*\|", line)]
    rows = [one for one in rows if one[2].endswith("skills")]
    assert len(rows) == len(agents.agents()) == 79
    for (name, title, project, everywhere, installed), ours in zip(
        rows, agents.agents().values(), strict=True
    ):
        assert (name, title, project) == ours[:3]
        if name == "eve":  # the one that depends on what a file says
            assert ours.installed == "./agent & ./package.json#eve"
        else:
            assert ours.installed == " | ".join(installed)
        if name == "openclaw":  # has a footnote
            assert ours.everywhere.split(" | ")[:1] == everywhere
            assert ours.everywhere.count(" | ") == 2
        else:
            assert ours.everywhere == "".join(everywhere)


def test_universal_agents_read_the_shared_folder_wherever_they_are():
    codex, claude = agents.find_agent("codex"), agents.find_agent("claude-code")
    assert (codex.is_universal, codex.personal) == (True, "~/.agents/skills")
    assert (claude.is_universal, claude.personal) == (False, "$CLAUDE_CONFIG_DIR/skills")
    assert not agents.find_agent("replit").is_universal
    assert agents.find_agent("replit").personal == "$XDG_CONFIG_HOME/agents/skills"


def test_variables_move_folders_and_relative_ones_do_not(monkeypatch, tmp_path):
    home = os.path.expanduser("~")
    place = agents.find_agent("claude-code").personal
    assert agents.expand(place) == f"{home}/.claude/skills"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    assert agents.expand(place) == f"{tmp_path}/elsewhere/skills"
    assert f"{tmp_path}/elsewhere/skills" in agents.personal_folders(home)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "here")
    assert agents.expand(place) == f"{home}/.claude/skills"
    assert agents.expand("$APPDATA/Zed") is None
    assert agents.expand("") is None


def test_the_first_home_that_exists_decides_of_several(tmp_path):
    home = tmp_path / "home"
    place = agents.find_agent("openclaw").personal
    assert agents.expand(place) == f"{home}/.openclaw/skills"
    (home / ".moltbot").mkdir()
    assert agents.expand(place) == f"{home}/.moltbot/skills"
    (home / ".clawdbot").mkdir()
    assert agents.expand(place) == f"{home}/.clawdbot/skills"


def test_what_counts_as_installed_is_what_the_table_says(tmp_path):
    project = tmp_path / "project"

    def found():
        return [one.id for one in agents.installed_agents(str(project))]

    assert found() == ([] if not os.path.exists("/etc/codex") else ["codex"])
    (tmp_path / "home" / ".windsurf").mkdir(parents=True)
    (tmp_path / "home" / ".codeium" / "windsurf").mkdir(parents=True)
    (project / ".promptscript").mkdir(parents=True)
    (project / "agent").mkdir()
    assert {"windsurf", "promptscript"} <= set(found())
    assert "eve" not in found()
    for manifest, is_there in (("{", False), ("[]", False), ('{"dependencies": 5}', False)):
        (project / "package.json").write_text(manifest)
        assert ("eve" in found()) is is_there
    (project / "package.json").write_text(json.dumps({"devDependencies": {"eve": "1"}}))
    assert "eve" in found()


def test_an_unknown_agent_is_told_with_the_nearest():
    with pytest.raises(AgentNotFound, match="claude-code"):
        agents.find_agent("claud-code")
    with pytest.raises(AgentNotFound) as caught:
        agents.find_agent("Claude Code")
    assert caught.value.similar[0] == "claude-code"
    assert "Did you mean" in str(caught.value)
    assert "windsurf" not in str(caught.value)
    assert agents.find_agent(" Codex ").id == "codex"


def test_where_no_agent_is_near_the_error_has_all_names_but_does_not_print_them():
    with pytest.raises(AgentNotFound) as caught:
        agents.find_agent("nosuch")
    assert str(caught.value) == "No agent named 'nosuch'."
    assert set(caught.value.known) == set(agents.agents())


def test_folders_without_a_dot_are_no_agents_for_discovery():
    found = agents.project_folders()
    assert {".agents/skills", ".claude/skills", ".github/skills", ".windsurf/skills"} <= set(found)
    assert all(one.startswith(".") for one in found)
