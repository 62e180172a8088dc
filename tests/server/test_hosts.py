"""Several machines, one catalogue: who has a folder publishes it, everybody reads it."""

import shutil

import pytest

from registry.api import SkillRegistry
from registry.db.read.listing import Filters
from registry.errors import (
    FileNotFoundInSkill,
    SkillInaccessible,
    SourceElsewhere,
    SourceExists,
    SourceUnclear,
    SyncRunning,
)
from registry.settings import Settings
from tests.conftest import write_skill

pytestmark = pytest.mark.server


@pytest.fixture
def publisher(machine, root):
    folder = write_skill(root / "alpha", body="# Alpha\n")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "run.sh").write_bytes(b"echo \x00\xff\n")
    write_skill(root / "beta", extra="tags: [git]\n")
    opened = machine("publisher")
    opened.sync(str(root), name="shared")
    return opened


@pytest.fixture
def reader(machine, publisher, root):
    """Another machine, which does not have the folder."""
    shutil.move(root, root.with_name("elsewhere"))
    return machine("reader")


def test_a_source_belongs_to_the_machine_that_synced_it(publisher, reader):
    (source,) = reader.sources()
    assert source.host == "publisher"
    assert reader.own_sources() == []
    assert reader.database_info().host == "reader"


def test_a_machine_without_the_folder_reads_and_searches_every_skill(reader):
    assert [skill.name for skill in reader.list(Filters(tags=["git"]))] == ["beta"]
    assert [hit.name for hit in reader.search("alpha")] == ["alpha"]
    assert reader.read("alpha").endswith("# Alpha\n")
    assert reader.get("alpha").body == "\n# Alpha\n"
    assert reader.read_file("alpha", "scripts/run.sh") == b"echo \x00\xff\n"
    assert [one.number for one in reader.history("alpha")] == [1]


@pytest.mark.parametrize(
    ("toolset", "tool", "arguments"),
    [
        ("native", "read_skill", {"name": "alpha"}),
        ("basic", "get_skill", {"skill_name": "alpha"}),
        ("miniclaw", "read_skill", {"name": "alpha"}),
        ("ethos", "skill_view", {"name": "alpha"}),
        ("wave", "Skill", {"skill_name": "alpha"}),
    ],
)
def test_every_toolset_serves_what_is_on_another_machine(reader, toolset, tool, arguments):
    assert "# Alpha" in str(reader.toolset(toolset).call(tool, arguments))


def test_the_basic_toolset_lists_what_is_on_another_machine_and_says_what_is_not_there(reader):
    basic = reader.toolset("basic", source="shared")
    assert basic.call("list_skills", {}) == {"skills": ["alpha", "beta"]}
    missing = basic.call("get_skill", {"skill_name": "gamma"})
    assert missing == {"error": "Skill 'gamma' not found in skills folder"}


def test_skills_are_pulled_from_another_machine(reader, tmp_path):
    reader.pull(reader.list().items, str(tmp_path / "pulled"))
    assert (tmp_path / "pulled" / "alpha" / "scripts" / "run.sh").read_bytes() == b"echo \x00\xff\n"


def test_only_its_own_machine_changes_a_skill(reader):
    with pytest.raises(SourceElsewhere, match="'publisher'"):
        reader.update("alpha", description="New.")
    with pytest.raises(SourceElsewhere):
        reader.delete("alpha")
    with pytest.raises(SourceElsewhere):
        reader.create("gamma", description="x", source="shared")
    with pytest.raises(SourceElsewhere):
        reader.sync("shared")


def test_a_machine_without_sources_is_told_that_others_have_them(reader):
    with pytest.raises(SourceUnclear, match="All sources are on other machines"):
        reader.create("new", description="Has no place here.")


def test_a_sync_here_removes_nothing_of_another_machine(reader, publisher, tmp_path):
    write_skill(tmp_path / "own" / "gamma")
    reader.sync(str(tmp_path / "own"), allow_prune=True)
    reader.sync(allow_prune=True, verify=True)
    assert {skill.ref for skill in publisher.list()} == {"alpha", "beta", "gamma"}


def test_what_another_machine_is_staging_is_not_cleared_away(machine, publisher, tmp_path):
    from registry.db.write.skills import stage
    from registry.disk.walk import Walk
    from registry.sync.apply import clear
    from registry.sync.reading import make_version, read_folder

    (source,) = publisher.sources()
    walk = Walk(source.path, publisher.settings.limits, [])
    reading = read_folder(source.path, walk.one("alpha"), publisher.settings.limits, {})
    with publisher.core.writer.transaction() as connection:
        stage(connection, [make_version(reading, source.id, 0, "2026-01-01T00:00:00Z", None)])
    staged = "SELECT count(*) FROM skills WHERE live = 0"
    for one in (machine("other"), publisher):
        assert publisher.core.reader.rows(staged) == [(1,)]
        with one.core.backend.sync_lock() as lock:
            assert lock.acquire(0)
            clear(one.core, lock)
    assert publisher.core.reader.rows(staged) == [(0,)]


def test_the_same_path_on_two_machines_is_two_sources(machine, publisher, root):
    other = machine("other")
    with pytest.raises(SourceExists):
        other.sync(str(root), name="shared")
    other.sync(str(root), name="theirs")
    assert [(source.name, source.host) for source in publisher.sources()] == [
        ("shared", "publisher"),
        ("theirs", "other"),
    ]


def test_two_publishers_of_one_source_exclude_each_other(machine, publisher):
    twin, other = machine("publisher"), machine("other")
    with publisher.core.backend.sync_lock() as lock:
        assert lock.acquire(0)
        with pytest.raises(SyncRunning, match=r"process .* on publisher"):
            twin.sync()
        other.sync()  # has nothing of its own, and waits for nobody
    twin.sync()


def test_a_sync_whose_lock_was_lost_publishes_nothing(machine, publisher, root, monkeypatch):
    write_skill(root / "gamma")
    from registry.db.postgres import backend
    from registry.errors import DatabaseUnreachable

    real = backend.PostgresBackend.sync_lock

    def lost(self):
        lock = real(self)
        take = lock.acquire

        def acquire(wait):
            taken = take(wait)
            lock.release()
            return taken

        lock.acquire = acquire
        return lock

    monkeypatch.setattr(backend.PostgresBackend, "sync_lock", lost)
    with pytest.raises(DatabaseUnreachable, match="lock of this sync"):
        publisher.sync()
    monkeypatch.undo()
    assert [skill.name for skill in publisher.list()] == ["alpha", "beta"]
    assert publisher.sync().added == ("gamma",)


def test_what_was_not_stored_is_said_with_the_machine_that_has_it(machine, root, tmp_path):
    folder = write_skill(root / "alpha")
    (folder / "data.bin").write_bytes(b"1")
    machine("publisher", store_files=False).sync(str(root))
    reader = machine("reader")
    assert reader.read("alpha")
    with pytest.raises(SkillInaccessible, match="publisher:"):
        reader.read_file("alpha", "data.bin")
    with pytest.raises(FileNotFoundInSkill):
        reader.read_file("alpha", "nothing.bin")


def test_a_change_is_finished_by_its_own_machine_only(machine, publisher, monkeypatch):
    from registry.changes import finish
    from registry.errors import ChangePending, DatabaseProblem

    def fail(_context, _entry):
        raise DatabaseProblem(path="x", reason="stopped")

    with monkeypatch.context() as patch:
        patch.setattr(finish, "store_result", fail)
        with pytest.raises(ChangePending):
            publisher.update("alpha", description="New.")
    waiting = "SELECT count(*) FROM journal"
    machine("other")
    assert publisher.core.reader.rows(waiting) == [(1,)]
    again = machine("publisher")
    assert again.core.reader.rows(waiting) == [(0,)]
    assert again.resolve("alpha").description == "New."


def test_what_is_said_of_a_skill_names_the_machine_that_has_it(reader):
    (explained,) = reader.why("alpha")
    assert explained.listed
    assert "its folder is on publisher" in explained.reasons[0].message
    (checked,) = reader.check(["alpha"])
    assert checked.name == "alpha"
    with pytest.raises(SourceElsewhere):
        reader.check(["shared"])


class TestCommands:
    def run(self, database, *arguments, host="reader"):
        from click.testing import CliRunner

        from registry.cli.app import root as program

        environment = {"SKILL_REGISTRY_HOST": host}
        return CliRunner().invoke(program, ["--db", database, *arguments], env=environment)

    def test_a_machine_without_sources_is_told_that_others_sync_theirs(
        self, reader, server_database
    ):
        ran = self.run(server_database, "sync")
        assert ran.exit_code == 1
        assert "All sources are on other machines" in ran.stderr

    def test_listings_and_one_skill_name_the_machine(self, reader, server_database):
        assert (
            "publisher" in self.run(server_database, "source", "list", "--format", "table").stdout
        )
        shown = self.run(server_database, "show", "alpha").stdout
        assert "Host        publisher" in shown
        assert "publisher" in self.run(server_database, "db", "info", host="publisher").stdout

    def test_a_registry_is_copied_with_what_it_holds_said(self, reader, server_database, tmp_path):
        target = str(tmp_path / "copy.db")
        ran = self.run(server_database, "db", "copy", server_database, target)
        assert ran.stdout == f"Copied 1 source, 2 skills, 2 revisions, 1 stored file to {target}\n"
        again = self.run(server_database, "db", "copy", server_database, target)
        assert again.exit_code == 2
        assert "holds a registry already" in again.stderr
        record = self.run(
            server_database, "db", "copy", server_database, f"{target}2", "--json"
        ).stdout
        assert '"revisions": 2' in record


def test_a_machine_is_called_by_the_environment_else_the_settings_else_its_network_name(
    server_database, monkeypatch
):
    import platform

    def name(**settings):
        with SkillRegistry.open(server_database, settings=Settings(**settings)) as registry:
            return registry.core.backend.host

    assert name() == platform.node()
    assert name(host="set") == "set"
    monkeypatch.setenv("SKILL_REGISTRY_HOST", "environment")
    assert name(host="set") == "environment"
