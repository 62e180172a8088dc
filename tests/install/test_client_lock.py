"""One project, two installers: the `skills` command line (npm) and pull see each other's skills."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from registry.install import client_lock
from registry.install.adopt import adopt
from registry.install.client_lock import computed_hash, git_tree, locale_key
from registry.install.content import Entry
from registry.install.pull import How, check, pull, remove, update
from registry.install.targets import Target
from tests.conftest import write_skill

NPM = Path(sys.prefix, "node", "node_modules", ".bin")
CLIENT, NODE = NPM / "skills", NPM / "node"

real_client = pytest.mark.skipif(
    not (CLIENT.exists() and NODE.exists()),
    reason="needs the skills command line and Node 22: npm installs both for `make test`",
)


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".git").mkdir()
    return folder


@pytest.fixture
def repository(tmp_path):
    """A git repository with two skills, as the client clones it."""
    folder = tmp_path / "repository"
    for name in ("alpha", "beta"):
        skill = write_skill(folder / "skills" / name)
        (skill / "scripts").mkdir()
        (skill / "scripts" / "run.py").write_text("print(1)\n")
        (skill / "README.md").write_text("Read me.\n")
    commit(folder)
    return folder


def commit(folder):
    def git(*arguments):
        subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *arguments],
            cwd=folder,
            check=True,
            capture_output=True,
        )

    git("init", "--quiet", "--initial-branch", "main")
    git("add", "--all")
    git("commit", "--quiet", "--message", "More.")


@pytest.fixture
def client(tmp_path, project):
    """The real command line, in a bare environment."""

    def run(*arguments):
        done = subprocess.run(
            [CLIENT, *arguments],
            cwd=project,
            env={
                "PATH": f"{NPM}:/usr/bin:/bin",
                "HOME": str(tmp_path / "home"),
                "DISABLE_TELEMETRY": "1",
                "DO_NOT_TRACK": "1",
                "NO_COLOR": "1",
                "CI": "1",
                "GIT_TERMINAL_PROMPT": "0",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def told(found):
    return [(one.ref, one.state) for one in found]


def lock_of(project):
    return json.loads((project / "skills-lock.json").read_text())


class TestWithTheRealClient:
    pytestmark = real_client

    def install(self, client, repository, *more):
        agents = ("--agent", "claude-code", "codex", *more)
        client("add", f"file://{repository}", "--skill", "*", *agents, "--yes")

    def test_what_it_installed_is_adopted_and_then_seen_updated_and_removed(
        self, registry, client, repository, project
    ):
        self.install(client, repository)
        theirs = (project / "skills-lock.json").read_bytes()
        target = Target.project(str(project))
        assert told(adopt(registry.core, target)) == [("alpha", "added"), ("beta", "added")]
        assert told(update(registry.core, target)) == [
            ("alpha", "unchanged"),
            ("beta", "unchanged"),
        ]
        registry.sync(f"file://{repository}", name="theirs")
        assert told(check(registry.core, None, target)) == [
            ("alpha", "unchanged"),
            ("beta", "unchanged"),
        ]
        entry = json.loads((project / "skills.lock.json").read_text())["skills"]["alpha"]
        assert (entry["agents"], entry["mode"]) == (["claude-code"], "link")
        assert entry["origin"]["url"] == f"file://{repository}"
        assert entry["origin"]["path"] == "skills/alpha"
        assert (project / "skills-lock.json").read_bytes() == theirs
        write_skill(repository / "skills" / "alpha", description="Better.")
        commit(repository)
        registry.sync()
        assert told(update(registry.core, target)) == [("alpha", "updated"), ("beta", "unchanged")]
        assert "Better." in (project / ".claude/skills/alpha/SKILL.md").read_text()
        listed = json.loads(client("list", "--json"))
        assert {one["name"] for one in listed} == {"alpha", "beta"}
        assert told(remove(registry.core, target, ["beta"])) == [("beta", "removed")]
        assert list(lock_of(project)["skills"]) == ["alpha"]
        assert [one["name"] for one in json.loads(client("list", "--json"))] == ["alpha"]

    def test_what_we_install_it_lists_updates_and_removes(
        self, registry, client, repository, project
    ):
        self.install(client, repository)
        whole = (project / "skills-lock.json").read_bytes()
        client("remove", "beta", "--yes")
        registry.sync(f"file://{repository}", name="theirs")
        target = Target.project(str(project))
        adopt(registry.core, target)
        how = How(agents=("claude-code", "codex"))
        assert told(pull(registry.core, [registry.resolve("beta")], target, how)) == [
            ("beta", "added")
        ]
        listed = {one["name"]: one for one in json.loads(client("list", "--json"))}
        assert set(listed) == {"alpha", "beta"}
        assert (project / "skills-lock.json").read_bytes() == whole
        client("update", "--project", "--yes")
        assert (project / "skills-lock.json").read_bytes() == whole
        client("remove", "beta", "--yes")
        assert told(check(registry.core, None, target))[1] == ("beta", "missing")

    def test_our_hash_of_a_source_is_its_own(self, registry, client, repository, project):
        self.install(client, repository)
        theirs = lock_of(project)
        registry.sync(f"file://{repository}", name="theirs")
        target = Target.project(str(project))
        adopt(registry.core, target)
        update(registry.core, target)
        ours = lock_of(project)
        for name in ("alpha", "beta"):
            hashes = [lock["skills"][name]["computedHash"] for lock in (ours, theirs)]
            assert hashes[0] == hashes[1]
        text = (project / "skills-lock.json").read_text()
        # Written once more by its own program, it is the same to the byte.
        client("remove", "beta", "--yes")
        rewritten = json.loads(text)
        del rewritten["skills"]["beta"]
        again = (project / "skills-lock.json").read_text()
        assert again == json.dumps(rewritten, indent=2, ensure_ascii=False) + "\n"

    def test_for_all_projects_it_is_the_lock_in_the_home_folder(
        self, registry, client, repository, tmp_path
    ):
        client(
            "add", str(repository), "--skill", "alpha", "--agent", "claude-code", "--global", "-y"
        )
        lock = tmp_path / "home" / ".agents" / ".skill-lock.json"
        registry.sync(str(repository / "skills"), name="mine")
        target = Target.everywhere()
        assert told(adopt(registry.core, target)) == [("alpha", "added")]
        theirs = json.loads(lock.read_text())["skills"]["alpha"]
        pull(registry.core, [registry.resolve("beta")], target, How(agents=("claude-code",)))
        listed = json.loads(client("list", "--global", "--json"))
        assert {one["name"] for one in listed} == {"alpha", "beta"}
        after = json.loads(lock.read_text())
        assert after["skills"]["alpha"] == theirs
        assert set(after["skills"]["beta"]) == {
            *("source", "sourceType", "sourceUrl", "skillFolderHash", "installedAt", "updatedAt")
        }

    def test_paths_are_ordered_as_javascript_does(self):
        paths = [chr(one) + chr(other) for one in range(33, 127) for other in (45, 65, 97, 48)]
        paths += ["SKILL.md", "scripts/run.py", "skill.md", "README.md", "a/b", "a-b", "a b", "a.b"]
        script = (
            "const fs = require('fs'); const all = JSON.parse(fs.readFileSync(0));"
            "console.log(JSON.stringify(all.sort((a, b) => a.localeCompare(b))))"
        )
        done = subprocess.run(
            [NODE, "-e", script],
            input=json.dumps(paths),
            capture_output=True,
            text=True,
            check=True,
        )
        assert sorted(paths, key=locale_key) == json.loads(done.stdout)


@pytest.fixture
def library(registry, root, skill):
    skill("alpha")
    registry.sync(str(root), name="mine")
    return registry


def write_lock(project, skills, **more):
    data = {"version": 1, "skills": skills, **more}
    (project / "skills-lock.json").write_text(json.dumps(data, indent=2) + "\n")


BOTH = How(agents=("claude-code", "codex"))


def test_without_their_lock_none_is_made(library, project):
    pull(library.core, [library.resolve("alpha")], Target.project(str(project)), BOTH)
    assert not (project / "skills-lock.json").exists()


def test_what_we_do_not_know_in_it_stays(library, project):
    old = {"source": "a/b", "sourceType": "github", "computedHash": "0", "subagents": [""]}
    write_lock(project, {"alpha": {**old, "new": {"x": 1}}, "z": old, "10": {}, "9": {}}, more=5)
    target = Target.project(str(project))
    pull(library.core, [library.resolve("alpha")], target, BOTH)
    lock = lock_of(project)
    assert list(lock["skills"]) == ["9", "10", "alpha", "z"]
    assert (lock["more"], lock["skills"]["z"]) == (5, old)
    alpha = lock["skills"]["alpha"]
    assert (alpha["new"], alpha["subagents"]) == ({"x": 1}, [""])
    assert (alpha["source"], alpha["sourceType"]) == ("../skills/alpha", "local")
    before = os.stat(project / "skills-lock.json")
    update(library.core, target)
    assert os.stat(project / "skills-lock.json").st_ino == before.st_ino


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://github.com/o/r", {"source": "o/r", "sourceType": "github"}),
        (
            "https://gitlab.com/g/r.git",
            {
                "source": "https://gitlab.com/g/r.git",
                "sourceUrl": "https://gitlab.com/g/r.git",
                "sourceType": "gitlab",
            },
        ),
        (
            "ssh://git@h/x.git",
            {
                "source": "ssh://git@h/x.git",
                "sourceUrl": "ssh://git@h/x.git",
                "sourceType": "git",
            },
        ),
    ],
)
def test_a_git_origin_is_said_in_its_words(library, project, monkeypatch, url, expected):
    write_lock(project, {})
    skill = library.resolve("alpha")
    origin = {"url": url, "ref": "v1", "commit": "0" * 40, "path": "skills/alpha"}
    monkeypatch.setattr("registry.install.choice.origin_of", lambda _: origin)
    pull(library.core, [skill], Target.project(str(project)), BOTH)
    entry = lock_of(project)["skills"]["alpha"]
    hashed = entry.pop("computedHash")
    assert len(hashed) == 64
    assert entry == {**expected, "ref": "v1", "skillPath": "skills/alpha/SKILL.md"}
    assert list(entry) == [
        key for key in ("source", "sourceUrl", "ref", "sourceType", "skillPath") if key in entry
    ]


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"version": 2, "skills": {}}', '{"version": 1, "skills": {"a": 5}}', "a link"],
)
def test_one_that_can_not_be_kept_is_left_as_it_is_and_told(library, project, tmp_path, text):
    lock = project / "skills-lock.json"
    if text == "a link":
        (tmp_path / "secret").write_text('{"version": 1, "skills": {}}')
        lock.symlink_to(tmp_path / "secret")
    else:
        lock.write_text(text)
    before, warned = lock.read_bytes(), []
    library.core.on_warning = warned.append
    target = Target.project(str(project))
    assert told(pull(library.core, [library.resolve("alpha")], target, BOTH)) == [
        ("alpha", "added")
    ]
    assert lock.read_bytes() == before
    assert lock.is_symlink() == (text == "a link")
    assert "stays as it is" in warned[0]


def test_what_a_stranger_wrote_into_it_leads_nowhere(library, project, tmp_path):
    entry = {"source": "o/r", "sourceType": "github", "skillPath": "../../x/SKILL.md", "ref": 5}
    (tmp_path / "evil").mkdir()
    write_lock(project, {"../../evil": entry, "alpha": entry, "con": {}, "gone": {"source": 5}})
    write_skill(project / ".agents" / "skills" / "alpha")
    (project / ".claude" / "skills").mkdir()
    (project / ".claude" / "skills" / "alpha").symlink_to(tmp_path / "evil")
    states = {one.ref: one.state for one in adopt(library.core, Target.project(str(project)))}
    assert states == {"../../evil": "missing", "alpha": "added", "con": "failed", "gone": "missing"}
    locked = json.loads((project / "skills.lock.json").read_text())["skills"]
    assert locked["alpha"]["agents"] == ["universal"]  # the link leads elsewhere, and is not ours
    assert locked["alpha"]["origin"] == {
        "commit": None,
        "path": ".",
        "ref": None,
        "url": "https://github.com/o/r",
    }
    assert list(tmp_path.glob("evil/*")) == []


def test_copies_are_adopted_as_such_and_edited_ones_are_not_taken_for_them(library, project):
    write_lock(project, {"alpha": {}})
    for agent in (".claude", ".roo", ".windsurf"):
        shutil.copytree(library.resolve("alpha").path, project / agent / "skills" / "alpha")
    (project / ".windsurf" / "skills" / "alpha" / "SKILL.md").write_text("Mine.")
    target = Target.project(str(project))
    assert told(adopt(library.core, target, How(dry_run=True))) == [("alpha", "added")]
    assert not (project / "skills.lock.json").exists()
    assert told(adopt(library.core, target)) == [("alpha", "added")]
    entry = json.loads((project / "skills.lock.json").read_text())["skills"]["alpha"]
    assert (entry["agents"], entry["mode"], entry["source"]) == (
        ["claude-code", "roo"],
        "copy",
        "mine",
    )
    assert told(update(library.core, target)) == [("alpha", "unchanged")]


def test_a_tree_has_the_hash_that_git_gives_it(repository):
    def git(*arguments):
        done = subprocess.run(
            ["git", *arguments], cwd=repository, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    folder = repository / "skills" / "alpha"
    (folder / "scripts.md").write_text("x")
    (folder / "scripts" / "run.py").chmod(0o755)
    commit(repository)
    entries = [
        Entry(str(path.relative_to(folder)), path.read_bytes(), os.access(path, os.X_OK))
        for path in folder.rglob("*")
        if path.is_file()
    ]
    assert git_tree(entries) == git("rev-parse", "HEAD:skills/alpha")


def test_names_of_other_alphabets_have_no_hash_rather_than_a_wrong_one():
    assert computed_hash([Entry("caf\u00e9.md", b"", False)]) == ""
    assert len(computed_hash([Entry("a.md", b"", False)])) == 64


def test_where_it_lies_for_all_projects_a_variable_says(monkeypatch, tmp_path):
    target = Target.everywhere()
    assert client_lock.path_of(target) == f"{tmp_path}/home/.agents/.skill-lock.json"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert client_lock.path_of(target) == f"{tmp_path}/state/skills/.skill-lock.json"
