"""What people type for a repository: read as the skills client reads it, or refused."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from registry.errors import AddressInvalid
from registry.model import Remote
from registry.remotes.address import parse_address
from registry.remotes.kinds import open_remote
from registry.remotes.snapshot import FetchLimits

HUB = "https://github.com"
LAB = "https://gitlab.com"
FORTY = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("text", "url", "ref", "part", "only"),
    [
        ("owner/repo", f"{HUB}/owner/repo", None, None, ()),
        ("owner/repo.git", f"{HUB}/owner/repo", None, None, ()),
        ("owner/repo/", f"{HUB}/owner/repo", None, None, ()),
        ("owner/repo/a/b", f"{HUB}/owner/repo", None, "a/b", ()),
        ("owner/repo@pdf", f"{HUB}/owner/repo", None, None, ("pdf",)),
        ("owner/repo/a@pdf", f"{HUB}/owner/repo", None, "a", ("pdf",)),
        ("owner/repo#v1", f"{HUB}/owner/repo", "v1", None, ()),
        ("owner/repo#feature/x", f"{HUB}/owner/repo", "feature/x", None, ()),
        (f"owner/repo#{FORTY}", f"{HUB}/owner/repo", FORTY, None, ()),
        ("owner/repo#v1@pdf", f"{HUB}/owner/repo", "v1", None, ("pdf",)),
        ("github:owner/repo", f"{HUB}/owner/repo", None, None, ()),
        ("github:owner/repo/a#v1", f"{HUB}/owner/repo", "v1", "a", ()),
        ("gitlab:owner/repo", f"{LAB}/owner/repo", None, None, ()),
        (f"{HUB}/owner/repo", f"{HUB}/owner/repo", None, None, ()),
        (f"{HUB}/owner/repo.git", f"{HUB}/owner/repo.git", None, None, ()),
        (f"{HUB}/owner/repo/tree/main", f"{HUB}/owner/repo", "main", None, ()),
        (f"{HUB}/owner/repo/tree/main/a/b", f"{HUB}/owner/repo", "main", "a/b", ()),
        (f"{HUB}/owner/repo/tree/main/a/b/", f"{HUB}/owner/repo", "main", "a/b", ()),
        (f"{HUB}/o/r/tree/feature/x", f"{HUB}/o/r", "feature", "x", ()),
        (f"{HUB}/o/r/blob/main/a/SKILL.md", f"{HUB}/o/r", "main", "a", ()),
        (f"{HUB}/o/r/tree/main/a%20b", f"{HUB}/o/r", "main", "a b", ()),
        (f"{LAB}/group/sub/repo", f"{LAB}/group/sub/repo", None, None, ()),
        (f"{LAB}/g/s/r/-/tree/v1/a", f"{LAB}/g/s/r", "v1", "a", ()),
        ("https://git.example/g/r/-/tree/v1", "https://git.example/g/r", "v1", None, ()),
        ("https://git.example/g/r.git", "https://git.example/g/r.git", None, None, ()),
        ("https://git.example/g/r.git#v1", "https://git.example/g/r.git", "v1", None, ()),
        ("https://git.example/g/r.git/a/b", "https://git.example/g/r.git", None, "a/b", ()),
        (
            "https://dev.azure.com/o/p/_git/r",
            "https://dev.azure.com/o/p/_git/r",
            None,
            None,
            (),
        ),
        ("git@host.example:group/repo.git", "git@host.example:group/repo.git", None, None, ()),
        ("git@host.example:g/r.git#v1@x", "git@host.example:g/r.git", "v1", None, ("x",)),
        ("ssh://git@host.example:2222/g/r", "ssh://git@host.example:2222/g/r", None, None, ()),
        ("ssh://h.example/g/r.git#v1", "ssh://h.example/g/r.git", "v1", None, ()),
        ("file:///srv/git/r.git", "file:///srv/git/r.git", None, None, ()),
        ("file:///srv/my git/r.git", "file:///srv/my%20git/r.git", None, None, ()),
        ("Https://git.example/G/r.git", "https://git.example/G/r.git", None, None, ()),
        ("git://127.0.0.1/r.git", "git://127.0.0.1/r.git", None, None, ()),
    ],
)
def test_what_means_a_repository(text, url, ref, part, only):
    found = parse_address(text)
    assert found is not None
    assert (found.kind, found.url, found.ref, found.part, found.only) == (
        "git",
        url,
        ref,
        part,
        only,
    )


@pytest.mark.parametrize(
    "text",
    [
        "ext::sh -c touch% /tmp/x",
        "ext::touch",
        "fd::17",
        "transport::address",
        "javascript://x",
        "ftp://host.example/r.git",
        "rsync://host.example/r.git",
        "https://user:secret@host.example/r.git",
        "https://user:@host.example/r.git",
        "https://ghp_0123456789abcdefghijklmnopqrstuvwxyz@github.com/o/r",
        "https://github_pat_11AAAAAAA0123456789_abcdef@github.com/o/r",
        "https://glpat-0123456789abcdefghij@gitlab.com/o/r.git",
        "https://",
        "https:///o/r.git",
        "ssh://-oProxyCommand=touch/r.git",
        "ssh://-oProxyCommand=touch@host/r.git",
        "https://[::1/r.git",
        "file://[x",
        "https://host.example:99999/r.git",
        "https://host.example:x/r.git",
        "-x@host.example:r.git",
        "git@host.example:r with space.git",
        "owner/repo#-x",
        "owner/repo#a..b",
        "owner/repo#a~1",
        "owner/repo#a^",
        "owner/repo#a:b",
        "owner/repo#a b",
        "owner/repo#@{u}",
        "owner/repo#a.lock",
        "owner/repo#a//b",
        "owner/repo#*",
        "owner/repo#[a]",
        "owner/repo#a\\b",
        "owner/repo/../x",
        "owner/repo/a/../../x",
        "owner/repo/.git/hooks",
        f"{HUB}/o/r/tree/main/../x",
        f"{HUB}/o/r/tree/main/%2e%2e/x",
        f"{HUB}/o/r/tree/..%2f..%2fx",
        f"{HUB}/o/r/tree/--upload-pack=touch",
        f"{HUB}/o/r/tree/main/a%00b",
        f"{HUB}/o/r/tree/main/a%1b[2J",
        "https://git.example/g/r.git/%2e%2e/x",
        "github:-x",
        "github:owner",
        "file:///etc%00/x",
        "file://evil.example/etc",
        "file://evil.example/x.zip",
        "file://localhost:80/etc",
        "file://user:secret@localhost/etc",
    ],
)
def test_what_is_refused_in_words(text):
    with pytest.raises(AddressInvalid) as told:
        parse_address(text)
    assert "secret" not in str(told.value)
    assert "0123456789" not in str(told.value)
    assert "***" * 3 not in str(told.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "..",
        "./x",
        "../x/y",
        "~/skills",
        "/abs/path",
        "name",
        "a\0b/c",
        "owner/repo\n",
        "owner/re\x1bpo",
        "owner/repo\u202e",
        "-x/y",
        "-oProxyCommand=x@host.example:r.git",
        "C:\\skills",
        "o/" + "r" * 3000,
    ],
)
def test_what_is_a_folder_or_a_name(text):
    assert parse_address(text) is None


def test_a_file_that_is_here_is_asked_for_nowhere_else(tmp_path, monkeypatch):
    file = tmp_path / "skills" / "pdf" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("# Pages\n")
    assert parse_address("skills/pdf/SKILL.md") is not None
    monkeypatch.chdir(tmp_path)
    assert parse_address("skills/pdf/SKILL.md") is None


def test_a_file_that_is_here_may_have_any_name(tmp_path):
    file = tmp_path / "my c# skills.zip"
    file.write_bytes(b"")
    found = parse_address(str(file))
    assert (found.kind, found.url) == ("archive", file.as_uri())


@pytest.mark.parametrize("name", ["team.zip", "TEAM.ZIP", "team.Tar.gz", "team.skill"])
def test_what_an_archive_is_named_after_has_no_ending(name):
    assert parse_address(f"https://host.example/{name}").telling.lower() == "/team"


PIECES = st.sampled_from(
    "https:// http:// ssh:// file:// git@ ext:: github: / // : :: @ # .. . - _ % %2e %00 [ ] ~ ^ ? "
    "owner repo .git .zip tree blob -/tree _git main x é 1 99999 \0 \x1b \u202e host.example".split(
        " "
    )
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=10).map("".join))
@example("file://[")
@example("https://[x]/a.zip")
@example("ssh://[/x.git/y")
@example("http://\u2100/x")
@example("file:///%00.zip")
@example("github.com:x")
def test_whatever_is_typed_is_an_address_or_none_or_refused(text):
    try:
        found = parse_address(text)
    except AddressInvalid as error:
        assert str(error)  # noqa: PT017
    else:
        assert found is None or found.telling.startswith("/")


def test_a_file_on_this_machine_may_name_it(tmp_path):
    assert parse_address(f"file://localhost{tmp_path}").url == f"file://{tmp_path}"


@pytest.mark.parametrize("kind", ["git", "archive"])
def test_a_row_that_names_a_file_of_another_host_is_refused(kind, tmp_path):
    remote = Remote(kind, f"file://evil.example{tmp_path}", None, None)
    with (
        pytest.raises(AddressInvalid, match="has no host"),
        open_remote(remote, str(tmp_path / "state"), None, FetchLimits(), ()),
    ):
        pass
