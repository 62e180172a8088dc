"""Two people and a reviewer: publish, propose, review, pull, pin, yank."""

import json
import os
import re
import shlex
import subprocess

import pytest

pytest.importorskip("nh3", reason="the extra web is not installed")

from registry.publish import proposals
from tests import program
from tests.cli.conftest import run
from tests.conftest import REPOSITORY, write_skill
from tests.publish.test_publishing import document, put
from tests.publish.test_review_pages import press, read
from tests.remotes.packed import zipped
from tests.web.conftest import serving

pytestmark = pytest.mark.both


def test_two_people_publish_a_reviewer_approves_and_a_pinned_project_stays(
    database, mine, root, tmp_path, monkeypatch
):
    def server(*arguments):
        done = run("--db", str(database), *arguments)
        assert done.exit_code == 0, done.output
        return done

    def away(token, *arguments):
        monkeypatch.setenv("SKILL_REGISTRY_TOKEN", token)
        return run("--db", str(tmp_path / "away.db"), *arguments)

    bob, eve, anna = (
        server("token", "create", name, *rights).stdout.strip()
        for name, *rights in (("bob", "--publish"), ("eve", "--publish"), ("anna", "--approve"))
    )
    draft = tmp_path / "drafts" / "haiku"
    write_skill(draft, description="Writes poems.", extra="version: 1.0.0\n")
    with serving(mine) as site:
        to = ("--to", site.base, "--yes")
        assert "Published haiku" in away(bob, "publish", str(draft), *to).stdout
        server("source", "update", "mine", "--review", "required")

        # Another machine installs the version, and pins it.
        project, follower = tmp_path / "project", tmp_path / "follower"
        server("pull", "haiku@1.0.0", "--to", str(project))
        server("pull", "haiku", "--to", str(follower))

        write_skill(draft, description="Writes short poems.", extra="version: 1.1.0\n")
        waits = away(eve, "publish", str(draft), *to)
        assert "waits for review" in waits.stdout, waits.output
        (one,) = proposals.listed(mine.core)
        assert one.author == "eve"
        for token in (bob, eve):
            assert press(site, one, token).status in {403, 404}
        assert "Writes short poems." in read(site, f"/proposals/{one.id}", anna).text
        assert mine.get("haiku").description == "Writes poems."
        assert press(site, one, anna, reason="Good.").status == 303
        assert mine.get("haiku").description == "Writes short poems."

    server("pull", "--to", str(follower))
    assert "short poems" in (follower / "haiku" / "SKILL.md").read_text()
    server("pull", "--to", str(project))
    assert "short poems" not in (project / "haiku" / "SKILL.md").read_text()
    server("version", "yank", "haiku@1.0.0", "--reason", "It sends poems away.")
    warned = server("pull", "--to", str(project))
    assert "It sends poems away." in warned.output
    assert "Writes poems." in (project / "haiku" / "SKILL.md").read_text()
    who = server("history", "haiku", "--who").stdout
    assert "eve, approved by anna" in who
    assert "bob" in who


def test_the_page_about_publishing_and_review_works_as_it_is_written(
    database, registry, tmp_path, monkeypatch
):
    """Its placeholders are an address, the tokens in their order, and the id of the proposal."""
    page = (REPOSITORY / "docs" / "how-to" / "publish-and-review.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    draft, scripts = tmp_path / "release-notes", tmp_path / "bin"
    write_skill(draft, extra="version: 1.0.0\n")
    (tmp_path / "team").mkdir()
    scripts.mkdir()
    script = scripts / "skill-registry"
    environ = {
        **os.environ,
        "PATH": f"{scripts}:/usr/bin:/bin",
        "SKILL_REGISTRY_DB": str(database),
    }
    said = []
    registry.create_database()
    with program.command() as command, serving(registry) as site:
        script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        script.chmod(0o755)
        for block in blocks:
            tokens = re.findall(r"^skr_\S+$", said[0], re.MULTILINE) if said else []
            text = block.replace("https://skills.example.org", site.base)
            text = text.replace("skr_…", tokens[2 if "audit" in block else 0] if tokens else "")
            if "--yes" in block and "publish" in block:
                write_skill(draft, description="Lists changes.", extra="version: 1.1.0\n")
            if "3f2a91c07b5d" in block:
                (one,) = proposals.listed(registry.core)
                text = text.replace("3f2a91c07b5d", one.id)
            if "SKILL_REGISTRY_TOKEN" not in text and tokens:
                text = f"export SKILL_REGISTRY_TOKEN={tokens[0]}\n{text}"
            done = subprocess.run(
                ["/bin/sh", "-ec", text],
                cwd=tmp_path,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, (text, done.stdout, done.stderr)
            said.append(done.stdout + done.stderr)
    printed = "".join(said)
    assert len(blocks) == 8
    for each in (
        "Would create",
        "Published release-notes",
        "waits for review as proposal",
        "Approved the request to update release-notes",
        "is yanked",
        "bob, approved by",
        '"what": "version yanked"',
    ):
        assert each in printed, each
    assert said[6].count("It lists secret tickets.") == 1
    pinned = tmp_path / "project" / "skills" / "release-notes" / "SKILL.md"
    assert "Lists changes." not in pinned.read_text()


WHO = {
    "nobody": None,
    "stranger": "skr_" + "x" * 43,
    "reader": {},
    "writer": {"write": True},
    "author": {"publish": True},
    "approver": {"approve": True},
    "admin": {"write": True, "publish": True, "approve": True},
}

ACTIONS = {
    # action: the people who may do it; for all others the status is 401, 403 or 404
    "read": {"nobody", "reader", "writer", "author", "approver", "admin"},
    "publish": {"author", "admin"},
    "publish as ClawHub": {"author", "admin"},
    "change by a tool": {"writer", "admin"},
    "see a proposal": {"author", "approver", "admin"},
    "approve": {"approver", "admin"},
    "withdraw": {"author", "approver", "admin"},
    "read the audit": {"admin"},
}


@pytest.mark.parametrize("who", WHO)
def test_the_matrix_of_rights(mine, root, who):
    """Each person does everything, once, in a source under review; the author's proposal is there."""
    from tests.web.conftest import greet_mcp, post_mcp

    write_skill(root / "alpha")
    mine.sync()
    mine.update_source("mine", review=True)
    rights = WHO[who]
    _, author = mine.tokens().create("author", publish=True)
    token = author if who == "author" else rights
    if isinstance(token, dict):
        _, token = mine.tokens().create(who, **token)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    done = set()
    with serving(mine, mcp=True) as site:

        def ask(path, method="GET", body=None, **more):
            return site.ask(path, method, body, **headers, **more)

        def note(action, answer):
            assert answer.status in {200, 201, 202, 303, 401, 403, 404, 405}, (action, answer.text)
            if answer.status < 400:
                done.add(action)

        made = put(site, zipped({"SKILL.md": document()}), token=author)
        one = proposals.get(mine.core, made.json["proposal"])
        note("read", ask("/skills/alpha.json"))
        more = zipped({"SKILL.md": document("more")})
        note("publish", put(site, more, name="more", token=token))
        whoami = ask(
            "/api/v1/skills/-/upload-url",
            "POST",
            json.dumps({"path": "SKILL.md", "size": 1, "sha256": "0" * 64}),
        )
        note("publish as ClawHub", whoami)
        greeted = ask("/mcp", "POST", b"{}")
        if greeted.status not in {401, 403}:
            _, session = greet_mcp(ask)
            call = {"name": "delete_skill", "arguments": {"name": "alpha"}}
            answer = post_mcp(ask, "tools/call", call, **session)
            if "waits for review" in answer.text:
                done.add("change by a tool")
        note("see a proposal", ask(f"/proposals/{one.id}.json"))
        form = {"Content_Type": "application/x-www-form-urlencoded"}
        approval = f"decision=approve&tree_hash={one.tree_hash}"
        note("approve", ask(f"/proposals/{one.id}", "POST", approval, **form))
        other = put(site, zipped({"SKILL.md": document("other")}), name="other", token=author)
        path = f"/proposals/{other.json['proposal']}"
        note("withdraw", ask(path, "POST", "decision=reject", **form))
        note("read the audit", ask("/audit"))
        assert (root / "alpha" / "SKILL.md").exists()
        assert not (root / "more").exists()
        assert (root / "haiku").exists() is ("approve" in done)
    assert done == {action for action, people in ACTIONS.items() if who in people}
    assert os.listdir(root)
