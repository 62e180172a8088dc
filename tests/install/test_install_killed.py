"""Whoever kills an installation, or left one unfinished: all of it is there or nothing."""

import errno
import json
import shutil
import signal
from contextlib import suppress

import pytest

from registry.api import SkillRegistry
from registry.disk import atomic
from registry.errors import LockMissing, PullRefused
from registry.install import staging
from registry.install.pull import open_transaction, remove, update
from registry.install.pull_records import FOLDER, interrupted_targets, note_begun
from registry.install.targets import InstallTarget
from registry.settings import Settings, data_folder
from tests.changes import faults
from tests.install.places import BOTH, Place, tree


class Killed:
    """A project before something is done to it, which a child is killed doing."""

    def __init__(self, library, database, project):
        self.library, self.database, self.project = library, database, project
        self.place = Place(library, InstallTarget.project(str(project)))

    def begin(self, work):
        self.work = work
        self.old = tree(self.project)
        shutil.copytree(self.project, self.project.with_name("saved"), symlinks=True)
        work(self.place)
        self.new = tree(self.project)

    def do(self, what):
        """Do one of `WORK`; return how it is done, and what agents saw before and after."""
        before, work = WORK[what]
        before(self.place)
        if what == "updated":
            self.library.update("alpha", description="Two.")
        old = self.seen()
        self.begin(work)
        return work, old, self.seen()

    def reset(self):
        shutil.rmtree(self.project)
        shutil.copytree(self.project.with_name("saved"), self.project, symlinks=True)

    def kill(self, step):
        """Do it in a child that is killed at a step; tell whether it came to its end."""
        self.reset()

        def work():
            with SkillRegistry.open(self.database, settings=Settings()) as registry:
                place = Place(registry, InstallTarget.project(str(self.project)))
                with faults.at_step(step, faults.kill):
                    self.work(place)

        code = faults.run_in_child(work)
        assert code in {0, -signal.SIGKILL}
        return code == 0

    def steps(self):
        step = 1
        while not self.kill(step):
            yield step
            step += faults.stride()

    def seen(self):
        """Return what agents see: folders of skills with a document, through links."""
        found = {}
        for agent in (".agents", ".claude", ".roo"):
            for path in sorted((self.project / agent / "skills").glob("[!.]*/SKILL.md")):
                found[agent, path.parent.name] = path.read_bytes()
        return found


WORK = {
    "added": (lambda _: None, lambda place: place.pull("alpha", agents=(*BOTH, "roo"))),
    "updated": (
        lambda place: place.pull("alpha", agents=(*BOTH, "roo")),
        lambda place: place.update(),
    ),
    "removed": (
        lambda place: place.pull("alpha", agents=(*BOTH, "roo")),
        lambda place: place.remove("alpha"),
    ),
}


@pytest.fixture
def killed(library, database, project):
    return Killed(library, database, project)


@pytest.mark.parametrize("what", WORK)
def test_killed_at_each_step_all_agents_see_the_old_or_all_the_new_and_the_next_pull_mends(
    killed, what
):
    work, old, new = killed.do(what)
    assert old != new
    steps, states = 0, set()
    for step in killed.steps():
        seen = killed.seen()
        assert seen in (old, new), step
        states.add(seen == new)
        with suppress(LockMissing):  # whatever it is about, it clears up
            killed.place.update()
        mended = killed.seen()
        assert mended in (old, new) if what != "updated" else mended == new, step
        assert tree(killed.project) in (killed.old, killed.new), step
        again = work(killed.place) if what != "removed" or mended == old else []
        assert {state for _, state in again} <= {"added", "updated", "unchanged", "removed"}, step
        assert tree(killed.project) == killed.new, step
        steps += 1
    assert steps > 20 // faults.stride()
    assert states == {False, True}  # killed before it counted, and after


@pytest.mark.parametrize("what", WORK)
def test_a_sync_clears_up_after_a_killed_pull(killed, what):
    _, old, new = killed.do(what)
    left = 0
    for step in killed.steps():
        left += any(killed.project.rglob(".exchange-*"))
        killed.library.sync()
        assert killed.seen() in (old, new), step
        assert tree(killed.project) in (killed.old, killed.new), step
        assert interrupted_targets() == []
    assert left


def test_a_sync_leaves_alone_what_a_running_pull_works_on(killed):
    killed.place.pull("alpha", agents=BOTH)
    target = killed.place.target
    with open_transaction(killed.library.core, target) as work:
        draft = killed.project / ".exchange-0123456789abcdef.skill-registry"
        draft.mkdir(mode=0o700)
        killed.library.sync()
        assert draft.is_dir()
        assert work.locked
        assert interrupted_targets() == [target]
    assert interrupted_targets() == []


def test_a_sync_clears_up_nothing_where_a_project_is_gone_or_a_note_is_not_ours(killed, tmp_path):
    note_begun(InstallTarget.project(str(killed.project)))
    shutil.rmtree(killed.project)
    killed.library.sync()
    assert interrupted_targets() == []
    assert not killed.project.exists()
    pulls = data_folder() / FOLDER
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (pulls / "stranger").write_text(json.dumps({"path": str(elsewhere), "is_global": False}))
    draft = elsewhere / ".exchange-0123456789abcdef.skill-registry"
    draft.mkdir(mode=0o700)
    killed.library.sync()
    assert draft.is_dir()


def test_killed_while_it_removes_from_a_folder_the_skill_is_whole_or_gone(killed, library, project):
    to = project / "to"
    library.pull([library.resolve("alpha"), library.resolve("beta")], str(to))
    target = InstallTarget.folder(str(to))
    killed.begin(lambda place: remove(place.core, target, ["alpha"]))
    seen = set()
    for step in killed.steps():
        alpha = tree(to / "alpha")
        assert alpha in ({}, tree(project.with_name("saved") / "to" / "alpha")), step
        update(library.core, target)
        assert tree(project) in (killed.old, killed.new), step
        seen.add(tree(project) == killed.new)
    assert seen == {False, True}


def test_killed_while_copies_are_put_into_several_folders_the_next_pull_mends(killed):
    killed.place.pull("alpha", mode="copy")
    killed.library.update("alpha", description="Two.")
    killed.begin(lambda place: place.update())
    for step in killed.steps():
        update(killed.library.core, killed.place.target)
        assert tree(killed.project) == killed.new, step
        assert killed.place.check() == {"alpha": "unchanged"}


def test_killed_between_copies_and_links_either_is_whole(killed):
    killed.place.pull("alpha", agents=["claude-code"])
    work = lambda place: place.pull("alpha", agents=["claude-code"], mode="link")  # noqa: E731
    killed.begin(work)
    for step in killed.steps():
        work(killed.place)
        assert tree(killed.project) == killed.new, step


def test_killed_where_names_can_not_be_swapped_nothing_is_lost(killed, monkeypatch):
    monkeypatch.setattr(atomic, "renameat2", lambda: None)
    killed.place.pull("alpha")
    killed.library.update("alpha", description="Two.")
    killed.begin(lambda place: place.update())
    for step in killed.steps():
        update(killed.library.core, killed.place.target)
        assert tree(killed.project) == killed.new, step


def test_these_experiments_see_what_is_missing(killed, monkeypatch):
    monkeypatch.setattr(faults, "every_line", False)
    killed.begin(lambda place: place.pull("alpha"))
    with monkeypatch.context() as patch:
        patch.setattr(
            staging, "in_order", lambda parts: sorted(parts, key=lambda one: one.folder_id)
        )
        patch.setattr(faults, "every_step", True)  # between two renames there is only one
        seen = [killed.seen() for _ in killed.steps()]
        assert any(len(one) == 1 for one in seen)  # one agent has it, and the other has not
    monkeypatch.setattr(staging.GroupSwap, "found", classmethod(lambda *_: None))
    left = False
    for _ in killed.steps():
        with suppress(LockMissing):
            killed.place.update()
        left = left or tree(killed.project) not in (killed.old, killed.new)
    assert left


def all_but_the_database(folder):
    return {path: one for path, one in tree(folder).items() if not path.startswith("state/")}


@pytest.mark.parametrize(
    ("labels", "folder"),
    [
        ([".ssh/skills"], "alpha"),
        (["/etc"], "alpha"),
        (["."], "../../evil"),
        ([".agents/skills"], "../../../evil"),
    ],
)
def test_what_a_stranger_left_as_unfinished_leads_nowhere(place, project, labels, folder):
    place.pull("alpha")
    outside = project.parent / "evil"
    outside.mkdir()
    before = all_but_the_database(project.parent)
    planted = project / ".exchange-0123456789abcdef.skill-registry"
    planted.mkdir(mode=0o700)
    record = {"folder": folder, "labels": labels, "deciding": labels[0]}
    note_begun = {"folder": folder, "base": digest_of_folder(outside), "new": None, "entry": None}
    (planted / staging.GROUP).write_text(json.dumps(record))
    (planted / staging.ENTRY).write_text("null")
    (planted / staging.RECORD).write_text(json.dumps(note_begun))
    assert place.check() == {"alpha": "unchanged"}
    assert place.update() == [("alpha", "unchanged")]
    shutil.rmtree(planted, ignore_errors=True)
    assert all_but_the_database(project.parent) == before
    assert outside.is_dir()


def digest_of_folder(path):
    with atomic.open_named(str(path.parent)) as folder:
        return atomic.digest_of(atomic.Place(folder, path.name))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("what", WORK)
def test_failing_at_each_step_all_agents_see_the_old_or_all_the_new_and_nothing_is_left(
    killed, what, code
):
    work, old, new = killed.do(what)
    step, failed = 1, 0
    kinds = faults.EFFECTS if code == errno.ENOSPC else faults.EFFECTS | {faults.FSYNC}
    while True:
        killed.reset()
        with faults.at_step(step, faults.fail(code), kinds) as passed:
            try:
                work(killed.place)
            except PullRefused:
                failed += 1
        if len(passed) < step:
            break
        assert killed.seen() in (old, new), (step, passed[-1])
        with suppress(LockMissing):
            killed.place.update()
        assert tree(killed.project) in (killed.old, killed.new), (step, passed[-1])
        step += faults.stride()
    assert failed > 10 // faults.stride()
