"""A team's administrator moves skills to a server and lets others in, step by step."""

import re
import shutil

import pytest
from sqlalchemy import make_url

from tests.home import make
from tests.people import Person

pytestmark = pytest.mark.server


@pytest.fixture
def ada(world, tmp_path):
    """The administrator, with a team's skills in a file."""
    world.add("ada", "admin")
    person = Person(tmp_path / "ada", SKILL_REGISTRY_HOST="ada-pc")
    make(person.home)
    person.types("sync ~/team/skills --scope team")
    person.types("sync ~/.agents/skills")
    return person


@pytest.fixture
def bob(world, tmp_path):
    """A colleague with a role of the server and no rights, and an empty project."""
    world.add("bob")
    url = world.url("bob")
    person = Person(tmp_path / "bob", SKILL_REGISTRY_HOST="bob-pc", SKILL_REGISTRY_DB=url)
    person.path("~/shop/.git").mkdir(parents=True)
    person.goes_to("~/shop")
    return person


def test_an_administrator_moves_skills_to_a_server_and_lets_others_in(world, ada, bob):
    her_skills_move_and_the_next_sync_works(world, ada)
    she_sees_what_a_grant_gives_before_she_agrees(world, ada)
    her_colleague_sees_what_was_granted_and_no_more(world, ada, bob)
    at_another_address_one_command_helps(world, ada)
    what_was_granted_is_taken_back(world, ada, bob)


def her_skills_move_and_the_next_sync_works(world, ada):
    file = ada.types("config").out.split("\t")[1]
    said = ada.types(f"db copy {file} '{world.url('ada')}'").err
    assert f"The tables belong to the role {world.name('owner')};" in said
    assert f"Adopted for the next sync: team ({ada.home}/team/skills), agents (" in said
    uses(ada, world.url("ada"))
    shutil.copytree(ada.path("~/.codex/skills/installer"), ada.path("~/team/skills/installer"))
    synced = ada.types("sync")
    assert synced.out.splitlines()[0] == "+ installer"
    assert synced.err == "Found 1 warning. To see it, run: skill-registry check\n"
    ada.types("update oncall style-guide --add-tag read-first")
    assert ada.types("undo --yes").out == "Undone: update oncall and 1 more skill\n"
    for name, team in (("team", "red"), ("agents", "blue")):
        ada.types(f"source update {name} --team {team}")


def she_sees_what_a_grant_gives_before_she_agrees(world, ada):
    bob = world.name("bob")
    refused = ada.fails(f"db grant {bob} --read --team red")
    assert refused.err.endswith("Error: Not a terminal; pass --yes to confirm.\n")
    assert bob not in ada.types("db grants").out
    given = ada.types(f"db grant {bob} --read --team red --yes").out
    assert given == f"{bob} sees: red and sources without a team; writes: nothing.\n"
    assert f"This widens what {bob} sees." in ada.fails(f"db grant {bob} --write").err
    ada.fails(f"db grant {bob} --read --write", 2)
    assert (
        f"{bob}\tread\tred and sources without a team\tnothing\t-\t-" in ada.types("db grants").out
    )


def her_colleague_sees_what_was_granted_and_no_more(world, ada, bob):
    assert "team/style-guide" in bob.types("list --format names").out.splitlines()
    assert bob.types("source list").out.startswith("team\tteam\t6\t")
    assert "No skill named 'typography'" in bob.fails("show typography").err
    bob.types("pull style-guide -a claude-code -a codex")
    text = ada.path("~/team/skills/style-guide/SKILL.md").read_bytes()
    assert bob.path(".claude/skills/style-guide/SKILL.md").read_bytes() == text
    ada.types("update style-guide --description 'Our style.'")
    assert bob.fails("pull --check").out.startswith("outdated\tteam/style-guide\t")
    assert bob.types("pull").out.startswith("updated\tteam/style-guide\t")
    bob.fails("update style-guide --description 'My style.'")
    assert "Only an admin" in bob.fails("db grants").err


def at_another_address_one_command_helps(world, ada):
    moved = make_url(world.url("ada")).set(host="localhost").render_as_string(hide_password=False)
    uses(ada, moved)
    said = ada.fails("sync").err
    assert said.startswith(
        "Not synced: team and agents. You added them when the registry's address"
    )
    assert "Error:" not in said
    (command,) = re.findall(r"run: skill-registry (source adopt .*)$", said, re.MULTILINE)
    ada.types(f"{command} --yes")
    assert ada.types("sync").err == ""


def what_was_granted_is_taken_back(world, ada, bob):
    name = world.name("bob")
    assert ada.types(f"db revoke {name} --yes").out == f"{name} sees: nothing; writes: nothing.\n"
    assert "An admin can give it: skill-registry db grant ROLE --read" in bob.fails("list", 3).err


def uses(person, url):
    """Let a person's commands use this address from now on."""
    person.variables["SKILL_REGISTRY_DB"] = url
