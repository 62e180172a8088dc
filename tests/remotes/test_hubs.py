"""A source that is another registry with ClawHub's API: its newest versions, and only what changed."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from registry.errors import RemoteInvalid, RemoteProblem, RemoteTooLarge
from registry.remotes import hub as hubs
from registry.remotes.hub import open_hub
from tests.remotes.conftest import document
from tests.remotes.packed import zipped

SKILLS = "/api/v1/skills"


class Hub:
    """A registry that answers as ClawHub's does, below ``base`` of a server."""

    def __init__(self, server, base=""):
        self.server = server
        self.base = base
        self.items = {}
        self.details = {}
        self.zips = {}
        server.routes[f"{base}{SKILLS}"] = self.page
        server.routes[f"{base}/api/v1/download"] = self.download

    def add(self, slug, version="0.0.1", files=None, owner=None, updated=1_795_000_000_000, **more):
        item = {"slug": slug, "displayName": slug, "tags": {}, "stats": {}, "createdAt": 1}
        item |= {"updatedAt": updated, "latestVersion": {"version": version}, **more}
        if owner:
            item["owner"] = {"handle": owner}
        self.items[owner, slug] = item
        self.details[owner, slug] = {"skill": item, "latestVersion": None, "owner": None}
        files = {"SKILL.md": document(slug, version)} if files is None else files
        self.zips[owner, slug, version] = files if isinstance(files, bytes) else zipped(files)
        self.server.routes[f"{self.base}{SKILLS}/{slug}"] = self.detail

    def send(self, handler, status, body, kind="application/json"):
        handler.send_response(status)
        handler.send_header("Content-Type", kind)
        handler.end_headers()
        handler.wfile.write(body)

    def query(self, handler):
        return {key: values[0] for key, values in parse_qs(urlsplit(handler.path).query).items()}

    def page(self, handler):
        query = self.query(handler)
        start, limit = int(query.get("cursor", 0)), int(query["limit"])
        items = list(self.items.values())
        end = start + limit
        found = {"items": items[start:end], "nextCursor": str(end) if end < len(items) else None}
        self.send(handler, 200, json.dumps(found).encode())

    def detail(self, handler):
        slug = urlsplit(handler.path).path.rpartition("/")[2]
        found = self.details.get((self.query(handler).get("ownerHandle"), slug))
        self.send(handler, 200 if found else 404, json.dumps(found).encode())

    def download(self, handler):
        query = self.query(handler)
        key = query.get("ownerHandle"), query["slug"], query["version"]
        found = self.zips.get(key)
        self.send(handler, 200 if found else 404, found or b"Skill not found", "application/zip")


@pytest.fixture
def hub(server):
    found = Hub(server)
    for slug in ("alpha", "beta", "gamma"):
        found.add(slug)
    return found


def files(**versions):
    return {f"{slug}/SKILL.md": document(slug, version) for slug, version in versions.items()}


FIRST = files(alpha="0.0.1", beta="0.0.1", gamma="0.0.1")


def test_the_newest_version_of_each_skill_lies_in_its_folder(hub, server, take):
    hub.add("delta", "1.0.0", owner="acme")
    hub.add("delta", "2.0.0", owner="other")
    taken = take(open_hub, server.url)
    assert taken.files == {
        **FIRST,
        "acme/delta/SKILL.md": document("delta", "1.0.0"),
        "other/delta/SKILL.md": document("delta", "2.0.0"),
    }
    assert taken.made_at == 1_795_000_000
    assert taken.notices == []


def test_owners_are_told_in_several_ways(hub, server, take):
    hub.add("one", ownerHandle="ann")
    hub.zips["ann", "one", "0.0.1"] = hub.zips[None, "one", "0.0.1"]
    hub.details["ann", "one"] = hub.details[None, "one"]
    hub.items[None, "two"] = {**hub.items[None, "alpha"], "slug": "@bob/two"}
    hub.zips["bob", "two", "0.0.1"] = zipped({"SKILL.md": b"two"})
    hub.details["bob", "two"] = {"skill": {}}
    server.routes[f"{SKILLS}/two"] = hub.detail
    taken = take(open_hub, server.url)
    assert set(taken.files) == {*FIRST, "ann/one/SKILL.md", "bob/two/SKILL.md"}


def test_nothing_new_asks_for_the_list_alone(hub, server, take):
    version = take(open_hub, server.url).version
    server.asked.clear()
    assert take(open_hub, server.url, version) is None
    assert server.count("download") == 0
    assert server.count(f"{SKILLS}/") == 0


def test_of_many_the_one_with_another_version_is_downloaded(hub, server, take):
    version = take(open_hub, server.url).version
    hub.add("beta", "0.0.2")
    server.asked.clear()
    taken = take(open_hub, server.url, version)
    assert taken.files == {**FIRST, **files(beta="0.0.2")}
    assert [path for path in server.asked if "download" in path] == [
        "/api/v1/download?slug=beta&version=0.0.2"
    ]
    assert take(open_hub, server.url, taken.version) is None


def test_a_version_that_says_it_is_the_same_is_not_downloaded(hub, server, take):
    version = take(open_hub, server.url).version
    hub.add("beta", "0.0.1", {"SKILL.md": document("evil")}, updated=1_796_000_000_000)
    server.asked.clear()
    assert take(open_hub, server.url, version) is None
    assert server.count("download") == 0
    assert server.count(f"{SKILLS}/") == 1  # what the hub says of it may have changed


def test_its_list_is_read_page_by_page(hub, server, take, monkeypatch):
    monkeypatch.setattr(hubs, "PAGE", 2)
    for number in range(7):
        hub.add(f"more-{number}")
    assert len(take(open_hub, server.url).files) == 10
    assert [path for path in server.asked if f"{SKILLS}?" in path] == [
        f"{SKILLS}?limit=2",
        *(f"{SKILLS}?limit=2&cursor={number}" for number in (2, 4, 6, 8)),
    ]


@pytest.mark.parametrize("cursors", [["a"], ["a", "b"]])
def test_a_list_that_goes_round_in_circles_ends(hub, server, take, cursors):
    items = list(hub.items.values())

    def page(handler):
        cursor = cursors[len(server.asked) % len(cursors)]
        hub.send(handler, 200, json.dumps({"items": items, "nextCursor": cursor}).encode())

    server.routes[SKILLS] = page
    with pytest.raises(RemoteInvalid, match="has no end"):
        take(open_hub, server.url)


def test_a_list_without_end_ends(hub, server, take):
    def page(handler):
        number = len(server.asked)
        items = [{**hub.items[None, "alpha"], "slug": f"s{number}-{one}"} for one in range(200)]
        hub.send(handler, 200, json.dumps({"items": items, "nextCursor": f"{number}"}).encode())

    server.routes[SKILLS] = page
    with pytest.raises(RemoteTooLarge, match="more than 1000 skills"):
        take(open_hub, server.url, files=1000)

    def empty(handler):
        cursor = str(len(server.asked))
        hub.send(handler, 200, json.dumps({"items": [], "nextCursor": cursor}).encode())

    server.routes[SKILLS] = empty
    with pytest.raises(RemoteInvalid, match="has no end"):
        take(open_hub, server.url)


class TestWhereItIs:
    @pytest.mark.parametrize("key", ["apiBase", "registry"])
    def test_its_host_says_where(self, make_server, take, key):
        site, api = make_server(), make_server()
        Hub(api, "/hub").add("alpha")
        site.put("/.well-known/clawhub.json", {key: f"{api.url}/hub/"})
        assert take(open_hub, f"{site.url}/any").files == files(alpha="0.0.1")

    def test_under_its_older_name(self, server, take):
        Hub(server, "/hub").add("alpha")
        server.put("/.well-known/clawhub.json", "<html>")
        server.put("/.well-known/clawdhub.json", {"apiBase": "/hub"})
        assert take(open_hub, server.url).files == files(alpha="0.0.1")

    def test_else_it_is_below_the_address(self, server, take):
        Hub(server, "/hub").add("alpha")
        assert take(open_hub, f"{server.url}/hub/").files == files(alpha="0.0.1")

    @pytest.mark.parametrize("to", ["file:///etc", "http://169.254.169.254/", "http://[::1", 1])
    def test_no_place_that_it_may_not_name(self, server, take, to):
        server.put("/.well-known/clawhub.json", {"apiBase": to})
        with pytest.raises(RemoteProblem):
            take(open_hub, server.url)

    def test_where_nothing_answers_that_is_said(self, server, take):
        with pytest.raises(RemoteProblem, match="404"):
            take(open_hub, server.url)
        for body in ("{}", "[]", '{"items": {}}', "<html>"):
            server.put(SKILLS, body)
            with pytest.raises(RemoteInvalid):
                take(open_hub, server.url)


class TestWhatIsBlocked:
    def test_malware_is_left_out(self, hub, server, take):
        hub.details[None, "beta"]["moderation"] = {"isMalwareBlocked": True, "isSuspicious": True}
        taken = take(open_hub, server.url)
        assert taken.files == files(alpha="0.0.1", gamma="0.0.1")
        assert taken.notices == ["'beta' is left out: the hub blocks it as malware"]
        assert server.count("slug=beta") == 0
        assert take(open_hub, server.url, taken.version) is None

    def test_what_is_only_suspicious_is_not(self, hub, server, take):
        hub.details[None, "beta"]["moderation"] = {"isMalwareBlocked": False, "isSuspicious": True}
        assert take(open_hub, server.url).files == FIRST

    @pytest.mark.parametrize("where", ["list", "detail"])
    def test_what_was_there_goes_when_it_is_blocked(self, hub, server, take, where):
        version = take(open_hub, server.url).version
        moderation = {"isMalwareBlocked": True, "isSuspicious": True}
        if where == "list":
            hub.items[None, "beta"]["moderation"] = moderation
        else:
            hub.add("beta", updated=1_796_000_000_000)
            hub.details[None, "beta"]["moderation"] = moderation
        taken = take(open_hub, server.url, version)
        assert taken.files == files(alpha="0.0.1", gamma="0.0.1")
        assert "malware" in taken.notices[0]

    @pytest.mark.parametrize("status", [404, 410, 451])
    def test_a_version_that_was_withdrawn_goes(self, hub, server, take, status):
        version = take(open_hub, server.url).version
        hub.add("beta", "0.0.2")

        def answer(handler):
            if "slug=beta" in handler.path:
                hub.send(handler, status, b"gone")
            else:
                hub.download(handler)

        server.routes["/api/v1/download"] = answer
        taken = take(open_hub, server.url, version)
        assert taken.files == files(alpha="0.0.1", gamma="0.0.1")

    def test_what_fails_otherwise_stays(self, hub, server, take):
        version = take(open_hub, server.url).version
        hub.add("beta", "0.0.2", b"no archive")
        for _ in range(2):
            taken = take(open_hub, server.url, version)
            assert taken.files == FIRST
            assert "'beta' stays as it was" in taken.notices[0]
        hub.add("beta", "0.0.2")
        assert take(open_hub, server.url, version).files == {**FIRST, **files(beta="0.0.2")}


BAD = {
    "leads out": {"slug": "../../x"},
    "up": {"slug": ".."},
    "absolute": {"slug": "/etc"},
    "hidden": {"slug": ".git"},
    "a backslash": {"slug": "a\\b"},
    "a NUL": {"slug": "a\0b"},
    "nobody sees": {"slug": "a\u202eb"},
    "half a character": {"slug": "\ud800"},
    "a device": {"slug": "nul"},
    "case": {"slug": "ALPHA"},
    "an owner that leads out": {"slug": "x", "ownerHandle": ".."},
    "an owner that is a path": {"slug": "x", "ownerHandle": "a/b"},
    "an owner that is a skill": {"slug": "x", "ownerHandle": "alpha"},
    "no slug": {"slug": None},
    "no version": {"latestVersion": None},
    "a version that is no text": {"latestVersion": {"version": 1}},
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_a_bad_entry_is_a_notice_and_never_the_end_of_all(hub, server, take, change):
    hub.items[None, "evil"] = {**hub.items[None, "alpha"], "slug": "evil", **change}
    taken = take(open_hub, server.url)
    assert taken.files == FIRST
    assert len(taken.notices) == 1
    assert taken.notices[0].isprintable()
    assert take(open_hub, server.url, taken.version) is None


@pytest.mark.parametrize("given", [None, 1, "x", [], {}])
def test_an_entry_that_is_none_is_a_notice_as_well(hub, server, take, given):
    hub.items[None, "evil"] = given
    assert take(open_hub, server.url).files == FIRST


def test_signs_in_a_slug_and_a_version_do_not_change_the_request(hub, server, take):
    hub.add("a b&c", "1.0&version=2#x")
    hub.details[None, "a%20b%26c"] = {"skill": {}}
    server.routes[f"{SKILLS}/a%20b%26c"] = hub.detail
    taken = take(open_hub, server.url)
    assert taken.files["a b&c/SKILL.md"] == document("a b&c", "1.0&version=2#x")


def test_notes_that_say_nothing_sensible_are_no_notes(hub, server, take):
    version = take(open_hub, server.url).version
    for notes in (
        {"skills": {"alpha": "../../../etc/passwd"}, "versions": {"alpha": ["0.0.1", 1]}},
        {"skills": {"alpha": {"../../x": "0" * 64}}, "versions": {}},
        {"skills": {"alpha": "0" * 64}, "versions": {"alpha": "x"}},
        {"skills": [], "versions": None},
        {"skills": {"alpha": {"SKILL.md": "/etc/passwd"}}, "versions": {"alpha": {}}},
    ):
        (take.state / "notes.json").write_text(json.dumps(notes))
        taken = take(open_hub, server.url, "another")
        assert (taken.version, taken.files) == (version, FIRST)
