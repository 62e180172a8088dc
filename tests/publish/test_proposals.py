"""Review: what is published or changed through tools waits, and somebody else decides."""

import json
import shutil

import pytest

from registry.db.audit_context import audit_context
from registry.errors import ContentDamaged, HashOutdated, ProposalDecided, ProposalOwn
from registry.publish import proposals
from registry.publish.proposals import Person
from tests.cli.conftest import run
from tests.conftest import write_skill

pytestmark = pytest.mark.both

REVIEWER = Person("reviewer")


@pytest.fixture
def cli(database):
    return lambda *arguments, **more: run("--db", str(database), *arguments, **more)


@pytest.fixture
def reviewed(filled, cli):
    """A registry of two skills in a source under review."""
    done = cli("source", "update", "mine", "--review", "required", "--json")
    assert json.loads(done.stdout)["review"] is True
    return filled


def test_a_change_of_the_review_prints_the_result(filled, cli):
    done = cli("source", "update", "mine", "--review", "required")
    assert ", under review)" in done.stdout
    assert "skill-registry proposal list" in done.stderr
    assert "to accept one, run: skill-registry proposal approve ID" in done.stderr
    told = "No proposals wait for review. To list the proposals at a server, add --to URL.\n"
    assert cli("proposal", "list").stderr == told
    assert ", under review)" in cli("source", "update", "mine", "--priority", "3").stdout
    assert ", not under review)" in cli("source", "update", "mine", "--review", "none").stdout
    assert "under review" not in cli("source", "update", "mine", "--priority", "4").stdout


def tool(registry, called, toolset="native", /, **arguments):
    limits = {"source": "mine"} if toolset == "miniclaw" else {}
    return registry.toolset(toolset, **limits).call(called, arguments)


def pending(registry):
    return proposals.listed(registry.core)


def approve(registry, one, by=REVIEWER, **more):
    return proposals.approve(registry.core, one.id, one.tree_hash, by, **more)


def tree(root):
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def test_every_change_of_a_tool_becomes_a_proposal_and_changes_nothing(reviewed, root):
    before = tree(root)
    made = tool(reviewed, "create_skill", name="gamma", description="Does a third thing.")
    assert made["skill"]["name"] == "gamma"
    assert "waits for review as proposal" in made["message"]
    changed = tool(reviewed, "update_skill", name="alpha", description="Does more.")
    assert "waits for review" in changed["message"]
    assert changed["skill"]["description"] == "Does more."
    gone = tool(reviewed, "delete_skill", name="beta")
    assert "waits for review" in gone["message"]
    assert gone["deleted"]["name"] == "beta"
    small = tool(
        reviewed,
        "create_skill",
        "miniclaw",
        name="delta",
        description="A fourth thing.",
        implementation="Do it.",
    )
    assert small["success"] is True
    assert "waits for review" in small["message"]
    lost = tool(reviewed, "delete_skill", "miniclaw", name="alpha")
    assert (lost["success"], "waits for review" in lost["message"]) == (True, True)
    assert tree(root) == before
    kinds = [(one.kind, one.skill) for one in pending(reviewed)]
    assert sorted(kinds) == [
        ("create", "delta"),
        ("create", "gamma"),
        ("delete", "alpha"),
        ("delete", "beta"),
        ("update", "alpha"),
    ]
    assert sorted(one.name for one in reviewed.list()) == ["alpha", "beta"]
    assert reviewed.search("third").total == 0


@pytest.mark.parametrize("named", ["mine", "other"])
@pytest.mark.parametrize(
    ("called", "given"),
    [("update_skill", {"description": "Does more."}), ("delete_skill", {})],
)
def test_a_change_of_copies_is_refused_whole_if_one_is_under_review(
    reviewed, root, tmp_path, named, called, given
):
    shutil.copytree(root / "alpha", tmp_path / "other" / "alpha")
    reviewed.sync(str(tmp_path / "other"), name="other")
    before = tree(root), tree(tmp_path / "other")
    answer = tool(reviewed, called, name=f"{named}/alpha", copies=True, **given)
    assert answer["error"]["code"] == "change_refused"
    assert "under review" in answer["error"]["message"]
    assert (tree(root), tree(tmp_path / "other")) == before
    assert pending(reviewed) == []
    # One by one, the reviewed source waits and the other source changes.
    assert "message" in tool(reviewed, called, name="mine/alpha", **given)
    assert "message" not in tool(reviewed, called, name="other/alpha", **given)
    assert [(one.source, one.skill) for one in pending(reviewed)] == [("mine", "alpha")]
    assert tree(root) == before[0]
    assert tree(tmp_path / "other") != before[1]


def test_approved_changes_are_made_exactly_as_proposed(reviewed, root):
    tool(reviewed, "create_skill", name="gamma", description="A third thing.", files={"a.txt": "x"})
    tool(reviewed, "update_skill", name="alpha", description="Does more.")
    tool(reviewed, "delete_skill", name="beta")
    for one in pending(reviewed):
        done = approve(reviewed, one)
        assert (done.state, done.decided_by) == ("applied", "reviewer")
    assert pending(reviewed) == []
    assert sorted(one.name for one in reviewed.list()) == ["alpha", "gamma"]
    assert reviewed.get("alpha").description == "Does more."
    assert (root / "gamma" / "a.txt").read_text() == "x"
    assert reviewed.history("alpha")[0].tool == "proposal approve"
    tool(reviewed, "restore_skill", name="beta")
    (back,) = pending(reviewed)
    assert back.kind == "restore"
    assert not (root / "beta").exists()
    approve(reviewed, back)
    assert reviewed.get("beta").name == "beta"
    assert len(reviewed.history("beta")) == 1


def test_the_same_change_proposed_again_is_the_same_proposal(reviewed):
    for _ in range(3):
        tool(reviewed, "update_skill", name="alpha", description="Does more.")
    assert len(pending(reviewed)) == 1
    tool(reviewed, "update_skill", name="alpha", description="Does even more.")
    assert len(pending(reviewed)) == 2


def test_an_approval_holds_for_one_tree_hash_and_one_base(reviewed, root):
    tool(reviewed, "update_skill", name="alpha", description="Does more.")
    tool(reviewed, "update_skill", name="alpha", description="Does less.")
    first, second = pending(reviewed)
    with pytest.raises(HashOutdated):
        proposals.approve(reviewed.core, first.id, second.tree_hash, REVIEWER)
    approve(reviewed, first)
    with pytest.raises(HashOutdated):
        approve(reviewed, second)
    assert proposals.get(reviewed.core, second.id).state == "pending"
    with pytest.raises(ProposalDecided):
        approve(reviewed, first)
    write_skill(root / "beta", description="Edited by hand.")
    tool(reviewed, "update_skill", name="beta", description="Edited by a tool.", if_hash=None)
    assert reviewed.get("beta").description == "Edited by hand."


def test_an_author_cannot_approve_but_may_withdraw(reviewed, cli):
    tool(reviewed, "update_skill", name="alpha", description="Does more.")
    (one,) = pending(reviewed)
    with pytest.raises(ProposalOwn):
        approve(reviewed, one, Person(one.author.upper()))
    assert proposals.get(reviewed.core, one.id).state == "pending"
    proposals.reject(reviewed.core, one.id, Person(one.author), "A mistake.")
    assert pending(reviewed) == []
    assert reviewed.get("alpha").description == "Does one thing well."


def test_files_that_were_changed_in_the_database_are_not_approved(reviewed):
    tool(reviewed, "update_skill", name="alpha", description="Does more.")
    tool(reviewed, "update_skill", name="beta", description="Does other things.")
    first, second = pending(reviewed)
    other = "(SELECT archive FROM proposals WHERE id = '" + second.id + "')"
    with reviewed.core.writer.transaction() as connection:
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("ALTER TABLE proposals DISABLE TRIGGER guard")
        sql = f"UPDATE proposals SET archive = {other} WHERE id = '{first.id}'"
        connection.exec_driver_sql(sql)
    with pytest.raises(ContentDamaged):
        approve(reviewed, first)
    assert reviewed.get("alpha").description == "Does one thing well."


def test_published_skills_wait_and_the_command_line_decides(reviewed, cli, tmp_path, root):
    draft = write_skill(tmp_path / "drafts" / "haiku", description="Writes poems.")
    rehearsed = cli("publish", str(draft), "--source", "mine", "--dry-run")
    assert "Would propose" in rehearsed.stdout
    done = cli("publish", str(draft), "--source", "mine")
    assert "waits for review as proposal" in done.stdout
    assert not (root / "haiku").exists()
    (told,) = json.loads(cli("proposal", "list", "--json").stdout)
    assert {"id", "skill", "source", "author", "tree_hash", "created_at"} <= told.keys()
    shown = cli("proposal", "show", told["id"])
    assert "+description: Writes poems." in shown.stdout
    own = cli("proposal", "approve", told["id"], "--yes")
    assert own.exit_code == 1
    assert "your own proposal" in own.output
    assert not (root / "haiku").exists()
    allowed = cli("proposal", "approve", told["id"], "--own", "--yes", "--reason", "A test.")
    assert allowed.exit_code == 0, allowed.output
    assert (root / "haiku" / "SKILL.md").exists()
    (decided,) = json.loads(cli("proposal", "list", "--all", "--json").stdout)
    assert (decided["state"], decided["reason"]) == ("applied", "A test.")
    again = cli("proposal", "reject", told["id"], "--yes")
    assert (again.exit_code, "already" in again.output) == (1, True)
    assert cli("proposal", "show", "0123456789ab").exit_code == 1
    what = {one["what"] for one in json.loads(cli("db", "audit", "--json").stdout)}
    assert {"skill proposed", "proposal approved", "proposal applied"} <= what


def test_the_owners_own_commands_and_edits_stay_live(reviewed, cli, root):
    assert cli("update", "alpha", "--description", "By the owner.").exit_code == 0
    assert reviewed.get("alpha").description == "By the owner."
    assert pending(reviewed) == []


def test_approvals_in_one_run_of_a_server_are_undone_one_by_one(reviewed):
    for name in ("alpha", "beta"):
        tool(reviewed, "update_skill", name=name, description="Changed.")
    with audit_context("serve", command="0123456789abcdef"):
        for one in pending(reviewed):
            approve(reviewed, one)
    (undone,) = reviewed.undo()
    changed = {name for name in ("alpha", "beta") if reviewed.get(name).description == "Changed."}
    assert changed == {"alpha", "beta"} - {undone.name}


def test_a_crash_after_the_decision_is_finished_by_the_next_sync(reviewed, root, monkeypatch):
    tool(reviewed, "update_skill", name="alpha", description="Does more.")
    (one,) = pending(reviewed)
    broke = []

    def crash(*_):
        broke.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(proposals, "_change", crash)
    with pytest.raises(KeyboardInterrupt):
        approve(reviewed, one)
    assert broke
    monkeypatch.undo()
    assert proposals.get(reviewed.core, one.id).state == "approved"
    reviewed.sync()
    assert proposals.get(reviewed.core, one.id).state == "applied"
    assert reviewed.get("alpha").description == "Does more."


def test_a_crash_after_the_change_is_finished_without_a_second_change(reviewed, monkeypatch):
    tool(reviewed, "update_skill", name="alpha", description="Does more.")
    (one,) = pending(reviewed)
    real = proposals._set

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(proposals, "_set", crash)
    with pytest.raises(KeyboardInterrupt):
        approve(reviewed, one)
    monkeypatch.setattr(proposals, "_set", real)
    assert reviewed.get("alpha").description == "Does more."
    assert len(reviewed.history("alpha")) == 2
    assert proposals.listed(reviewed.core) == []
    assert proposals.get(reviewed.core, one.id).state == "applied"
    assert len(reviewed.history("alpha")) == 2


def test_one_author_cannot_fill_the_database_with_proposals(reviewed, monkeypatch):
    monkeypatch.setattr(proposals, "MAX_PENDING", 3)
    for number in range(3):
        tool(reviewed, "create_skill", name=f"new-{number}", description="Another thing.")
    refused = tool(reviewed, "create_skill", name="new-3", description="Another thing.")
    assert "wait for review" in refused["error"]["message"]
    assert len(pending(reviewed)) == 3


def test_a_copy_of_the_database_has_the_proposals(reviewed, database, tmp_path):
    from registry.api import SkillRegistry
    from registry.settings import Settings

    tool(reviewed, "update_skill", name="alpha", description="Does more.")
    (one,) = pending(reviewed)
    target = tmp_path / "copy.db"
    done = run("db", "copy", str(database), str(target))
    assert done.exit_code == 0, done.output
    with SkillRegistry.open(target, settings=Settings()) as copied:
        (same,) = proposals.list_proposals(copied.core.reader)
        assert same.id == one.id
        assert copied.sources()[0].review
        assert proposals.proposed_package(copied.core, same).tree_hash == one.tree_hash
