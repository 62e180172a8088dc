"""Skills are put into a folder as they are, and what was edited there is left alone."""

import errno
import json
import os
import shutil
import signal
import sqlite3

import pytest

from registry.api import SkillRegistry
from registry.disk import atomic, swap
from registry.disk import atomic as change_files
from registry.disk.paths import STATE_SUFFIX
from registry.errors import LockFileInvalid, PullClash, PullRefused, SkillInaccessible
from registry.install import content, staging
from registry.settings import Settings, data_folder
from tests import program
from tests.changes import faults


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


@pytest.mark.both
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
    assert (entry["name"], entry["ref"]) == ("alpha", "alpha")
    hashes = {file.path: file.hash for file in library.get("alpha").files}
    assert entry["files"] == hashes
    assert list(entry["files"]) == sorted(hashes)
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


@pytest.mark.both
def test_bytes_that_are_not_stored_are_read_from_disk(database, root, skill, to):
    (skill("alpha") / "more.txt").write_text("x")
    with SkillRegistry.open(database, settings=Settings(store_files=False)) as registry:
        registry.sync(str(root))
        assert pull(registry, to, "alpha") == [("alpha", "added")]
    assert tree(to / "alpha") == tree(root / "alpha")


@pytest.mark.file
def test_stored_bytes_are_believed_only_with_their_hash(library, database, root, to):
    bent = sqlite3.connect(database)
    bent.execute("UPDATE contents SET data = X'00', packed = size <> 256")
    bent.commit()
    bent.close()
    assert pull(library, to, "alpha") == [("alpha", "added")]
    assert tree(to / "alpha") == tree(root / "alpha")


def test_what_can_not_be_had_is_said_and_the_others_are_pulled(database, root, skill, to):
    (skill("alpha") / "more.txt").write_text("x")
    skill("beta")
    with SkillRegistry.open(database, settings=Settings(store_files=False)) as registry:
        registry.sync(str(root))
        skills = list(registry.list())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("registry.install.content.read_inside", gone)
            found = registry.pull(skills, str(to))
    assert [(one.ref, one.state) for one in found] == [("alpha", "failed"), ("beta", "added")]
    assert "more.txt' can't be read: its files are not stored" in found[0].reason
    assert sorted(path.name for path in to.iterdir()) == ["beta", "skills.lock.json"]


def gone(path, *_):
    raise SkillInaccessible(path=path, reason="gone")


def test_a_skill_edited_at_its_source_is_pulled_as_it_is_now(library, root, skill, to):
    pull(library, to)
    skill("alpha", description="Edited by hand.", age=None)
    (root / "alpha" / "new.txt").write_text("x")
    assert pull(library, to, "alpha") == [("alpha", "updated")]
    assert tree(to / "alpha") == tree(root / "alpha")


def test_a_skill_that_changes_while_it_is_read_is_read_again(library, root, to, monkeypatch):
    original, seen = content.skills.files, []

    def slow(reader, number):
        if not seen:
            seen.append(number)
            library.update("alpha", description="Two.", files={"logo.png": None})
        return original(reader, number)

    monkeypatch.setattr(content.skills, "files", slow)
    assert pull(library, to, "alpha") == [("alpha", "added")]
    assert tree(to / "alpha") == tree(root / "alpha")
    entry = json.loads((to / "skills.lock.json").read_text())["skills"]["alpha"]
    assert entry["tree_hash"] == library.resolve("alpha").tree_hash


def test_what_cannot_be_used_or_would_clash_is_refused(library, registry, root, skill, to):
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_bytes(b"\xff")
    skill("one/same")
    skill("two/Same", name="Same")
    registry.sync()
    assert pull(library, to, "broken") == [("broken", "failed")]
    with pytest.raises(PullClash, match="can hold only one skill"):
        pull(library, to, "same", "Same")
    assert pull(library, to, "same", "mine/one/same") == [("same", "added")]


def test_the_lock_files_name_is_no_skills_folder(registry, root, skill, to):
    skill("plain", name="Skills.lock.json")
    registry.sync(str(root))
    assert pull(registry, to, registry.list()[0].ref)[0][1] == "added"
    assert sorted(path.name for path in to.iterdir()) == ["plain", "skills.lock.json"]


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
    monkeypatch.setattr(change_files, "renameat2", lambda: None)
    pull(library, to)
    library.update("alpha", description="Two.")
    assert pull(library, to, "alpha") == [("alpha", "updated")]
    assert tree(to / "alpha") == tree(root / "alpha")


def test_what_a_lock_file_says_is_not_trusted(library, to):
    pull(library, to, "alpha")
    lock = to / "skills.lock.json"
    good = lock.read_text()
    for before, after in (
        ('"alpha": {', '"../../evil": {'),
        ('"version": 3', '"version": 4'),
        ('"source": "mine"', '"source": 5'),
        ('"source": "mine",', ""),
        ('"agents": []', '"agents": ["../../evil"]'),
        ('"agents": []', '"agents": 5'),
        ('"mode": "copy"', '"mode": "/etc"'),
        ('"origin": null', '"origin": {"url": 5}'),
        ('"origin": null', '"origin": []'),
    ):
        assert before in good
        lock.write_text(good.replace(before, after))
        with pytest.raises(LockFileInvalid):
            pull(library, to, "alpha")
        with pytest.raises(LockFileInvalid):
            library.check_pulled(str(to))
    lock.unlink()
    os.mkfifo(lock)
    with pytest.raises(LockFileInvalid, match="not a regular file"):
        pull(library, to, "alpha")


def test_the_lock_file_is_not_written_where_nothing_is_new(library, to):
    pull(library, to)
    before = os.stat(to / "skills.lock.json")
    pull(library, to)
    assert os.stat(to / "skills.lock.json").st_ino == before.st_ino


def test_of_two_pulls_one_waits_or_gives_up_in_words(library, to, monkeypatch):
    to.mkdir()
    monkeypatch.setattr(staging, "LOCK_SECONDS", 0.05)
    with staging.open_exclusively(str(to)), pytest.raises(PullRefused, match="another pull"):
        pull(library, to, "alpha")
    assert pull(library, to, "alpha") == [("alpha", "added")]


@pytest.fixture(params=["exchange", "two renames"])
def way(request, monkeypatch):
    """With the system call that swaps two names, and without it."""
    if request.param == "two renames":
        monkeypatch.setattr(change_files, "renameat2", lambda: None)
    return request.param


def test_an_edit_in_the_moment_of_the_swap_wins(library, to, monkeypatch, way):
    pull(library, to, "alpha")
    library.update("alpha", description="Two.")
    put_in_place = swap.put_in_place

    def edited_first(one, other):
        (to / "alpha" / "SKILL.md").write_text("Mine now.")
        monkeypatch.setattr(swap, "put_in_place", put_in_place)
        return put_in_place(one, other)

    monkeypatch.setattr(swap, "put_in_place", edited_first)
    assert pull(library, to, "alpha", force=True) == [("alpha", "edited")]
    assert (to / "alpha" / "SKILL.md").read_text() == "Mine now."
    assert sorted(path.name for path in to.iterdir()) == ["alpha", "skills.lock.json"]


def test_a_folder_made_or_removed_in_that_moment_is_left_as_it_is(library, to, monkeypatch):
    rename_new, exchange = swap.rename_new, swap.exchange

    def made(staged, target):
        os.mkdir(target.path)
        rename_new(staged, target)

    monkeypatch.setattr(swap, "rename_new", made)
    assert pull(library, to, "alpha") == [("alpha", "edited")]
    monkeypatch.undo()
    os.rmdir(to / "alpha")
    pull(library, to, "alpha")
    library.update("alpha", description="Two.")

    def removed(staged, target):
        os.rename(target.path, to.parent / "away")
        exchange(staged, target)

    monkeypatch.setattr(swap, "exchange", removed)
    assert pull(library, to, "alpha") == [("alpha", "edited")]
    assert sorted(path.name for path in to.iterdir()) == ["skills.lock.json"]


def test_a_full_disk_leaves_the_old_and_no_litter(library, to, monkeypatch, way):
    pull(library, to, "alpha")
    old = tree(to / "alpha")
    library.update("alpha", description="Two.")
    write_file = staging.write_file
    for failing in ("logo.png", "note.json"):

        def write(place, data, mode=0o644, failing=failing):
            if place.name == failing:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), place.path)
            write_file(place, data, mode)

        for module in (staging, atomic):
            monkeypatch.setattr(module, "write_file", write)
        with pytest.raises(PullRefused, match="No space left"):
            pull(library, to, "alpha")
        assert tree(to / "alpha") == old
        assert sorted(path.name for path in to.iterdir()) == ["alpha", "skills.lock.json"]


class Killed:
    """A folder with an older ``alpha`` and no ``beta``, and pulls of both that are killed."""

    def __init__(self, library, database, root, to):
        self.library, self.database, self.to = library, database, to
        pull(library, to, "alpha")
        self.old = tree(to / "alpha")
        library.update("alpha", description="Two.", files={"logo.png": b"new"})
        self.new, self.beta = tree(root / "alpha"), tree(root / "beta")
        shutil.copytree(to, to.with_name("saved"))

    def reset(self):
        shutil.rmtree(self.to)
        shutil.copytree(self.to.with_name("saved"), self.to)
        shutil.rmtree(data_folder() / "pulls", ignore_errors=True)  # so that the steps are the same

    def pull(self, step):
        """Pull in a child that is killed at a step; tell whether it came to its end."""
        self.reset()

        def work():
            with SkillRegistry.open(self.database, settings=Settings()) as registry:
                skills = [registry.resolve(name) for name in ("alpha", "beta")]
                with faults.at_step(step, faults.kill):
                    registry.pull(skills, str(self.to))

        code = faults.run_in_child(work)
        assert code in {0, -signal.SIGKILL}
        return code == 0

    def steps(self):
        step = 1
        while not self.pull(step):
            yield step
            step += faults.stride()

    def whole(self):
        alpha, beta = tree(self.to / "alpha"), tree(self.to / "beta")
        return alpha in (self.old, self.new) and beta in ({}, self.beta)

    def mended(self):
        states = {state for _, state in pull(self.library, self.to)}
        names = sorted(path.name for path in self.to.iterdir())
        return (
            states <= {"added", "updated", "unchanged"}
            and (tree(self.to / "alpha"), tree(self.to / "beta")) == (self.new, self.beta)
            and names == ["alpha", "beta", "skills.lock.json"]
        )


@pytest.fixture
def killed(library, database, root, to):
    return Killed(library, database, root, to)


def test_killed_at_each_step_each_skill_is_old_or_new_and_the_next_pull_mends(killed):
    steps = 0
    for step in killed.steps():
        assert killed.whole(), step
        assert killed.mended(), step
        steps += 1
    assert steps > 35 // faults.stride()


def test_killed_without_the_exchange_nothing_is_lost_either(killed, monkeypatch):
    monkeypatch.setattr(change_files, "renameat2", lambda: None)
    for step in killed.steps():
        assert tree(killed.to / "alpha") in ({}, killed.old, killed.new), step
        pull(killed.library, killed.to, "beta")
        assert killed.whole(), step
        assert killed.mended(), step


def test_killed_before_the_lock_file_is_written_the_folder_is_still_known_as_pulled(killed):
    library, to = killed.library, killed.to
    between = [step for step in killed.steps() if tree(to / "beta") == killed.beta]
    killed.pull(between[0])
    assert "beta" not in (to / "skills.lock.json").read_text()
    assert [one.state for one in library.check_pulled(str(to))] == ["unchanged", "unchanged"]
    library.update("alpha", description="Three.")
    library.update("beta", description="Three.")
    assert pull(library, to) == [("alpha", "updated"), ("beta", "updated")]


def test_these_experiments_see_what_is_missing(killed, monkeypatch):
    monkeypatch.setattr(faults, "every_line", False)  # which knows the lines of the program only

    def in_place(one, other):
        shutil.rmtree(other.path)
        shutil.move(one.path, other.path)
        return one

    with monkeypatch.context() as patch:
        patch.setattr(swap, "put_in_place", in_place)
        assert not all(killed.whole() for _ in killed.steps())
    monkeypatch.setattr(staging, "clear", lambda to, name: shutil.rmtree(to.path_of(name)))
    monkeypatch.setattr(staging, "read_record", lambda _room: None)
    killed.reset()
    assert pull(killed.library, killed.to)[0] == ("alpha", "edited")


def test_a_staging_dir_that_somebody_else_laid_there_leads_nowhere(library, to, tmp_path):
    pull(library, to, "alpha")
    planted = to / f"{staging.PREFIX}planted{STATE_SUFFIX}"
    (planted / "tree").mkdir(parents=True)
    entry = json.loads((to / "skills.lock.json").read_text())["skills"]["alpha"]
    note = {"folder": "../../evil", "base": None, "entry": entry}
    (planted / "note.json").write_text(json.dumps(note))
    (to / f"{staging.PREFIX}link{STATE_SUFFIX}").symlink_to(tmp_path)
    before = set(tmp_path.iterdir()) | set(tmp_path.parent.iterdir())
    assert pull(library, to, "alpha") == [("alpha", "unchanged")]
    assert set(tmp_path.iterdir()) | set(tmp_path.parent.iterdir()) == before


class TestCommand:
    def test_pull_and_check(self, library, database, to, root):
        def run(*arguments, **environ):
            return program.run(
                ["--db", str(database), "pull", *arguments], environ={**os.environ, **environ}
            )

        ran = run("--tag", "git", "--to", str(to))
        assert (ran.status, ran.out) == (0, f"added\tbeta\t{to}/beta\n")
        assert run("--all", "--to", str(to)).status == 0
        (to / "beta" / "SKILL.md").write_text("x")
        checked = run("--check", "--to", str(to), "--json")
        assert checked.status == 1
        assert {one["ref"]: one["state"] for one in json.loads(checked.out)} == {
            "alpha": "unchanged",
            "beta": "edited",
        }
        config = to.parent / "config.yaml"
        config.write_text(
            "personalities: {coder: {skills: {global_ingest: {mode: explicit, allow: [beta]}}}}"
        )
        coder = ("--personality", "coder", "--to", str(to), "--force")
        known = {"SKILL_REGISTRY_CONFIG": str(config)}
        hidden = run("alpha", *coder, **known)
        assert (hidden.status, hidden.out) == (1, "")
        assert "is not shown" in hidden.err
        assert run("beta", *coder, **known).status == 0
        assert run(*coder, "--check", **known).status == 2
        (to / "beta" / "SKILL.md").write_text("x")
        again = run("beta", "--to", str(to))
        assert again.status == 1
        assert "To overwrite them, run: " in again.err
        (root / "alpha" / "SKILL.md").write_bytes(b"\xff")
        failed = run("alpha", "--to", str(to))
        assert (failed.status, failed.out) == (1, f"failed\talpha\t{to}/alpha\n")
        assert "alpha was not updated: The skill 'alpha' can't be used:" in failed.err
        refreshed = run("--to", str(to))
        assert (refreshed.status, "failed\talpha" in refreshed.out) == (1, True)
        assert run("alpha", "--all", "--to", str(to)).status == 2
