"""What an address is that does not say it itself."""

import pytest

from registry.errors import RemoteInvalid, RemoteRefused, RemoteUnreachable
from registry.remotes.kinds import detect_kind
from registry.remotes.site import SCHEMA
from registry.remotes.snapshot import FetchLimits
from tests.remotes.conftest import document
from tests.remotes.packed import tarred, zipped

FILES = {"SKILL.md": document("alpha")}
INDEX = {"$schema": SCHEMA, "skills": []}
PAGE = {"items": [], "nextCursor": None}


@pytest.mark.parametrize("ending", ["zip", "ZIP", "tar.gz", "tgz", "skill", "tar"])
def test_a_name_of_an_archive_is_enough(server, ending):
    assert detect_kind(f"{server.url}/x.{ending}?raw=1", FetchLimits()) == "archive"
    assert server.asked == []


@pytest.mark.parametrize("data", [zipped(FILES), tarred(FILES), tarred(FILES, packed=False)])
def test_its_first_bytes_are_as_well(server, data):
    server.put("/download", data + bytes(1000))
    assert detect_kind(f"{server.url}/download", FetchLimits(bytes=100)) == "archive"
    assert server.asked == ["/download"]


@pytest.mark.parametrize(
    "path",
    [
        "/p/.well-known/agent-skills/index.json",
        "/.well-known/agent-skills/index.json",
        "/.well-known/skills/index.json",
    ],
)
def test_a_site_has_an_index(server, path):
    server.put(path, INDEX if "agent-skills" in path else {"skills": []})
    server.put("/p", "<html>")
    assert detect_kind(f"{server.url}/p", FetchLimits()) == "site"


def test_a_hub_has_a_list(make_server):
    plain, said, api = make_server(), make_server(), make_server()
    plain.put("/api/v1/skills", PAGE)
    assert detect_kind(plain.url, FetchLimits()) == "hub"
    api.put("/hub/api/v1/skills", PAGE)
    said.put("/.well-known/clawhub.json", {"apiBase": f"{api.url}/hub"})
    assert detect_kind(said.url, FetchLimits()) == "hub"


@pytest.mark.parametrize("body", ["<html>", "{}", "[]", "null"])
def test_what_is_none_of_them_is_refused_with_what_was_tried(server, body):
    for path in ("/", "/.well-known/agent-skills/index.json", "/api/v1/skills"):
        server.put(path, body)
    with pytest.raises(RemoteInvalid) as caught:
        detect_kind(server.url, FetchLimits())
    assert "not an archive" in str(caught.value)
    assert "/.well-known/agent-skills/index.json" in str(caught.value)
    assert "/api/v1/skills" in str(caught.value)


def test_who_is_not_let_in_is_told_so(server):
    server.put("/", b"", 401)
    with pytest.raises(RemoteRefused, match="401"):
        detect_kind(server.url, FetchLimits())


def test_where_nobody_answers_nothing_is_guessed():
    with pytest.raises(RemoteUnreachable):
        detect_kind("http://127.0.0.1:1/", FetchLimits())
