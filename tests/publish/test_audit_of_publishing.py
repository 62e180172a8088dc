"""Who published, approved and downloaded what is in the audit log."""

import json

import pytest

pytest.importorskip("nh3", reason="the extra web is not installed")

from registry.db.read.access import audit_records
from registry.publish import proposals
from registry.publish.proposals import Person
from tests.cli.conftest import run
from tests.conftest import write_skill
from tests.publish.test_publishing import document, put
from tests.remotes.packed import zipped
from tests.web.conftest import serving

pytestmark = pytest.mark.both

ALL = {"write": True, "publish": True, "approve": True}


@pytest.fixture
def site(filled):
    with serving(filled) as served:
        yield served


def events(registry, what):
    records = audit_records(registry.core.reader, 1000)
    return [(one.subject, one.detail) for one in records if one.what == what]


def test_publishing_approving_and_downloading_are_recorded_with_the_token(filled, site):
    tokens = filled.tokens()
    _, bob = tokens.create("bob", publish=True)
    _, anna = tokens.create("anna", approve=True)
    filled.update_source("mine", review=True)
    put(site, zipped({"SKILL.md": document()}), token=bob)
    (one,) = proposals.listed(filled.core)
    proposals.approve(filled.core, one.id, one.tree_hash, Person("anna"))
    ((subject, proposed),) = events(filled, "skill proposed")
    assert (subject, proposed["author"], proposed["tree_hash"]) == ("haiku", "bob", one.tree_hash)
    ((_, approved),) = events(filled, "proposal approved")
    assert (approved["author"], approved["by"]) == ("bob", "anna")
    (now,) = filled.history("haiku")
    assert (now.tool, now.client) == ("proposal approve", "bob, approved by anna")
    for path in ("/download/haiku.skill", "/api/v1/download?slug=haiku"):
        for _ in range(2):
            assert site.ask(path, Authorization=f"Bearer {anna}").status == 200
    assert site.ask("/download/haiku.skill").status == 200  # a user of this machine
    ((subject, downloaded),) = events(filled, "skill downloaded")
    assert subject == "mine/haiku"
    assert downloaded["tree_hash"] == one.tree_hash
    assert "anna" in downloaded["by"]
    filled.update_source("mine", review=False)
    put(site, zipped({"SKILL.md": document("limerick")}), name="limerick", token=bob)
    ((subject, published),) = events(filled, "skill published")
    assert subject == "mine/limerick"
    assert "bob" in published["by"]


def test_the_list_names_who_made_a_change_before_its_details(filled, site, database):
    _, bob = filled.tokens().create("bob", publish=True)
    filled.update_source("mine", review=True)
    put(site, zipped({"SKILL.md": document()}), token=bob)
    (one,) = proposals.listed(filled.core)
    proposals.approve(filled.core, one.id, one.tree_hash, Person("anna"))
    role = audit_records(filled.core.reader, 1)[0].role
    assert bool(role) is bool(filled.core.host)
    listed = run("--db", str(database), "db", "audit").stdout.splitlines()
    who = {line.split("\t")[2]: line.split("\t")[1] for line in listed}
    assert who["skill proposed"] == (role or "bob")
    assert who["proposal approved"] == (role or "anna")
    assert who["token added"] == (role or "local")
    table = run("--db", str(database), "db", "audit", "--format", "table").stdout
    assert table.split().index("WHO") < table.split().index("WHAT")
    assert role or " anna " in table


def test_only_the_token_of_an_admin_reads_the_audit_log(filled, site, database):
    tokens = filled.tokens()
    for rights in ({}, {"write": True}, {"approve": True}, {**ALL, "source": "mine"}):
        _, shown = tokens.create("other", **rights)
        assert site.ask("/audit", Authorization=f"Bearer {shown}").status == 403
    assert site.ask("/audit").status == 401
    made = run("--db", str(database), "token", "create", "ada", "--admin")
    shown = made.stdout.strip()
    answer = site.ask("/audit", Authorization=f"Bearer {shown}", query={"limit": 3})
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert len(lines) == 3
    assert {"at", "what", "subject", "detail"} <= lines[0].keys()
    assert lines[0]["what"] == "token added"


def test_check_names_what_was_edited_by_hand_in_a_source_under_review(filled, root, database):
    filled.update_source("mine", review=True)

    def unreviewed():
        checked = filled.check(["mine"], select=["unreviewed"])
        return [one.name for one in checked if one.findings]

    filled.sync()
    assert unreviewed() == []
    filled.toolset("native").call("update_skill", {"name": "alpha", "description": "Does more."})
    (one,) = proposals.listed(filled.core)
    proposals.approve(filled.core, one.id, one.tree_hash, Person("anna"))
    assert unreviewed() == []
    write_skill(root / "beta", description="Edited by hand.", age=None)
    filled.sync()
    assert unreviewed() == ["beta"]
    filled.update_source("mine", review=False)
    assert unreviewed() == []
