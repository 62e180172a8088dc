"""Passwords and tokens in addresses: refused, masked wherever they are shown, and removed."""

import json
import sqlite3
from pathlib import Path

import pytest

from registry.api import SkillRegistry
from registry.db.sqlite.writer import migrate
from registry.errors import AddressInvalid, RemoteInvalid, UsageProblem
from registry.install.lockfile import read_lock
from registry.remotes.address import parse_address
from registry.settings import Settings
from registry.text import masked, without_secrets
from tests.older import move
from tests.remotes.conftest import document
from tests.remotes.packed import zipped

KEY = "s3cretW0rd"

NAMES = (
    "token access_token private_token key api_key apikey sig signature X-Amz-Signature password "
    "X-Amz-Credential X-Amz-Security-Token auth passwd pwd client_secret Authorization sessionid "
    "jsessionid rlkey accessToken %74oken TOKEN code jwt"
).split()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["?{}={}", "?raw=1&{}={}", "?raw=1;{}={}", "#{}={}", "#a&{}={}"])
@pytest.mark.parametrize("base", ["https://site.example/x.zip", "https://site.example/x.git"])
def test_an_address_with_a_secret_parameter_is_refused(cli, name, form, base):
    text = base + form.format(name, KEY)
    with pytest.raises(AddressInvalid, match=r"~/\.netrc") as caught:
        parse_address(text)
    assert KEY not in f"{caught.value} {caught.value.facts}"


@pytest.mark.parametrize(
    "text",
    [
        "https://site.example/x.zip?raw=true",
        "https://site.example/x.zip?format=zip&ref=release/2026-10-hotfix-security-branch",
        "https://site.example/x.zip?ref=0123456789abcdef0123456789abcdef01234567&download=1",
        "https://site.example/x.zip?path=/&versionDescriptor[version]=main&api-version=7.0",
        "https://site.example/x.zip?author=ann",
        "https://site.example/x.git#feature/0123-monthly-report-of-the-board",
        "https://ann@dev.azure.com/o/p/_git/r",
    ],
)
def test_an_address_with_another_parameter_is_taken(text):
    found = parse_address(text)
    assert found is not None
    assert without_secrets(text) == text


MISSPELT = [
    f"https://user:pa {KEY}@host:port:bad/",
    f"https://user:{KEY}@[::1",
    f"https://user:{KEY}@",
    f"https://user:{KEY}/x",
    f"https://user:{KEY}%40host/x",
    f"https:/user:{KEY}@host/x",
    f"https:\\\\user:{KEY}@host/x",
    f"https:user:{KEY}@host/x",
    f"https://user:a/{KEY}@host/x",
    f"https://user:a#{KEY}@host/x",
    f"https://user:a?{KEY}@host/x",
    f"https://user:a@{KEY}@host/x",
    f"https://user:{KEY}\uff20host/x",
    f"https%3A%2F%2Fuser:{KEY}@host/x",
    f"HTTPS://user:{KEY}@host/x",
    f"ssh://user:{KEY}@host/x",
    f"ssh://user:{KEY}@host:port/x",
    f"git+ssh://user:{KEY}@host/x",
    f"git:{KEY}@host:x.git",
    f"user:{KEY}@host/x",
    f"//user:{KEY}@host/x",
    f"ftp://user:{KEY}@host/x",
    f"file://user:{KEY}@host/x",
    f"https://{KEY}@host:99999/x",
    f"https://host:99999/x?token={KEY}",
    f"https://host/x?u=https://a:{KEY}@b",
    f" https://user:{KEY}@host/x",
    f"https://user:{KEY}@host/" + "x" * 3000,
]


@pytest.mark.parametrize("text", MISSPELT)
@pytest.mark.parametrize(
    "command",
    [("sync",), ("source", "add"), ("pull",), ("import",), ("sync", "--dry-run"), ("show",)],
)
def test_no_command_prints_the_password_of_an_address_however_it_is_spelt(cli, text, command):
    done = cli(*command, text)
    assert done.exit_code != 0
    assert KEY not in done.output + done.stderr
    done = cli(*command, text, "--json")
    assert KEY not in done.output + done.stderr


@pytest.mark.parametrize("text", MISSPELT)
def test_no_error_holds_it(text):
    errors = [
        AddressInvalid(address=text, reason=text),
        RemoteInvalid(url=text, reason=f"git reports: fatal: unable to access '{text}': no"),
        UsageProblem(message=f"{text.strip()} is not a source yet"),
    ]
    for error in errors:
        assert KEY not in f"{error} {error.facts} {error.args}"


def test_what_git_complains_of_is_shown_without_it(registry, upstream, monkeypatch, tmp_path):
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\necho \"fatal: unable to access 'https://u:{KEY}@h/'\" >&2\nexit 9\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    with pytest.raises(RemoteInvalid, match="unable to access") as caught:
        registry.sync(upstream.url)
    assert KEY not in f"{caught.value} {caught.value.facts}"


@pytest.mark.parametrize(
    "text",
    [
        "https://host.example/owner/repo@skill",
        "owner/repo#v1@skill",
        "github:owner/repo@skill",
        "git@host.example:x.git",
        "ssh://git@host.example:2222/x.git",
        "http://127.0.0.1:41234/a",
        "/home/ann/a:b@c",
        "file:///home/ann/a:b@c",
        "postgresql://ann@host/db",
        "at 10:30:15 it was ann@example.com",
        "/home/ann/a:b/SKILL.md: line 3: mail ann@example.com/x",
    ],
)
def test_other_texts_stay_as_they_are(text):
    assert masked(text) == text


def test_a_redirect_with_a_signature_is_followed_and_shown_nowhere(registry, server, cli, tmp_path):
    server.redirect("/made.zip", f"/store/made.zip?X-Amz-Signature={KEY}")
    server.put("/store/made.zip", zipped({"alpha/SKILL.md": document("alpha")}))
    registry.sync(f"{server.url}/made.zip")
    assert server.count(KEY) == 1
    registry.pull(registry.list().items, str(tmp_path / "to"))
    stored = [*(tmp_path / "to").rglob("*.json"), Path(registry.path)]
    assert all(KEY.encode() not in file.read_bytes() for file in stored)
    server.put("/store/made.zip", b"no", 403)
    (told,) = registry.sync().sources
    assert told.outcome != "ok"
    assert KEY not in str(told)


class TestUpgrade:
    """A database from before, whose source has an address with a token."""

    @pytest.fixture
    def old(self, server, tmp_path):
        server.put("/made.zip", zipped({"alpha/SKILL.md": document("alpha")}))
        path = tmp_path / "old.db"
        with SkillRegistry.open(path, settings=Settings()) as registry:
            registry.sync(f"{server.url}/made.zip")
            registry.pull(registry.list().items, str(tmp_path / "to"))
            checkout = registry.sources()[0].path.removesuffix("/tree")
        asked = f"{checkout}/asked.json"
        secret = f"{server.url}/made.zip?token={KEY}"
        with sqlite3.connect(path) as connection:
            connection.execute("UPDATE sources SET url = ?", [secret])
            connection.execute(
                "UPDATE revisions SET origin = replace(origin, ?, ?)",
                [f"{server.url}/made.zip", secret],
            )
            connection.execute(
                "UPDATE changes SET before = ?", [json.dumps({"alpha": {"url": secret}})]
            )
        connection.close()
        move(path, "0016")
        for file in (asked, str(tmp_path / "to" / "skills.lock.json")):
            with open(file, encoding="utf-8") as opened:
                text = opened.read()
            assert f"{server.url}/made.zip" in text
            with open(file, "w", encoding="utf-8") as opened:
                opened.write(text.replace(f"{server.url}/made.zip", secret))
        return path

    def test_it_removes_the_secret_everywhere_and_asks_to_revoke_it(self, old, caplog, server):
        migrate(str(old))
        assert "Revoke it" in caplog.text
        assert KEY not in caplog.text
        with sqlite3.connect(old) as connection:
            assert not [line for line in connection.iterdump() if KEY in line]
        connection.close()
        with SkillRegistry.open(old, settings=Settings()) as registry:
            assert registry.sync().complete
            assert registry.sources()[0].remote.url == f"{server.url}/made.zip"

    def test_pull_rewrites_the_lock_without_it_and_asks_to_revoke_it(
        self, old, caplog, server, tmp_path
    ):
        migrate(str(old))
        caplog.clear()
        with SkillRegistry.open(old, settings=Settings()) as registry:
            (told,) = registry.update_pulled(str(tmp_path / "to"))
            assert told.state == "unchanged"
            assert "Revoke it" in caplog.text
            assert KEY not in caplog.text + (tmp_path / "to" / "skills.lock.json").read_text()
            entry = read_lock(str(tmp_path / "to"))["alpha"]
            assert entry.origin["url"] == f"{server.url}/made.zip"
            caplog.clear()
            registry.update_pulled(str(tmp_path / "to"))
            assert caplog.text == ""
