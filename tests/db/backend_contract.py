"""What every database must do, whatever is behind it: `registry.db.interface`, as tests.

A class that inherits these says by a fixture ``address`` where an empty database is to be had.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from registry.core import Core
from registry.db.interface import SCHEMA_REVISION, Backend, State
from registry.db.open import open_backend
from registry.errors import DatabaseBusy, DatabaseProblem, DatabaseTooNew, UsageProblem
from registry.settings import Settings
from registry.sync import run
from tests.conftest import write_skill

ADD = (
    "INSERT INTO sources (name, path, scope, strength, added_at) "
    "VALUES ('{name}', '/{name}', 'team', 1, '2026-01-01T00:00:00Z')"
)
NOW = "2026-11-21T10:00:00Z"
LATER = "2026-11-22T10:00:00Z"

Connect = Callable[[], Backend]


def sources(backend: Backend) -> list[str]:
    return [name for (name,) in backend.reader.rows("SELECT name FROM sources ORDER BY name")]


def do(backend: Backend, sql: str) -> None:
    with closing(backend.open_writer()) as writer, writer.transaction() as connection:
        connection.exec_driver_sql(sql)


def add(backend: Backend, name: str) -> None:
    do(backend, ADD.format(name=name))


class BackendTests:
    """Each test holds for all databases."""

    @pytest.fixture
    def connect(self, address: str) -> Iterator[Connect]:
        """Open the database, as often as another process or machine would."""
        opened: list[Backend] = []

        def open_one() -> Backend:
            opened.append(open_backend(address, Settings(), {"SKILL_REGISTRY_HOST": "here"}))
            return opened[-1]

        yield open_one
        for one in opened:
            one.close()

    @pytest.fixture
    def backend(self, connect: Connect) -> Backend:
        backend = connect()
        backend.make_current()
        return backend

    @pytest.fixture
    def filled(self, backend: Backend, tmp_path: Path) -> Backend:
        """A database with one source ``mine`` and two skills in it."""
        for name in ("alpha", "beta"):
            write_skill(tmp_path / "skills" / name)
        run.sync(Core(backend, Settings()), [str(tmp_path / "skills")], name="mine")
        return backend

    def test_what_was_opened_before_the_database_was_made_reads_what_others_put_there(
        self, connect: Connect, address: str
    ) -> None:
        early = Core.open(address, Settings())
        with closing(early.backend):
            assert early.reader.rows("SELECT name FROM sources") == []
            made = connect()
            made.make_current()
            add(made, "one")
            assert early.reader.rows("SELECT name FROM sources") == [("one",)]
            assert not early.reader.empty

    def test_a_database_is_empty_until_it_is_made_current(self, connect):
        backend = connect()
        assert backend.reader.state() is State.EMPTY
        backend.make_current()
        assert backend.reader.state() is State.CURRENT
        add(backend, "one")
        backend.make_current()
        assert sources(backend) == ["one"]

    def test_of_an_empty_database_everything_is_told_that_there_is_to_tell(self, connect, tmp_path):
        empty = connect()
        reader = empty.reader
        reader.empty = True
        assert (reader.rows("SELECT 1"), list(reader.stream("SELECT 1"))) == ([], [])
        assert reader.version() is None
        assert [reader.remembered("it", load) for load in (lambda _: 1, lambda _: 2)] == [1, 2]
        with reader.snapshot():
            assert reader.rows("SELECT 1") == []
        info = empty.info()
        assert (info.path, info.exists, info.revision) == (empty.path, False, None)
        assert (info.sources, info.skills) == (0, 0)
        assert list(empty.check()) == []
        with pytest.raises(UsageProblem):
            empty.backup(str(tmp_path / "copy.db"), overwrite=False)
        assert not (tmp_path / "copy.db").exists()

    @pytest.mark.parametrize(("revision", "state"), [("0015", "behind"), ("9999", None)])
    def test_an_older_schema_is_behind_and_a_newer_one_is_refused(self, backend, revision, state):
        do(backend, f"UPDATE alembic_version SET version_num = '{revision}'")
        if state is not None:
            assert backend.reader.state() is State(state)
            return
        for refused in (backend.reader.state, backend.make_current):
            with pytest.raises(DatabaseTooNew):
                refused()

    def test_rows_and_a_stream_are_the_same(self, backend):
        for name in ("a", "b", "c"):
            add(backend, name)
        sql = "SELECT name FROM sources WHERE name > ? ORDER BY name"
        assert backend.reader.rows(sql, ("a",)) == [("b",), ("c",)]
        assert list(backend.reader.stream(sql, ("a",))) == [("b",), ("c",)]

    @pytest.mark.parametrize("strange", ["\ud800", "alpha\0", "%s", "?", "'"])
    def test_text_that_nothing_stores_finds_nothing(self, filled, strange):
        sql = "SELECT 1 FROM skills WHERE name = ? OR description = ?"
        assert filled.reader.rows(sql, (strange, strange)) == []
        assert list(filled.reader.stream(sql, (strange, strange))) == []

    def test_numbers_in_a_json_array_are_a_set(self, filled):
        which = f"SELECT name FROM skills WHERE id {filled.reader.in_json_array} ORDER BY name"
        first, second = (row[0] for row in filled.reader.rows("SELECT id FROM skills ORDER BY id"))
        assert filled.reader.rows(which, (f"[{second}, {first}]",)) == [("alpha",), ("beta",)]
        assert filled.reader.rows(which, ("[]",)) == []

    def test_a_reader_can_not_write_and_what_it_can_not_read_is_said(self, backend):
        add(backend, "one")
        for sql in ("DELETE FROM sources", "SELECT * FROM nowhere"):
            with pytest.raises(DatabaseProblem):
                backend.reader.rows(sql)
            with pytest.raises(DatabaseProblem):
                list(backend.reader.stream(sql))
        assert sources(backend) == ["one"]

    def test_streams_of_a_snapshot_are_read_in_turn_and_left_at_any_place(self, backend, connect):
        add(backend, "one")
        numbers = (
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) "
            "SELECT i, name FROM n JOIN sources ON i > ? ORDER BY i"
        )
        reader = backend.reader
        with reader.snapshot():
            first, second = iter(reader.stream(numbers, (0,))), iter(reader.stream(numbers, (9,)))
            assert (next(first), next(second)) == ((1, "one"), (10, "one"))
            add(connect(), "two")
            assert reader.rows("SELECT count(*) FROM sources") == [(1,)]
            assert len(list(second)) == 5000 - 10
            del first
            assert len(list(reader.stream(numbers, (0,)))) == 5000
        assert reader.rows("SELECT count(*) FROM sources") == [(2,)]

    def test_a_snapshot_sees_one_state_and_one_inside_it_joins_it(self, backend, connect):
        other = connect()
        with backend.reader.snapshot():
            assert sources(backend) == []
            with backend.reader.snapshot():
                add(other, "one")
                assert sources(backend) == []
            assert sources(backend) == []
        assert sources(backend) == ["one"]

    def test_readers_wait_for_no_writer_and_see_nothing_by_half(self, backend, connect):
        other = connect()
        with closing(other.open_writer()) as writer, writer.transaction() as connection:
            connection.exec_driver_sql(ADD.format(name="one"))
            assert sources(backend) == []
        assert sources(backend) == ["one"]

    def test_the_version_is_another_one_after_a_write_of_somebody_else_only(self, backend, connect):
        other = connect()
        before = backend.reader.version()
        assert (before is None, backend.reader.version()) == (False, before)
        add(other, "one")
        after = backend.reader.version()
        assert after != before
        assert backend.reader.version() == after

    def test_what_is_remembered_is_made_anew_after_a_change_only(self, backend, connect):
        other, made = connect(), []

        def load(reader):
            made.append(reader)
            return sources(backend)

        def both():
            return [backend.reader.remembered(name, load) for name in ("it", "another", "it")]

        assert (both(), len(made)) == ([[], [], []], 2)
        assert (both(), len(made)) == ([[], [], []], 2)
        add(other, "one")
        assert (both(), len(made)) == ([["one"]] * 3, 4)

    def test_only_so_much_is_remembered(self, backend, monkeypatch):
        monkeypatch.setattr("registry.db.interface.MAX_CACHED_RESULTS", 2)
        made = []
        for name in ("a", "b", "a", "b", "c", "c", "a"):
            backend.reader.remembered(name, lambda _, name=name: made.append(name))
        assert made == ["a", "b", "c", "a"]

    def test_a_reader_that_was_closed_opens_again(self, backend):
        add(backend, "one")
        assert sources(backend) == ["one"]
        backend.reader.close()
        assert sources(backend) == ["one"]

    @pytest.mark.parametrize("wait", [0, 0.1])
    def test_a_writer_keeps_others_out_who_say_how_long_they_waited(self, backend, connect, wait):
        other = connect()
        with closing(backend.open_writer()) as writer:
            with writer.transaction() as connection:
                connection.exec_driver_sql(ADD.format(name="one"))
                connection.exec_driver_sql("SELECT 1")  # all before is sent with it at the latest
                started = time.monotonic()
                with (
                    closing(other.open_writer()) as late,
                    pytest.raises(DatabaseBusy) as busy,
                    late.transaction(wait),
                ):
                    pass
                assert wait <= time.monotonic() - started < wait + 5
                assert busy.value.facts == {"path": backend.path, "seconds": wait}
            add(other, "two")
        assert sources(backend) == ["one", "two"]

    def test_a_transaction_that_raises_leaves_nothing(self, backend):
        def fail(problem):
            with closing(backend.open_writer()) as writer, writer.transaction() as connection:
                connection.exec_driver_sql(ADD.format(name="one"))
                problem(connection)

        with pytest.raises(ZeroDivisionError):
            fail(lambda _: 1 / 0)
        with pytest.raises(DatabaseProblem):
            fail(lambda connection: connection.exec_driver_sql("SELECT * FROM nowhere"))
        assert sources(backend) == []
        add(backend, "two")
        assert sources(backend) == ["two"]

    def test_a_sync_keeps_another_one_out_and_is_named(self, backend, connect):
        other = connect()
        with backend.sync_lock() as lock, other.sync_lock() as late:
            assert lock.acquire(0)
            assert abs(lock.now_ns() - time.time_ns()) < 60 * 10**9
            with closing(backend.open_writer()) as writer, writer.transaction() as connection:
                lock.assert_held(connection)
            assert (late.acquire(0), late.acquire(0.05)) == (False, False)
            assert f"process {os.getpid()}" in late.owner()
            add(other, "one")  # who writes waits for no sync
        with other.sync_lock() as late:
            assert late.acquire(0)

    def test_unchanged_sources_are_marked_and_no_others(self, backend):
        for name in ("a", "b", "c"):
            add(backend, name)
        ids = [row[0] for row in backend.reader.rows("SELECT id FROM sources ORDER BY name")]
        backend.mark_unchanged(ids[:2], NOW)
        assert backend.reader.rows(
            "SELECT name, last_sync_at, last_result FROM sources ORDER BY name"
        ) == [("a", NOW, "ok"), ("b", NOW, "ok"), ("c", None, None)]

    def test_counts_of_use_add_up_and_keep_the_last_time_of_each(self, filled):
        alpha, nowhere = ("mine", "alpha"), ("mine", "nowhere")
        assert filled.add_usage([(2, 0, 1, NOW, None, NOW, *alpha)], 1)
        more = [(1, 3, 0, LATER, LATER, None, *alpha), (9, 9, 9, NOW, NOW, NOW, *nowhere)]
        assert filled.add_usage(more, 1)
        assert filled.reader.rows(
            "SELECT listed, found, read, last_listed_at, last_found_at, last_read_at FROM usage"
        ) == [(3, 3, 1, LATER, LATER, NOW)]

    def test_the_facts_are_those_of_what_is_stored(self, filled):
        info = filled.info()
        assert (info.path, info.exists, info.revision) == (filled.path, True, SCHEMA_REVISION)
        assert (info.sources, info.skills) == (1, 2)
        assert info.bytes > 10_000
        assert filled.writable

    def test_a_sound_database_passes_its_check_and_shared_refs_are_found(self, filled):
        assert list(filled.check()) == []
        do(filled, "UPDATE skills SET ref = 'same'")
        assert list(filled.check()) == ["two skills share the ref same"]

    def test_a_backup_is_a_database_with_the_same_in_it(self, filled, tmp_path):
        folder = tmp_path / "copies"
        folder.mkdir()
        target = folder / "copy.db"
        filled.backup(str(target), overwrite=False)
        with pytest.raises(UsageProblem, match="exists already"):
            filled.backup(str(target), overwrite=False)
        add(filled, "later")
        filled.backup(str(target), overwrite=True)
        assert os.listdir(folder) == ["copy.db"]
        with closing(open_backend(target, Settings())) as copy:
            assert copy.reader.state() is State.CURRENT
            assert sources(copy) == ["later", "mine"]
            assert list(copy.check()) == []

    def test_a_backup_that_can_not_be_written_is_said_and_leaves_nothing(self, filled, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(DatabaseProblem):
            filled.backup(str(tmp_path / "file" / "copy.db"), overwrite=False)
        (tmp_path / "folder").mkdir()
        with pytest.raises(UsageProblem, match="is a folder: name a file in it"):
            filled.backup(str(tmp_path / "folder"), overwrite=True)
        assert not (tmp_path / "folder.part").exists()
