"""Versions on a server: their owner adds and yanks them, others see no yanked skill."""

import psycopg
import pytest

from registry.db.read.access import audit_records
from registry.db.read.listing import Filters
from registry.errors import AdminNeeded, RegistryError, SkillNotFound, SourceNotYours
from tests.conftest import write_skill

pytestmark = pytest.mark.server

FRONT = "metadata:\n  version: '{}'\n"


@pytest.fixture
def alice(world, tmp_path):
    """The owner of a skill that had version 1.0 and has version 1.1; and other roles."""
    for role in ("alice", "bianca"):
        world.add(role, "write")
    world.add("rita", "read")
    world.add("ada", "admin")
    alice = world.open("alice")
    for version in ("1.0", "1.1"):
        extra = FRONT.format(version)
        write_skill(tmp_path / "skills" / "tea", body=f"{version}\n", extra=extra, age=None)
        alice.sync(str(tmp_path / "skills"), name="open")
    return alice


def names(registry, **wanted):
    return [one.name for one in registry.list(Filters(**wanted))]


def test_everybody_reads_versions_and_their_owner_is_named(alice, world):
    rita = world.open("rita")
    found = rita.versions("tea")
    assert [(one.label, one.author, one.current) for one in found] == [
        ("1.1", world.name("alice"), True),
        ("1.0", world.name("alice"), False),
    ]
    assert rita.read("tea@1.0").endswith("1.0\n")


def test_only_the_owner_and_an_admin_change_versions(alice, world):
    for role in ("bianca", "rita"):
        other = world.open(role)
        for change in (
            lambda one=other: one.add_version("tea", "2.0"),
            lambda one=other: one.yank_version("tea@1.0", "no"),
            lambda one=other: one.deprecate_version("tea@1.0", "no"),
        ):
            with pytest.raises(SourceNotYours):
                change()
        with pytest.raises((AdminNeeded, RegistryError)):
            other.yank_version("tea@1.0", "no", as_admin=True)
    assert {one.state for one in alice.versions("tea")} == {"active"}
    ada = world.open("ada")
    ada.yank_version("tea@1.0", "bad", as_admin=True)
    assert alice.versions("tea")[1].history[-1].role == world.name("ada")


def test_the_server_itself_refuses_rows_of_others_and_changes(alice, world):
    ((uid,),) = alice.core.reader.rows("SELECT DISTINCT uid FROM labels")
    row = (
        "INSERT INTO labels (uid, label, number, tree_hash, state, at) "
        f"VALUES ('{uid}', '{{}}', {{}}, 'sha256:0', 'yanked', '2026-01-01T00:00:00Z')"
    )
    for role, sql in (
        ("bianca", row.format("1.0", 1)),
        ("bianca", row.format("9.0", 0)),
        ("rita", row.format("1.0", 1)),
        ("alice", "UPDATE labels SET tree_hash = 'sha256:0'"),
    ):
        with pytest.raises(psycopg.Error):
            world.sql(role, sql)
    assert world.sql("bianca", "UPDATE skills SET held = 2") == [(0,)]
    assert world.sql("bianca", "DELETE FROM labels") == [(0,)]


def test_a_yanked_skill_is_seen_by_its_owner_only(alice, world):
    alice.yank_version("tea@1.1", "sends files away")
    assert names(alice) == []
    assert names(alice, all=True) == ["tea"]
    assert alice.get("tea").versions[0].warning == "Version 1.1 is yanked: sends files away."
    for role in ("bianca", "rita", "ada"):
        other = world.open(role)
        assert names(other, all=True) == [] == names(other)
        for handle in ("tea", "open/tea", "tea@1.0", "tea@1.1"):
            with pytest.raises(SkillNotFound):
                other.get(handle)
    alice.reactivate_version("tea@1.1")
    assert names(world.open("rita")) == ["tea"]


def test_an_admin_takes_back_what_an_admin_yanked(alice, world):
    ada = world.open("ada")
    ada.yank_version("tea@1.1", "bad", as_admin=True)
    assert names(ada, all=True) == []
    ada.reactivate_version("tea@1.1", as_admin=True)
    assert names(world.open("rita")) == ["tea"]


def test_the_audit_log_of_the_server_has_who_yanked(alice, world):
    alice.yank_version("tea@1.0", "bad", replacement="tea@1.1")
    alice.reactivate_version("tea@1.0")
    found = [
        one
        for one in audit_records(world.open("ada").core.reader, 50)
        if "tea@" in (one.subject or "")
    ]
    assert [(one.what, one.subject, one.role) for one in found] == [
        ("version active again", "open/tea@1.0", world.name("alice")),
        ("version yanked", "open/tea@1.0", world.name("alice")),
    ]
    assert found[1].detail == {"reason": "bad", "replacement": "tea@1.1"}
    whats = {one.what for one in audit_records(world.open("ada").core.reader, 50)}
    assert not whats & {"skill trusted", "skill held back"}
