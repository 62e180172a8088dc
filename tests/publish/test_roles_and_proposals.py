"""Roles of a server: who sees proposals, who decides, and what the server refuses by itself."""

import json

import psycopg
import pytest

from registry.errors import RegistryError
from registry.publish import proposals
from tests.cli.conftest import run
from tests.conftest import write_skill
from tests.server.roles import World

pytestmark = pytest.mark.server


@pytest.fixture
def world(databases, tmp_path):
    made = World(databases, tmp_path / "world")
    for role, may in (("alice", "write"), ("bob", "write"), ("reader", "read")):
        made.add(role, may)
    made.add("carol", "read")
    made.add("stranger")
    write_skill(made.folder / "hers" / "pdf", description="Old.")
    yield made
    made.close()


@pytest.fixture
def hers(world):
    """Alice's registry, with a proposal that her agent made."""
    registry = world.open("alice")
    registry.sync(str(world.folder / "hers"), name="hers")
    registry.update_source("hers", review=True)
    registry.toolset("native").call("update_skill", {"name": "pdf", "description": "New."})
    return registry


def command(world, role, *arguments):
    return run("--db", world.url(role), *arguments)


def grant_approval(world, role="carol"):
    done = command(world, "owner", "db", "grant", world.name(role), "--approve", "--yes")
    assert done.exit_code == 0, done.output
    assert "decides on proposals" in done.output


def test_a_role_with_the_right_decides_from_afar_and_the_owners_sync_makes_the_change(world, hers):
    (one,) = proposals.listed(hers.core)
    assert json.loads(command(world, "carol", "proposal", "list", "--json").stdout) == []
    refused = command(world, "carol", "proposal", "approve", one.id, "--yes")
    assert refused.exit_code == 1
    assert "--approve" in refused.output
    grant_approval(world)
    (told,) = json.loads(command(world, "carol", "proposal", "list", "--json").stdout)
    assert told["id"] == one.id
    assert "+description: New." in command(world, "carol", "proposal", "show", one.id).stdout
    done = command(world, "carol", "proposal", "approve", one.id, "--yes", "--reason", "Fine.")
    assert done.exit_code == 0, done.output
    assert "next sync makes the change" in done.stdout
    assert hers.get("pdf").description == "Old."
    hers.sync()
    assert hers.get("pdf").description == "New."
    decided = proposals.get(hers.core, one.id)
    assert (decided.state, decided.decided_by) == ("applied", world.name("carol"))
    command(world, "owner", "db", "grant", world.name("carol"), "--read", "--yes")
    (rights,) = [
        one
        for one in json.loads(command(world, "owner", "db", "grants", "--json").stdout)
        if one["role"] == world.name("carol")
    ]
    assert rights["approve"] is False
    assert json.loads(command(world, "carol", "proposal", "list", "--all", "--json").stdout) == []


def test_others_neither_see_nor_decide(world, hers):
    (one,) = proposals.listed(hers.core)
    for role in ("bob", "reader"):
        assert json.loads(command(world, role, "proposal", "list", "--json").stdout) == []
        assert command(world, role, "proposal", "show", one.id).exit_code == 1
        for decision in ("approve", "reject"):
            refused = command(world, role, "proposal", decision, one.id, "--yes")
            assert refused.exit_code in {1, 3}, refused.output
    assert command(world, "stranger", "proposal", "list").exit_code == 3
    assert proposals.get(hers.core, one.id).state == "pending"
    own = command(world, "alice", "proposal", "approve", one.id, "--yes")
    assert (own.exit_code, "--approve" in own.output) == (1, True)


ATTEMPTS = {
    "approve": "UPDATE proposals SET state = 'approved'",
    "apply": "UPDATE proposals SET state = 'applied'",
    "change the files": "UPDATE proposals SET archive = '\\x00'",
    "change the hash": "UPDATE proposals SET tree_hash = 'sha256:00'",
    "change the author": "UPDATE proposals SET author = 'x', role = 'x'",
    "remove it": "DELETE FROM proposals",
    "add one": (
        "INSERT INTO proposals (id, source_id, kind, name, folder, tree_hash, author, created_at, "
        "state) SELECT 'x', source_id, 'delete', 'pdf', 'pdf', 'x', 'x', 'x', 'pending' "
        "FROM (SELECT id AS source_id FROM sources WHERE name = 'hers') s"
    ),
    "end the review": "UPDATE sources SET review = 0",
    "note a decision": "SELECT registry_note_use('proposal approved', 'pdf', '{}')",
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_the_server_refuses_what_the_program_would_not_do(world, hers, attempt):
    grant_approval(world)
    before = world.as_dba("SELECT CAST(p AS text), review FROM proposals p, sources")
    for role in ("bob", "reader", "carol", "stranger"):
        if (attempt, role) == ("approve", "carol"):
            continue
        refused, done = None, [(0,)]
        try:
            done = world.sql(role, ATTEMPTS[attempt])
        except psycopg.Error as error:
            refused = error.sqlstate
        assert refused in {None, "42501", "SR002", "SR003"}, role
        assert done == [(0,)], role
    assert world.as_dba("SELECT CAST(p AS text), review FROM proposals p, sources") == before


def test_an_approval_by_sql_is_recorded_with_the_role_that_gave_it(world, hers):
    grant_approval(world)
    sql = "UPDATE proposals SET state = 'approved', decided_by = 'somebody'"
    assert world.sql("carol", sql) == [(1,)]
    (one,) = proposals.listed(hers.core, None)
    assert one.decided_by == world.name("carol")
    with pytest.raises(psycopg.Error):
        world.sql("carol", "UPDATE proposals SET state = 'rejected'")
    hers.sync()
    assert hers.get("pdf").description == "New."


def test_no_one_approves_what_the_own_role_has_proposed(world, hers):
    grant_approval(world, "alice")
    (one,) = proposals.listed(hers.core)
    assert one.author == f"agent of {world.name('alice')}"
    done = command(world, "alice", "proposal", "approve", one.id, "--yes")
    assert done.exit_code in {0, 1}
    draft = write_skill(world.folder / "drafts" / "own")
    from registry.publish import publishing
    from registry.publish.packages import read_package
    from registry.sync.sources import find

    core = hers.core
    planned = publishing.plan(core, read_package(core, str(draft)), find(core, "hers"))
    made = publishing.publish(core, planned, None)
    by = proposals.local_person(core)
    own = proposals.get(core, made.proposal)
    with pytest.raises(RegistryError, match="your own proposal"):
        proposals.approve(core, own.id, own.tree_hash, by)
