"""A source that is a site with an index: its skills, and none that its digests don't vouch for."""

import hashlib
import json
import socket

import pytest

from registry.errors import RemoteInvalid, RemoteRefused, RemoteTooLarge, RemoteUnreachable
from registry.remotes.site import SCHEMA, open_site
from tests.remotes.conftest import document
from tests.remotes.packed import special, tarred, zipped

INDEX = "/.well-known/agent-skills/index.json"
OLD = "/.well-known/skills/index.json"


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def entry(name, data, url=None, kind="archive", **more):
    return {
        "name": name,
        "type": kind,
        "description": "Does one thing.",
        "url": url or f"/{name}.zip",
        "digest": digest(data),
        **more,
    }


class Publisher:
    """Publishes skills at a server, each as an archive unless it is one document."""

    def __init__(self, server):
        self.server = server
        self.entries = {}

    def add(self, name, data=None, **more):
        data = zipped({"SKILL.md": document(name)}) if data is None else data
        self.entries[name] = entry(name, data, **more)
        self.server.put(f"/{name}.zip", data)

    def index(self, *more, path=INDEX, **top):
        found = {"$schema": SCHEMA, "skills": [*self.entries.values(), *more], **top}
        self.server.put(path, found)
        self.server.asked.clear()


@pytest.fixture
def site(server):
    found = Publisher(server)
    for name in ("alpha", "beta", "gamma"):
        found.add(name)
    found.index()
    return found


def files(*names):
    return {f"{name}/SKILL.md": document(name) for name in names}


def test_each_skill_lies_in_a_folder_of_its_name(site, server, take):
    site.add(
        "tools", tarred({"SKILL.md": document("tools"), "run.sh": b"#!"}, modes={"run.sh": 0o755})
    )
    site.add("wrapped", zipped({"wrapped/SKILL.md": document("wrapped")}))
    text = document("plain")
    server.put("/deep/plain", text)
    site.index(entry("plain", text, f"{server.url}/deep/plain", "skill-md"))
    taken = take(open_site, server.url)
    assert taken.files == {
        **files("alpha", "beta", "gamma", "plain", "tools", "wrapped"),
        "tools/run.sh": b"#!",
    }
    assert taken.executable == {"tools/run.sh"}
    assert taken.notices == []


def test_nothing_new_asks_for_the_index_alone(site, server, take):
    version = take(open_site, server.url).version
    assert server.count(".zip") == 3
    server.asked.clear()
    assert take(open_site, server.url, version) is None
    assert server.asked == [INDEX]


def test_of_many_the_one_that_changed_is_downloaded(site, server, take):
    version = take(open_site, server.url).version
    site.add("beta", zipped({"SKILL.md": document("beta", "New.")}))
    site.index()
    taken = take(open_site, server.url, version)
    assert server.asked == [INDEX, "/beta.zip"]
    assert taken.files == {**files("alpha", "gamma"), "beta/SKILL.md": document("beta", "New.")}
    assert taken.version != version
    server.asked.clear()
    assert take(open_site, server.url, taken.version) is None
    assert server.asked == [INDEX]


def test_what_is_named_no_more_goes_and_is_not_kept(site, server, take):
    version = take(open_site, server.url).version
    assert len(list(take.state.iterdir())) == 4
    del site.entries["beta"]
    site.index()
    assert take(open_site, server.url, version).files == files("alpha", "gamma")
    assert len(list(take.state.iterdir())) == 3


def test_who_lost_its_files_gets_them_without_a_download(site, server, take):
    take(open_site, server.url)
    server.asked.clear()
    assert take(open_site, server.url).files == files("alpha", "beta", "gamma")
    assert server.count(".zip") == 0


def test_what_was_kept_and_was_changed_since_is_downloaded_again(site, server, take):
    take(open_site, server.url)
    kept = take.state / site.entries["alpha"]["digest"].removeprefix("sha256:")
    kept.write_bytes(zipped({"SKILL.md": document("evil")}))
    taken = take(open_site, server.url)
    assert taken.files == files("beta", "gamma")
    assert "'alpha' is left out" in taken.notices[0]
    assert take(open_site, server.url, taken.version).files == files("alpha", "beta", "gamma")


def test_a_kept_link_is_not_followed(site, server, take, tmp_path):
    take(open_site, server.url)
    kept = take.state / site.entries["alpha"]["digest"].removeprefix("sha256:")
    (take.state / "elsewhere").symlink_to("/etc/passwd")
    kept.unlink()
    kept.symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="symbolic links"):
        take(open_site, server.url)
    assert not (take.state / "elsewhere").is_symlink()


class TestWhereTheIndexIs:
    def test_below_the_address_before_the_root(self, site, server, take):
        site.entries = {"alpha": site.entries["alpha"]}
        site.index(path="/team/a" + INDEX)
        assert take(open_site, f"{server.url}/team/a/").files == files("alpha")
        assert server.asked[0] == "/team/a" + INDEX

    def test_else_at_the_root(self, site, server, take):
        assert take(open_site, f"{server.url}/team").files == files("alpha", "beta", "gamma")
        assert server.asked[:2] == ["/team" + INDEX, INDEX]

    def test_its_own_address_may_be_given(self, site, server, take):
        site.index(path="/team" + INDEX)
        assert take(open_site, f"{server.url}/team{INDEX}").notices == []
        assert server.asked[0] == "/team" + INDEX

    def test_artifacts_are_named_from_where_it_was_found(self, site, server, take):
        data = zipped({"SKILL.md": document("near")})
        server.put("/moved/near.zip", data)
        server.put(
            "/moved/index.json", {"$schema": SCHEMA, "skills": [entry("near", data, "near.zip")]}
        )
        server.redirect("/x" + INDEX, "/moved/index.json")
        assert take(open_site, f"{server.url}/x").files == files("near")

    def test_a_page_for_everything_is_no_index(self, server, take):
        for path in (INDEX, OLD):
            server.put(path, "<!doctype html>")
        with pytest.raises(RemoteInvalid, match="not JSON"):
            take(open_site, server.url)

    def test_none_is_said(self, server, take):
        with pytest.raises(RemoteInvalid, match="no index of skills"):
            take(open_site, server.url)
        server.put(INDEX, b"", 403)
        with pytest.raises(RemoteRefused, match="403"):
            take(open_site, server.url)


BAD = {
    "a name that leads out": {"name": "../../x"},
    "no name": {"name": None},
    "a name that is no text": {"name": ["x"]},
    "a name with a NUL": {"name": "a\0b"},
    "a name nobody sees": {"name": "a\u200bb"},
    "half a character": {"name": "\ud800"},
    "a device": {"name": "con"},
    "our folders": {"name": "node_modules"},
    "a long name": {"name": "x" * 65},
    "capitals": {"name": "Bad"},
    "a name twice": {"name": "alpha"},
    "an unknown type": {"type": "script"},
    "a type that is no text": {"type": {}},
    "no description": {"description": ""},
    "a long description": {"description": "x" * 1025},
    "no address": {"url": ""},
    "an address elsewhere": {"url": "file:///etc/passwd"},
    "an address that is none": {"url": "http://[::1"},
    "an address in half a character": {"url": "/\ud800"},
    "no digest": {"digest": None},
    "another digest": {"digest": "md5:" + "0" * 32},
    "a digest in capitals": {"digest": "sha256:" + "A" * 64},
    "a wrong digest": {"digest": "sha256:" + "0" * 64},
    "a digest that is a path": {"digest": "sha256:../../" + "0" * 58},
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_a_bad_entry_is_a_notice_and_never_the_end_of_all(site, server, take, change):
    data = zipped({"SKILL.md": document("evil")})
    server.put("/evil.zip", data)
    site.index({**entry("evil", data), **change})
    taken = take(open_site, server.url)
    assert taken.files == files("alpha", "beta", "gamma")
    assert len(taken.notices) == 1
    assert taken.notices[0].isprintable()


@pytest.mark.parametrize("given", [None, 1, "x", [], {}])
def test_an_entry_that_is_none_is_a_notice_as_well(site, server, take, given):
    site.index(given)
    taken = take(open_site, server.url)
    assert taken.files == files("alpha", "beta", "gamma")
    assert "a skill without a name" in taken.notices[0]


HOSTILE = {
    "zip slip": zipped({"SKILL.md": document("evil"), "../../evil": b"x"}),
    "absolute": tarred({"SKILL.md": document("evil"), "/tmp/evil": b"x"}),
    "a link": tarred({"SKILL.md": document("evil")}, special("x", b"2", "/etc/passwd")),
    "a hard link": tarred({"SKILL.md": document("evil")}, special("x", b"1", "../../x")),
    "a device": tarred({"SKILL.md": document("evil")}, special("x", b"3")),
    "git": zipped({"SKILL.md": document("evil"), ".git/config": b"x"}),
    "hidden": zipped({"SKILL.md": document("evil"), "a\u202etxt.sh": b"x"}),
    "Windows": zipped({"SKILL.md": document("evil"), "aux.md": b"x"}),
    "twice": tarred({"SKILL.md": document("evil"), "./SKILL.md": b"x"}),
    "case": zipped({"SKILL.md": document("evil"), "skill.md": b"x"}),
    "no document": zipped({"README.md": b"x"}),
    "two folders": zipped({"a/SKILL.md": document("a"), "b/SKILL.md": document("b")}),
    "a bomb": zipped({"SKILL.md": document("evil"), "zeros": bytes(200_000)}),
    "many": zipped({"SKILL.md": document("evil")} | {f"{n}": b"" for n in range(60)}),
    "no archive": b"<html>",
    "nothing": b"",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_archive_is_left_out_whatever_its_digest(site, server, take, data):
    site.add("evil", data)
    site.index()
    taken = take(open_site, server.url, artifact_bytes=100_000, artifact_files=50)
    assert taken.files == files("alpha", "beta", "gamma")
    assert len(taken.notices) == 1
    assert taken.notices[0].startswith("'evil' is left out: ")


class TestWhatFailsToCome:
    @pytest.mark.parametrize("status", [200, 404, 500])
    def test_the_skill_stays_as_it_was_and_is_asked_for_again(self, site, server, take, status):
        version = take(open_site, server.url).version
        good = zipped({"SKILL.md": document("beta", "New.")})
        site.add("beta", good)
        server.put("/beta.zip", b"not what was promised", status)
        site.index()
        for _ in range(2):
            taken = take(open_site, server.url, version)
            assert taken.version == version
            assert taken.files == files("alpha", "beta", "gamma")
            assert len(taken.notices) == 1
            assert taken.notices[0].startswith("'beta' stays as it was: ")
            assert status != 200 or "does not match its digest" in taken.notices[0]
        server.put("/beta.zip", good)
        assert take(open_site, server.url, version).files["beta/SKILL.md"] == document(
            "beta", "New."
        )

    def test_one_that_was_never_there_is_left_out_until_it_comes(self, site, server, take):
        good = server.routes.pop("/beta.zip")
        taken = take(open_site, server.url)
        assert taken.files == files("alpha", "gamma")
        assert "'beta' is left out: The server refuses" in taken.notices[0]
        server.routes["/beta.zip"] = good
        assert take(open_site, server.url, taken.version).files == files("alpha", "beta", "gamma")

    def test_where_none_comes_that_is_an_error(self, site, server, take):
        for name in site.entries:
            server.put(f"/{name}.zip", b"")
        with pytest.raises(RemoteInvalid, match="none of its skills"):
            take(open_site, server.url)
        for name in site.entries:
            server.put(f"/{name}.zip", b"", 500)
        with pytest.raises(RemoteUnreachable, match="500"):
            take(open_site, server.url)

    def test_an_index_of_nothing_is_a_site_of_nothing(self, site, server, take):
        site.entries = {}
        site.index()
        assert take(open_site, server.url).files == {}

    def test_what_came_before_the_time_was_up_is_there_the_next_time(self, site, server, take):
        def never(handler):
            server.ended.wait()

        good = server.routes["/gamma.zip"]
        server.routes["/gamma.zip"] = never
        try:
            taken = take(open_site, server.url, seconds=1)
        finally:
            server.ended.set()
        assert taken.files == files("alpha", "beta")
        assert "took more than 1 seconds" in taken.notices[0]
        server.routes["/gamma.zip"] = good
        server.asked.clear()
        assert take(open_site, server.url, taken.version).files == files("alpha", "beta", "gamma")
        assert server.asked == [INDEX, "/gamma.zip"]

    def test_what_there_is_no_room_for_is_left_out(self, site, server, take):
        taken = take(open_site, server.url, files=2 + 1)
        assert taken.notices == []
        site.add("large", zipped({"SKILL.md": document("large"), "zeros": bytes(90_000)}))
        site.index()
        taken = take(open_site, server.url, bytes=50_000)
        assert taken.files == files("alpha", "beta", "gamma")
        assert "size limit" in taken.notices[0]

    def test_its_archives_lead_to_no_place_of_ours(self, site, make_server, abroad, take):
        inside = make_server()
        data = zipped({"SKILL.md": document("inside")})
        inside.put("/inside.zip", data)
        site.index(entry("inside", data, f"https://127.0.0.1:{inside.port}/inside.zip"))
        url = abroad("site.example", "93.184.216.34", site.server)
        taken = take(open_site, url)
        assert taken.files == files("alpha", "beta", "gamma")
        assert "loopback address" in taken.notices[0]
        assert inside.asked == []

    @pytest.mark.parametrize(
        "url",
        [
            "https://nosuch.invalid/x.zip",
            "https://.example/x.zip",
            "https://a..b/x.zip",
            "https://\ufeff.example/x.zip",
            "https://h\ud800/x.zip",
            "https://[::1/x.zip",
            "https://host:99999/x.zip",
            "https://%00/x.zip",
            "https://" + "a" * 70 + ".example/x.zip",
            "http://site.example/x.zip",
        ],
    )
    def test_a_host_that_is_not_there_keeps_no_other_skill_from_coming(self, site, take, url):
        data = zipped({"SKILL.md": document("far")})
        site.index(*(entry(f"far-{number}", data, url) for number in range(30)))
        taken = take(open_site, site.server.url)
        assert taken.files == files("alpha", "beta", "gamma")
        assert taken.notices[0].startswith("'far-0' is left out: ")
        assert taken.notices[-1].endswith("more like these")

    def test_a_host_that_is_not_there_is_looked_for_once(self, site, take, monkeypatch):
        looked, resolve = [], socket.getaddrinfo

        def getaddrinfo(host, *args, **kwargs):
            looked.append(host)
            return resolve(host, *args, **kwargs)

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        data = zipped({"SKILL.md": document("far")})
        url = "https://nosuch.invalid/x.zip"
        site.index(*(entry(f"far-{number}", data, url) for number in range(30)))
        assert take(open_site, site.server.url).files == files("alpha", "beta", "gamma")
        assert looked.count("nosuch.invalid") <= 4  # connections at once

    def test_archives_elsewhere_get_no_password(self, site, make_server, take):
        other = make_server()
        data = zipped({"SKILL.md": document("far")})
        other.put("/far.zip", data)
        site.index(entry("far", data, f"{other.url}/far.zip"))
        url = f"http://ann:s3cret@127.0.0.1:{site.server.port}"
        assert take(open_site, url).files == files("alpha", "beta", "far", "gamma")
        assert all("Authorization" in headers for headers in site.server.headers)
        assert len(other.headers) == 1
        assert "Authorization" not in other.headers[0]
        assert "s3cret" not in "".join(path.read_text("latin-1") for path in take.state.iterdir())


class TestTheIndexItself:
    def test_an_unknown_form_is_not_read(self, site, server, take):
        for schema in ("https://schemas.agentskills.io/discovery/0.3.0/schema.json", 1, [], "\x1b"):
            site.index(**{"$schema": schema})
            with pytest.raises(RemoteInvalid, match="unknown form") as caught:
                take(open_site, server.url)
            assert str(caught.value).isprintable()
        assert server.count(".zip") == 0

    @pytest.mark.parametrize("given", [[], {}, {"skills": {}}, {"skills": "x"}, None, 1])
    def test_what_is_no_index_is_said(self, server, take, given):
        server.put(INDEX, json.dumps(given))
        with pytest.raises(RemoteInvalid, match="not an index of skills"):
            take(open_site, server.url)

    def test_one_of_a_million_entries_is_too_large(self, server, take):
        server.put(INDEX, b'{"skills":[' + b"{}," * 1_000_000 + b"{}]}")
        with pytest.raises(RemoteTooLarge, match="1000001 skills"):
            take(open_site, server.url)
        server.put(INDEX, b'{"skills":[' + b'{"name":"x"},' * 1_000_000 + b"{}]}")
        with pytest.raises(RemoteTooLarge, match="bytes"):
            take(open_site, server.url)


class TestTheOlderForm:
    @pytest.fixture
    def old(self, server):
        def publish(**skills):
            entries = [
                {"name": name, "description": "D.", "files": list(found)}
                for name, found in skills.items()
            ]
            server.put(OLD, {"skills": entries})
            for name, found in skills.items():
                for path, data in found.items():
                    server.put(f"/.well-known/skills/{name}/{path}", data)

        return publish

    def test_its_files_lie_beside_the_index(self, old, server, take):
        old(alpha={"SKILL.md": document("alpha"), "docs/a.md": b"a"}, beta={"SKILL.md": b"b"})
        taken = take(open_site, server.url)
        assert taken.files == {
            "alpha/SKILL.md": document("alpha"),
            "alpha/docs/a.md": b"a",
            "beta/SKILL.md": b"b",
        }
        assert take(open_site, server.url, taken.version) is None
        old(alpha={"SKILL.md": document("alpha", "New.")})
        again = take(open_site, server.url, taken.version)
        assert again.files == {"alpha/SKILL.md": document("alpha", "New.")}

    @pytest.mark.parametrize(
        "paths",
        [["../../x"], ["/etc/passwd"], ["a\\b"], [".git/x"], ["A", "a"], ["a", "a/b"], [1], [],
         "SKILL.md", ["x"] * 1001, ["a\0b"], ["\u202ea"], ["//other.example/x"]],
    )  # fmt: skip
    def test_paths_that_lead_anywhere_else_are_not_asked_for(self, old, server, take, paths):
        old(alpha={"SKILL.md": document("alpha")})
        index = json.loads(server.routes[OLD][2])
        wrong = ["SKILL.md", *paths] if paths and isinstance(paths, list) else paths
        index["skills"].append({"name": "evil", "description": "D.", "files": wrong})
        server.put(OLD, index)
        taken = take(open_site, server.url)
        assert taken.files == files("alpha")
        assert "'evil' is left out" in taken.notices[0]
        assert server.count("evil") == 0

    def test_a_skill_of_which_a_file_is_missing_stays_as_it_was(self, old, server, take):
        old(alpha={"SKILL.md": document("alpha")}, beta={"SKILL.md": b"b", "more.md": b"m"})
        taken = take(open_site, server.url)
        del server.routes["/.well-known/skills/beta/more.md"]
        server.put("/.well-known/skills/beta/SKILL.md", b"new")
        again = take(open_site, server.url, taken.version)
        assert again.files == taken.files
        assert "'beta' stays as it was" in again.notices[0]
