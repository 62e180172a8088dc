import sqlite3
import threading
from contextlib import closing

import pytest

from registry.api import SkillRegistry
from registry.db.write.statements import execute
from registry.disk.locks import FileLock
from registry.errors import DatabaseBusy, DatabaseProblem, SettingsProblem, UsageProblem
from registry.settings import Settings, parse_settings


@pytest.fixture
def filled(registry, root, skill):
    skill("alpha")
    registry.sync(str(root))
    return registry


@pytest.mark.file
def test_a_backup_is_a_database_of_its_own(filled, tmp_path):
    target = tmp_path / "copy.db"
    filled.backup(str(target))
    with SkillRegistry.open(target, settings=Settings()) as copy:
        assert [skill.name for skill in copy.list()] == ["alpha"]
    with pytest.raises(UsageProblem):
        filled.backup(str(target))
    with pytest.raises(DatabaseProblem):
        filled.backup(str(tmp_path / "no" / "such" / "folder.db"))


@pytest.mark.file
def test_the_facts_of_the_file_are_told(filled):
    info = filled.database_info()
    assert (info.exists, info.journal_mode, info.sources, info.skills) == (True, "wal", 1, 1)
    assert info.bytes > 0
    assert info.sqlite_version == sqlite3.sqlite_version


def test_versions_of_an_interrupted_sync_are_told_and_the_next_sync_clears_them(filled):
    with filled.core.writer.transaction() as connection:
        execute(connection, "UPDATE skills SET live = 0 WHERE name = ?", "alpha")
    info = filled.database_info()
    assert (info.skills, info.staged) == (0, 1)
    assert info.staged_bytes > 0
    filled.sync()
    info = filled.database_info()
    assert (info.skills, info.staged, info.staged_bytes) == (1, 0, 0)


def test_a_sound_database_passes_its_check(filled):
    assert filled.check_database() == []


@pytest.mark.file
def test_lost_index_entries_and_dangling_rows_are_found(filled):
    with closing(sqlite3.connect(filled.path)) as connection:
        connection.execute("DELETE FROM search_bodies_docsize")
        connection.execute("INSERT INTO skill_tags VALUES ('lost', 999)")
        connection.commit()
    problems = " ".join(filled.check_database())
    assert "full-text index" in problems
    assert "missing row" in problems


def test_readers_cannot_write(filled):
    with pytest.raises(DatabaseProblem, match=r"read-?only|only reads"):
        filled.core.reader.rows("DELETE FROM skills")


@pytest.mark.file
def test_a_writer_that_waits_too_long_says_the_database_is_busy(filled, monkeypatch):
    monkeypatch.setattr("registry.db.interface.WRITE_SECONDS", 0.0)
    with FileLock(f"{filled.path}.lock") as lock:
        assert lock.acquire(0)
        with pytest.raises(DatabaseBusy):
            filled.remove_source(filled.sources()[0].name)


def test_a_failed_transaction_leaves_nothing(filled):
    def fail():
        with filled.core.writer.transaction() as connection:
            connection.exec_driver_sql("DELETE FROM skills")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert len(filled.list()) == 1


def test_one_registry_serves_many_threads(filled):
    failures = []

    def work():
        try:
            for _ in range(20):
                assert len(filled.list()) == 1
                assert filled.get("alpha").name == "alpha"
                assert filled.search("step").total == 1
        except Exception as error:  # noqa: BLE001  # told to the test
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1:1/db", "postgresql://[", "mysql://x", ""])
def test_other_databases_are_refused_in_words(url):
    with pytest.raises(DatabaseProblem):
        SkillRegistry.open(url, settings=Settings())


@pytest.mark.file
def test_in_a_file_no_source_belongs_to_a_machine_by_name(database, root, monkeypatch):
    """A laptop's name changes with the network; its skills stay its own."""
    for name in ("home", "office"):
        monkeypatch.setenv("SKILL_REGISTRY_HOST", name)
        with SkillRegistry.open(database, settings=Settings(host=name)) as registry:
            registry.sync(str(root))
            assert [source.host for source in registry.own_sources()] == [""]


@pytest.mark.parametrize("host", [3, "", " ", ["a"]])
def test_a_host_that_is_no_name_is_refused(host):
    with pytest.raises(SettingsProblem, match="host must be a name"):
        parse_settings({"host": host}, "config.yaml")


def test_a_sqlite_url_is_a_path(tmp_path):
    with SkillRegistry.open(f"sqlite:///{tmp_path}/r.db", settings=Settings()) as registry:
        assert registry.path == f"{tmp_path}/r.db"
