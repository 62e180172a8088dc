"""What each role of a server may do on the command line, as a table of people and actions."""

import json

import pytest

from registry.publish import proposals
from tests.cli.conftest import run
from tests.conftest import write_skill
from tests.server.roles import World

pytestmark = pytest.mark.server

EVERYBODY = {"reader", "writer", "author", "approver", "admin"}

ACTIONS = {
    # action: the roles that may do it; all others get an error, and nothing is changed
    "read": EVERYBODY,
    "read a version": EVERYBODY,
    "pull": EVERYBODY,
    "see proposals": {"author", "approver", "admin"},
    "show a proposal": {"author", "approver", "admin"},
    "publish": {"author"},
    "change by a tool": {"author"},
    "approve": {"approver", "admin"},
    "reject": {"approver", "admin"},
    "approve the own": set(),
    "add a version": {"author"},
    "deprecate": {"author"},
    "yank": {"author"},
    "yank as admin": {"admin"},
    "end the review": {"author"},
    "give the right": {"admin"},
    "read the audit of others": {"admin"},
}
"""The author owns the source. An admin changes only states of versions, and says so."""


@pytest.fixture
def world(databases, tmp_path):
    made = World(databases, tmp_path / "world", "admin")
    for role, may in (("author", "write"), ("writer", "write"), ("reader", "read")):
        made.add(role, may)
    made.add("approver", "read")
    made.add("stranger")
    yield made
    made.close()


@pytest.fixture
def hers(world):
    """The author's registry: a skill with a version, and two proposals of the author's agent."""
    extra = "metadata:\n  version: '1.0'\n"
    write_skill(world.folder / "hers" / "pdf", description="Old.", extra=extra)
    registry = world.open("author")
    registry.sync(str(world.folder / "hers"), name="hers")
    registry.update_source("hers", review=True)
    for text in ("First.", "Second."):
        registry.toolset("native").call("update_skill", {"name": "pdf", "description": text})
    return registry


@pytest.mark.parametrize("role", sorted(EVERYBODY | {"stranger"}))
def test_each_role_does_what_it_may_and_nothing_else(world, hers, role, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("host: author-pc\n")  # all people share the author's machine

    def ask(who, *arguments):
        return run("--db", world.url(who), "--config", str(config), *arguments)

    given = ask("admin", "db", "grant", world.name("approver"), "--approve", "--yes")
    assert given.exit_code == 0, given.output
    waiting = proposals.listed(hers.core)  # in the order of ids, if both are of the same second
    first, second = sorted(
        waiting,
        key=lambda one: proposals.proposed_package(hers.core, one).files["SKILL.md"],
    )
    draft = write_skill(tmp_path / "drafts" / "haiku")
    change = '{"name": "pdf", "description": "By a tool."}'
    commands = {
        "read": ("show", "pdf"),
        "read a version": ("show", "pdf@1.0"),
        "pull": ("pull", "pdf@1.0", "--to", str(tmp_path / "to")),
        "show a proposal": ("proposal", "show", first.id),
        "publish": ("publish", str(draft), "--source", "hers"),
        "change by a tool": ("tools", "call", "update_skill", change),
        "approve the own": ("proposal", "approve", second.id, "--yes", "--own"),
        "reject": ("proposal", "reject", second.id, "--yes"),
        "approve": ("proposal", "approve", first.id, "--yes"),
        "add a version": ("version", "add", "pdf", "2.0"),
        "deprecate": ("version", "deprecate", "pdf@1.0", "--reason", "old"),
        "yank": ("version", "yank", "pdf@1.0", "--reason", "bad"),
        "yank as admin": ("version", "yank", "pdf@1.0", "--reason", "bad!", "--as-admin"),
        "end the review": ("source", "update", "hers", "--review", "none"),
        "give the right": ("db", "grant", world.name("writer"), "--approve", "--yes"),
    }
    done = set()
    audited = ask(role, "db", "audit", "--json")
    if audited.exit_code == 0 and any(
        one["role"] != world.name(role) for one in json.loads(audited.stdout)
    ):
        done.add("read the audit of others")
    listed = ask(role, "proposal", "list", "--json")
    if listed.exit_code == 0 and json.loads(listed.stdout):
        done.add("see proposals")
    for action, arguments in commands.items():
        if action == "approve the own" and role == "admin":
            continue  # an admin may allow it, but these are not the admin's own
        answer = ask(role, *arguments)
        assert answer.exit_code in {0, 1, 3}, (action, answer.output)
        if answer.exit_code == 0:
            done.add(action)
    expected = {action for action, roles in ACTIONS.items() if role in roles}
    assert done == expected
    states = {one.id: one.state for one in proposals.listed(hers.core, None)}
    assert states[first.id] == ("applied" if "approve" in done else "pending")
    assert states[second.id] == ("rejected" if "reject" in done else "pending")
    assert hers.get("pdf").description == ("First." if "approve" in done else "Old.")
    assert not (world.folder / "hers" / "haiku").exists()
    now = {one.label: one.state for one in hers.versions("pdf")}
    assert now["1.0"] == ("yanked" if {"yank", "yank as admin"} & done else "active")
