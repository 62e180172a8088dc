"""What only a file does: it is removed, locked by others, damaged, or lies on a network."""

import errno
import os
import sqlite3
import threading
from contextlib import closing

import pytest

from registry.api import SkillRegistry
from registry.db.schema import SEARCH_TABLES, metadata
from registry.db.sqlite.backend import SqliteBackend
from registry.db.sqlite.dialect import INDEXES, TABLES
from registry.db.sqlite.writer import ensure_current  # the real one: see conftest
from registry.disk.locks import FileLock
from registry.errors import DatabaseBusy, DatabaseCorrupt, DatabaseProblem, UsageProblem
from tests.conftest import OLD, write_skill

pytestmark = pytest.mark.file


@pytest.fixture
def backend(filled):
    return filled.core.backend


def tables(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def descriptors(path):
    found = 0
    for one in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{one}") == str(path)
        except FileNotFoundError:
            continue
    return found


def test_a_file_that_is_removed_as_a_write_begins_is_said(backend, database, monkeypatch):
    """What is written into a file without a name would be accepted and lost."""
    real = sqlite3.connect

    def connect(*arguments, **named):
        connection = real(*arguments, **named)
        connection.set_trace_callback(
            lambda sql: database.unlink() if sql.startswith("BEGIN") else None
        )
        return connection

    with closing(backend.open_writer()) as writer:
        monkeypatch.setattr(sqlite3, "connect", connect)
        with pytest.raises(DatabaseProblem, match="removed meanwhile"), writer.transaction():
            pass


def test_what_takes_the_files_place_is_read_once_it_is_a_registry(filled, database, tmp_path):
    """A registry that was put back from a copy, or thrown away and built anew."""
    filled.backup(tmp_path / "copy.db")
    old = filled.browse().version
    filled.delete("beta")
    assert [one.name for one in filled.list()] == ["alpha"]
    database.rename(tmp_path / "aside.db")
    assert [one.name for one in filled.list()] == ["alpha"]
    database.touch()
    assert [one.name for one in filled.list()] == ["alpha"]
    os.replace(tmp_path / "copy.db", database)
    assert [one.name for one in filled.list()] == ["alpha", "beta"]
    assert filled.browse().version != old
    database.unlink()
    (tmp_path / "strange.db").write_bytes(b"no database at all " * 1000)
    os.replace(tmp_path / "strange.db", database)
    with pytest.raises(DatabaseCorrupt):
        filled.list()


def test_connections_of_threads_that_ended_are_closed(backend, database):
    def read():
        assert backend.reader.rows("SELECT count(*) FROM skills") == [(2,)]

    read()
    before = descriptors(database)
    for _ in range(20):
        thread = threading.Thread(target=read)
        thread.start()
        thread.join()
    assert descriptors(database) <= before + 2
    backend.close()
    assert descriptors(database) == 0


def test_a_file_that_is_missing_or_no_database_is_said_and_let_go(tmp_path):
    path = tmp_path / "some.db"
    reader = SqliteBackend(str(path)).reader
    with pytest.raises(DatabaseProblem, match="unable to open"):
        reader.rows("SELECT 1")
    assert not path.exists()
    path.write_bytes(b"no database at all " * 1000)
    with pytest.raises(DatabaseCorrupt):
        reader.state()
    assert descriptors(path) == 0


def test_an_old_sqlite_is_refused_in_words(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 99))
    with pytest.raises(DatabaseProblem, match=r"is too old, 3\.37\.0 is needed"):
        ensure_current(str(tmp_path / "new.db"))
    assert list(tmp_path.glob("new.db*")) == []
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 37, 0))
    SqliteBackend(str(tmp_path / "new.db")).make_current()
    assert tables(tmp_path / "new.db") > 0


def test_on_a_network_file_system_no_memory_is_shared(tmp_path, monkeypatch):
    monkeypatch.setattr("registry.db.sqlite.dialect.is_remote", lambda _: True)
    backend = SqliteBackend(str(tmp_path / "far.db"))
    ensure_current(backend.path)
    assert backend.info().journal_mode != "wal"
    assert not (tmp_path / "far.db-wal").exists()
    backend.close()


def test_another_program_that_writes_makes_the_file_busy(backend, filled, database, monkeypatch):
    for module in ("backend", "dialect"):
        monkeypatch.setattr(f"registry.db.sqlite.{module}.BUSY_SECONDS", 0.01)
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with (
            closing(backend.open_writer()) as writer,
            pytest.raises(DatabaseBusy),
            writer.transaction(),
        ):
            pass
        with pytest.raises(DatabaseBusy):
            backend.mark_unchanged([1], "2026-11-21T10:00:00Z")
        other.execute("ROLLBACK")
    with FileLock(f"{database}.lock") as lock:
        assert lock.acquire(0)
        with pytest.raises(DatabaseBusy):
            backend.mark_unchanged([1], "2026-11-21T10:00:00Z")
    assert filled.sync().unchanged == 2


def test_who_upgrades_waits_for_its_turn_and_says_what_can_not_be_made(tmp_path, monkeypatch):
    monkeypatch.setattr("registry.db.sqlite.writer.UPGRADE_SECONDS", 0)
    backend = SqliteBackend(str(tmp_path / "new.db"))
    with FileLock(f"{backend.path}.lock") as lock:
        assert lock.acquire(0)
        with pytest.raises(DatabaseBusy):
            backend.make_current()
    backend.make_current()
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseProblem, match="file"):
        SqliteBackend(str(tmp_path / "file" / "new.db")).make_current()


def test_a_lock_that_can_not_be_opened_is_said(backend, database):
    os.unlink(f"{database}.lock")
    os.mkdir(f"{database}.lock")
    with (
        closing(backend.open_writer()) as writer,
        pytest.raises(DatabaseProblem, match="lock file can't be opened"),
        writer.transaction(),
    ):
        pass


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EIO])
def test_without_the_lock_of_a_sync_nothing_is_written(filled, root, database, monkeypatch, code):
    """Where it may not be had a sync still finds out that there is nothing to do."""
    real = os.open

    def refuse(path, *arguments, **named):
        if str(path) == f"{database}.sync.lock":
            raise OSError(code, os.strerror(code))
        return real(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse)
    if code == errno.EIO:
        with pytest.raises(DatabaseProblem, match="can't be taken"):
            filled.sync()
    else:
        assert filled.sync().unchanged == 2
    write_skill(root / "alpha", description="New.", age=OLD + 9)
    with pytest.raises(DatabaseProblem, match="can't be taken"):
        filled.sync()
    assert {skill.description for skill in filled.list()} == {"Does one thing well."}


def test_the_size_is_that_of_the_file_and_of_its_log(backend, database):
    sizes = [os.stat(f"{database}{ending}").st_size for ending in ("", "-wal")]
    assert sizes[1] > 0
    assert backend.info().bytes == sum(sizes)


def test_a_backup_never_goes_over_the_file_itself(backend, database):
    with pytest.raises(UsageProblem):
        backend.backup(str(database), overwrite=True)
    assert backend.reader.rows("SELECT count(*) FROM skills") == [(2,)]


def test_a_damaged_index_is_found_and_holds_up_nobody(filled, database):
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DELETE FROM search_bodies_data WHERE id > 10")
        connection.commit()
    assert any("the full-text index is damaged" in said for said in filled.check_database())
    with FileLock(f"{database}.lock") as lock:
        assert lock.acquire(0)


def test_a_damaged_page_is_found(filled, database, monkeypatch):
    with filled.core.writer.transaction() as connection:
        connection.exec_driver_sql("PRAGMA writable_schema = ON")
        connection.exec_driver_sql(
            "UPDATE sqlite_master SET rootpage = 3 WHERE name = 'ix_skills_uid'"
        )
    assert any(said.startswith("the file is damaged") for said in filled.check_database())


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"


def test_the_tables_that_strangers_may_not_replace_are_those_of_the_schema():
    assert {"alembic_version", *metadata.tables} == TABLES
    assert INDEXES == SEARCH_TABLES


@pytest.mark.parametrize(
    "sql",
    [
        f"CREATE VIEW skills AS SELECT k.* FROM kept k, ({ENDLESS})",
        f"CREATE VIEW Skills AS SELECT k.* FROM kept k, ({ENDLESS})",
        f"CREATE TRIGGER t AFTER INSERT ON journal BEGIN INSERT INTO gone (uid) {ENDLESS}; END",
        f"CREATE TRIGGER t AFTER UPDATE ON sources BEGIN INSERT INTO gone (uid) {ENDLESS}; END",
        "CREATE TRIGGER t AFTER INSERT ON search_heads_data BEGIN SELECT 1; END",
    ],
)
def test_what_a_stranger_has_sqlite_run_is_refused_before_it_is_run(filled, database, sql):
    filled.close()
    with closing(sqlite3.connect(database)) as connection:
        if "VIEW" in sql:
            connection.execute("PRAGMA legacy_alter_table = ON")
            connection.execute("ALTER TABLE skills RENAME TO kept")
        connection.execute(sql)
    with pytest.raises(DatabaseProblem, match="none of the registry's"):
        SkillRegistry.open(database)


def test_what_people_add_beside_the_registrys_tables_is_theirs(filled, database):
    filled.close()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE mine (name TEXT)")
        connection.execute("CREATE VIEW my_skills AS SELECT name FROM skill")
        connection.execute("CREATE TRIGGER t AFTER INSERT ON mine BEGIN SELECT 1; END")
    with SkillRegistry.open(database) as registry:
        assert len(registry.list()) == 2


def test_a_version_of_the_schema_without_end_is_not_repeated(filled, database):
    filled.close()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = hex(zeroblob(1000000))")
        connection.commit()
    with pytest.raises(DatabaseProblem) as caught:
        SkillRegistry.open(database)
    assert len(str(caught.value)) < 1000


def test_a_path_that_is_no_text_can_be_that_of_a_database(root, skill, tmp_path):
    skill("alpha")
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9 %41.db")
    for _ in range(2):  # made, and there
        with SkillRegistry.open(path) as registry:
            registry.sync(str(root), name="mine")
            assert [one.name for one in registry.list()] == ["alpha"]
            registry.update("alpha", description="Other.")
            registry.backup(path + ".copy", overwrite=True)
            assert registry.check_database() == []
