"""Between owners only an admin decides which source comes first; else a name is ambiguous."""

import json
import re
import shlex

import psycopg
import pytest

from registry.errors import SkillAmbiguous
from tests.conftest import write_skill
from tests.older import move

pytestmark = pytest.mark.server

NAME = "charts-tool"
HERS, HIS = f"office/{NAME}", f"mine/{NAME}"


@pytest.fixture
def world(world):
    for role in ("alice", "mallory"):
        world.add(role, "write")
    world.add("carol", "read")
    world.add("ada", "admin")
    return world


def add(world, role, source, body, name=NAME):
    """Add a source with one skill as a role."""
    write_skill(world.folder / source / name, name=name, description=f"Draw charts. {body}")
    opened = world.open(role)
    opened.sync(str(world.folder / source), name=source)
    return opened


@pytest.fixture
def alice(world):
    return add(world, "alice", "office", "Careful.")


@pytest.fixture
def mallory(world, alice):
    return add(world, "mallory", "mine", "Hostile and quite another text about something else.")


def seen(world, role):
    """Return what a role gets of the name: listed refs, what the bare name means, and what reads."""
    registry = world.open(role)
    listed = sorted(skill.ref for skill in registry.list())
    found = {hit.ref for hit in registry.search("draw charts")}
    try:
        bare = registry.resolve(NAME).source
    except SkillAmbiguous as error:
        bare = sorted(error.refs)
    answered = registry.toolset("native").call("read_skill", {"name": NAME})
    refused = answered.get("error", {}).get("code") == "skill_ambiguous"
    return listed, found, bare, refused or "Hostile" not in str(answered)


BOTH = ([HIS, HERS], {HIS, HERS}, [HIS, HERS], True)

SETTINGS = {
    "priority": {"priority": 1000},
    "scope": {"scope": "team"},
    "both": {"scope": "team", "priority": 499_999},
    "added so": None,
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_of_ones_own_source_never_replaces_the_skill_of_another_owner(
    world, alice, mallory, setting
):
    if SETTINGS[setting] is None:
        mallory.remove_source("mine")
        mallory.sync(str(world.folder / "mine"), name="mine", scope="team")
    else:
        mallory.update_source("mine", **SETTINGS[setting])
    for role in ("alice", "mallory", "carol", "ada"):
        assert seen(world, role) == BOTH, role


def test_a_source_that_is_called_before_all_others_takes_no_name(world, alice, mallory):
    mallory.update_source("mine", new_name="aaa")
    refs = [f"aaa/{NAME}", HERS]
    assert seen(world, "carol") == (refs, set(refs), refs, True)


def test_an_admins_own_source_is_as_strong_as_any(world, alice):
    ada = add(world, "ada", "mine", "Hostile and quite another text about something else.")
    ada.update_source("mine", scope="team", priority=1000)
    assert seen(world, "carol") == BOTH


@pytest.mark.parametrize("as_admin", [False, True])
def test_an_admin_puts_a_source_first_only_by_saying_so(world, alice, mallory, command, as_admin):
    flag = ["--as-admin"] if as_admin else []
    who = "ada" if as_admin else "alice"
    assert command(who, "source", "update", "office", "--priority", "7", *flag).status == 0
    mallory.update_source("mine", scope="team", priority=1000)
    expected = ([NAME], {NAME}, "office", True) if as_admin else BOTH
    for role in ("alice", "mallory", "carol"):
        assert seen(world, role) == expected, role
    audited = json.loads(command("ada", "db", "audit", "--json").out)
    told = [one for one in audited if one["subject"] == "office" and "changed" in one["what"]]
    assert told[0]["role"] == world.name(who)
    assert told[0]["detail"].get("precedence") == ([0, 7] if as_admin else None)
    assert command("ada", "source", "update", "office", "--priority", "0", "--as-admin").status == 0
    assert seen(world, "carol") == BOTH


def test_what_an_admin_put_first_stays_so_whatever_its_owner_sets(world, alice, mallory):
    world.open("ada").update_source("office", priority=7, as_admin=True)
    alice.update_source("office", scope="community", priority=-3)
    assert seen(world, "carol")[2] == "office"


def test_what_an_admin_put_first_for_a_team_is_not_first_for_all(world, alice):
    """Else its owner would replace the skills of others by showing it to everybody."""
    world.grant("mallory", "write", "red")
    mallory = add(world, "mallory", "mine", "Hostile and quite another text about something else.")
    mallory.update_source("mine", team="red")
    world.open("ada").update_source("mine", priority=9, as_admin=True)
    mallory.update_source("mine", team="")
    assert seen(world, "carol") == BOTH


def test_a_source_of_a_team_never_takes_a_bare_name_from_one_that_everybody_sees(world, alice):
    world.grant("mallory", "write", "red")
    mallory = add(world, "mallory", "mine", "Hostile and quite another text about something else.")
    mallory.update_source("mine", team="red", scope="team", priority=1000)
    assert seen(world, "alice")[2] == "office"
    assert seen(world, "mallory")[2] == "office"


def test_scope_and_priority_decide_among_the_sources_of_one_owner(world, alice, mallory):
    add(world, "alice", "second", "Newer, and with other words altogether.")
    alice.update_source("second", priority=5)
    listed, _, bare, _ = seen(world, "carol")
    assert listed == [HIS, f"second/{NAME}"]
    assert bare == [HIS, f"second/{NAME}"]


def test_a_copy_of_another_owners_is_listed_once_and_its_edit_makes_the_name_ambiguous(
    world, alice
):
    mallory = add(world, "mallory", "mine", "Careful.")
    mallory.update_source("mine", scope="team", priority=1000)
    for role in ("alice", "mallory", "carol"):
        (listed,) = world.open(role).list()
        assert (listed.source, listed.copies) == ("office", (HIS,)), role
    mallory.update(HIS, description="Draw charts. Hostile.")
    assert seen(world, "carol")[::2] == ([HIS, HERS], [HIS, HERS])


def test_a_copy_that_its_owner_hides_hides_no_others_copy(world):
    mallory = add(world, "mallory", "mine", "Careful.")
    add(world, "alice", "office", "Careful.")
    add(world, "mallory", "stronger", "Hostile and quite another text about something else.")
    mallory.update_source("stronger", priority=1000)
    assert [skill.ref for skill in world.open("carol").list()] == [HERS, f"stronger/{NAME}"]


def test_a_near_copy_of_a_stronger_source_of_another_owner_does_not_stand_for_a_skill(world):
    text = " ".join(
        f"Step {number} of recipe {number * 7 % 83} for charts." for number in range(300)
    )
    for role, source, name in (("alice", "office", "charts"), ("mallory", "mine", "charts-two")):
        told = {
            "description": "Draw charts of every kind from tables, lists and other numbers.",
            "body": f"{text}\n",
        }
        write_skill(world.folder / source / name, name=name, **told)
        world.open(role).sync(str(world.folder / source), name=source)
    carol = world.open("carol")
    before = [hit.name for hit in carol.search("charts")]
    assert before == ["charts"]
    world.open("mallory").update_source("mine", scope="team", priority=1000)
    assert [hit.name for hit in carol.search("charts")] == before
    world.open("ada").update_source("mine", priority=1, as_admin=True)
    assert [hit.name for hit in carol.search("charts")] == ["charts-two"]


REFUSED = {
    "precede": "UPDATE sources SET precedence = 9 WHERE name = 'mine'",
    "be older": "UPDATE sources SET id = -1 WHERE name = 'new'",
}


@pytest.mark.parametrize("attempt", REFUSED)
def test_the_server_itself_keeps_the_precedence_for_admins(world, mallory, attempt):
    mallory.add_source(str(write_skill(world.folder / "new" / "other").parent), name="new")
    with pytest.raises(psycopg.Error) as refused:
        world.sql("mallory", REFUSED[attempt])
    assert refused.value.sqlstate == "SR003"


def test_a_source_that_a_writer_adds_has_no_precedence_whatever_the_writer_says(world, mallory):
    world.sql(
        "mallory",
        "INSERT INTO sources (name, path, scope, strength, precedence, host, added_at) "
        "VALUES ('new', '/new', 'team', -9, 9, 'mallory-pc', '2026-01-01T00:00:00Z')",
    )
    assert world.as_dba("SELECT 1") == [(1,)]
    assert world.sql("carol", "SELECT precedence FROM sources WHERE name = 'new'") == [(0,)]


def test_columns_that_a_writer_forges_take_no_bare_name(world, alice, mallory):
    world.sql("mallory", "UPDATE sources SET strength = -2000000000 WHERE name = 'mine'")
    world.sql(
        "mallory",
        f"UPDATE skills SET ref = '{NAME}', bare = 1, shadowed = 0 WHERE source_id = "
        "(SELECT id FROM sources WHERE name = 'mine')",
        "CALL registry_refresh_names(NULL)",
    )
    assert seen(world, "carol") == BOTH
    world.sql(
        "mallory",
        f"UPDATE skills SET ref = '{NAME}', bare = 1 WHERE source_id = "
        "(SELECT id FROM sources WHERE name = 'mine')",
    )
    with pytest.raises(SkillAmbiguous):
        world.open("carol").resolve(NAME)


def test_an_upgrade_lists_what_no_longer_counts_and_how_an_admin_restores_it(
    world, alice, mallory, command
):
    mallory.update_source("mine", priority=1000)
    move(world.url("owner"), "0015")
    upgraded = command("ada", "db", "upgrade")
    assert upgraded.status == 0, upgraded.err
    assert "office" not in upgraded.out
    assert seen(world, "carol") == BOTH
    (restores,) = re.findall(r"skill-registry (source update mine .*?) +#", upgraded.out)
    assert command("ada", *shlex.split(restores)).status == 0
    assert world.open("carol").resolve(NAME).source == "mine"
    assert "--as-admin" not in command("ada", "db", "upgrade").out


def test_a_pull_by_an_ambiguous_name_is_refused_with_the_refs(world, alice, mallory, command):
    mallory.update_source("mine", scope="team", priority=1000)
    pulled = command("carol", "pull", NAME, "--to", str(world.folder / "project"))
    assert pulled.status != 0
    assert HERS in pulled.err
    assert HIS in pulled.err
