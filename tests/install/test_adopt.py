"""`pull --adopt` takes over the skills that the `skills` command line (npm) installed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from registry.errors import LockMissing
from registry.install.adopt import adopt, client_lock_path
from registry.install.pull import check, remove, update
from registry.install.targets import InstallOptions, InstallTarget
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
        target = InstallTarget.project(str(project))
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
        assert told(remove(registry.core, target, ["beta"])) == [("beta", "removed")]
        assert (project / "skills-lock.json").read_bytes() == theirs

    def test_for_all_projects_it_is_the_lock_in_the_home_folder(
        self, registry, client, repository, tmp_path
    ):
        client(
            "add", str(repository), "--skill", "alpha", "--agent", "claude-code", "--global", "-y"
        )
        lock = tmp_path / "home" / ".agents" / ".skill-lock.json"
        registry.sync(str(repository / "skills"), name="mine")
        target = InstallTarget.everywhere()
        assert told(adopt(registry.core, target)) == [("alpha", "added")]
        theirs = json.loads(lock.read_text())["skills"]["alpha"]
        assert json.loads(lock.read_text())["skills"]["alpha"] == theirs


@pytest.fixture
def library(registry, root, skill):
    skill("alpha")
    registry.sync(str(root), name="mine")
    return registry


def write_lock(project, skills, **more):
    data = {"version": 1, "skills": skills, **more}
    (project / "skills-lock.json").write_text(json.dumps(data, indent=2) + "\n")


BOTH = InstallOptions(agents=("claude-code", "codex"))


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"version": 2, "skills": {}}', '{"version": 1, "skills": {"a": 5}}', "a link"],
)
def test_one_that_can_not_be_read_is_left_as_it_is_and_reported(library, project, tmp_path, text):
    lock = project / "skills-lock.json"
    if text == "a link":
        (tmp_path / "secret").write_text('{"version": 1, "skills": {}}')
        lock.symlink_to(tmp_path / "secret")
    else:
        lock.write_text(text)
    before, warned = lock.read_bytes(), []
    library.core.on_warning = warned.append
    target = InstallTarget.project(str(project))
    with pytest.raises(LockMissing):
        adopt(library.core, target)
    assert lock.read_bytes() == before
    assert lock.is_symlink() == (text == "a link")
    assert "can't be read" in warned[0]


def test_what_a_stranger_wrote_into_it_leads_nowhere(library, project, tmp_path):
    entry = {"source": "o/r", "sourceType": "github", "skillPath": "../../x/SKILL.md", "ref": 5}
    (tmp_path / "evil").mkdir()
    write_lock(project, {"../../evil": entry, "alpha": entry, "con": {}, "gone": {"source": 5}})
    write_skill(project / ".agents" / "skills" / "alpha")
    (project / ".claude" / "skills").mkdir()
    (project / ".claude" / "skills" / "alpha").symlink_to(tmp_path / "evil")
    states = {
        one.ref: one.state for one in adopt(library.core, InstallTarget.project(str(project)))
    }
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
    target = InstallTarget.project(str(project))
    assert told(adopt(library.core, target, InstallOptions(dry_run=True))) == [("alpha", "added")]
    assert not (project / "skills.lock.json").exists()
    assert told(adopt(library.core, target)) == [("alpha", "added")]
    entry = json.loads((project / "skills.lock.json").read_text())["skills"]["alpha"]
    assert (entry["agents"], entry["mode"], entry["source"]) == (
        ["claude-code", "roo"],
        "copy",
        "mine",
    )
    assert told(update(library.core, target)) == [("alpha", "unchanged")]


def test_where_it_lies_for_all_projects_a_variable_says(monkeypatch, tmp_path):
    target = InstallTarget.everywhere()
    assert client_lock_path(target) == f"{tmp_path}/home/.agents/.skill-lock.json"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert client_lock_path(target) == f"{tmp_path}/state/skills/.skill-lock.json"
