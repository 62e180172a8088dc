"""A large first import, of which other processes read a part: nothing is different but the time.

The processes are real ones, and are killed, stopped short of memory and kept from starting.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from registry import Settings, SkillRegistry
from registry.errors import DatabaseProblem
from registry.settings import Limits
from registry.sync import apply, helper
from registry.sync.helper import Helpers
from tests.conftest import interpreted, write_skill

COUNT = 60

ROWS = (
    "SELECT folder, ref, name, description, tags, content_hash, tree_hash, fingerprint, status, held FROM skills ORDER BY id",
    "SELECT text, body_start, front_matter, indexed FROM documents ORDER BY skill_id",
    "SELECT skill_id, path, mode, size, mtime_ns, hash FROM skill_files ORDER BY skill_id, path",
    "SELECT folder, code, severity, message, path, line, fix FROM diagnostics ORDER BY id",
    "SELECT hash, size, packed, data FROM contents ORDER BY hash",
    "SELECT skill_id, data FROM sketches ORDER BY skill_id",
)


@pytest.fixture
def library(root):
    for number in range(COUNT):
        folder = write_skill(
            root / f"group-{number % 3}" / f"skill-{number}",
            extra="allowed-tools: Bash(*)\n" if number % 5 == 0 else "",
            body=f"Word number{number}. 安装说明 {number}\n" * (number % 7 + 1),
        )
        (folder / "notes.md").write_text(f"Shared by some: {number % 4}.\n" * 40)
    (root / "group-0" / "skill-0" / "SKILL.md").write_text("no front matter\n")
    return root


@pytest.fixture
def started(monkeypatch):
    """Have small imports helped as well; return the processes that were started for them."""
    monkeypatch.setattr(apply, "HELPED_FROM", 10)
    monkeypatch.setattr(apply, "PIECE", 4)
    monkeypatch.setattr(apply, "BATCH", 10)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    found = []
    real = subprocess.Popen

    def start(*arguments, **named):
        found.append(real(*arguments, **named))
        return found[-1]

    monkeypatch.setattr(subprocess, "Popen", start)
    return found


@pytest.fixture
def answered(monkeypatch):
    """Count the skills that came from the other process."""
    found = []
    real = Helpers.answer

    def answer(self, asked):
        versions = real(self, asked)
        found.append(None if versions is None else len(versions))
        return versions

    monkeypatch.setattr(Helpers, "answer", answer)
    return found


def stored(root, path):
    """Import the library into a database of its own; return what is in it."""
    with SkillRegistry.open(path, settings=Settings()) as registry:
        report = registry.sync(str(root), name="mine")
        assert registry.check_database() == []
        assert registry.sync().unchanged == COUNT
    with closing(sqlite3.connect(path)) as connection:
        return len(report.added), [connection.execute(sql).fetchall() for sql in ROWS]


@pytest.mark.file
def test_what_another_process_has_read_is_stored_as_if_it_were_read_here(
    library, tmp_path, started, answered, monkeypatch
):
    helped = stored(library, tmp_path / "helped.db")
    assert len(started) == 1
    assert sum(answered) > 0
    monkeypatch.setattr(apply, "HELPED_FROM", COUNT + 1)
    assert helped == stored(library, tmp_path / "alone.db")
    assert len(started) == 1
    assert helped[0] == COUNT


@pytest.mark.file
@pytest.mark.parametrize("killed", [False, True])
def test_with_more_cores_more_processes_read(
    library, tmp_path, started, answered, monkeypatch, killed
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 4, 5, 6, 7})
    real = Helpers._ask
    asked = []

    def ask(self, task):
        asked.append(task)
        if killed and len(asked) == 4:
            started[1].kill()
            started[1].wait()
        return real(self, task)

    monkeypatch.setattr(Helpers, "_ask", ask)
    helped = stored(library, tmp_path / "helped.db")
    assert len(started) == helper.MAX_HELPERS
    assert all(one.returncode is not None for one in started)
    assert (sum(filter(None, answered)) > 0) or killed
    monkeypatch.setattr(apply, "HELPED_FROM", COUNT + 1)
    assert helped == stored(library, tmp_path / "alone.db")


@pytest.mark.file
@pytest.mark.parametrize(
    "how", ["killed at once", "killed later", "no memory", "silly answer", "something else"]
)
def test_what_a_process_that_is_no_more_was_to_read_is_read_here(
    library, tmp_path, started, answered, monkeypatch, how
):
    real = Helpers._ask
    asked = []

    def ask(self, task):
        asked.append(task)
        if how == "killed at once" or (how == "killed later" and len(asked) == 3):
            started[0].kill()
            started[0].wait()
        return real(self, task)

    monkeypatch.setattr(Helpers, "_ask", ask)
    if how == "no memory":
        short = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1, 1)); serve()"
        monkeypatch.setattr(helper, "_MAIN", helper._MAIN.replace("serve()", short))
    if how == "silly answer":
        monkeypatch.setattr(helper, "_MAIN", "print('Read it yourself.')")
    if how == "something else":
        reading = "from registry.sync import helper()"
        monkeypatch.setattr(helper, "_MAIN", helper._MAIN.replace("serve()", reading))
    helped = stored(library, tmp_path / "helped.db")
    assert None in answered
    assert sum(filter(None, answered)) < COUNT
    monkeypatch.setattr(apply, "HELPED_FROM", COUNT + 1)
    assert helped == stored(library, tmp_path / "alone.db")


@pytest.mark.parametrize("away", ["interpreter", "place to start it", "second core"])
def test_where_no_process_can_be_started_all_is_read_here(
    registry, library, started, answered, monkeypatch, away
):
    if away == "interpreter":
        monkeypatch.setattr(sys, "executable", "/usr/bin/uwsgi")
    elif away == "second core":
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    else:
        monkeypatch.setattr(sys, "executable", "/nowhere/python3")
    assert len(registry.sync(str(library), name="mine").added) == COUNT
    assert started == []
    assert answered == []


def test_who_interrupts_an_import_leaves_no_process_behind(registry, library, started, monkeypatch):
    real = Helpers._ask
    reached = threading.Event()

    def ask(self, task):
        os.kill(started[0].pid, signal.SIGSTOP)  # it would never answer
        reached.set()
        return real(self, task)

    def interrupted(*_):
        assert reached.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(Helpers, "_ask", ask)
    monkeypatch.setattr(apply, "_read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        registry.sync(str(library), name="mine")
    assert started[0].returncode == -signal.SIGKILL
    assert registry.list().total == 0
    monkeypatch.undo()
    assert len(registry.sync().added) == COUNT


def test_an_import_that_fails_leaves_no_process_behind(registry, library, started, monkeypatch):
    real = apply.stage
    batches = []

    def fail(connection, batch, **named):
        batches.append(len(batch))
        if len(batches) == 2:
            raise DatabaseProblem(path="here", reason="the disk is full")
        return real(connection, batch, **named)

    monkeypatch.setattr(apply, "stage", fail)
    with pytest.raises(DatabaseProblem, match="the disk is full"):
        registry.sync(str(library), name="mine")
    assert [one.returncode for one in started] == [-signal.SIGKILL]
    assert registry.list().total == 0


def test_a_process_whose_parent_is_gone_ends(started):
    with helper.helping():
        (process,) = started
        process.stdin.close()  # as the end of its parent does
        assert process.wait(60) == 0


def test_another_process_begins_without_what_writes_to_a_database():
    script = "import sys, registry.sync.helper; print('sqlalchemy' in sys.modules)"
    assert interpreted("-c", script).stdout == "False\n"


def test_another_process_imports_nothing_from_where_it_was_started(
    library, tmp_path, started, answered, registry, monkeypatch
):
    """Whoever can write the folder that one works in must not be run."""
    trap = tmp_path / "trap"
    trap.mkdir()
    for module in ("registry", "yaml", "json", "sitecustomize"):
        (trap / f"{module}.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    monkeypatch.chdir(trap)
    monkeypatch.syspath_prepend("")
    monkeypatch.setenv("PYTHONPATH", str(trap))
    assert len(registry.sync(str(library), name="mine").added) == COUNT
    assert sum(answered) > 0
    assert not (tmp_path / "sprung").exists()


def test_limits_of_the_settings_hold_in_another_process(library, tmp_path, started, answered):
    limits = Limits(document_bytes=20)
    with SkillRegistry.open(tmp_path / "small.db", settings=Settings(limits=limits)) as registry:
        report = registry.sync(str(library), name="mine")
    assert sum(answered) > 0
    assert report.invalid == len(report.added) - 1  # that without front matter is short enough
