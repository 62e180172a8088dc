import multiprocessing
import re
import sqlite3
from contextlib import closing

import pytest

from registry.api import SkillRegistry
from registry.cli.hints import hint
from registry.db.interface import KNOWN_REVISIONS, SCHEMA_REVISION
from registry.db.migrate import migrations_folder
from registry.db.schema import COUNTED, metadata
from registry.db.sqlite import writer
from registry.db.sqlite.dialect import has_wal_reset_bug
from registry.db.sqlite.writer import ensure_current as ensure_file_current
from registry.db.sqlite.writer import make_engine, migrate, read_schema
from registry.errors import DatabaseCorrupt, DatabaseProblem, DatabaseTooNew
from registry.settings import Settings
from tests.conftest import write_skill
from tests.older import make_older
from tests.program import FORKS
from tests.schema import written_by_migrations

pytestmark = pytest.mark.file

EMPTY = (
    "SELECT * FROM alembic_version",
    "SELECT * FROM search_heads_config",
    "SELECT * FROM search_bodies_config",
)
"""What a database without skills holds."""


def open_registry(path):
    return SkillRegistry.open(path, settings=Settings())


def test_the_revisions_in_the_code_are_those_in_the_folder():
    files = sorted(path.name for path in (migrations_folder() / "versions").glob("*.py"))
    assert tuple(name[:4] for name in files) == KNOWN_REVISIONS
    assert KNOWN_REVISIONS[-1] == SCHEMA_REVISION
    assert all(re.fullmatch(r"\d{4}_[a-z0-9_]+\.py", name) for name in files)


@pytest.mark.filterwarnings("ignore:.*expression-based index")
def test_the_migrations_build_exactly_the_schema_of_the_code(database):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    database.parent.mkdir()
    migrate(str(database))
    with make_engine(str(database)).begin() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_name": lambda name, kind, _: (
                    not (kind == "table" and name.startswith("search_")) and name != COUNTED
                )
            },
        )
        assert compare_metadata(context, metadata) == []


def test_a_new_file_is_made_just_as_the_migrations_make_it(tmp_path):
    made, migrated = str(tmp_path / "made.db"), str(tmp_path / "migrated.db")
    ensure_file_current(made)
    migrate(migrated)
    assert read_schema() == written_by_migrations(), "run 'make schema'"
    for sql in ("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name", *EMPTY):
        one, other = (_rows(path, sql) for path in (made, migrated))
        assert one == other
    assert _rows(made, "PRAGMA journal_mode") == [("wal",)]


def _rows(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_a_path_with_a_percent_sign_and_spaces_works(tmp_path):
    path = tmp_path / "100% mine" / "a?b#c.db"
    with open_registry(path) as registry:
        write_skill(tmp_path / "s" / "alpha")
        registry.sync(str(tmp_path / "s"))
    with open_registry(path) as registry:
        assert len(registry.list()) == 1


def test_a_newer_database_is_refused_and_left_alone(database):
    ensure_file_current(str(database))
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()
    before = database.read_bytes()
    with pytest.raises(DatabaseTooNew, match="newer skill-registry"):
        open_registry(database)
    assert database.read_bytes() == before


def test_an_older_database_is_copied_and_upgraded(database, root, skill, monkeypatch):
    make_older(database, KNOWN_REVISIONS[0])
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "INSERT INTO sources (name, path, scope, strength, added_at) "
            "VALUES ('mine', ?, 'personal', 1, '2026-01-01T00:00:00Z')",
            (str(root),),
        )
        connection.commit()
    skill("alpha")
    with open_registry(database) as registry:
        assert registry.sources()[0].name == "mine"
        assert len(registry.sync().added) == 1
        assert registry.database_info().revision == SCHEMA_REVISION
    with closing(sqlite3.connect(f"{database}.{KNOWN_REVISIONS[0]}.bak")) as copy:
        assert copy.execute("SELECT name FROM sources").fetchall() == [("mine",)]


def test_a_file_that_could_not_be_made_to_its_end_has_no_tables(database, monkeypatch):
    ended = f"{read_schema()} SELECT no_such_thing;"
    monkeypatch.setattr(writer, "read_schema", lambda: ended)
    with pytest.raises(DatabaseProblem, match="no_such_thing"):
        ensure_file_current(str(database))
    monkeypatch.undo()
    assert _rows(database, "SELECT * FROM sqlite_master") == []
    ensure_file_current(str(database))


def test_a_failed_upgrade_leaves_nothing_half_done(database, monkeypatch):
    make_older(database, "0015")
    before = _rows(database, "SELECT * FROM sqlite_master")
    from sqlalchemy import Connection

    real = Connection.exec_driver_sql

    def fail(self, statement, *rest):
        if "foreign_key_check" in statement:
            raise RuntimeError("power lost")
        return real(self, statement, *rest)

    monkeypatch.setattr(Connection, "exec_driver_sql", fail)
    with pytest.raises(RuntimeError):
        ensure_file_current(str(database))
    monkeypatch.undo()
    assert _rows(database, "SELECT * FROM sqlite_master") == before
    ensure_file_current(str(database))
    assert _rows(database, "SELECT * FROM sqlite_master") != before


@pytest.mark.parametrize(
    "content", [b"this is no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_a_damaged_file_is_answered_with_what_to_do(database, content):
    database.parent.mkdir()
    database.write_bytes(content)
    with pytest.raises(DatabaseCorrupt) as caught:
        open_registry(database)
    assert "Move the database file" in hint(caught.value)


def test_the_database_of_another_program_is_refused(database):
    database.parent.mkdir()
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("CREATE TABLE bookmarks (url)")
    with pytest.raises(DatabaseProblem, match="another program"):
        open_registry(database)


def test_a_folder_is_no_database(tmp_path):
    with pytest.raises(DatabaseProblem):
        open_registry(tmp_path)


def test_an_empty_file_is_a_database_not_made_yet(database, root, skill):
    database.parent.mkdir()
    database.touch()
    skill("alpha")
    with open_registry(database) as registry:
        assert len(registry.list()) == 0
        registry.sync(str(root))
        assert len(registry.list()) == 1


def _create(path, barrier, results):
    barrier.wait()
    try:
        ensure_file_current(path)
        with open_registry(path) as registry:
            registry.add_source(str(path) + f".{multiprocessing.current_process().name}")
        results.put("ok")
    except Exception as error:  # noqa: BLE001  # told to the parent
        results.put(repr(error))


def test_many_processes_opening_a_new_file_at_once_all_succeed(database):
    barrier, results = FORKS.Barrier(6), FORKS.Queue()
    workers = []
    database.parent.mkdir()
    for number in range(6):
        (database.parent / f"registry.db.w{number}").mkdir()
        worker = FORKS.Process(
            target=_create, args=(str(database), barrier, results), name=f"w{number}"
        )
        worker.start()
        workers.append(worker)
    assert [results.get(timeout=120) for _ in workers] == ["ok"] * 6
    for worker in workers:
        worker.join()
    with open_registry(database) as registry:
        assert len(registry.sources()) == 6
        assert registry.check_database() == []


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ((3, 6, 23), False),
        ((3, 7, 0), True),
        ((3, 40, 1), True),
        ((3, 44, 6), False),
        ((3, 44, 5), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
    ],
)
def test_the_versions_with_the_wal_reset_bug_are_known(version, affected):
    assert has_wal_reset_bug(version) is affected
