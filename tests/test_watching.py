"""The registry follows the disk by itself."""

import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest
import watchfiles

from registry.errors import UsageProblem
from registry.model import Source
from registry.sync import watch as watching
from registry.sync.watch import Watcher, by_source, touched_skills
from tests.changes.faults import run_in_child
from tests.conftest import REPOSITORY, hearing_interrupts, write_skill

WAIT = 120
"""Seconds after which what was waited for counts as not happening."""


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


def settle(watcher):
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
def test_after_a_comparison_that_took_long_many_changes_are_compared_once(
    watched, registry, monkeypatch
):
    monkeypatch.setattr(watching, "COMPARE_SHARE", 1e9)
    looked, real = [], watched._hashes.read

    def read(reader):
        looked.append(reader)
        return real(reader)

    monkeypatch.setattr(watched._hashes, "read", read)
    watched._sources()
    assert watched._compare().added == ("alpha", "beta")
    for name in ("one", "two"):
        registry.create(name, description="New.")
        watched._sources()
        assert not watched._compare()
    assert len(looked) == 1
    assert 0 < watched._next_compare - time.monotonic() <= watching.COMPARE_SECONDS
    watched._next_compare = 0.0
    assert watched._compare().added == ("one", "two")
    assert len(looked) == 2


def test_what_is_watched_is_asked_for_again_only_after_somebody_wrote(
    watched, registry, root, monkeypatch
):
    asked, real = [], watching.own_sources

    def own(core):
        asked.append(core)
        return real(core)

    monkeypatch.setattr(watching, "own_sources", own)
    assert [one.name for one in watched._sources()] == ["mine"]
    watched._sources()
    assert len(asked) == 1
    registry.update_source("mine", new_name="other")
    assert [one.name for one in watched._sources()] == ["other"]
    assert len(asked) == 2


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
    assert len([note for note in watched.told["notes"] if "No file events" in note]) == 1


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


class TestOfAProgram:
    """`SkillRegistry.watch`: a callback of a program, in a thread, until it is stopped."""

    @pytest.fixture
    def filled(self, registry, root, skill):
        skill("alpha")
        registry.sync(str(root), name="mine")
        return registry

    @pytest.fixture
    def reports(self):
        return queue.Queue()

    def test_each_sync_that_finds_something_is_reported_as_sync_returns_it(
        self, filled, root, reports
    ):
        with filled.watch(reports.put) as watching:
            write_skill(root / "beta", age=None)
            report = reports.get(timeout=WAIT)
            assert type(report) is type(filled.sync(dry_run=True))
            assert report.added == ("beta",)
            assert [part.outcome for part in report.sources] == ["ok"]
            until(lambda: watching._next_full > 0)
            write_skill(root / "alpha", description="Edited.", age=None)
            assert reports.get(timeout=WAIT).updated == ("alpha",)
            assert filled.resolve("alpha").description == "Edited."
            shutil.rmtree(root / "beta")
            assert reports.get(timeout=WAIT).removed == ("beta",)
        assert not watching.running
        assert reports.empty()

    def test_what_changed_since_the_last_sync_is_reported_first(self, filled, root, reports):
        write_skill(root / "early")
        with filled.watch(reports.put):
            assert reports.get(timeout=WAIT).added == ("early",)

    def test_what_fails_in_the_callback_is_raised_at_the_end_and_keeps_nothing_from_being_told(
        self, filled, root, reports, caplog
    ):
        def fail(report):
            reports.put(report)
            raise LookupError(report.added[0])

        watching = filled.watch(fail)
        write_skill(root / "first", age=None)
        reports.get(timeout=WAIT)
        write_skill(root / "second", age=None)
        assert reports.get(timeout=WAIT).added == ("second",)
        with pytest.raises(LookupError, match="first"), watching:
            pass
        assert not watching.running
        watching.stop()  # told once
        assert [record.exc_info[1].args for record in caplog.records] == [("first",), ("second",)]

    def test_an_error_of_the_block_itself_is_the_one_that_is_raised(self, filled, root, reports):
        def fail(report):
            reports.put(report)
            raise LookupError

        watching = filled.watch(fail)
        write_skill(root / "first", age=None)
        reports.get(timeout=WAIT)
        with pytest.raises(ZeroDivisionError), watching:
            raise ZeroDivisionError
        assert not watching.running

    def test_what_ends_the_watching_itself_is_raised(self, filled, monkeypatch, caplog):
        def break_down(*_given, **_more):
            raise MemoryError

        monkeypatch.setattr(watching, "sync", break_down)
        following = filled.watch(lambda _: None)
        following.join()
        with pytest.raises(MemoryError):
            following.stop()
        assert "the watching has ended" in caplog.text

    def test_the_callback_may_stop_it(self, filled, root):
        def once(_report):
            told.append(following.stop())

        told = []
        following = filled.watch(once)
        write_skill(root / "beta", age=None)
        following.join()
        following.stop()
        assert told == [None]

    def test_the_callback_may_use_change_and_close_the_registry(self, filled, root):
        told = []

        def use(report):
            told.append([skill.name for skill in filled.list()])
            filled.update(report.added[0], description="By the callback.")
            told.append(filled.resolve(report.added[0]).description)
            filled.close()

        following = filled.watch(use)
        write_skill(root / "beta", age=None)
        following.join()
        following.stop()
        assert told == [["alpha", "beta"], "By the callback."]
        with pytest.raises(UsageProblem, match="closed"):
            filled.list()

    def test_closing_the_registry_ends_it_and_waits_for_a_callback_under_way(
        self, filled, root, reports
    ):
        entered, leave, left = threading.Event(), threading.Event(), threading.Event()

        def slow(_report):
            entered.set()
            leave.wait(WAIT)
            assert filled.resolve("beta").name == "beta"  # it is not closed before this ends
            left.set()

        following = filled.watch(slow)
        write_skill(root / "beta", age=None)
        assert entered.wait(WAIT)
        closer = threading.Thread(target=filled.close)
        closer.start()
        until(following._stop.is_set)
        leave.set()
        closer.join()
        assert left.is_set()
        assert not following.running
        following.stop()

    def test_what_is_no_function_and_a_closed_registry_are_refused(self, filled):
        with pytest.raises(UsageProblem, match="on_change"):
            filled.watch("alpha")
        filled.close()
        with pytest.raises(UsageProblem, match="closed"):
            filled.watch(lambda _: None)

    @pytest.mark.parametrize("held", [False, True], ids=["idle", "amid a callback"])
    def test_a_forked_child_watches_nothing_and_its_parent_goes_on(
        self, filled, root, reports, held
    ):
        entered, leave = threading.Event(), threading.Event()

        def tell(report):
            reports.put(report)
            entered.set()
            leave.wait(WAIT)

        def child():
            assert not watching.running
            watching.join()
            watching.stop()
            filled.close()

        with filled.watch(tell) as watching:
            if held:
                write_skill(root / "beta", age=None)
                assert entered.wait(WAIT)
            assert run_in_child(child) == 0
            leave.set()
            assert watching.running
            write_skill(root / "gamma", age=None)
            told = set()
            while "gamma" not in told:
                told.update(reports.get(timeout=WAIT).added)

    def test_what_failed_in_the_parent_is_not_raised_in_a_forked_child(self, filled, root):
        def fail(_report):
            raise LookupError

        watching = filled.watch(fail)
        write_skill(root / "beta", age=None)
        until(lambda: watching._failure is not None)
        assert run_in_child(watching.stop) == 0
        with pytest.raises(LookupError):
            watching.stop()

    def test_several_may_watch_at_once(self, filled, root, reports):
        with filled.watch(reports.put), filled.watch(reports.put):
            write_skill(root / "beta", age=None)
            assert reports.get(timeout=WAIT).added == ("beta",)
            until(lambda: "beta" in names(filled))


def test_sync_watch_ends_when_nobody_reads_on(root, following):
    assert following.stdout.readline() == "+ alpha\n"
    following.stdout.readline()
    assert following.stderr.readline() == "Watching 1 source; Ctrl-C ends it.\n"
    following.stdout.close()
    write_skill(root / "beta", age=None)
    assert following.wait(WAIT) == 0
    assert "Traceback" not in following.stderr.read()
