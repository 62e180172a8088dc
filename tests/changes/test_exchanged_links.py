"""A folder on the way is exchanged with a link while files are written: nothing outside changes."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from registry.api import SkillRegistry
from registry.catalog.resolve import resolve
from registry.changes.update import update_files
from registry.disk import atomic
from registry.errors import RegistryError
from registry.settings import Settings
from tests.changes.planted import seen
from tests.conftest import write_skill

WRITES = int(os.environ.get("SKILL_REGISTRY_TEST_WRITES", "200"))
"""Writes against exchanges, at least; `make test-long` asks for more."""

EXCHANGER = """
import ctypes, os, select, sys
renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
one, other = map(os.fsencode, sys.argv[1:3])
print("ready", flush=True)
count = 0
while not select.select([sys.stdin], [], [], float(sys.argv[3]))[0]:
    for _ in range(20):
        count += renameat2(-100, one, -100, other, 2) == 0
print(count)
"""


@contextmanager
def exchanging(one: Path, other: Path, counts: list[int], pause: float):
    """Exchange two names as fast as possible, in a process of its own.

    ``pause``: seconds between bursts of it, in which a longer write may come to its end.
    """
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", EXCHANGER, str(one), str(other), str(pause)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield
    finally:
        said, _ = process.communicate("end\n", timeout=60)
        counts.append(int(said))


@pytest.fixture
def place():
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=folder) as made:
        yield Path(made)


@pytest.mark.skipif(atomic.renameat2() is None, reason="asks for Linux's renameat2")
@pytest.mark.parametrize("several", [False, True], ids=["one file", "several files"])
def test_no_write_leaves_a_source_whose_folders_turn_into_links(place, several):
    outside = place / "outside"
    outside.mkdir()
    for name in ("notes.txt", "more.txt"):
        (outside / name).write_text("outside")
    root = place / "skills"
    alpha = write_skill(root / "alpha")
    (alpha / "ref").mkdir()
    (alpha / "ref" / "notes.txt").write_text("0")
    (alpha / "link").symlink_to(outside)
    before, counts, outcomes = seen(outside), [], Counter()
    with SkillRegistry.open(place / "registry.db", settings=Settings(store_files=False)) as mine:
        mine.sync(str(root), name="mine")
        pause = 0.002 if several else 0
        with exchanging(alpha / "ref", alpha / "link", counts, pause):
            least = WRITES // 2 if several else WRITES
            for number in count():
                if number >= least and (0 < outcomes["written"] < number or number > 20 * least):
                    break
                edits = {"ref/notes.txt": str(number).encode()}
                if several:
                    edits["ref/more.txt"] = b"more"
                try:
                    update_files(mine.core, resolve(mine.core.reader, "alpha"), edits, force=True)
                except RegistryError as error:
                    ended = type(error).__name__
                else:
                    ended = "written"
                outcomes[ended] += 1
        assert seen(outside) == before
        assert counts[0] > WRITES // 2
        assert outcomes["written"] > 0
        assert outcomes.total() > outcomes["written"]
        mine.sync(allow_prune=True)
        # A change finishes the one before it, or is refused. So no more than one can be left.
        assert mine.finish_changes() <= (outcomes["ChangePending"] > 0)
        assert seen(outside) == before
        assert mine.check_database() == []
