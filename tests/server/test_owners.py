"""Whose a source is, on a server that others use: its owner and an admin change it, nobody else."""

import os

import psycopg
import pytest

from registry.cli.hints import hint
from registry.db.read.listing import Filters
from registry.errors import AdminNeeded, HostTaken, RightMissing, RoleNotFound, SourceNotYours
from tests.conftest import write_skill
from tests.program import run

pytestmark = pytest.mark.server


@pytest.fixture
def world(world):
    for role in ("alice", "bob"):
        world.add(role, "write")
    return world


@pytest.fixture
def alice(world, root):
    write_skill(root / "pdf", body="# Alice\n")
    write_skill(root / "notes")
    opened = world.open("alice")
    opened.sync(str(root), name="hers")
    return opened


@pytest.fixture
def bob(world, alice, tmp_path):
    write_skill(tmp_path / "bobs" / "csv")
    opened = world.open("bob")
    opened.sync(str(tmp_path / "bobs"), name="his")
    return opened


def test_a_source_belongs_to_the_role_that_added_it(world, alice, bob):
    owners = {source.name: (source.owner, source.own) for source in bob.sources()}
    assert owners == {"hers": (world.name("alice"), False), "his": (world.name("bob"), True)}


def test_who_owns_a_source_works_with_it_as_ever(alice, root):
    alice.create("new", description="New.")
    alice.update("new", body="Other.\n")
    alice.delete("new")
    alice.restore("new")
    alice.update_source("hers", priority=3, new_name="mine")
    write_skill(root / "pdf", body="# Again\n")
    assert alice.sync().updated == ("pdf",)
    assert len(alice.history("pdf")) == 2
    # The old revisions of pdf and of new; contents belong to an admin.
    assert alice.prune(keep=0) == (2, 0)
    assert alice.check_database() == []
    alice.remove_source("mine")
    assert alice.sources() == []


NOT_YOURS = {
    "sync": lambda registry: registry.sync("hers"),
    "update": lambda registry: registry.update_source("hers", priority=9),
    "team": lambda registry: registry.update_source("hers", team="red"),
    "trust": lambda registry: registry.trust_source("hers"),
    "remove": lambda registry: registry.remove_source("hers"),
    "adopt": lambda registry: registry.adopt_source("hers"),
    "change": lambda registry: registry.update("pdf", body="Mine.\n"),
    "delete": lambda registry: registry.delete("pdf"),
    "create": lambda registry: registry.create("new", description="New.", source="hers"),
}


@pytest.mark.parametrize("is_remembered", [True, False])
def test_another_role_is_told_whose_it_is_also_on_the_same_machine(
    world, alice, is_remembered, monkeypatch
):
    from registry.db.adopted import remember

    bob = world.open("bob", host="alice-pc")
    (source,) = bob.sources()
    if is_remembered:
        remember(bob.core.backend, source.path)
    else:
        monkeypatch.setenv("XDG_DATA_HOME", str(world.folder / "bobs-data"))
    before = alice.core.reader.rows("SELECT * FROM sources")
    for what, act in NOT_YOURS.items():
        with pytest.raises(SourceNotYours, match=f"'hers' belongs to '{world.name('alice')}' on"):
            pytest.fail(f"{what}: {act(bob)}")
        assert alice.core.reader.rows("SELECT * FROM sources") == before, what
        assert alice.read("pdf").endswith("# Alice\n"), what
    if not is_remembered:
        with pytest.raises(SourceNotYours):
            bob.create("new", description="New.")


def test_a_sync_of_all_leaves_out_what_is_another_roles(world, alice, root):
    from registry.db.adopted import remember

    bob = world.open("bob", host="alice-pc")
    remember(bob.core.backend, alice.sources()[0].path)
    write_skill(root / "late")
    assert bob.sync().sources == ()
    assert alice.sync().added == ("late",)


FOR_ADMINS = {
    "update": lambda registry: registry.update_source("hers", priority=9, as_admin=True),
    "owner": lambda registry: registry.update_source("his", owner="alice"),
    "remove": lambda registry: registry.remove_source("hers", as_admin=True),
    "trust": lambda registry: registry.trust_source("hers", as_admin=True),
    "prune": lambda registry: registry.prune(as_admin=True),
}


def test_who_is_no_admin_does_not_become_one_by_saying_so(bob):
    for what, act in FOR_ADMINS.items():
        with pytest.raises(AdminNeeded, match="Only an admin"):
            pytest.fail(f"{what}: {act(bob)}")
        assert [source.priority for source in bob.sources()] == [0, 0], what


def test_an_admin_changes_and_removes_what_is_another_roles_only_when_it_says_so(world, alice):
    world.add("ada", "admin")
    ada = world.open("ada")
    with pytest.raises(SourceNotYours):
        ada.remove_source("hers")
    assert ada.update_source("hers", priority=5, as_admin=True).priority == 5
    ada.remove_source("hers", as_admin=True)
    assert alice.sources() == []


def test_an_admin_hands_a_source_and_its_machines_name_over(world, alice, tmp_path):
    world.add("ada", "admin")
    world.open("ada").update_source("hers", owner=world.name("bob"), as_admin=True)
    bob = world.open("bob", host="alice-pc")
    bob.adopt_source("hers")
    bob.update("pdf", body="# Bob\n")
    assert bob.read("pdf").endswith("# Bob\n")
    with pytest.raises(SourceNotYours):
        alice.update("pdf", body="# Alice again\n")
    write_skill(tmp_path / "more" / "more")
    with pytest.raises(HostTaken):
        alice.add_source(str(tmp_path / "more"))


def test_a_source_is_handed_to_no_role_that_there_is_not(world, alice):
    world.add("ada", "admin")
    with pytest.raises(RoleNotFound, match="'nobody-there'"):
        world.open("ada").update_source("hers", owner="nobody-there", as_admin=True)
    assert alice.sources()[0].own


def test_an_admin_who_adopts_a_source_becomes_its_owner(world, alice, root):
    world.add("ada", "admin")
    ada = world.open("ada", host="alice-pc")
    with pytest.raises(SourceNotYours):
        ada.adopt_source("hers")
    assert ada.adopt_source("hers", as_admin=True).owner == world.name("ada")
    write_skill(root / "late")
    assert ada.sync().added == ("late",)


def test_the_name_of_a_machine_belongs_to_the_role_that_used_it_first(world, alice, tmp_path):
    write_skill(tmp_path / "claimed" / "claimed")
    bob = world.open("bob", host="alice-pc")
    told = f"'alice-pc' is already used by the role '{world.name('alice')}'"
    with pytest.raises(HostTaken, match=told) as caught:
        bob.add_source(str(tmp_path / "claimed"))
    assert caught.value.role == world.name("alice")
    assert "SKILL_REGISTRY_HOST or the setting host. If that role is no longer" in hint(
        caught.value
    )
    assert [source.name for source in bob.sources()] == ["hers"]
    alice.remove_source("hers")
    with pytest.raises(HostTaken):  # also when it has no source any more
        bob.add_source(str(tmp_path / "claimed"))


def test_of_the_past_only_ones_own_is_forgotten(world, alice, bob):
    for registry, name in ((alice, "pdf"), (bob, "csv")):
        registry.update(name, body="Second.\n")
    assert bob.prune(keep=0) == (1, 0)
    assert [len(bob.history(name)) for name in ("pdf", "csv")] == [2, 1]
    world.add("ada", "admin")
    ada = world.open("ada")
    assert ada.prune(keep=0) == (0, 1)  # the content of the revision that is gone is nobody's
    assert ada.prune(keep=0, as_admin=True) == (1, 1)
    assert len(ada.history("pdf")) == 1


def test_of_a_role_that_reads_the_server_takes_nothing_else(world, alice, tmp_path):
    world.add("carol", "read")
    carol = world.open("carol")
    assert [skill.name for skill in carol.list()] == ["notes", "pdf"]
    assert [hit.name for hit in carol.search("pdf")] == ["pdf"]
    assert carol.read("pdf").endswith("# Alice\n")
    assert carol.sync().sources == ()
    carol.toolset("native").call("read_skill", {"name": "pdf"})
    carol.core.usage.write()
    assert [(one.ref, one.read) for one in alice.usage_counts() if one.read] == [("pdf", 1)]
    write_skill(tmp_path / "own" / "own")
    with pytest.raises(RightMissing, match="permission denied"):
        carol.sync(str(tmp_path / "own"))


def test_a_stranger_of_the_server_reads_nothing(world, alice):
    world.add("mallory")
    with pytest.raises(RightMissing, match="permission denied"):
        world.open("mallory").list()
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        world.sql("mallory", "SELECT registry_count('head', 'pdf'::tsquery, NULL)")


def test_names_are_told_apart_over_all_owners(alice, bob, tmp_path):
    """What a name means depends on all skills of it, of which a writer may change its own alone."""
    write_skill(tmp_path / "bobs" / "pdf", body="# Bob\n")
    bob.sync()
    assert {skill.ref for skill in alice.list(Filters()) if skill.name == "pdf"} == {
        "hers/pdf",
        "his/pdf",
    }


def test_the_commands_say_whose_it_is_and_what_to_do(world, alice, bob):
    ran = run(["--db", world.url("bob"), "source", "remove", "hers"], environ=dict(os.environ))
    assert ran.status == 1
    assert f"belongs to '{world.name('alice')}' on 'alice-pc'" in ran.err
    assert "--as-admin" in ran.err
    listing = ["--db", world.url("bob"), "source", "list"]
    ran = run([*listing, "--json"], environ=dict(os.environ))
    assert f'"owner": "{world.name("alice")}"' in ran.out
    ran = run([*listing, "--format", "table"], environ=dict(os.environ))
    assert "OWNER" in ran.out


def test_who_may_not_replace_the_bytes_of_files_is_told_who_does(world, alice, root):
    (root / "pdf" / "run.sh").write_text("echo\n")
    alice.sync()
    world.as_dba("UPDATE contents SET data = 'x'")
    told = {
        who: run(["--db", world.url(who), "db", "check"], environ=dict(os.environ))
        for who in ("alice", "owner")
    }
    assert [ran.status for ran in told.values()] == [1, 1]
    assert "run.sh of skill pdf" in told["alice"].out
    assert "only an admin can repair them" in told["alice"].err
    assert "admin" not in told["owner"].err
