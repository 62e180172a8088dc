"""Skills are put into a folder as they are, and what was edited there is left alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from registry.changes import files as change_files
from registry.errors import ContentMissing, LockFileInvalid, PullClash, PullRefused, SkillInvalid
from registry.exchange import pull as pulling
from registry.service import SkillRegistry
from registry.settings import Settings

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def library(registry, root, skill):
    folder = skill("alpha", description="One.")
    (folder / "bin").mkdir()
    (folder / "bin" / "run").write_bytes(b"#!/bin/sh\n")
    (folder / "bin" / "run").chmod(0o755)
    (folder / "logo.png").write_bytes(bytes(range(256)))
    skill("beta", extra="tags: [git]\n")
    registry.sync(str(root), name="mine")
    return registry


@pytest.fixture
def to(tmp_path):
    return tmp_path / "pulled"


def pull(registry, to, *names, **more):
    skills = [registry.resolve(name) for name in names or ("alpha", "beta")]
    return [(one.ref, one.state) for one in registry.pull(skills, str(to), **more)]


def tree(folder):
    return {
        str(path.relative_to(folder)): (path.read_bytes(), os.access(path, os.X_OK))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_pulled_skill_is_the_same_byte_for_byte(library, root, to):
    assert pull(library, to) == [("alpha", "added"), ("beta", "added")]
    assert tree(to / "alpha") == tree(root / "alpha")
    assert pull(library, to) == [("alpha", "unchanged"), ("beta", "unchanged")]
    assert sorted(path.name for path in to.iterdir()) == ["alpha", "beta", "skills.lock.json"]


def test_the_lock_file_says_what_and_from_where_and_is_stable(library, to):
    pull(library, to)
    first = (to / "skills.lock.json").read_bytes()
    entry = json.loads(first)["skills"]["alpha"]
    skill = library.resolve("alpha")
    assert (entry["source"], entry["folder"]) == ("mine", "alpha")
    assert (entry["content_hash"], entry["tree_hash"]) == (skill.content_hash, skill.tree_hash)
    pull(library, to, "beta", "alpha")
    assert (to / "skills.lock.json").read_bytes() == first


def test_only_what_differs_is_replaced(library, root, to):
    pull(library, to)
    before = os.stat(to / "beta" / "SKILL.md")
    library.update("alpha", description="Two.", files={"logo.png": None})
    assert pull(library, to) == [("alpha", "updated"), ("beta", "unchanged")]
    assert tree(to / "alpha") == tree(root / "alpha")
    assert os.stat(to / "beta" / "SKILL.md").st_ino == before.st_ino


def test_an_edit_in_the_folder_is_left_alone_unless_forced(library, root, to):
    pull(library, to)
    (to / "alpha" / "SKILL.md").write_text("Mine now.")
    assert pull(library, to, "alpha") == [("alpha", "edited")]
    library.update("alpha", description="Two.")
    assert pull(library, to, "alpha") == [("alpha", "edited")]
    assert (to / "alpha" / "SKILL.md").read_text() == "Mine now."
    assert pull(library, to, "alpha", force=True) == [("alpha", "updated")]
    assert tree(to / "alpha") == tree(root / "alpha")


def test_a_folder_that_no_pull_made_is_left_alone(library, to):
    (to / "alpha").mkdir(parents=True)
    (to / "alpha" / "notes.txt").write_text("Mine.")
    assert pull(library, to, "alpha") == [("alpha", "edited")]
    assert [path.name for path in (to / "alpha").iterdir()] == ["notes.txt"]


def test_a_check_says_what_is_behind_edited_missing_or_gone_and_writes_nothing(library, to):
    def states(skills=None):
        return {one.ref: one.state for one in library.check_pulled(str(to), skills)}

    assert states() == {}
    assert states([library.resolve("alpha")]) == {"alpha": "missing"}
    assert not to.exists()
    pull(library, to)
    assert states() == {"alpha": "unchanged", "beta": "unchanged"}
    library.update("alpha", description="Two.")
    (to / "beta" / "new.txt").write_text("x")
    assert states() == {"alpha": "behind", "beta": "edited"}
    library.delete("alpha")
    assert states()["mine/alpha"] == "gone"


def test_without_stored_bytes_a_pull_says_so_and_leaves_nothing(database, root, skill, to):
    (skill("alpha") / "more.txt").write_text("x")
    with SkillRegistry.open(database, settings=Settings(store_files=False)) as registry:
        registry.sync(str(root))
        with pytest.raises(ContentMissing):
            pull(registry, to, "alpha")
    assert list(to.iterdir()) == []


def test_what_cannot_be_used_or_would_clash_is_refused(library, registry, root, skill, to):
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_bytes(b"\xff")
    skill("one/same")
    skill("two/Same", name="Same")
    registry.sync()
    with pytest.raises(SkillInvalid):
        pull(library, to, "broken")
    with pytest.raises(PullClash, match="would both get the folder"):
        pull(library, to, "same", "Same")


def test_a_name_that_no_folder_can_have_gives_way_to_the_folders(registry, root, skill, to):
    skill("plain", name='"../evil: name"')
    registry.sync(str(root))
    assert pull(registry, to, registry.list()[0].ref)[0][1] == "added"
    assert (to / "plain" / "SKILL.md").exists()
    assert sorted(path.name for path in to.parent.iterdir() if "evil" in path.name) == []


def test_a_broken_lock_file_is_named_and_a_place_that_cannot_be_written(library, to, tmp_path):
    to.mkdir()
    (to / "skills.lock.json").write_text("[]")
    with pytest.raises(LockFileInvalid, match=r"skills\.lock\.json"):
        pull(library, to)
    (tmp_path / "file").write_text("x")
    with pytest.raises(PullRefused, match="can't be written"):
        pull(library, tmp_path / "file" / "below")


def test_without_the_system_call_that_swaps_names_it_works_too(library, root, to, monkeypatch):
    monkeypatch.setattr(change_files, "_renameat2", lambda: None)
    pull(library, to)
    library.update("alpha", description="Two.")
    assert pull(library, to, "alpha") == [("alpha", "updated")]
    assert tree(to / "alpha") == tree(root / "alpha")


KILLED = """
import os, sys
from registry import SkillRegistry, Settings
from registry.exchange import pull as pulling
step = int(sys.argv[3])
count = 0
def trace(frame, event, argument):
    global count
    if event == "line" and frame.f_code.co_filename == pulling.__file__:
        count += 1
        if count == step:
            os.kill(os.getpid(), 9)
    return trace
with SkillRegistry.open(sys.argv[1], settings=Settings()) as registry:
    skills = [registry.resolve("alpha")]
    sys.settrace(trace)
    registry.pull(skills, sys.argv[2])
"""


def test_a_pull_killed_anywhere_leaves_the_skill_old_or_new_and_the_next_one_mends_it(
    library, root, to, database
):
    pull(library, to, "alpha")
    old = tree(to / "alpha")
    library.update("alpha", description="Two.", files={"logo.png": b"new"})
    new = tree(root / "alpha")
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    died = 0
    for step in range(10, 100, 12):
        ran = subprocess.run(
            [sys.executable, "-c", KILLED, str(database), str(to), str(step)],
            env=environment,
            check=False,
        )
        died += ran.returncode == -9
        assert tree(to / "alpha") in (old, new), step
        state = pull(library, to, "alpha", force=False)
        assert state[0][1] in {"updated", "unchanged"}, step
        assert tree(to / "alpha") == new
        assert not [path for path in to.iterdir() if path.name.startswith(pulling.STAGING)]
        for path, (data, _) in old.items():  # back to what was, as if an old pull had made it
            (to / "alpha" / path).write_bytes(data)
        entries = json.loads((to / "skills.lock.json").read_text())
        entries["skills"]["alpha"]["digest"] = change_files.digest_path(str(to / "alpha"))
        (to / "skills.lock.json").write_text(json.dumps(entries))
    assert died > 3


class TestCommand:
    def test_pull_and_check(self, library, database, to, root):
        def run(*arguments):
            return subprocess.run(
                [sys.executable, "-m", "registry", "--db", str(database), "pull", *arguments],
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                capture_output=True,
                text=True,
                check=False,
            )

        ran = run("--tag", "git", "--to", str(to))
        assert (ran.returncode, ran.stdout) == (0, f"added\tbeta\t{to}/beta\n")
        assert run("--all", "--to", str(to)).returncode == 0
        (to / "beta" / "SKILL.md").write_text("x")
        checked = run("--check", "--to", str(to), "--json")
        assert checked.returncode == 1
        assert {one["ref"]: one["state"] for one in json.loads(checked.stdout)} == {
            "alpha": "unchanged",
            "beta": "edited",
        }
        again = run("beta", "--to", str(to))
        assert again.returncode == 1
        assert "--force replaces it" in again.stderr
        assert run("--to", str(to)).returncode == 2
        assert run("alpha", "--all", "--to", str(to)).returncode == 2
