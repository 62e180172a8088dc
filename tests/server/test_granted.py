"""What a grant leaves in force is printed, asked for where it widens, and listed."""

import json
import os

import pytest

from tests.conftest import write_skill
from tests.program import run

pytestmark = pytest.mark.server


@pytest.fixture
def grant(world, command):
    """Run ``db grant`` of a role as an admin."""

    def call(role, *arguments):
        return command("owner", "db", "grant", world.name(role), *arguments)

    return call


def seen(world, role):
    """Return the names of the sources that a role sees."""
    return {source.name for source in world.open(role).sources()}


@pytest.fixture
def teams(world, tmp_path):
    """A source of each of two teams, and one of none."""
    world.add("alice", "write")
    alice = world.open("alice")
    for name in ("red", "blue", "open"):
        write_skill(tmp_path / name / f"{name}-skill")
        alice.add_source(str(tmp_path / name), name=name)
        if name != "open":
            alice.update_source(name, team=name)
    alice.sync()


def test_a_second_team_is_printed_beside_the_first_and_both_are_in_force(world, grant, teams):
    bob = world.add("bob")
    assert grant("bob", "--read", "--team", "red", "--yes").out == (
        f"{bob} sees: red and sources without a team; writes: nothing.\n"
    )
    assert seen(world, "bob") == {"red", "open"}
    ran = grant("bob", "--read", "--team", "blue", "--yes")
    assert ran.out == f"{bob} sees: blue, red and sources without a team; writes: nothing.\n"
    assert seen(world, "bob") == {"red", "blue", "open"}


def test_the_same_rights_once_more_print_the_same_and_widen_nothing(world, grant):
    bob = world.add("bob", "read", "red")
    for _ in range(2):
        ran = grant("bob", "--read", "--team", "red")
        assert (ran.status, "sees more" in ran.err) == (1, False)
        assert grant("bob", "--read", "--team", "red", "--yes").out == (
            f"{bob} sees: red and sources without a team; writes: nothing.\n"
        )


@pytest.mark.parametrize("may", ["--read", "--write"])
def test_a_reader_of_a_team_sees_no_more_before_somebody_agreed(world, grant, teams, may):
    bob = world.add("bob", "read", "red")
    ran = grant("bob", may)
    assert ran.status == 1
    assert f"{bob} now sees: red and sources without a team; writes: nothing." in ran.err
    assert f"After this {bob} sees: everything; writes: " in ran.err
    assert f"This widens what {bob} sees." in ran.err
    assert ran.err.endswith("Error: Not a terminal; pass --yes to confirm.\n")
    assert seen(world, "bob") == {"red", "open"}
    ran = grant("bob", may, "--yes")
    writes = "own sources" if may == "--write" else "nothing"
    assert ran.out == f"{bob} sees: everything; writes: {writes}.\n"
    assert f"This widens what {bob} sees." in ran.err
    assert seen(world, "bob") == {"red", "blue", "open"}


def test_a_writer_of_a_team_keeps_it_if_the_team_is_named(world, grant, teams):
    bob = world.add("bob", "read", "red")
    ran = grant("bob", "--write", "--team", "red", "--yes")
    assert (ran.out, ran.err) == (
        f"{bob} sees: red and sources without a team; writes: own sources.\n",
        "",
    )
    assert seen(world, "bob") == {"red", "open"}


@pytest.mark.parametrize(
    "given", [("--read", "--write"), ("--write", "--read"), ("--admin", "--read"), ()]
)
def test_one_right_is_named_and_not_two(world, grant, given):
    bob = world.add("bob")
    ran = grant("bob", *given, "--yes")
    assert ran.status == 2
    assert ("can't be combined" in ran.err) == bool(given)
    assert bob not in grants(world)


def grants(world):
    """Return what ``db grants`` lists of roles that the test made."""
    environ = {**os.environ, "SKILL_REGISTRY_HOST": "owner-pc"}
    ran = run(["--db", world.url("owner"), "db", "grants", "--json"], environ=environ)
    assert ran.status == 0
    return {one["role"]: one for one in json.loads(ran.out)}


def test_who_may_do_what_is_listed_with_the_groups_that_give_it(world, command):
    bob, alice = world.add("bob", "read", "red"), world.add("alice")
    writers, ada = world.add("writers", "write"), world.add("ada", "admin")
    stranger = world.add("stranger")
    world.as_dba(f"GRANT {writers} TO {alice}; ALTER ROLE {writers} NOLOGIN")
    found = grants(world)
    assert stranger not in found
    assert found[bob] == {
        "role": bob,
        "may": "read",
        "teams": ["red"],
        "login": True,
        "through": [],
        "approve": False,
    }
    assert found[alice] == {
        "role": alice,
        "may": "write",
        "teams": None,
        "login": True,
        "through": [writers],
        "approve": False,
    }
    assert (found[writers]["login"], found[writers]["may"]) == (False, "write")
    assert (found[ada]["may"], found[ada]["through"]) == ("admin", [world.name("owner")])
    lines = command("owner", "db", "grants").out.splitlines()
    assert f"{bob}\tread\tred and sources without a team\tnothing\t-\t-" in lines
    assert f"{alice}\twrite\teverything\town sources\t{writers}\t-" in lines
    gives = f"{ada}\tadmin\teverything\teverything, and gives rights\t{world.name('owner')}"
    assert f"{gives}\tyes" in lines
    refused = command("bob", "db", "grants")
    assert (refused.status, "Only an admin" in refused.err) == (1, True)


@pytest.mark.parametrize(
    ("may", "team"),
    [("read", None), ("read", "red"), ("write", None), ("write", "red"), ("admin", None)],
)
def test_what_is_listed_is_what_the_server_lets_a_role_do(world, teams, tmp_path, may, team):
    """By itself and as a member of a group, to which it was granted."""
    bob, group = world.add("bob"), world.add("group")
    world.grant("group", may, team)
    world.as_dba(f"GRANT {group} TO {bob}")
    for one in (bob, group):
        assert (grants(world)[one]["may"], grants(world)[one]["teams"]) == (may, team and [team])
    everything = {"red", "blue", "open"}
    assert seen(world, "bob") == ({team, "open"} if team else everything)
    write_skill(tmp_path / "bobs" / "alpha")
    if may == "read":
        with pytest.raises(Exception, match="permission denied"):
            world.open("bob").add_source(str(tmp_path / "bobs"))
    else:
        assert world.open("bob").add_source(str(tmp_path / "bobs")).own


def test_rights_of_a_group_are_printed_for_its_members_too(world, grant, command):
    group, bob = world.add("group", "read", "red"), world.add("bob")
    world.as_dba(f"GRANT {group} TO {bob}")
    ran = grant("group", "--read", "--yes")
    assert ran.out.splitlines() == [
        f"{group} sees: everything; writes: nothing.",
        f"{bob} sees: everything; writes: nothing (through {group}).",
    ]
    assert f"This widens what {group} and {bob} sees." not in ran.err
    assert f"This widens what {group} and {bob} see." in ran.err


def test_a_revoke_prints_what_is_left_and_asks_if_that_is_more(world, command, teams):
    """Who was bound to a team, and is a member of a group that sees all, is bound no more."""
    bob, readers = world.add("bob", "read", "red"), world.add("readers", "read")
    world.as_dba(f"GRANT {readers} TO {bob}")
    assert seen(world, "bob") == {"red", "open"}
    ran = command("owner", "db", "revoke", bob)
    assert (ran.status, f"This widens what {bob} sees." in ran.err) == (1, True)
    assert seen(world, "bob") == {"red", "open"}
    assert command("owner", "db", "revoke", bob, "--yes").out == (
        f"{bob} sees: everything; writes: nothing (through {readers}).\n"
    )
    assert seen(world, "bob") == {"red", "blue", "open"}
    assert command("owner", "db", "revoke", readers, "--yes").out.splitlines() == [
        f"{readers} sees: nothing; writes: nothing.",
        f"{bob} sees: nothing; writes: nothing.",
    ]


def test_an_admin_who_is_to_read_is_printed_as_the_admin_that_it_still_is(world, grant):
    ada, owner = world.add("ada", "admin"), world.name("owner")
    assert grant("ada", "--read", "--yes").out == (
        f"{ada} sees: everything; writes: everything, and gives rights (through {owner}).\n"
    )


def test_what_was_only_tried_leaves_nothing_behind(world, grant):
    world.add("bob", "read", "red")
    before = grants(world), world.as_dba("SELECT count(*) FROM audit")
    assert grant("bob", "--write").status == 1
    assert (grants(world), world.as_dba("SELECT count(*) FROM audit")) == before
