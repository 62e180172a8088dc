"""The pages of proposals: who sees them, and the two buttons."""

import json
import re
from urllib.parse import urlencode

import pytest

pytest.importorskip("nh3", reason="the extra web is not installed")

from registry.publish import proposals
from tests.cli.conftest import run
from tests.conftest import write_skill
from tests.publish.test_publishing import document, put
from tests.remotes.packed import zipped
from tests.web.conftest import greet_mcp, post_mcp, serving

pytestmark = pytest.mark.both

RIGHTS = {
    "reader": {},
    "writer": {"write": True},
    "author": {"publish": True},
    "approver": {"approve": True},
    "other": {"publish": True},
}


@pytest.fixture
def people(filled):
    """Tokens of people with different rights, by name; the source is under review."""
    filled.update_source("mine", review=True)
    return {name: filled.tokens().create(name, **rights)[1] for name, rights in RIGHTS.items()}


@pytest.fixture
def site(filled, people):
    with serving(filled, mcp=True) as served:
        yield served


@pytest.fixture
def one(site, people, filled):
    """A proposal of the author."""
    text = document("haiku", "Writes <b>poems</b>.")
    answer = put(site, zipped({"SKILL.md": text, "run.sh": b"echo 17\n"}), token=people["author"])
    assert answer.status == 202
    assert answer.json["outcome"] == "proposed"
    return proposals.get(filled.core, answer.json["proposal"])


def read(site, path, token):
    headers = {"Cookie": f"skill_registry={token}"} if token else {}
    return site.ask(path, Accept="text/html", **headers)


def csrf_of(page):
    found = re.search(r'name="csrf" value="([0-9a-f]+)"', page.text)
    return found[1] if found else ""


def press(site, one, token, decision="approve", **changed):
    page = read(site, f"/proposals/{one.id}", token)
    form = {"csrf": csrf_of(page), "tree_hash": one.tree_hash, "decision": decision, **changed}
    return send(site, one, form, Cookie=f"skill_registry={token}")


def send(site, one, form, **headers):
    kind = "application/x-www-form-urlencoded"
    path = f"/proposals/{one.id}"
    return site.ask(path, "POST", urlencode(form), Content_Type=kind, **headers)


def test_a_proposal_is_seen_by_its_author_and_by_approvers_and_by_nobody_else(
    site, people, one, filled
):
    for name, token in people.items():
        sees = name in {"author", "approver"}
        listed = read(site, "/proposals", token)
        assert listed.status == 200
        assert ("haiku" in listed.text) is sees, name
        assert read(site, f"/proposals/{one.id}", token).status == (200 if sees else 404), name
        found = read(site, "/proposals.json", token)
        assert ([each["id"] for each in found.json] == [one.id]) is sees
        paths = ("/?q=haiku", "/skills.json", "/api/v1/skills", "/changes.json", "/findings.json")
        for path in (*paths, "/.well-known/agent-skills/index.json", "/stats.json"):
            text = read(site, path, token).text
            assert "Writes" not in text, path
            assert "/skills/haiku" not in text, path
        for path in ("/skills/haiku", "/download/haiku.skill", "/api/v1/skills/haiku"):
            assert read(site, path, token).status == 404
    assert read(site, "/proposals", None).status == 401
    assert "Paste your token" in read(site, "/proposals", None).text
    assert read(site, "/proposals.json", None).status == 401
    unknown = read(site, "/proposals/0123456789ab", people["reader"])
    hidden = read(site, f"/proposals/{one.id}", people["reader"])
    assert hidden.text.replace(one.id, "0123456789ab") == unknown.text


def test_the_page_shows_the_files_and_runs_nothing(site, people, one):
    page = read(site, f"/proposals/{one.id}", people["approver"])
    assert "Writes &lt;b&gt;poems&lt;/b&gt;." in page.text
    assert "echo 17" in page.text
    assert one.tree_hash in page.text
    assert "<script>" not in page.text
    assert "Approve" in page.text
    own = read(site, f"/proposals/{one.id}", people["author"])
    assert ("Approve" in own.text, "Withdraw" in own.text) == (False, True)


def test_an_approver_presses_the_button_and_the_skill_is_there(site, people, one, filled, root):
    assert not (root / "haiku").exists()
    done = press(site, one, people["approver"], reason="Fine.")
    assert (done.status, done.headers["location"]) == (303, f"/proposals/{one.id}")
    assert filled.get("haiku").tree_hash == one.tree_hash
    after = read(site, f"/proposals/{one.id}", people["approver"])
    assert "applied" in after.text
    assert "Fine." in after.text
    assert 'name="decision"' not in after.text
    assert proposals.get(filled.core, one.id).decided_by == "approver"
    filled.prune(keep=1)
    assert read(site, f"/proposals/{one.id}", people["approver"]).status == 200


def test_a_rejected_proposal_changes_nothing(site, people, one, filled, root):
    assert press(site, one, people["approver"], "reject", reason="No.").status == 303
    assert not (root / "haiku").exists()
    assert proposals.get(filled.core, one.id).state == "rejected"
    form = {"csrf": "x", "tree_hash": one.tree_hash, "decision": "approve"}
    again = send(site, one, form, Authorization=f"Bearer {people['approver']}")
    assert again.status == 409


def test_who_may_decide_what(site, people, one, filled, root):
    """Each person by a session, and by a bearer token."""
    form = {"tree_hash": one.tree_hash, "decision": "approve"}
    for name in ("reader", "writer", "other"):
        for headers in (
            {"Cookie": f"skill_registry={people[name]}"},
            {"Authorization": f"Bearer {people[name]}"},
        ):
            assert send(site, one, form, **headers).status == 404, name
    assert press(site, one, people["author"]).status == 403
    _, both = filled.tokens().create("author", approve=True)
    assert press(site, one, both).status in {403, 422}  # another token of the same person
    assert send(site, one, form).status == 401
    assert not (root / "haiku").exists()
    assert press(site, one, people["author"], "reject").status == 303
    assert proposals.get(filled.core, one.id).decided_by == "author"


@pytest.mark.parametrize("csrf", ["", "0" * 64, None])
def test_a_form_of_another_page_decides_nothing(site, people, one, filled, root, csrf):
    form = {"tree_hash": one.tree_hash, "decision": "approve"}
    form |= {} if csrf is None else {"csrf": csrf}
    cookie = f"skill_registry={people['approver']}"
    assert send(site, one, form, Cookie=cookie).status == 403
    _, second = filled.tokens().create("second", approve=True)
    form["csrf"] = csrf_of(read(site, f"/proposals/{one.id}", second))
    assert send(site, one, form, Cookie=cookie).status == 403
    of_proxy = {"Cookie": cookie, "Authorization": "Basic YW5uYTp4"}  # a browser sends it itself
    assert send(site, one, form, **of_proxy).status == 403
    foreign = {"Cookie": cookie, "Origin": "http://evil.example"}
    assert send(site, one, form, **foreign).status == 403
    assert not (root / "haiku").exists()


def test_the_button_approves_only_the_files_that_were_shown(site, people, one, root):
    done = press(site, one, people["approver"], tree_hash="sha256:00")
    assert done.status == 409
    assert not (root / "haiku").exists()


def test_a_tool_over_mcp_proposes_in_the_name_of_its_token(site, people, filled, root):
    def ask(*arguments, **headers):
        return site.ask(*arguments, Authorization=f"Bearer {people['writer']}", **headers)

    _, session = greet_mcp(ask)
    call = {"name": "delete_skill", "arguments": {"name": "alpha"}}
    answer = post_mcp(ask, "tools/call", call, **session)
    assert "waits for review" in answer.text
    (made,) = proposals.listed(filled.core)
    assert (made.kind, made.skill, made.author) == ("delete", "alpha", "writer")
    assert made.token is not None
    assert (root / "alpha" / "SKILL.md").exists()
    assert read(site, f"/proposals/{made.id}", people["writer"]).status == 200
    assert press(site, made, people["approver"]).status == 303
    assert not (root / "alpha").exists()


def test_the_page_works_in_a_browser_without_scripts(site, people, one, tab, filled):
    page = tab(java_script_enabled=False)
    cookie = {"name": "skill_registry", "value": people["approver"], "url": site.base}
    page.context.add_cookies([cookie])
    page.goto(f"{site.base}/proposals")
    page.click(f"a[href='/proposals/{one.id}']")
    page.fill("input[name=reason]", "Read in a browser.")
    page.click("button[value=approve]")
    assert "applied" in page.inner_text("main")
    assert filled.get("haiku").description == "Writes <b>poems</b>."


def test_an_author_sees_own_proposals_in_all_states_with_the_reason(site, people, one):
    assert press(site, one, people["approver"], "reject", reason="Too broad.").status == 303
    own = read(site, "/proposals", people["author"])
    assert "rejected: Too broad." in own.page.text
    (told,) = read(site, "/proposals.json", people["author"]).json
    assert (told["id"], told["state"], told["reason"]) == (one.id, "rejected", "Too broad.")
    assert read(site, "/proposals.json", people["approver"]).json == []
    assert "/proposals?all=1" in read(site, "/proposals", people["approver"]).page.links
    decided = read(site, "/proposals.json?all=1", people["approver"]).json
    assert [each["id"] for each in decided] == [one.id]
    for name in ("other", "reader", "writer"):
        assert read(site, "/proposals.json?all=1", people[name]).json == [], name
    assert read(site, "/proposals?all=x", people["author"]).status == 400


def test_an_author_follows_a_proposal_from_another_machine(
    site, people, filled, tmp_path, monkeypatch
):
    def away(*arguments):
        return run("--db", str(tmp_path / "away.db"), *arguments)

    monkeypatch.setenv("SKILL_REGISTRY_TOKEN", people["author"])
    draft = write_skill(tmp_path / "haiku", description="Writes poems.")
    published = away("publish", str(draft), "--to", site.base, "--yes")
    (made,) = proposals.listed(filled.core)
    assert f"{site.base}/proposals/{made.id}" in published.stdout
    assert f"skill-registry proposal show {made.id} --to {site.base}" in published.stderr
    follow = f"proposal list --to {site.base}"
    assert away(*follow.split()).stdout.rstrip("\n").split("\t")[-2:] == ["pending", ""]
    press(site, made, people["approver"], "reject", reason="Too broad.")
    line = away(*follow.split()).stdout.rstrip("\n").split("\t")
    assert [line[0], *line[-2:]] == [made.id, "rejected", "Too broad."]
    (told,) = json.loads(away(*follow.split(), "--json").stdout)
    assert (told["reason"], told["decided_by"]) == ("Too broad.", "approver")
    monkeypatch.setenv("SKILL_REGISTRY_TOKEN", people["other"])
    assert away(*follow.split()).stdout == ""
    monkeypatch.setenv("SKILL_REGISTRY_TOKEN", "skr_wrong")
    refused = away(*follow.split())
    assert refused.exit_code == 1
    assert "it is revoked, expired or wrong" in refused.stderr


def test_a_proposal_is_read_and_decided_from_another_machine(
    site, people, one, filled, tmp_path, monkeypatch
):
    def away(name, verb, *more):
        monkeypatch.setenv("SKILL_REGISTRY_TOKEN", people[name])
        path = str(tmp_path / "away.db")
        return run("--db", path, "proposal", verb, one.id, "--to", site.base, *more)

    shown = away("author", "show").stdout
    assert f"Proposal   {one.id}" in shown
    assert "+description: Writes <b>poems</b>." in shown
    here = json.loads(run("--db", filled.path, "proposal", "show", one.id, "--json").stdout)
    assert json.loads(away("approver", "show", "--json").stdout)["diff"] == here["diff"] != ""
    for name in ("author", "reader", "other"):
        refused = away(name, "approve", "--yes")
        assert refused.exit_code == 1, name
        assert proposals.get(filled.core, one.id).state == "pending"
    asked = away("approver", "approve")  # without a terminal
    assert "+description: Writes <b>poems</b>." in asked.stdout
    assert asked.exit_code == 1
    done = away("approver", "approve", "--yes", "--reason", "Good.")
    assert "Approved the request to" in done.stdout
    assert filled.get("haiku").description == "Writes <b>poems</b>."
    again = away("approver", "reject", "--yes")
    assert again.exit_code == 1
    assert "applied" in again.stderr
    assert "Reason     Good." in away("author", "show").stdout
    assert not (tmp_path / "away.db").exists()


def test_a_proposal_on_a_server_is_rejected_with_a_reason(
    site, people, one, filled, tmp_path, monkeypatch
):
    monkeypatch.setenv("SKILL_REGISTRY_TOKEN", people["approver"])
    reject = ("proposal", "reject", one.id, "--to", site.base, "--yes", "--reason", "Too broad.")
    done = run("--db", str(tmp_path / "away.db"), *reject)
    assert "Rejected the request to" in done.stdout, done.output
    decided = proposals.get(filled.core, one.id)
    assert (decided.state, decided.reason, decided.decided_by) == (
        "rejected",
        "Too broad.",
        "approver",
    )
