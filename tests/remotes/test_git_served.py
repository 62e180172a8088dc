"""Git repositories over HTTP and ssh: credentials, networks that fail, servers that lie."""

import socket
import threading

import pytest

from registry.errors import (
    RemoteInvalid,
    RemoteProblem,
    RemoteRefused,
    RemoteTooLarge,
    RemoteUnreachable,
)
from registry.remotes import git
from registry.remotes.git import Git
from registry.remotes.snapshot import FetchLimits
from tests.remotes.upstream import all_checkouts, checkout_of, files_of, git_settings


def test_over_http_nothing_new_costs_one_look_at_the_refs(registry, git_http):
    registry.sync(git_http.url)
    git_http.requests.clear()
    assert registry.sync().unchanged == 2
    assert git_http.requests == [
        "GET /skills.git/info/refs?service=git-upload-pack",
        "POST /skills.git/git-upload-pack",
    ]


def test_a_change_over_http_is_fetched(registry, git_http, upstream):
    registry.sync(git_http.url)
    upstream.skill("skills/gamma", description="Draws lines.")
    upstream.commit()
    assert registry.sync().added == ("gamma",)


@pytest.mark.parametrize("how", ["helper", "header"])
def test_a_password_comes_from_gits_own_settings(
    registry, serve_git, upstream, monkeypatch, tmp_path, how
):
    server = serve_git(upstream.bare.parent, password="open-sesame")
    told = {"credential.helper": "!f() { echo username=reader; echo password=open-sesame; }; f"}
    if how == "header":
        told = {"http.extraHeader": server.header}
    with git_settings(monkeypatch, told):
        assert registry.sync(server.url).added == ("alpha", "beta")
    for file, data in files_of(tmp_path / "home").items():
        assert b"open-sesame" not in data, file
        assert server.header.rpartition(" ")[2].encode() not in data, file


def test_without_the_password_it_is_refused_and_nobody_is_asked(registry, serve_git, upstream):
    server = serve_git(upstream.bare.parent, password="open-sesame")
    with pytest.raises(RemoteRefused, match="HTTP status 401"):
        registry.sync(server.url)
    assert all_checkouts() == []


def test_a_server_that_is_gone_leaves_all_readable(registry, git_http, upstream):
    registry.sync(git_http.url)
    held = files_of(checkout_of(registry) / "tree")
    git_http.stop()
    report = registry.sync()
    assert not report.complete
    assert report.sources[0].outcome == "offline"
    assert files_of(checkout_of(registry) / "tree") == held
    assert [one.name for one in registry.list()] == ["alpha", "beta"]
    assert [one.name for one in registry.search("letters")] == ["alpha"]
    assert "# How" in registry.read("alpha")


@pytest.mark.parametrize("answer", range(1, 6))
def test_a_line_that_is_cut_from_any_answer_on_leaves_what_was_there(
    registry, git_http, upstream, answer
):
    registry.sync(git_http.url)
    held = files_of(checkout_of(registry) / "tree")
    upstream.skill("skills/alpha", description="Newer.")
    upstream.write("skills/gamma/SKILL.md", "---\nname: gamma\ndescription: New.\n---\n")
    (upstream.work / "skills/beta/SKILL.md").unlink()
    upstream.commit()
    git_http.requests.clear()
    usual = git_http.serve

    def serve(handler):
        git_http.cut = 10 if len(git_http.requests) >= answer - 1 else None
        usual(handler)

    git_http.serve = serve
    report = registry.sync()
    assert git_http.was_cut
    assert (report.complete, report.added, report.removed) == (False, (), ())
    assert report.sources[0].outcome in {"offline", "refused"}
    assert files_of(checkout_of(registry) / "tree") == held
    git_http.serve, git_http.cut = usual, None
    report = registry.sync()
    assert (report.updated, report.added, report.removed) == (("alpha",), ("gamma",), ("beta",))


def test_a_repository_that_moved_on_its_host_is_found(registry, git_http, upstream):
    def moved(handler):
        if handler.path.startswith("/old/"):
            handler.send_response(301)
            handler.send_header("Location", handler.path.replace("/old/", "/", 1))
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return True
        return False

    git_http.answer = moved
    url = f"{git_http.base}/old/skills.git"
    assert registry.sync(url).added == ("alpha", "beta")
    assert registry.sources()[0].remote.url == url
    upstream.skill("skills/alpha", description="Newer.")
    upstream.commit()
    assert registry.sync().updated == ("alpha",)
    commit = upstream.head()
    assert registry.sync(f"{url}#{commit}", name="pinned").complete


@pytest.mark.parametrize(
    "to",
    [
        "http://localhost:{port}/skills.git/info/refs?service=git-upload-pack",
        "http://127.0.0.1:1/skills.git/info/refs?service=git-upload-pack",
        "file:///etc/passwd",
        "ext::touch /tmp/x",
        "/skills.git/somewhere/else",
        "{base}/old/skills.git/info/refs?service=git-upload-pack",
        "\x1b[31m",
        "",
    ],
)
def test_a_redirect_elsewhere_is_not_followed(registry, git_http, to):
    place = to.format(port=git_http.server.server_port, base=git_http.base)

    def moved(handler):
        if not handler.path.startswith("/old/"):
            return False
        handler.send_response(302)
        handler.send_header("Location", place)
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return True

    git_http.answer = moved
    with pytest.raises(RemoteProblem) as told:
        registry.sync(f"{git_http.base}/old/skills.git")
    assert not any("git-upload-pack" in one and "POST" in one for one in git_http.requests)
    assert all_checkouts() == []
    assert told.value


def _answering(body):
    def answer(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/x-git-upload-pack-advertisement")
        handler.end_headers()
        body(handler.wfile)
        return True

    return answer


def packet(line: bytes) -> bytes:
    return f"{len(line) + 4:04x}".encode() + line


@pytest.mark.parametrize(
    "said",
    [
        b"garbage",
        b"\0" * 1000,
        b"<html>not git</html>",
        b"0000",
        packet(b"# service=git-upload-pack\n") + b"0000" + packet(b"version 2\n") + b"0000",
        packet(b"# service=git-upload-pack\n") + b"0000ffff" + b"x" * 65536,
        packet(b"ERR \x1b[2J\x1b]0;title\x07 the server says so\n"),
    ],
    ids=range(7),
)
def test_what_is_not_git_is_refused_in_words(registry, git_http, said):
    git_http.answer = _answering(lambda out: out.write(said))
    with pytest.raises(RemoteProblem) as told:
        registry.sync(git_http.url)
    assert "Traceback" not in str(told.value)
    assert "\x1b" not in str(told.value)
    assert registry.sources() == []


def _many_refs(out):
    out.write(packet(b"# service=git-upload-pack\n") + b"0000")
    out.write(packet(b"a" * 40 + b" HEAD\0agent=x\n"))
    line = packet(b"b" * 40 + b" refs/heads/" + b"x" * 900 + b"/HEAD\n") * 1000
    for _ in range(100_000):
        out.write(line)


def test_refs_without_end_cost_no_memory_without_end(registry, git_http, monkeypatch):
    monkeypatch.setattr(git, "_MEMORY", 100 << 10)
    ended = threading.Event()

    def refs(out):
        try:
            _many_refs(out)
        except OSError:
            ended.set()

    git_http.answer = _answering(refs)
    with pytest.raises(RemoteProblem):
        registry.sync(git_http.url)
    assert ended.wait(60)


def test_more_refs_of_a_name_than_are_read_are_refused(git_http, upstream, monkeypatch, tmp_path):
    commit = upstream.head()
    names = "".join(f"create refs/heads/{number}/main {commit}\n" for number in range(2000))
    upstream.git("update-ref", "--stdin", at=upstream.bare, given=names.encode())
    git = Git(git_http.url, str(tmp_path / "git"), FetchLimits())
    assert git.find("main") == commit
    monkeypatch.setattr("registry.remotes.git.MAX_SAID", 10_000)
    with pytest.raises(RemoteTooLarge, match="branches"):
        git.find("main")


def test_a_server_that_only_drips_is_given_up(registry, git_http, bounded):
    bounded(seconds=1.5)
    ended = threading.Event()

    def drip(out):
        try:
            while not ended.wait(0.05):
                out.write(b"0")
                out.flush()
        except OSError:
            ended.set()

    git_http.answer = _answering(drip)
    with pytest.raises(RemoteUnreachable, match="takes too long"):
        registry.sync(git_http.url)
    ended.set()


def test_a_server_that_says_nothing_is_given_up(registry, bounded):
    bounded(seconds=1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"
        with pytest.raises(RemoteUnreachable, match="takes too long"):
            registry.sync(url)


def test_what_comes_unprotected_from_other_machines_is_refused(registry):
    for scheme in ("http", "git"):
        with pytest.raises(RemoteInvalid, match="does not protect files"):
            registry.sync(f"{scheme}://example.com/owner/repo.git")


def test_an_interrupted_fetch_ends_at_once(registry, git_http, upstream):
    registry.sync(git_http.url)
    upstream.skill("skills/alpha", description="Newer.")
    upstream.commit()
    asked, let_go = threading.Event(), threading.Event()

    def hang(out):
        asked.set()
        let_go.wait(60)

    git_http.answer = _answering(hang)

    def progress(doing, done, total):
        if doing == "fetching":
            assert asked.wait(60)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        registry.sync(progress=progress)
    assert not let_go.is_set()
    let_go.set()
    git_http.answer = None
    assert registry.sync().updated == ("alpha",)


def test_what_lies_on_a_plain_web_server_is_to_be_cloned_first(registry, upstream, server):
    upstream.git("update-server-info", at=upstream.bare)
    for file in upstream.bare.rglob("*"):
        if file.is_file():
            server.put(f"/x.git/{file.relative_to(upstream.bare)}", file.read_bytes())
    with pytest.raises(RemoteInvalid, match="clone it, and sync the clone"):
        registry.sync(f"{server.url}/x.git")
    assert registry.sources() == []
