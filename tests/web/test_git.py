"""The git remote: real git clones and fetches what its token sees, and nothing else."""

import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

from registry import Settings, SkillRegistry
from registry.db.read.repository import Claim
from registry.publish.git.names import entry_names
from registry.publish.git.repository import Repository
from registry.settings import GlobalIngest, Personality
from tests.cli.conftest import run
from tests.conftest import write_skill
from tests.install.places import tree
from tests.web.conftest import serving

FLUSH = b"0000"
ASK = "application/x-git-upload-pack-request"
OPEN_ONLY = GlobalIngest(mode="tags", accept_tags=frozenset({"open"}))


def git(*arguments, cwd=None, fails=False, version=2):
    done = subprocess.run(
        ["git", "-c", f"protocol.version={version}", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={"GIT_TERMINAL_PROMPT": "0", "PATH": "/usr/bin:/bin", "HOME": "/nowhere"},
    )
    assert fails == (done.returncode != 0), done.stderr
    return done.stderr if fails else done.stdout


def line(text):
    data = text.encode() if isinstance(text, str) else text
    return b"%04x%s" % (len(data) + 4, data)


def count(answer):
    """Return the number of objects of the pack in an answer."""
    at = answer.index(b"PACK") + 8
    return int.from_bytes(answer[at : at + 4], "big")


def plugins(clone):
    facts = json.loads((clone / ".claude-plugin" / "marketplace.json").read_text())
    return {one["name"]: one["version"] for one in facts["plugins"]}


def head_of(site, path="catalogue", **headers):
    said = site.ask(f"/git/{path}.git/info/refs?service=git-upload-pack", **headers)
    assert said.status == 200, said.text
    return said.body.split(b"\n")[1].removeprefix(FLUSH)[4:44].decode()


def post(site, body, path="catalogue", version=None, **headers):
    given = {"Content_Type": ASK, **headers}
    if version:
        given["Git_Protocol"] = f"version={version}"
    return site.ask(f"/git/{path}.git/git-upload-pack", "POST", body, **given)


@pytest.fixture
def wide(registry, root):
    """A registry of three skills; only two have the tag ``open``."""
    write_skill(root / "alpha", extra="tags: [open]\n")
    beta = write_skill(root / "beta", extra="tags: [open]\n")
    (beta / "run.sh").write_bytes(b"#!/bin/sh\r\n")
    (beta / "run.sh").chmod(0o755)
    write_skill(root / "secret")
    registry.sync(str(root), name="mine")
    return registry


@pytest.mark.both
@pytest.mark.parametrize("version", [0, 2])
def test_git_clones_shallow_and_whole_and_fetches_the_next_state(wide, root, tmp_path, version):
    with serving(wide) as site:
        url = f"{site.base}/git/catalogue.git"
        git("clone", "-q", url, tmp_path / "whole", version=version)
        git("clone", "-q", "--depth", "1", url, tmp_path / "flat", version=version)
        for clone in (tmp_path / "whole", tmp_path / "flat"):
            git("fsck", "--strict", cwd=clone)
            assert plugins(clone) == {"alpha": "0.0.1", "beta": "0.0.1", "secret": "0.0.1"}
            assert tree(clone / "plugins/beta/skills/beta") == tree(root / "beta")
            assert (clone / "plugins/beta/skills/beta/run.sh").stat().st_mode & 0o100
        document = root / "alpha" / "SKILL.md"
        document.write_text(document.read_text() + "More.\n")
        wide.sync()
        for name, options in (
            ("whole", ()),
            ("flat", ("--depth", "1")),
            ("flat", ("--unshallow",)),
        ):
            clone = tmp_path / name
            if options == ("--unshallow",) and not (clone / ".git" / "shallow").exists():
                continue
            git("fetch", "-q", *options, cwd=clone, version=version)
            git("reset", "-q", "--hard", "origin/main", cwd=clone)
            git("fsck", "--strict", cwd=clone)
            assert plugins(clone) == {"alpha": "0.0.2", "beta": "0.0.1", "secret": "0.0.1"}
            git("fetch", "-q", cwd=clone, version=version)


def test_a_client_with_an_earlier_state_gets_only_the_difference(wide, root):
    with serving(wide) as site:
        old = head_of(site)
        write_skill(root / "gamma")
        wide.sync()
        new = head_of(site)
        ask = line(f"want {new} ofs-delta side-band-64k\n") + FLUSH
        have = line(f"have {old}\n") + line("done\n")
        whole = post(site, ask + line("done\n")).body
        part = post(site, ask + have).body
        assert part.startswith(line(f"ACK {old}\n"))
        assert [count(one) for one in (whole, part)] == [23, 9]


def test_the_commit_is_that_of_an_export_also_after_a_restart(wide, tmp_path):
    commit = wide.export_git(str(tmp_path / "skills.git")).commit
    for _ in range(2):
        with serving(wide) as site:
            assert head_of(site) == commit


def test_a_clone_of_the_servers_own_address_gets_the_whole_catalogue(wide, tmp_path):
    with serving(wide) as site:
        git("clone", "-q", site.base, tmp_path / "clone")
        assert set(plugins(tmp_path / "clone")) == {"alpha", "beta", "secret"}
        git("pull", "-q", cwd=tmp_path / "clone")


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("catalogue", {"alpha", "beta", "secret"}),
        ("source/mine", {"alpha", "beta", "secret"}),
        ("tag/open", {"alpha", "beta"}),
        ("skill/beta", {"beta"}),
        ("skill/mine/beta", {"beta"}),
    ],
)
def test_each_address_has_its_skills(wide, tmp_path, path, names):
    with serving(wide) as site:
        git("clone", "-q", f"{site.base}/git/{path}.git", tmp_path / "clone")
        assert set(plugins(tmp_path / "clone")) == names


@pytest.mark.parametrize(
    "path", ["source/no", "tag/no", "skill/no", "personality/no", "no", "tag/", "catalogue/x", ""]
)
def test_an_address_without_a_repository_is_not_found(wide, path):
    with serving(wide) as site:
        said = site.ask(f"/git/{path}.git/info/refs?service=git-upload-pack")
        assert said.status == 404, said.text
        assert "not found" in git("ls-remote", f"{site.base}/git/{path}.git", fails=True)


@pytest.fixture
def narrow(database, root, tmp_path):
    settings = Settings(personalities={"coder": Personality("coder", global_ingest=OPEN_ONLY)})
    with SkillRegistry.open(database, settings=settings, workdir=tmp_path) as opened:
        for name in ("alpha", "beta"):
            write_skill(root / name, extra="tags: [open]\n")
        write_skill(root / "secret")
        opened.sync(str(root), name="mine")
        yield opened


@pytest.mark.both
def test_a_token_is_the_password_and_shows_only_its_skills(narrow, tmp_path):
    _, token = narrow.tokens().create("guest", personality="coder")
    with serving(narrow, host="0.0.0.0") as site:
        url = f"{site.base}/git/catalogue.git"
        said = site.ask("/git/catalogue.git/info/refs?service=git-upload-pack")
        assert said.status == 401
        assert said.headers["www-authenticate"] == 'Basic realm="skill-registry", charset="UTF-8"'
        assert "could not read Username" in git("ls-remote", url, fails=True)
        store = tmp_path / "store"
        store.write_text(f"http://git:{token}@127.0.0.1:{site.port}\n")
        helper = f"credential.helper=store --file={store}"
        git("-c", helper, "clone", "-q", url, tmp_path / "one")
        bearer = f"http.extraHeader=Authorization: Bearer {token}"
        git("-c", bearer, "clone", "-q", url, tmp_path / "two")
        for clone in ("one", "two"):
            assert set(plugins(tmp_path / clone)) == {"alpha", "beta"}
        store.write_text(f"http://git:{token}x@127.0.0.1:{site.port}\n")
        git("-c", helper, "ls-remote", url, fails=True)
        # Only git's addresses take a password.
        assert site.ask("/index.json", Authorization=f"Basic {token}").status == 401


@pytest.mark.parametrize("version", [None, 2])
def test_an_object_that_a_token_does_not_see_is_refused_though_its_id_is_known(narrow, version):
    _, guest = narrow.tokens().create("guest", personality="coder")
    _, admin = narrow.tokens().create("admin")
    with serving(narrow, host="0.0.0.0") as site:
        hidden = head_of(site, Authorization=f"Bearer {admin}")
        shown = head_of(site, Authorization=f"Bearer {guest}")
        assert hidden != shown
        for oid in (hidden, "1" * 40):
            if version is None:
                ask = line(f"want {oid}\n") + FLUSH + line("done\n")
            else:
                ask = line("command=fetch\n") + b"0001" + line(f"want {oid}\n") + line("done\n")
                ask += FLUSH
            said = post(site, ask, version=version, Authorization=f"Bearer {guest}")
            assert said.body == line(f"ERR upload-pack: not our ref {oid}\n")
            # To have it makes no difference either: the answer doesn't tell that it exists.
        given = line(f"want {shown}\n") + FLUSH
        for oid in (hidden, "1" * 40):
            have = given + line(f"have {oid}\n") + FLUSH
            assert post(site, have, Authorization=f"Bearer {guest}").body == line("NAK\n")


def test_another_personality_and_source_is_not_found(narrow):
    _, guest = narrow.tokens().create("guest", personality="coder")
    with serving(narrow, host="0.0.0.0") as site:
        ask = "/git/personality/{}.git/info/refs?service=git-upload-pack"
        given = {"Authorization": f"Bearer {guest}"}
        assert site.ask(ask.format("coder"), **given).status == 200
        assert site.ask(ask.format("other"), **given).status == 404


def bad_requests(head):
    want = line(f"want {head}\n")
    yield "no length", b"zzzz" + want
    yield "a short line", b"0003" + want
    yield "an empty line", b"0004" + want
    yield "cut off", want[:-5]
    yield "too long", b"ffff" + b"x" * 65535
    yield "no id", line("want abc\n") + FLUSH
    yield "another command", line("command=push\n") + FLUSH
    yield "many lines", want * 20_001
    yield "a large body", b"0" * (2 << 20)


@pytest.mark.parametrize("version", [None, 2])
def test_a_malformed_request_gets_an_error_and_nothing_else(wide, version):
    with serving(wide) as site:
        head = head_of(site)
        for name, body in bad_requests(head):
            said = post(site, body, version=version)
            is_error = said.status == 400 or said.body[4:].startswith(b"ERR ")
            assert is_error, (name, said.status, said.body[:100])
            assert b"PACK" not in said.body, name
        assert site.ask("/healthz").status == 200


@pytest.mark.parametrize("version", [None, 2])
def test_ten_thousand_wants_and_endless_haves_are_refused(wide, version):
    with serving(wide) as site:
        head = head_of(site)
        begin = line("command=fetch\n") + b"0001" if version else b""
        wants = begin + line(f"want {head}\n") * 10_000 + FLUSH + (b"" if version else line("done"))
        said = post(site, wants, version=version)
        assert said.body == line("ERR the request wants more than the repository offers\n")
        have = b"".join(line(f"have {number:040x}\n") for number in range(30_000))
        said = post(site, begin + line(f"want {head}\n") + have + FLUSH, version=version)
        assert said.status == 400


@pytest.mark.parametrize("version", [None, 2])
def test_the_same_object_named_ten_thousand_times_is_looked_up_once(wide, version, monkeypatch):
    times, real = [], Repository.objects_of
    monkeypatch.setattr(
        Repository, "objects_of", lambda its, commit: times.append(commit) or real(its, commit)
    )
    with serving(wide) as site:
        head = head_of(site)
        begin = line("command=fetch\n") + b"0001" if version else b""
        lines = [line(f"want {head}\n"), line("deepen 1\n"), line(f"shallow {head}\n") * 9_000]
        lines += [b"" if version else FLUSH, line(f"have {head}\n") * 9_000, line("done\n")]
        said = post(site, begin + b"".join(lines) + (FLUSH if version else b""), version=version)
        assert said.status == 200
        assert count(said.body) == 0
        assert 0 < len(times) < 10


def test_a_bomb_and_another_kind_of_content_are_refused(wide):
    with serving(wide) as site:
        bomb = gzip.compress(bytes(200 << 20))
        assert post(site, bomb, Content_Encoding="gzip").status == 400
        assert post(site, b"x", Content_Encoding="br").status == 400
        assert post(site, gzip.compress(b"0000"), Content_Encoding="gzip").status == 200
        assert post(site, FLUSH, Content_Type="text/plain").status == 400


def test_nothing_can_be_pushed(wide, tmp_path):
    with serving(wide) as site:
        url = f"{site.base}/git/catalogue.git"
        git("clone", "-q", url, tmp_path / "clone")
        git("push", "-q", "origin", "HEAD:other", cwd=tmp_path / "clone", fails=True)
        path = "/git/catalogue.git"
        assert site.ask(f"{path}/info/refs?service=git-receive-pack").status == 403
        assert site.ask(f"{path}/git-receive-pack", "POST", b"").status == 405
        assert site.ask(f"{path}/git-upload-pack").status == 405
        assert site.ask(f"{path}/info/refs").status == 403


def test_a_quarantined_skill_leaves_the_repository_and_its_name_stays_its_own(wide, tmp_path, root):
    other = tmp_path / "other"
    write_skill(other / "alpha", description="Another owner's.")
    with serving(wide) as site:
        wide.sync(str(other), name="theirs")
        git("clone", "-q", f"{site.base}/git/catalogue.git", tmp_path / "one")
        assert set(plugins(tmp_path / "one")) == {"alpha", "beta", "secret", "theirs--alpha"}
        wide.delete("mine/alpha")
        git("clone", "-q", f"{site.base}/git/catalogue.git", tmp_path / "two")
        assert set(plugins(tmp_path / "two")) == {"beta", "secret", "theirs--alpha"}


def test_a_yanked_version_leaves_the_repository_at_once(wide, tmp_path):
    wide.add_version("alpha", "1.0")
    with serving(wide) as site:
        before = head_of(site)
        wide.yank_version("alpha@1.0", reason="It is broken.")
        assert head_of(site) != before
        git("clone", "-q", f"{site.base}/git/catalogue.git", tmp_path / "clone")
        assert set(plugins(tmp_path / "clone")) == {"beta", "secret"}


@pytest.mark.both
def test_proposals_are_not_in_the_repository_and_change_no_version(wide, database):
    run("--db", str(database), "source", "update", "mine", "--review", "required")
    with serving(wide) as site:
        before = head_of(site)
        native = wide.toolset("native")
        for call, facts in (
            ("create_skill", {"name": "delta", "description": "Is new."}),
            ("update_skill", {"name": "alpha", "description": "Is changed."}),
            ("delete_skill", {"name": "beta"}),
        ):
            assert "waits for review" in native.call(call, facts)["message"]
        assert head_of(site) == before


def test_a_skill_that_models_may_not_call_is_left_to_its_users(wide, root, tmp_path):
    write_skill(root / "gamma", extra="disable-model-invocation: true\n")
    wide.sync()
    with serving(wide) as site:
        git("clone", "-q", f"{site.base}/git/catalogue.git", tmp_path / "clone")
        listed = {one.name for one in wide.list()}
        assert set(plugins(tmp_path / "clone")) == listed


@pytest.mark.both
def test_the_older_index_lists_the_files_of_each_skill_and_serves_them(narrow, root):
    _, token = narrow.tokens().create("guest", personality="coder")
    (root / "beta" / "scripts").mkdir()
    (root / "beta" / "scripts" / "a b.sh").write_bytes(b"\x00\r\n")
    narrow.sync()
    with serving(narrow, host="0.0.0.0") as site:
        given = {"Authorization": f"Bearer {token}"}
        found = site.ask("/.well-known/skills/index.json", **given).json
        assert found == {
            "skills": [
                {"name": "alpha", "version": "0.0.1", "files": ["SKILL.md"]},
                {"name": "beta", "version": "0.0.2", "files": ["SKILL.md", "scripts/a b.sh"]},
            ]
        }
        said = site.ask("/.well-known/skills/beta/scripts/a%20b.sh", **given)
        assert (said.status, said.body) == (200, b"\x00\r\n")
        for path in ("secret/SKILL.md", "beta/no", "no/SKILL.md", "../alpha/SKILL.md", "beta/"):
            assert site.ask(f"/.well-known/skills/{path}", **given).status == 404
        assert site.ask("/.well-known/skills/index.json").status == 401


def test_a_client_of_clawhub_learns_the_name_of_its_token(narrow):
    _, token = narrow.tokens().create("guest")
    with serving(narrow, host="0.0.0.0") as site:
        said = site.ask("/api/v1/whoami", Authorization=f"Bearer {token}")
        assert said.json["user"]["handle"] == "guest"
        assert site.ask("/api/v1/whoami").status == 401


@pytest.mark.both
def test_the_repository_of_a_skill_has_its_versions_as_tags(wide, root, tmp_path):
    def state():
        said = git("ls-remote", "--tags", f"{site.base}/git/skill/beta.git")
        return {
            name.removeprefix("refs/tags/beta/"): oid
            for oid, name in map(str.split, said.splitlines())
        }

    wide.add_version("beta", "1.0")
    with serving(wide) as site:
        first = state()
        assert set(first) == {"1.0"}
        document = root / "beta" / "SKILL.md"
        document.write_text(document.read_text().replace("Does one", "Does another") + "More.\n")
        wide.sync()
        wide.add_version("beta", "2.0")
        url = f"{site.base}/git/skill/beta.git"
        assert state() == {**first, "2.0": state()["2.0"]}
        for label, version, more in (("1.0", "0.0.1", 0), ("2.0", "0.0.2", 1)):
            clone = tmp_path / label
            git("clone", "-q", "--depth", "1", "--branch", f"beta/{label}", url, clone)
            git("fsck", "--strict", cwd=clone)
            assert plugins(clone) == {"beta": version}
            text = (clone / "plugins/beta/skills/beta/SKILL.md").read_text()
            assert text.count("More.") == more
        git("clone", "-q", url, tmp_path / "all")
        wide.yank_version("beta@1.0", reason="It is broken.")
        assert set(state()) == {"2.0"}
        ask = line(f"want {first['1.0']}\n") + FLUSH + line("done\n")
        assert post(site, ask, path="skill/beta").body.startswith(b"004aERR upload-pack: not our")


@pytest.mark.file
def test_another_registry_syncs_and_pulls_from_the_git_remote(wide, root, tmp_path):
    _, token = wide.tokens().create("reader")
    passwords = Path(os.environ["HOME"], ".netrc")
    passwords.write_text(f"machine 127.0.0.1 login git password {token}\n")
    passwords.chmod(0o600)
    with (
        serving(wide, host="0.0.0.0") as site,
        SkillRegistry.open(tmp_path / "other.db", workdir=tmp_path) as other,
    ):
        url = f"{site.base}/git/catalogue.git"
        assert other.sync(url, name="theirs").added == ("alpha", "beta", "secret")
        assert [one.category for one in other.list()] == [None, None, None]
        other.pull([other.list()[1]], str(tmp_path / "installed"))
        assert tree(tmp_path / "installed" / "beta") == tree(root / "beta")
        assert (tmp_path / "installed" / "beta" / "run.sh").stat().st_mode & 0o100
        write_skill(root / "alpha", extra="tags: [open]\n", body="More.\n")
        wide.sync()
        report = other.sync()
        assert (report.added, report.updated, report.removed) == ((), ("alpha",), ())
        assert report.sources[0].fetched == ()  # an edit isn't a rewritten history
        wide.delete("secret")
        assert other.sync().removed == ("secret",)


def test_ten_thousand_skills_of_one_name_get_names_in_linear_time(monkeypatch):
    tried = []
    monkeypatch.setattr(
        "registry.publish.git.names._allowed", lambda name: tried.append(name) or name
    )
    claims = [
        Claim(f"{n}", "alpha", "mine", "", "personal", n, 1, live=True) for n in range(1, 10_001)
    ]
    names = [one.name for one in entry_names(claims).values()]
    assert names[:3] == ["alpha", "mine--alpha", "mine--alpha--2"]
    assert len(set(names)) == 10_000
    assert len(tried) < 30_000
