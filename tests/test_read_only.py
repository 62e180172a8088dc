"""Reading needs no permission to write: neither the database nor the folder that it is in."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from registry.api import SkillRegistry
from registry.settings import Settings
from tests import program
from tests.conftest import OLD, REPOSITORY, write_skill
from tests.program import Ran

pytestmark = pytest.mark.file

DROP = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]
"""Permissions hold for root, too, once these are gone."""


class Place:
    """A database that was made, in a folder that is then closed to writing.

    ``seen`` is where it is read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = self.seen = folder / "registry.db"
        self.closed_before = set()

    def close(self) -> None:
        self.closed_before = set(os.listdir(self.folder))
        self._close()

    def run(self, *arguments: str) -> Ran:
        ran = program.run(
            ["--db", str(self.seen), *arguments],
            environ=os.environ,
            cwd=self.folder.parent,
            before=program.without_rights if self._before() else None,
        )
        assert set(os.listdir(self.folder)) == self.closed_before
        return ran

    def _before(self):
        if os.geteuid() != 0:
            return []
        if shutil.which("setpriv") is None:
            pytest.skip("as root permissions bind only where setpriv can take rights away")
        return DROP

    def _close(self):
        raise NotImplementedError

    def open(self):
        raise NotImplementedError

    def end(self):
        """Leave a folder that can be removed."""
        self.open()


class ClosedFolder(Place):
    """The folder can't be written, the file could be."""

    def _close(self):
        self.folder.chmod(0o555)

    def open(self):
        self.folder.chmod(0o755)


class ClosedFiles(ClosedFolder):
    """Somebody else's: neither can be written."""

    def _close(self):
        for name in os.listdir(self.folder):
            (self.folder / name).chmod(0o444)
        super()._close()

    def open(self):
        super().open()
        for name in os.listdir(self.folder):
            (self.folder / name).chmod(0o644)


class Mount(Place):
    """The same folder, mounted for reading only where it is read; where it is, it is written."""

    def __init__(self, folder):
        super().__init__(folder)
        self._view = folder.parent / "view"
        self.seen = self._view / "registry.db"

    def _close(self):
        self._view.mkdir(exist_ok=True)
        folder, view = str(self.folder), str(self._view)
        for options in (["--bind", folder, view], ["-o", "remount,bind,ro", view]):
            done = subprocess.run(["mount", *options], capture_output=True, check=False)
            if done.returncode:
                pytest.skip("mounting is not permitted here")

    def open(self):
        """Nothing to do: where the folder is, it was never closed."""

    def end(self):
        subprocess.run(["umount", "-l", str(self._view)], capture_output=True, check=False)

    def _before(self):
        return []


@pytest.fixture(params=[ClosedFolder, ClosedFiles, Mount], ids=lambda kind: kind.__name__)
def place(request, tmp_path, root, settled):
    write_skill(root / "alpha", body="# Alpha\n\nFills forms.\n")
    made = request.param(tmp_path / "state")
    with SkillRegistry.open(made.database, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
    for ending in ("lock", "sync.lock"):  # a copy of a database has none
        os.unlink(f"{made.database}.{ending}")
    yield made
    made.end()


READS = [
    ["list"],
    ["search", "forms"],
    ["show", "alpha"],
    ["why", "alpha"],
    ["tags"],
    ["stats", "--usage"],
    ["history", "alpha"],
    ["prompt"],
    ["check"],
    ["source", "list"],
    ["trash", "list"],
    ["db", "info"],
    ["db", "check"],
    ["db", "backup", "copy.db"],
    ["tools", "call", "read_skill", '{"name": "alpha"}'],
    ["tools", "call", "list_skills"],
    ["sync"],
    ["sync", "--dry-run"],
]


CALLS = [
    ("native", "read_skill", "name", "skill_invalid"),
    ("miniclaw", "read_skill", "name", "FileReadFailed"),
    ("ethos", "skill_view", "name", "not found or not accessible"),
    ("wave", "Skill", "skill_name", "is invalid"),
]


def test_everything_that_reads_is_answered(place):
    place.close()
    for command in READS:
        ran = place.run(*command)
        assert ran.status == 0, (command, ran.err)
        if command == ["db", "info"]:
            assert "journal\twal" in ran.out
        assert "Error" not in ran.err, command
    with SkillRegistry.open(place.folder.parent / "copy.db", settings=Settings()) as copy:
        assert [skill.name for skill in copy.list()] == ["alpha"]


def test_a_skill_that_was_edited_since_is_read_as_it_is_on_disk(place, root):
    place.close()
    write_skill(root / "alpha", description="Writes.", body="# Alpha\n\nWrites haiku.\n")
    ran = place.run("tools", "call", "read_skill", '{"name": "alpha"}')
    assert "Writes haiku." in ran.out
    shown = json.loads(place.run("show", "alpha", "--json").out)
    assert (shown["description"], shown["front_matter"]["description"]) == ("Writes.", "Writes.")


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (b"---\nname: alpha\ndescription: !!python/x y\n---\nNew.\n", "is not allowed"),
        (b"---\nname: alpha\ndescription: caf\xe9\n---\nNew.\n", "UTF-8"),
        (None, "the folder holds no SKILL.md"),
    ],
    ids=["tag", "latin-1", "none"],
)
def test_what_can_no_longer_be_used_is_not_served_as_it_was(place, root, document, reason):
    place.close()
    path = root / "alpha" / "SKILL.md"
    path.unlink()
    if document is not None:
        path.write_bytes(document)
    for toolset, tool, key, answer in CALLS:
        ran = place.run("tools", "call", "--toolset", toolset, tool, json.dumps({key: "alpha"}))
        assert ran.status == 1, toolset
        assert "Fills forms." not in ran.out
        assert answer in ran.out
        assert reason in ran.out or toolset == "ethos"
    shown = json.loads(place.run("show", "alpha", "--json").out)
    assert shown["status"] == ("no_document" if document is None else "invalid")
    assert "Fills forms." not in (shown["body"] or "")
    assert reason in shown["diagnostics"][0]["message"]


def test_what_hides_itself_by_now_is_not_served(place, root):
    place.close()
    write_skill(root / "alpha", body="# Alpha\n", extra="disable-model-invocation: true\n")
    for toolset, tool, key, _ in CALLS:
        ran = place.run("tools", "call", "--toolset", toolset, tool, json.dumps({key: "alpha"}))
        assert (ran.status, "# Alpha" in ran.out) == (1, False), toolset
    assert place.run("show", "alpha").status == 0


def test_a_sync_that_finds_only_other_times_has_nothing_to_do(place, root):
    place.close()
    os.utime(root / "alpha" / "SKILL.md", (OLD + 5000, OLD + 5000))
    ran = place.run("sync")
    assert ran.status == 0, ran.err
    assert "1 unchanged" in ran.out + ran.err


def test_what_writes_is_refused_in_words(place, root):
    place.close()
    write_skill(root / "beta")
    for command in (
        ["sync"],
        ["update", "alpha", "--description", "x"],
        ["source", "remove", "mine"],
    ):
        ran = place.run(*command)
        assert (ran.status, ran.out) == (3, ""), command
        assert "can't be used" in ran.err
        assert "Internal" not in ran.err


def test_a_change_that_waits_to_be_finished_keeps_nobody_from_reading(place):
    with closing(sqlite3.connect(place.database)) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(journal)")]
        facts = {"id": "x", "host": "", "source_id": 1, "kind": "create", "exchange": 0}
        values = [facts.get(column, "") for column in columns]
        marks = ", ".join("?" * len(values))
        connection.execute(f"INSERT INTO journal VALUES ({marks})", values)
        connection.commit()
    place.close()
    ran = place.run("list")
    assert (ran.status, ran.err) == (0, "")


def test_a_log_that_needs_writing_to_be_read_is_said_with_the_way_out(place):
    """A killed writer leaves it; what is in it must not be passed over."""
    aside = place.folder.parent / "registry.db-wal"
    with closing(sqlite3.connect(place.database)) as connection:
        connection.execute("UPDATE skills SET description = 'In the log.'")
        connection.commit()
        shutil.copy(f"{place.database}-wal", aside)
    shutil.move(aside, f"{place.database}-wal")
    place.close()
    ran = place.run("list", "--json")
    assert (ran.status, ran.out) == (3, "")
    assert "-wal" in ran.err
    assert "copy both files" in ran.err
    place.open()
    with SkillRegistry.open(place.database, settings=Settings()) as registry:
        assert registry.list().items[0].description == "In the log."


def test_a_writer_elsewhere_can_be_read_beside(place):
    """Its log and its shared memory are there, and need only be read."""
    with closing(sqlite3.connect(place.database, isolation_level=None)) as writer:
        writer.execute("UPDATE skills SET description = 'Live.'")
        place.close()
        ran = place.run("list", "--json")
        assert json.loads(ran.out)[0]["description"] == "Live."
        place.open()


WATCHER = """
import sys
from registry import Settings, SkillRegistry
with SkillRegistry.open(sys.argv[1], settings=Settings()) as registry:
    for _ in sys.stdin:
        kept = registry.core.reader.remembered("test", lambda reader: registry.list().items)
        print(registry.list().items[0].description, "|", kept[0].description, flush=True)
"""


def test_a_reader_without_locks_sees_what_was_written_by_somebody_who_may(place, root):
    place.close()
    with subprocess.Popen(
        [*place._before(), sys.executable, "-c", WATCHER, str(place.seen)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    ) as reader:

        def ask():
            reader.stdin.write("\n")
            reader.stdin.flush()
            return reader.stdout.readline().strip()

        assert ask() == "Does one thing well. | Does one thing well."
        place.open()
        with SkillRegistry.open(place.database, settings=Settings()) as registry:
            write_skill(root / "alpha", description="Anew.")
            registry.sync()
        if not isinstance(place, Mount):
            place.close()
        assert ask() == "Anew. | Anew."
        reader.stdin.close()


def test_an_older_schema_is_not_upgraded_but_named(place, monkeypatch):
    with closing(sqlite3.connect(place.database)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0015'")
        connection.commit()
    place.close()
    ran = place.run("list")
    assert ran.status == 3
    assert "db upgrade" in ran.err
