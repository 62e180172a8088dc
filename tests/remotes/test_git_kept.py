"""A fetch that is killed or fails anywhere: the next sync brings all in line, byte for byte."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from registry.api import SkillRegistry
from registry.settings import Settings
from tests.changes import faults
from tests.changes.faults import DISK, NEVER, Step, at_step, fail, kill, run_in_child, some
from tests.conftest import OLD
from tests.remotes.upstream import Upstream, all_checkouts, checkout_of, files_of


class Scene:
    """A source that was synced, whose upstream has changed since, to be set up anew each time."""

    def __init__(self, base: Path, upstream: Upstream) -> None:
        self.base, self.upstream = base, upstream

    def open(self) -> SkillRegistry:
        return SkillRegistry.open(self.base / "registry.db", settings=Settings())

    def fetch(self) -> None:
        from registry.remotes.fetch import fetch_sources

        with self.open() as registry:
            batches = [*fetch_sources(registry.core, registry.sources(), lambda *_: None)]
        assert {one.outcome for batch in batches for one in batch.values()} == {"ok"}

    def reset(self) -> None:
        home = Path(os.environ["HOME"])
        for folder in (self.base, home):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(folder.with_name(f"{folder.name}-saved"), folder, symlinks=True)

    def save(self) -> None:
        for folder in (self.base, Path(os.environ["HOME"])):
            shutil.copytree(folder, folder.with_name(f"{folder.name}-saved"), symlinks=True)


@pytest.fixture
def scene(tmp_path: Path, upstream: Upstream) -> Scene:
    made = Scene(tmp_path / "scene", upstream)
    made.base.mkdir()
    upstream.write("skills/alpha/x", "a file")
    upstream.write("skills/alpha/y/z", "in a folder")
    upstream.skill("skills/gone")
    upstream.commit()
    with made.open() as registry:
        registry.sync(upstream.url)
    made.save()
    shutil.rmtree(upstream.work / "skills/gone")
    shutil.rmtree(upstream.work / "skills/alpha/y")
    (upstream.work / "skills/alpha/x").unlink()
    upstream.write("skills/alpha/y", "a file now")
    upstream.write("skills/alpha/x/z", "in a folder now")
    upstream.skill("skills/alpha", description="Newer.")
    upstream.skill("skills/new")
    upstream.commit()
    return made


def wanted(upstream: Upstream) -> dict[str, bytes]:
    return {f"skills/{path}": data for path, data in files_of(upstream.work / "skills").items()}


def steps(scene: Scene) -> list[Step]:
    with at_step(NEVER, kill, frozenset({DISK})) as passed:
        scene.fetch()
    return [Step(number, name) for number, name in enumerate(passed, 1)]


@pytest.mark.parametrize("how", ["killed", "full"])
def test_after_a_fetch_that_broke_anywhere_the_next_sync_brings_all_in_line(scene, how):
    act = kill if how == "killed" else fail(errno.ENOSPC)
    all_steps = steps(scene)
    assert len(all_steps) > 20
    # Each takes a sync, and renames are the most: of these every other one will do.
    for step in some(all_steps, how)[:: 1 if faults.every_step else 2]:
        scene.reset()

        def broken(number: int = step.number) -> None:
            with at_step(number, act, frozenset({DISK})) as passed:
                try:
                    scene.fetch()
                finally:
                    os._exit(7 if len(passed) >= number else 0)

        status = run_in_child(broken)
        assert status == (-9 if how == "killed" else 7), step
        with scene.open() as registry:
            assert registry.sync().complete, step
            assert files_of(checkout_of(registry) / "tree") == wanted(scene.upstream), step
            assert [one.name for one in registry.list()] == ["alpha", "beta", "new"], step
            assert registry.get("alpha").description == "Newer."
            left = {one.name for one in checkout_of(registry).iterdir()}
            assert left == {"asked.json", "files.json", "lock", "manifest.json", "state", "tree"}
            folders = [one for one in (checkout_of(registry) / "tree").rglob("*") if one.is_dir()]
            assert how != "killed" or all(any(one.iterdir()) for one in folders), step


def test_what_a_killed_fetch_of_a_new_address_leaves_is_removed_after_a_day(registry, upstream):
    def broken() -> None:
        with at_step(20, kill, frozenset({DISK})):
            registry.sync(upstream.url)

    assert run_in_child(broken) == -9
    (left,) = all_checkouts()
    registry.sync(upstream.url)
    home = checkout_of(registry)
    assert all_checkouts() == [left, home]  # it may be somebody's who is fetching just now
    os.utime(left, (OLD, OLD))
    registry.sync(f"{upstream.url}/skills/alpha")
    assert left not in all_checkouts()
    assert home in all_checkouts()
    assert registry.sync().complete


def test_a_fetch_that_was_killed_in_git_is_not_gone_on_with(scene):
    with scene.open() as registry:
        state = checkout_of(registry) / "state"
        (state / "git").rename(state / "busy")
        (state / "busy" / "shallow.lock").write_text("")
        (state / "busy" / "config.lock").write_text("")
        (state / "busy" / "objects/pack/tmp_pack_x").write_bytes(b"x" * 1000)
        assert registry.sync().complete
        assert files_of(checkout_of(registry) / "tree") == wanted(scene.upstream)
        assert not list(state.rglob("tmp_pack_*"))
        assert {one.name for one in state.iterdir()} == {"git"}


def test_the_next_sync_is_told_of_what_was_fetched_and_not_imported(scene):
    scene.fetch()
    with scene.open() as registry:
        report = registry.sync()
        assert (report.updated, report.added, report.removed) == (("alpha",), ("new",), ("gone",))
        version = scene.upstream.head()
        assert registry.get("alpha").origin.commit == version


def test_a_second_process_waits_for_the_first_or_says_so(scene, monkeypatch):
    from registry.remotes import fetch
    from registry.remotes.fetch import Checkout

    with scene.open() as registry:
        home = str(checkout_of(registry))
        with Checkout.locked(home):
            monkeypatch.setattr(fetch, "LOCK_SECONDS", 0.05)
            report = registry.sync()
            assert report.sources[0].outcome == "offline"
            assert "Another sync" in report.sources[0].message
        assert registry.sync().complete


def test_several_processes_at_once_end_with_all_in_line(scene):
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with scene.open() as registry:
                    registry.sync(wait=True)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(one, 0)[1]) for one in children] == [0] * 4
    with scene.open() as registry:
        assert files_of(checkout_of(registry) / "tree") == wanted(scene.upstream)
        assert registry.sync().unchanged == 3
