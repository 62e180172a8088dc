"""Who did what: noted with each revision and change, and of sources and rights in a log of its own.

What a role, a client or a tool calls itself is a hint; which role it was, a server says.
"""

import json
import os

import pytest

from registry.db.audit_context import MAX_CLIENT, audit_context, current_context
from registry.db.read.access import audit_records
from registry.errors import RegistryError
from tests.cli.conftest import run as run_here
from tests.conftest import write_skill
from tests.program import run


def told(registry):
    """Return what was noted, the oldest first: what, and of what."""
    return [(one.what, one.subject) for one in reversed(audit_records(registry.core.reader, 100))]


def test_what_is_done_with_sources_tokens_and_the_past_is_noted(registry, root, skill):
    skill("alpha")
    with audit_context("a tool", "a client"):
        registry.sync(str(root), name="mine")
    registry.update_source("mine", new_name="ours", priority=2)
    token, _ = registry.tokens().create("door", write=True)
    registry.tokens().revoke(token.number)
    registry.update("alpha", body="Other.\n")
    registry.prune(keep=0)
    registry.remove_source("ours")
    before = ["source added", "source changed", "source changed", "token added", "token removed"]
    assert [what for what, _ in told(registry)] == [*before, "history pruned", "source removed"]
    assert told(registry)[0] == ("source added", "mine")
    assert told(registry)[-1] == ("source removed", "ours")
    first = audit_records(registry.core.reader, 100)[-1]
    assert (first.tool, first.client, first.detail["path"]) == ("a tool", "a client", str(root))
    assert bool(first.role) is bool(registry.core.host)
    changes = [one.detail for one in audit_records(registry.core.reader, 100)[4:6]]
    assert {"name": ["mine", "ours"]} in changes
    assert {"priority": [0, 2]} in changes


def test_pruning_leaves_what_is_noted(registry, root, skill):
    skill("alpha")
    registry.sync(str(root), name="mine")
    registry.update("alpha", body="Other.\n")
    before = told(registry)
    registry.prune(keep=0)
    assert told(registry) == [*before, ("history pruned", None)]


def test_what_changes_nothing_is_not_noted(registry, root, skill):
    skill("alpha")
    registry.sync(str(root), name="mine")
    registry.update_source("mine", priority=0)
    registry.sync()
    registry.prune()
    assert told(registry) == [("source added", "mine")]


def test_a_change_that_is_not_made_is_not_noted(registry, root, skill):
    skill("alpha")
    registry.sync(str(root), name="mine")
    skill("beta")
    with pytest.raises(RegistryError):
        registry.add_source(str(root), name="mine")
    assert told(registry) == [("source added", "mine")]


@pytest.mark.both
def test_the_records_of_a_time_and_of_a_word_are_listed(registry, database, root, skill):
    def listed(*arguments):
        ran = run_here("--db", str(database), "db", "audit", "--json", *arguments)
        assert ran.exit_code == 0, ran.output
        return [one["what"] for one in json.loads(ran.stdout)]

    skill("alpha")
    registry.sync(str(root), name="mine")
    registry.tokens().create("door", write=True)
    both = ["token added", "source added"]
    assert listed() == listed("--since", "1d") == listed("--what", "Added") == both
    assert listed("--what", "source") == ["source added"]
    assert listed("--what", "token", "--limit", "1") == ["token added"]
    assert listed("--since", "2100-01-01") == listed("--what", "_") == listed("--what", "%") == []


def test_each_revision_says_who_brought_it_about(registry, root, skill):
    skill("alpha")
    with audit_context("cli sync"):
        registry.sync(str(root), name="mine")
    with audit_context(client="a client 1.0"):
        registry.toolset("native").call("update_skill", {"name": "alpha", "body": "Other.\n"})
    registry.update("alpha", body="Third.\n")
    who = [(one.tool, one.client) for one in registry.history("alpha")]
    assert who == [(None, None), ("native update_skill", "a client 1.0"), ("cli sync", None)]
    assert {one.role is None for one in registry.history("alpha")} == {not registry.core.host}
    sql = "SELECT kind, tool, client FROM changes ORDER BY id"
    assert registry.core.reader.rows(sql) == [
        ("update", "native update_skill", "a client 1.0"),
        ("update", None, None),
    ]


def test_commands_show_who_it_was(registry, database, root):
    write_skill(root / "alpha")
    environ = dict(os.environ)

    def command(*arguments):
        return run(["--db", str(database), *arguments], environ=environ)

    assert command("sync", str(root), "--name", "mine").status == 0
    assert command("update", "alpha", "--description", "New.").status == 0
    shown = command("history", "alpha", "--who").out
    assert [line.split("\t")[-2] for line in shown.splitlines()] == ["update", "sync"]
    listed = json.loads(command("history", "alpha", "--json").out)
    assert [one["tool"] for one in listed] == ["update", "sync"]
    assert {"role", "host", "tool", "client"} <= listed[0].keys()
    (noted,) = json.loads(command("db", "audit", "--json").out)
    assert (noted["what"], noted["tool"]) == ("source added", "sync")
    assert command("source", "remove", "mine").status == 0
    assert "source removed" in command("db", "audit", "--limit", "1").out


def test_what_a_client_calls_itself_is_bounded():
    with audit_context("outer"):
        with audit_context(client="x" * 10_000 + "\0"):
            assert current_context().client == "x" * MAX_CLIENT
            assert current_context().tool == "outer"
        assert current_context().client is None
    assert current_context().tool is None
