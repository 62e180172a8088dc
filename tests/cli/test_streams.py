"""A long listing is printed as it is read: in little memory, and of one state of the database."""

import gc
import json
import os
import sqlite3
import subprocess
import sys
import tracemalloc
from contextlib import closing

import pytest

from registry.api import SkillRegistry
from registry.catalog.listing import opened
from registry.cli.app import root as command
from registry.db.sqlite.reader import SqliteReader
from registry.db.sqlite.writer import ensure_current
from registry.settings import Settings
from tests.cli.conftest import REPOSITORY
from tests.conftest import write_skill

pytestmark = pytest.mark.file

FEW, MANY = 500, 1500
FORMATS = ["table", "json", "jsonl", "names", None]
LISTED = {
    "uid": "s.uid || n",
    "folder": "'copy-' || n",
    "position": "printf('%08d', n)",
    "name": "printf('copy-%08d', n)",
    "name_key": "printf('copy%08d', n)",
    "ref": "printf('copy-%08d', n)",
}


@pytest.fixture
def many(registry, root, database):
    """Make a library of many skills of 1,000 characters each, without their files."""
    write_skill(root / "first", description="words and " * 100)
    registry.sync(str(root), name="mine")
    registry.close()
    made = 0

    def make(number):
        nonlocal made
        with closing(sqlite3.connect(database)) as connection:
            names = [row[1] for row in connection.execute("PRAGMA table_info(skills)")]
            names.remove("id")
            values = [LISTED.get(name, f"s.{name}") for name in names]
            connection.execute(
                "WITH RECURSIVE numbers (n) AS (SELECT ? UNION ALL SELECT n + 1 FROM numbers "
                f"WHERE n < ?) INSERT INTO skills ({', '.join(names)}) "
                f"SELECT {', '.join(values)} FROM skills s, numbers WHERE s.name = 'first'",
                (made + 1, number - 1),
            )
            connection.commit()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        made = number - 1

    return make


class Sink:
    """A stdout that counts lines and forgets them, and calls ``heard`` before each writing."""

    encoding = "utf-8"

    def __init__(self, heard):
        self.heard, self.lines = heard, 0

    def write(self, text):
        self.heard()
        self.lines += text.count("\n")
        return len(text)

    def flush(self):
        """There is nothing to flush."""

    def isatty(self):
        return False


def listing(style):
    return ["list"] if style is None else ["list", "--format", style]


def run(database, arguments, monkeypatch, heard=lambda: None):
    sink = Sink(heard)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", sink)
        with pytest.raises(SystemExit) as end:
            command.main(["--db", str(database), *arguments])
    assert end.value.code == 0
    return sink.lines


@pytest.mark.parametrize("style", FORMATS)
def test_the_memory_of_a_listing_does_not_grow_with_its_length(many, database, monkeypatch, style):
    peaks = []
    for number in (FEW, MANY):
        many(number)
        run(database, [*listing(style), "--limit", "1"], monkeypatch)  # what is loaded once
        gc.collect()
        tracemalloc.start()
        lines = run(database, listing(style), monkeypatch)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert lines in {number, number + 1}  # a table has a head
    assert peaks[1] < peaks[0] + 300_000, peaks  # what is more has 1 MB


@pytest.mark.parametrize("style", ["json", "jsonl", "names", None])
def test_the_first_lines_come_before_the_last_skill_is_read(many, database, monkeypatch, style):
    many(MANY)
    read, written = [0], []
    stream = SqliteReader.stream

    def counted(self, sql, parameters=()):
        for row in stream(self, sql, parameters):
            read[0] += 1
            yield row

    monkeypatch.setattr(SqliteReader, "stream", counted)
    run(database, listing(style), monkeypatch, lambda: written.append(read[0]))
    assert written[0] < FEW < MANY == read[0]


def start(database, *arguments):
    """Start a command whose output waits for a reader as soon as a pipe is full."""
    return subprocess.Popen(
        [sys.executable, "-m", "registry", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "SKILL_REGISTRY_DB": str(database)},
        cwd=REPOSITORY,
    )


def rest(child):
    """Return what it prints from now on."""
    with child:
        return child.stdout.read(), child.stderr.read()


def test_a_listing_is_of_one_state_though_somebody_writes_meanwhile(many, database):
    many(MANY)
    child = start(database, "list", "--json")
    first = child.stdout.readline()
    with closing(sqlite3.connect(database)) as connection:  # nobody keeps it waiting
        deleted = connection.execute("DELETE FROM skills WHERE name LIKE 'copy-%'").rowcount
        connection.commit()
    out, said = rest(child)
    assert (child.returncode, said, deleted) == (0, b"", MANY - 1)
    assert len(json.loads(first + out)) == MANY


def test_a_reader_that_leaves_in_the_middle_is_no_error(many, database):
    many(MANY)
    child = start(database, "list")
    child.stdout.readline()
    child.stdout.close()
    assert (child.wait(), child.stderr.read()) == (0, b"")
    child.stderr.close()


def test_a_database_that_is_lost_in_the_middle_is_said(many, database):
    many(MANY)
    child = start(database, "list", "--json")
    child.stdout.readline()
    with open(database, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))
    out, said = rest(child)
    assert child.returncode == 3
    assert said.startswith(b"Error: ")
    assert b"Traceback" not in said
    assert out.count(b"\n") < MANY  # it was amid the listing


def test_where_reading_keeps_writers_out_nothing_is_held_open(tmp_path, root, monkeypatch):
    monkeypatch.setattr("registry.db.sqlite.dialect.is_remote", lambda _: True)
    write_skill(root / "first")
    write_skill(root / "second")
    paging = {"sort": "name", "reverse": False, "limit": 1, "offset": 0}
    path = tmp_path / "far.db"
    ensure_current(str(path))
    with (
        SkillRegistry.open(path, settings=Settings()) as registry,
        SkillRegistry.open(path, settings=Settings()) as other,
    ):
        registry.sync(str(root), name="mine")
        assert registry.core.reader.keeps_writers_out
        with opened(registry.core, **paging) as found:
            assert next(iter(found)).name == "first"
            other.update("first", description="Changed meanwhile.")
            other.delete("second")
            assert found.total == 2
            assert [skill.description for skill in found] == ["Does one thing well."]


def test_the_memory_of_a_check_does_not_grow_with_what_it_finds(
    registry, root, database, monkeypatch
):
    """Each skill has some ten findings, which would take some 10 KB as they are."""
    missing = "".join(f"See [it](references/missing-{number}.md).\n" for number in range(40))
    registry.sync(str(root), name="mine")
    registry.close()
    peaks = []
    for number in (50, 150):
        for one in range(number):
            write_skill(root / f"skill-{one}", body=missing)
        gc.collect()
        tracemalloc.start()
        lines = run(database, ["check", "--all"], monkeypatch)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert lines >= 10 * number
    assert peaks[1] < peaks[0] + 100 * 4000, peaks
