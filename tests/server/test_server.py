"""What only a server does: connections that break, other clients, schemas made at once."""

import os
import secrets
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from registry.api import SkillRegistry
from registry.db import schema
from registry.db.copy import copy
from registry.db.interface import SCHEMA_REVISION
from registry.db.open import open_backend
from registry.db.read.access import audit_records
from registry.errors import (
    DatabaseBehind,
    DatabaseBusy,
    DatabaseProblem,
    DatabaseTooNew,
    SourceNotAdopted,
    UsageProblem,
)
from registry.settings import Settings
from tests.conftest import write_skill
from tests.db.test_copy import rows
from tests.older import make_older
from tests.program import Script, run

pytestmark = pytest.mark.server


def driver(url):
    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True)


def end_connections(url):
    """What a restarted server or a firewall does to clients."""
    with driver(url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def filled(registry, root, skill):
    skill("alpha", body="# Alpha\n\ncafé Straße naïve\n")
    skill("beta", description="数据库迁移工具", extra="tags: [数据]\n")
    (root / "alpha" / "data.bin").write_bytes(bytes(range(256)) * 20)
    registry.sync(str(root), name="mine")
    return registry


def test_a_server_without_a_schema_is_empty_and_the_first_sync_makes_one(databases, root):
    url = databases.empty()
    write_skill(root / "alpha")
    with SkillRegistry.open(url, settings=Settings()) as registry:
        assert registry.list().total == 0
        assert registry.database_info().exists is False
        registry.sync(str(root))
        assert registry.database_info().revision == SCHEMA_REVISION
        assert [skill.name for skill in registry.list()] == ["alpha"]
    databases.drop(url)


def test_many_processes_make_the_schema_at_once(databases):
    url = databases.empty()
    script = (
        "import sys; from registry import Settings, SkillRegistry\n"
        "with SkillRegistry.open(sys.argv[1], settings=Settings()) as r: r.create_database()"
    )
    running = [Script(script, url) for _ in range(4)]
    assert [one.end(60).status for one in running] == [0, 0, 0, 0]
    databases.drop(url)


def test_the_migrated_schema_is_the_one_in_the_code(server_database):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext
    from sqlalchemy import create_engine

    engine = create_engine(server_database)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "include_name": lambda name, kind, _: (
                    not (
                        kind == "table"
                        and name
                        in {
                            "search_texts",
                            "search_words",
                            "totals",
                            "data_version",
                            "hosts",
                            "teams",
                            "content_uses",
                            "leases",
                            "commits",
                            "commit_skills",
                        }
                    )
                ),
            },
        )
        assert compare_metadata(context, schema.metadata) == []
        collations = connection.exec_driver_sql(
            "SELECT DISTINCT collation_name, CASE WHEN collation_name IS NULL THEN table_name END, "
            "CASE WHEN collation_name IS NULL THEN column_name END "
            "FROM information_schema.columns WHERE table_schema = 'public' AND data_type = 'text'"
        ).all()
    engine.dispose()
    # What a view says in a word of its own is no text of anybody's.
    assert {tuple(row) for row in collations} == {("C", None, None), (None, "revision", "what")}


def test_two_schemas_of_one_database_are_two_registries(databases, root):
    url = databases.empty()
    with driver(url) as connection:
        connection.execute("CREATE SCHEMA one")
        connection.execute("CREATE SCHEMA two")
    write_skill(root / "alpha")
    one, two = (f"{url}?options=-csearch_path%3D{name}" for name in ("one", "two"))
    with SkillRegistry.open(one, settings=Settings()) as registry:
        registry.sync(str(root))
        with SkillRegistry.open(two, settings=Settings()) as other:
            assert other.list().total == 0
            assert registry.list().total == 1
            # What one staged for a change must not be taken by the other for its own.
            assert registry.path != other.path
    databases.drop(url)


def test_a_newer_schema_and_another_programs_are_refused(server_database):
    with driver(server_database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        with pytest.raises(DatabaseTooNew):
            SkillRegistry.open(server_database, settings=Settings())
        connection.execute("ALTER TABLE skills RENAME TO others")
        with pytest.raises(DatabaseProblem, match="another program"):
            SkillRegistry.open(server_database, settings=Settings())


def test_a_missing_driver_is_said_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DatabaseProblem, match=r"pip install '.\[postgres\]'"):
        SkillRegistry.open("postgresql://127.0.0.1:1/x", settings=Settings())


def test_reads_and_changes_survive_connections_that_were_ended(filled, server_database):
    assert filled.list().total == 2
    filled.update("alpha", description="One.")
    end_connections(server_database)
    assert filled.list().total == 2
    end_connections(server_database)
    assert filled.get("alpha").description == "One."
    end_connections(server_database)
    filled.update("alpha", description="Two.")
    assert filled.resolve("alpha").description == "Two."


def test_a_commit_whose_answer_was_lost_is_found_out(filled, server_database, monkeypatch):
    """The connection ends right after the record of a change was committed."""
    from registry.changes import finish

    real, failed = finish.store_result, []

    def store_result(*arguments):
        stored = real(*arguments)
        if not failed:
            failed.append(arguments)
            from registry.errors import DatabaseUnreachable

            raise DatabaseUnreachable(path="x", reason="server closed the connection")
        return stored

    monkeypatch.setattr(finish, "store_result", store_result)
    filled.update("alpha", description="New.")
    assert failed
    assert filled.resolve("alpha").description == "New."
    assert filled.core.reader.rows("SELECT count(*) FROM journal") == [(0,)]
    assert filled.check_database() == []


def test_a_writer_that_waits_too_long_says_the_server_is_busy(filled, server_database):
    with driver(server_database) as other:
        other.execute("BEGIN")
        other.execute("UPDATE data_version SET number = number + 1")
        with pytest.raises(DatabaseBusy), filled.core.writer.transaction(0.2):
            pass
        filled.core.usage.listed(filled.list().items)
        other.execute("ROLLBACK")
    with filled.core.writer.transaction(0.2):
        pass


def test_who_writes_does_not_wait_for_what_a_sync_stages(filled, root, monkeypatch):
    from registry.sync import apply

    for number in range(5):
        write_skill(root / f"new-{number}")
    real, written = apply.stage, []

    def stage(connection, batch, **given):
        staged = real(connection, batch, **given)
        connection.exec_driver_sql("SELECT 1")  # all of it is with the server, not committed
        with filled.core.writer.transaction(0.1) as other:
            other.exec_driver_sql("UPDATE skills SET description = 'meanwhile' WHERE live = 1")
        written.extend(staged)
        return staged

    monkeypatch.setattr(apply, "stage", stage)
    assert len(filled.sync().added) == 5
    assert len(written) == 5
    assert filled.resolve("alpha").description == "meanwhile"
    assert filled.list().total == 7
    assert filled.check_database() == []


def test_readers_wait_for_no_writer(filled):
    with filled.core.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE skills SET description = 'unseen'")
        assert {skill.description for skill in filled.list()} != {"unseen"}


def test_more_threads_than_connections_are_all_answered(filled):
    with ThreadPoolExecutor(60) as pool:
        totals = list(pool.map(lambda _: filled.list(limit=1).total, range(300)))
    assert totals == [2] * 300


def test_a_forked_child_opens_connections_of_its_own(filled):
    filled.list()
    child = os.fork()
    if child == 0:
        filled.update("alpha", description="By the child.")
        os._exit(0 if filled.list().total == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert filled.resolve("alpha").description == "By the child."


def test_the_facts_tell_the_server_and_never_the_password(filled, server_database):
    info = filled.database_info()
    assert (info.exists, info.sources, info.skills, info.sqlite_version) == (True, 1, 2, None)
    assert info.server_version
    assert info.bytes > 0
    url = server_database.replace("tests@", "tests:secret@")
    with SkillRegistry.open(url, settings=Settings()) as registry:
        assert "secret" not in repr(registry.database_info())
        assert "secret" not in registry.path


def test_lost_index_entries_are_found(filled, server_database):
    with driver(server_database) as connection:
        connection.execute("DELETE FROM search_texts")
    assert "alpha has no entry in the full-text index" in " ".join(filled.check_database())


@pytest.mark.parametrize("query", ["cafe", "CAFÉ", "strasse", "迁移", "naive alpha", "数据库"])
def test_words_are_found_without_accents_and_text_without_spaces_by_its_parts(filled, query):
    assert filled.search(query).total >= 1


def stored(backend):
    """Everything that is stored; to changes and audit a server adds what it sees being copied."""
    tables = schema.metadata.sorted_tables
    return rows(backend, [one for one in tables if one not in {schema.changes, schema.audit}])


def do_what_is_noted(registry):
    registry.add_version("alpha", "1.0")
    registry.yank_version("alpha@1.0", "It is wrong.")
    registry.reactivate_version("alpha@1.0")
    registry.update_source("mine", review=True)
    registry.toolset("native").call("update_skill", {"name": "beta", "body": "Proposed.\n"})
    registry.update_source("mine", review=False)


def test_a_registry_copied_to_a_file_and_back_is_equal(
    filled, databases, root, tmp_path, server_database
):
    filled.update("alpha", description="New.")
    filled.update("alpha", body="Again.\n")
    filled.create("gamma", description="Third.")
    filled.delete("gamma")
    do_what_is_noted(filled)
    filled.toolset("native").call("read_skill", {"name": "alpha"})
    filled.core.usage.write()
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_bytes(b"\xff")
    filled.sync()
    settings = Settings()
    other_url = databases.empty()
    with (
        closing(open_backend(server_database, settings)) as first,
        closing(open_backend(tmp_path / "copy.db", settings)) as file,
        closing(open_backend(other_url, settings)) as second,
    ):
        copied = copy(first, file)
        assert (copied.sources, copied.skills, copied.revisions) == (1, 3, 6)
        copy(file, second)
        assert stored(first) == stored(file) == stored(second)
        audits = [audit_records(backend.reader, 100) for backend in (first, file, second)]
        assert audits[0] == audits[1] == audits[2][1:]
        assert {"skill proposed", "version yanked"} <= {one.what for one in audits[0]}
        copied_from = audits[2][0]
        assert (copied_from.what, copied_from.subject) == ("registry copied", file.path)
        assert (first.check(), file.check(), second.check()) == ([], [], [])
        hosts = [backend.reader.rows("SELECT host FROM sources") for backend in (first, file)]
        assert hosts == [[(first.host,)], [("",)]]
        with pytest.raises(UsageProblem, match="holds a registry already"):
            copy(file, second)
    with SkillRegistry.open(tmp_path / "copy.db", settings=settings) as copied_registry:
        assert [one.number for one in copied_registry.history("alpha")] == [3, 2, 1]
        assert copied_registry.search("迁移").total == 1
        report = copied_registry.sync(verify=True)
        assert (report.added, report.updated, report.removed) == ((), (), ())
    with SkillRegistry.open(other_url, settings=settings) as registry:
        with pytest.raises(SourceNotAdopted):
            registry.create("delta", description="Made after the copy.")
        registry.adopt_source(registry.sources()[0].name)
        registry.create("delta", description="Made after the copy.")  # the numbers go on
        registry.add_version("delta", "1.0")
        registry.yank_version("delta@1.0", "It is wrong.")
        registry.update_source(registry.sources()[0].name, priority=3)
        newest = [one.what for one in audit_records(registry.core.reader, 2)]
        assert newest == ["source changed", "version yanked"]  # the triggers work again
        registry.reactivate_version("delta@1.0")
        registry.sync()
        assert registry.search("迁移").total == 1
        assert registry.check_database() == []
    databases.drop(other_url)


def test_a_copy_that_fails_leaves_the_target_empty(filled, databases, server_database, monkeypatch):
    from registry.db.write import statements as bulk

    real = bulk.insert_rows

    def full(connection, into, found, **more):
        if into.name == "contents":
            raise DatabaseProblem(path="x", reason="no space left")
        real(connection, into, found, **more)

    url = databases.empty()
    monkeypatch.setattr(bulk, "insert_rows", full)
    with (
        closing(open_backend(server_database, Settings())) as source,
        closing(open_backend(url, Settings())) as target,
    ):
        with pytest.raises(DatabaseProblem, match="no space left"):
            copy(source, target)
        monkeypatch.undo()
        assert copy(source, target).skills == 2
    databases.drop(url)


def test_a_backup_of_a_server_is_a_file_that_can_be_used(filled, tmp_path):
    target = tmp_path / "backup.db"
    filled.backup(str(target))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("backup")] == [
        "backup.db"
    ]
    with pytest.raises(UsageProblem):
        filled.backup(str(target))
    filled.backup(str(target), overwrite=True)
    with SkillRegistry.open(target, settings=Settings()) as registry:
        assert [skill.name for skill in registry.list()] == ["alpha", "beta"]


def test_an_older_schema_is_upgraded_only_when_somebody_says_so(server_database):
    """Whoever still uses the older program could not read it then."""
    with driver(server_database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0015'")
        with pytest.raises(DatabaseBehind, match=r"older skill-registry \(0015\)"):
            SkillRegistry.open(server_database, settings=Settings())
        environ = {**os.environ, "SKILL_REGISTRY_DB": server_database}
        listed = run(["list"], environ=environ)
        assert (listed.status, listed.stdout) == (3, b"")
        assert b"skill-registry db upgrade" in listed.stderr
        version = connection.execute("SELECT version_num FROM alembic_version").fetchone()
        assert version == ("0015",)


def test_the_command_that_upgrades_a_server_says_from_where_to_where(databases):
    url = databases.empty()
    make_older(url, "0015")
    with driver(url) as connection:
        asked = "SELECT version_num FROM alembic_version"
        assert connection.execute(asked).fetchone() == ("0015",)
        ran = run(["--db", url, "db", "upgrade"], environ=dict(os.environ))
        assert ran.status == 0, ran
        assert f"from schema 0015 to {SCHEMA_REVISION}" in ran.out
        assert connection.execute(asked).fetchone() == (SCHEMA_REVISION,)
    databases.drop(url)


@pytest.mark.parametrize("is_there", [True, False], ids=["no USAGE", "missing"])
def test_a_schema_that_can_not_be_used_is_no_empty_one(databases, is_there):
    url = databases.empty()
    name = f"reader_{secrets.token_hex(4)}"
    with driver(url) as connection:
        if is_there:
            connection.execute("CREATE SCHEMA team")
        connection.execute(f"CREATE ROLE {name} LOGIN")
        try:
            as_reader = url.replace("//tests@", f"//{name}@") + "?options=-csearch_path%3Dteam"
            with pytest.raises(DatabaseProblem, match="sees no schema of its search_path"):
                SkillRegistry.open(as_reader, settings=Settings())
            ran = run(["--db", as_reader, "list"], environ=dict(os.environ))
            assert (ran.status, ran.stdout) == (3, b"")
            if is_there:
                connection.execute(f"GRANT USAGE ON SCHEMA team TO {name}")
                with SkillRegistry.open(as_reader, settings=Settings()) as registry:
                    assert registry.list().total == 0
        finally:
            connection.execute(f"DROP OWNED BY {name}")
            connection.execute(f"DROP ROLE {name}")
    databases.drop(url)
