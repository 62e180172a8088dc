"""The token in the environment goes only to the registry that the environment names."""

from pathlib import Path

import pytest

from registry import SkillRegistry
from registry.errors import RegistryError, UsageProblem
from registry.remotes.address import split
from registry.remotes.git import Git
from registry.remotes.http import HttpClient, own_token, password_at
from registry.remotes.snapshot import FetchLimits
from tests.cli.conftest import run
from tests.conftest import write_skill
from tests.web.conftest import serving

HOME = "https://skills.example.org"


@pytest.fixture
def token(monkeypatch):
    monkeypatch.setenv("SKILL_REGISTRY_URL", f"{HOME}/git/catalogue.git")
    monkeypatch.setenv("SKILL_REGISTRY_TOKEN", "skr_mine")


@pytest.mark.usefixtures("token")
@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (HOME, "skr_mine"),
        ("https://SKILLS.example.org:443/index.json", "skr_mine"),
        ("http://skills.example.org", None),
        ("https://skills.example.org:8443", None),
        ("https://skills.example.org.evil.example", None),
        ("https://evil.example/skills.example.org", None),
        ("https://skills.example.org@evil.example/", None),
        ("https://example.org", None),
    ],
)
def test_only_the_same_scheme_host_and_port_get_the_token(url, expected):
    assert own_token(url) == expected


def test_without_the_address_of_its_registry_the_token_goes_nowhere(monkeypatch):
    monkeypatch.setenv("SKILL_REGISTRY_TOKEN", "skr_mine")
    assert own_token(HOME) is None


def test_a_token_with_a_line_break_is_refused(monkeypatch, token):
    monkeypatch.setenv("SKILL_REGISTRY_TOKEN", "skr_mine\r\nX-More: 1")
    with pytest.raises(UsageProblem, match="characters that no token has"):
        own_token(HOME)


@pytest.mark.usefixtures("token")
def test_git_gets_the_token_for_one_address_and_not_as_an_argument(monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    git = Git(f"{HOME}/git/catalogue.git", "", FetchLimits())
    shown = git._environment
    assert shown["GIT_CONFIG_COUNT"] == "2"
    assert shown["GIT_CONFIG_KEY_1"] == f"http.{HOME}/.extraHeader"
    assert shown["GIT_CONFIG_VALUE_1"] == "Authorization: Bearer skr_mine"
    assert "skr_mine" not in str(git._settings)
    for other in (
        Git("https://evil.example/x.git", "", FetchLimits()),
        Git(HOME, "", FetchLimits(anonymous=True)),
    ):
        assert "Bearer" not in str(other._environment)
        assert other._environment["GIT_CONFIG_COUNT"] == "1"


def test_a_redirect_to_another_host_does_not_get_the_token(make_server, monkeypatch):
    first, second = make_server(), make_server()
    monkeypatch.setenv("SKILL_REGISTRY_URL", first.url)
    monkeypatch.setenv("SKILL_REGISTRY_TOKEN", "skr_mine")
    first.redirect("/a.json", f"{second.url}/b.json")
    second.put("/b.json", {"found": True})
    assert HttpClient(f"{first.url}/a.json", FetchLimits()).json(f"{first.url}/a.json")[0]
    assert first.headers[0]["Authorization"] == "Bearer skr_mine"
    assert "Authorization" not in second.headers[0]


@pytest.mark.parametrize("path", ["git/catalogue.git", ""])
def test_a_catalogue_that_needs_a_token_is_synced_with_the_environment_or_netrc(
    mine, root, tmp_path, monkeypatch, path
):
    write_skill(root / "tea")
    mine.sync()
    _, secret = mine.tokens().create("ann")
    with (
        serving(mine, host="0.0.0.0") as site,
        SkillRegistry.open(tmp_path / "ann.db", workdir=tmp_path) as ann,
    ):
        url = f"{site.base}/{path}"
        monkeypatch.setenv("SKILL_REGISTRY_TOKEN", secret)
        for home in (None, HOME):
            if home is not None:
                monkeypatch.setenv("SKILL_REGISTRY_URL", home)
            with pytest.raises(RegistryError):
                ann.sync(url)
        monkeypatch.setenv("SKILL_REGISTRY_URL", site.base)
        assert ann.sync(url, name="one").added == ("tea",)
        mine.tokens().revoke("ann")
        refused = run("--db", str(tmp_path / "x.db"), "sync", url, "--yes")
        assert "the token or password from SKILL_REGISTRY_TOKEN: it is revoked" in refused.stderr
        assert "To log in" not in refused.stderr
        _, secret = mine.tokens().create("ann")
        monkeypatch.delenv("SKILL_REGISTRY_TOKEN")
        refused = run("--db", str(tmp_path / "x.db"), "sync", url, "--yes")
        assert "To log in, put this line into ~/.netrc" in refused.stderr
        passwords = Path.home() / ".netrc"
        passwords.write_text(f"machine 127.0.0.1 login git password {secret}\n")
        passwords.chmod(0o600)
        assert ann.sync(url).complete


def test_publish_reads_netrc_too_and_keeps_a_token_that_is_for_another_registry(
    mine, root, tmp_path, monkeypatch
):
    mine.sync()
    _, secret = mine.tokens().create("bob", publish=True)
    draft = write_skill(tmp_path / "haiku")
    with serving(mine, host="0.0.0.0") as site:
        publish = ("--db", str(tmp_path / "x.db"), "publish", str(draft), "--to", site.base)
        monkeypatch.setenv("SKILL_REGISTRY_TOKEN", secret)
        monkeypatch.setenv("SKILL_REGISTRY_URL", HOME)
        refused = run(*publish)
        assert refused.exit_code == 2
        assert "machine 127.0.0.1 login git password TOKEN" in refused.stderr
        passwords = Path.home() / ".netrc"
        passwords.write_text(f"machine 127.0.0.1 login git password {secret}\n")
        passwords.chmod(0o600)
        assert password_at(split(site.base)) == secret
        assert "Published" in run(*publish).stdout
        mine.tokens().revoke("bob")
        refused = run(*publish)
        assert refused.exit_code == 1
        assert "git's credentials or ~/.netrc: it is revoked, expired or wrong." in refused.stderr
