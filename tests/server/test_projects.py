"""On a server a project's skills are seen on its host only, by who works in its folder there."""

import pytest

from tests.conftest import write_skill

pytestmark = pytest.mark.server


@pytest.fixture
def machine(machine):
    """Open the registry at a machine, as a user who is in a folder."""
    return lambda host, folder, user="ann": machine(host, user, folder)


@pytest.fixture
def team(machine, tmp_path):
    """The team's skill, as somebody sees it who works in the folder ``work`` of the machine A."""
    write_skill(tmp_path / "team" / "deploy-prod", description="The team's.", body="# Team\n")
    opened = machine("A", "work")
    opened.sync(str(tmp_path / "team"), name="team", scope="team")
    return opened


@pytest.fixture
def project(tmp_path):
    """The skills' folder of a project at ``work``, with the team's name among them."""
    home = tmp_path / "work" / ".claude" / "skills"
    write_skill(home / "deploy-prod", description="A stranger's.", body="# Stranger\n")
    write_skill(home / "extra", description="A stranger's, too.")
    return str(home)


def seen(registry):
    found = [(skill.ref, skill.source) for skill in registry.list()]
    assert {(hit.ref, hit.source) for hit in registry.search("team stranger")} == set(found)
    return found


OURS = [("deploy-prod", "team")]
THEIRS = [("deploy-prod", "theirs"), ("extra", "theirs")]


def test_a_project_of_another_host_hides_and_shows_nothing_here_though_its_path_is_ours(
    team, machine, project
):
    other = machine("B", "work", "bob")
    other.sync(project, name="theirs", scope="project")
    assert seen(other) == THEIRS
    assert seen(machine("B", "elsewhere", "bob")) == OURS
    assert seen(team) == seen(machine("A", "work")) == OURS
    assert "Team" in team.read("deploy-prod")
    description = team.toolset("wave").tools()[0].description
    assert "**deploy-prod** (personal): The team's." in description
    assert "tranger" not in description
    (ours, theirs) = team.why("deploy-prod")
    assert (ours.listed, theirs.listed) == (True, False)
    (reason,) = (one for one in theirs.reasons if one.code == "project")
    assert reason.message.endswith("/work on B; it is seen there")


def test_what_a_stranger_added_under_this_hosts_name_is_not_seen_before_it_is_adopted(
    team, machine, project
):
    machine("A", "work", "mallory").sync(project, name="theirs", scope="project")
    here = machine("A", "work", "ann")
    assert seen(here) == OURS
    (reason,) = (one for one in here.why("extra")[0].reasons if one.code == "project")
    assert "source adopt theirs" in reason.fix
    here.adopt_source("theirs")
    assert seen(here) == THEIRS


def test_a_stranger_who_claims_a_place_in_ones_project_hides_none_of_its_skills(
    team, machine, project, tmp_path
):
    home = tmp_path / "work" / ".agents" / "skills"
    write_skill(home / "extra", description="A stranger's that claims to be stronger.")
    mine = machine("A", "work", "ann")
    mine.sync(project, name="theirs", scope="project")
    assert seen(mine) == THEIRS
    stranger = machine("A", "work", "mallory")
    stranger.add_source(str(home), name="claim", scope="project", priority=100)
    stranger.sync("claim")
    again = machine("A", "work", "ann")
    assert [source for _, source in seen(again)] == ["theirs", "theirs"]
    assert again.get("extra").source == "theirs"
    assert [again.resolve(skill.ref).source for skill in again.list()] == ["theirs", "theirs"]


def test_what_is_asked_along_is_asked_again_where_it_turned_out_otherwise(team, machine, project):
    """A page, a list and a skill are asked for as it was seen last."""
    assert [skill.source for skill in team.list(limit=5)] == ["team"]
    machine("A", "work").sync(project, name="theirs", scope="project")
    page = team.list(limit=5)
    assert [(skill.ref, skill.source) for skill in page] == THEIRS
    assert page.total == 2
    machine("A", "work").remove_source("theirs")
    assert [(skill.ref, skill.source) for skill in team.list()] == OURS
    assert "Team" in team.read("deploy-prod")


def test_a_skill_is_compared_without_the_sources_below_it_that_others_added_since(
    team, machine, tmp_path
):
    folder = tmp_path / "team" / "deploy-prod"
    (folder / "inner").mkdir()
    (folder / "inner" / "notes.txt").write_text("Below.")
    assert {file.path for file in team.get("deploy-prod").files} == {"SKILL.md", "inner/notes.txt"}
    machine("A", "work").add_source(str(folder / "inner"), name="inner")
    assert {file.path for file in team.get("deploy-prod").files} == {"SKILL.md"}
