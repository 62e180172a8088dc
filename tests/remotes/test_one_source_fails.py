"""A server that misbehaves stops the sync of its own source, and of no other."""

import json

import pytest

from registry.remotes import hub as hubs
from tests.remotes.test_hubs import SKILLS, Hub
from tests.remotes.upstream import document

LONE = "\ud800"


@pytest.fixture
def both(cli, upstream, server):
    """A hub and a repository, synced, and then something new in each; returns the hub."""
    hub = Hub(server)
    hub.add("one")
    cli("sync", server.url, "--name", "hub")
    cli("sync", upstream.url)
    upstream.skill("skills/gamma")
    upstream.commit()
    hub.add("two")
    return hub


def names(cli):
    return cli("list", "--format", "names").stdout.split()


def unchanged(handler):
    handler.send_response(304)
    handler.end_headers()


def test_an_answer_that_nothing_changed_to_a_plain_download_leaves_out_one_skill(cli, both, server):
    download = both.download
    server.routes["/api/v1/download"] = lambda handler: (
        unchanged(handler) if "two" in handler.path else download(handler)
    )
    done = cli("sync")
    assert "two" in done.stderr
    assert "HTTP status 304" in done.stderr
    assert names(cli) == ["alpha", "beta", "gamma", "one"]


def test_a_list_that_answers_that_nothing_changed_is_refused(cli, both, server):
    server.routes[SKILLS] = unchanged
    done = cli("sync")
    assert done.exit_code == 1
    assert "hub was not fetched and keeps its skills" in done.stderr
    assert "Internal error" not in done.stderr
    assert names(cli) == ["alpha", "beta", "gamma", "one"]


@pytest.mark.parametrize("field", ["version", "slug", "owner"])
def test_half_a_character_in_a_hubs_list_costs_at_most_its_own_skill(cli, both, field):
    both.add("odd")
    both.items[None, "odd"] |= {
        "version": {"latestVersion": {"version": f"1{LONE}"}},
        "slug": {"slug": f"odd{LONE}"},
        "owner": {"owner": {"handle": f"odd{LONE}"}},
    }[field]
    done = cli("sync")
    assert "Internal error" not in done.stderr
    assert "odd" in done.stderr
    assert names(cli) == ["alpha", "beta", "gamma", "one", "two"]


def test_half_a_character_in_a_cursor_is_the_hubs_own_problem(cli, both, server):
    def page(handler):
        body = json.dumps({"items": list(both.items.values()), "nextCursor": LONE}).encode()
        both.send(handler, 200, body)

    server.routes[SKILLS] = page
    done = cli("sync")
    assert done.exit_code == 1
    assert "hub was not fetched" in done.stderr
    assert "Internal error" not in done.stderr
    assert names(cli) == ["alpha", "beta", "gamma", "one"]


def test_half_a_character_in_a_sites_index_costs_at_most_its_own_skill(cli, server):
    text = document("good").encode()
    server.put("/.well-known/skills/good/SKILL.md", text)
    server.put(
        "/.well-known/skills/index.json",
        {
            "skills": [
                {"name": "good", "files": ["SKILL.md"]},
                {"name": "bad", "files": ["SKILL.md", f"{LONE}.txt"]},
                {"name": f"worse{LONE}", "files": ["SKILL.md"]},
            ]
        },
    )
    cli("sync", server.url)
    assert names(cli) == ["good"]


def test_whole_characters_beyond_the_first_plane_stay(cli, both):
    both.add("face", version="1-\N{GRINNING FACE}")
    cli("sync")
    assert "face" in names(cli)


@pytest.fixture
def broken(both, monkeypatch):
    """Let the fetch of the hub end in an error that nobody has foreseen; counts how often."""
    fired = []

    def fail(*_):
        fired.append(1)
        raise ZeroDivisionError("by \x1b[31mnothing")

    monkeypatch.setattr(hubs, "find_base", fail)
    return fired


def test_an_unforeseen_error_marks_its_own_source(cli, both, broken):
    done = cli("sync")
    assert broken == [1]
    assert done.exit_code == 1
    assert "hub was not fetched and keeps its skills: Internal error (Zero" in done.stderr
    assert "--verbose" in done.stderr
    assert "\x1b" not in done.stderr
    assert names(cli) == ["alpha", "beta", "gamma", "one"]
    report = json.loads(cli("sync", "--json").stdout)
    assert {one["name"]: one["outcome"] for one in report["sources"]} == {
        "hub": "refused",
        "team": "ok",
    }


def test_with_verbose_its_traceback_is_printed(database, both, broken):
    from click.testing import CliRunner

    from registry.cli.app import root

    for _ in range(2):
        done = CliRunner().invoke(root, ["--db", str(database), "--verbose", "sync", "hub"])
        assert done.stderr.count("Traceback") == 1
        assert "\x1b" not in done.stderr
    assert len(broken) == 2


def test_list_remote_asks_the_others_all_the_same(cli, both, broken):
    done = cli("source", "list", "--remote", "--json")
    assert broken == [1]
    told = {one["name"]: one["remote"]["behind"] for one in json.loads(done.stdout)}
    assert told == {"hub": None, "team": True}
    assert "hub: Internal error (ZeroDivisionError" in done.stderr
