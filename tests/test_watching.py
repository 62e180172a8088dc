"""The registry follows the disk by itself."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import watchfiles

from registry.model import Source
from registry.sync import watch as watching
from registry.sync.touched import by_source, touched_skills
from registry.sync.watch import Watcher
from tests.conftest import hearing_interrupts, write_skill

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture
def watched(registry, root, skill):
    """A watcher of a registry with two skills; what it says is kept."""
    skill("alpha")
    skill("nested/beta")
    registry.sync(str(root), name="mine")
    told = {"changes": [], "syncs": [], "notes": []}
    watcher = Watcher(
        registry.core,
        on_change=told["changes"].append,
        on_sync=told["syncs"].append,
        on_note=told["notes"].append,
    )
    watcher.told = told
    yield watcher
    watcher.stop()


def until(condition, seconds=120.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def settle(watcher, monkeypatch=None):
    """Start, and wait until the first full pass is over."""
    watcher.start()
    until(lambda: watcher._next_full > 0)


def names(registry):
    return [skill.name for skill in registry.list()]


def test_what_is_added_edited_and_removed_by_hand_is_told(watched, registry, root):
    settle(watched)
    write_skill(root / "gamma", age=None)
    until(lambda: "gamma" in names(registry))
    until(lambda: any(change.added == ("gamma",) for change in watched.told["changes"]))
    write_skill(root / "alpha", description="Edited.", age=None)
    until(lambda: any(change.updated == ("alpha",) for change in watched.told["changes"]))
    assert registry.list()[0].description == "Edited."
    shutil.rmtree(root / "gamma")
    until(lambda: any(change.removed == ("gamma",) for change in watched.told["changes"]))


def test_an_edit_reads_only_the_skill_that_it_touched(watched, registry, root, monkeypatch):
    settle(watched)
    synced = []
    whole = watching.sync
    monkeypatch.setattr(watching, "sync", lambda *given: synced.append(given) or whole(*given))
    write_skill(root / "alpha", description="Edited.", age=None)
    until(lambda: any(change.updated == ("alpha",) for change in watched.told["changes"]))
    assert synced == []
    assert watched.told["syncs"][-1].updated == ("alpha",)


@pytest.mark.both
def test_what_another_process_changes_is_told(watched, registry, root, database):
    settle(watched)
    subprocess.run(
        [sys.executable, "-m", "registry", "--db", str(database), "delete", "alpha"],
        env={"PYTHONPATH": str(REPOSITORY), "PATH": "", "HOME": os.environ["HOME"]},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    until(lambda: any(change.removed == ("alpha",) for change in watched.told["changes"]))


@pytest.mark.both
def test_a_source_that_is_added_or_goes_is_noticed(watched, registry, root, tmp_path):
    settle(watched)
    write_skill(tmp_path / "other" / "delta")
    registry.sync(str(tmp_path / "other"), name="other")
    until(lambda: any(change.added == ("delta",) for change in watched.told["changes"]))
    time.sleep(1.2)
    write_skill(tmp_path / "other" / "epsilon", age=None)
    until(lambda: "epsilon" in names(registry))
    shutil.rmtree(tmp_path / "other")
    time.sleep(1.0)
    write_skill(root / "gamma", age=None)
    until(lambda: "gamma" in names(registry))
    assert "delta" in names(registry)


def test_where_files_cannot_be_watched_they_are_looked_at_and_that_is_said_once(
    watched, registry, root, monkeypatch
):
    def refuse(*_paths, **_options):
        raise OSError(28, "OS file watch limit reached")
        yield

    monkeypatch.setattr(watchfiles, "watch", refuse)
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.1)
    settle(watched)
    write_skill(root / "gamma", age=None)
    until(lambda: "gamma" in names(registry))
    time.sleep(1.2)
    assert len([note for note in watched.told["notes"] if "can't be watched" in note]) == 1


def test_another_machines_file_system_is_looked_at_now_and_then(
    watched, registry, root, monkeypatch
):
    monkeypatch.setattr(watching, "is_remote", lambda _: True)
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.1)
    settle(watched)
    write_skill(root / "gamma", age=None)
    until(lambda: "gamma" in names(registry))
    assert len([note for note in watched.told["notes"] if "another machine" in note]) == 1


def test_it_stops_when_told(watched):
    settle(watched)
    thread = watched._thread
    assert thread.is_alive()
    watched.stop()
    assert not thread.is_alive()


@pytest.fixture
def following(root, skill, database):
    """A command that follows the disk, and is ended with its test."""
    skill("alpha")
    process = subprocess.Popen(
        [sys.executable, "-m", "registry", "--db", str(database), "sync", str(root), "--watch"],
        env={"PYTHONPATH": str(REPOSITORY), "PATH": "", "HOME": str(root.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hearing_interrupts,  # noqa: PLW1509  # it takes no lock
    )
    with process:
        yield process
        process.kill()


def test_sync_watch_prints_what_changed_and_ends_with_an_interrupt(root, following):
    assert following.stdout.readline() == "+ alpha\n"
    following.stdout.readline()
    assert following.stderr.readline() == "Watching 1 source; Ctrl-C ends it.\n"
    # It may be before or after its first look at the folder; a change at either time is told.
    write_skill(root / "beta", age=None)
    assert following.stdout.readline() == "+ beta\n"
    following.send_signal(signal.SIGINT)
    assert following.wait() == 0


class TestTouched:
    """Which skills an event is about."""

    @pytest.fixture
    def source(self, watched, registry):
        return registry.sources()[0]

    def test_paths_are_given_to_the_innermost_source_and_ignored_folders_left_out(self):
        def source(number, name, path):
            return Source(number, name, path, "personal", 0, True, None, None)

        found = by_source(
            ["/a/x/f", "/a/b/x/f", "/a/.git/x/f", "/a/node_modules/f", "/c/f"],
            [source(1, "a", "/a"), source(2, "b", "/a/b")],
        )
        assert found == {"a": ["/a/x/f"], "b": ["/a/b/x/f"]}

    @pytest.mark.parametrize(
        ("path", "folders"),
        [
            ("alpha/SKILL.md", ["alpha"]),
            ("alpha/scripts/new.py", ["alpha"]),
            ("nested/beta/notes.txt", ["nested/beta"]),
            ("nested/readme.txt", None),
            ("alpha/sub/SKILL.md", None),
            ("new/SKILL.md", None),
            ("alpha", None),
        ],
    )
    def test_a_skills_own_file_is_about_it_and_all_else_about_the_source(
        self, registry, source, root, path, folders
    ):
        if folders is not None and not (root / path).exists():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("x")
        assert touched_skills(registry.core.reader, source, [str(root / path)]) == folders

    def test_what_is_gone_may_have_held_skills(self, registry, source, root):
        shutil.rmtree(root / "nested")
        assert touched_skills(registry.core.reader, source, [str(root / "nested")]) is None
        (root / "alpha" / "SKILL.md").unlink()
        gone = str(root / "alpha" / "SKILL.md")
        assert touched_skills(registry.core.reader, source, [gone]) is None
