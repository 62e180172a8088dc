"""On a server a host is a claim: only what this user added on this machine is read and changed."""

import os

import pytest
from click.testing import CliRunner

from registry.cli.app import root as program
from registry.errors import SourceElsewhere, SourceNotAdopted
from registry.sync import sources
from registry.sync.sources import unadopted_sources
from tests.conftest import write_skill

pytestmark = pytest.mark.server


@pytest.fixture
def private(tmp_path):
    """A folder of the victim that nobody was to see."""
    folder = write_skill(tmp_path / "private" / "diary", body="SECRET\n")
    (folder / "key.txt").write_text("SECRET")
    return folder.parent


@pytest.fixture
def victim(machine, private):
    """Somebody whose private folder a stranger added under the name of the victim's machine."""
    with machine("victim", "mallory") as stranger:
        stranger.add_source(str(private), name="private")
    return machine("victim", "ann")


def uploaded(registry):
    reader = registry.core.reader
    rows = [*reader.rows("SELECT text FROM documents"), *reader.rows("SELECT data FROM contents")]
    return [row for row in rows if "SECRET" in str(row)]


def test_what_somebody_else_added_under_this_hosts_name_is_not_synced(victim, private):
    assert [one.name for one in victim.sources()] == ["private"]
    assert victim.own_sources() == []
    victim.sync()
    with pytest.raises(SourceNotAdopted, match="by another user under this host's name"):
        victim.sync("private")
    with pytest.raises(SourceNotAdopted):
        victim.sync(str(private))
    with pytest.raises(SourceNotAdopted):
        victim.create("new", description="x", source="private")
    victim.sync(verify=True)
    assert uploaded(victim) == []
    assert sorted(os.listdir(private.parent)) == ["ann", "home", "mallory", "private"]


def test_a_source_that_another_process_sees_already_counts_as_added(machine, private, monkeypatch):
    """A second sync that begins at this moment must not be told that a stranger added it."""
    other, seen, remember = machine("laptop", "ann"), [], sources.remember

    def while_it_is_recorded(backend, path):
        seen.append([one.path for one in other.sources()])
        remember(backend, path)

    monkeypatch.setattr(sources, "remember", while_it_is_recorded)
    with machine("laptop", "ann") as ours:
        ours.sync(str(private))
    assert seen == [[]]
    assert [one.path for one in other.own_sources()] == [str(private)]


def test_what_is_claimed_to_lie_there_is_not_read_either(victim, private):
    """The rows of a skill can be planted as well: to show it must not fetch it from the disk."""
    with victim.core.writer.transaction() as connection:
        connection.exec_driver_sql(
            "INSERT INTO skills (uid, live, source_id, folder, position, ref, name, name_key, "
            "description, created_at, updated_at, indexed_at, bytes, file_count, fingerprint, "
            "racy, status) SELECT 'u', 1, id, 'diary', 'diary', 'diary', 'diary', 'diary', 'd', "
            "'', '', '', 1, 1, 'f', 0, 'ok' FROM sources"
        )
    assert "SECRET" not in str(victim.get("diary"))
    (pulled,) = victim.pull([victim.resolve("diary")], str(private.parent / "pulled"))
    assert pulled.state == "failed"
    victim.sync(verify=True)
    assert uploaded(victim) == []


def test_it_is_synced_once_it_was_adopted_here_and_not_under_another_path(victim, machine, private):
    assert victim.adopt_source("private").path == str(private)
    assert victim.sync().added == ("diary",)
    assert uploaded(victim) != []
    other = write_skill(private.parent / "other" / "more").parent
    with victim.core.writer.transaction() as connection:
        connection.exec_driver_sql(f"UPDATE sources SET path = '{other}'")
    with pytest.raises(SourceNotAdopted):
        victim.sync("private")
    with victim.core.writer.transaction() as connection:
        connection.exec_driver_sql(f"UPDATE sources SET path = '{private}'")
    assert victim.sync("private").unchanged == 1
    victim.remove_source("private")
    with machine("victim", "mallory") as stranger:
        stranger.add_source(str(private), name="private")
    assert machine("victim", "ann").own_sources() == []


def test_what_is_another_machines_can_not_be_adopted(machine, private):
    machine("far", "ann").add_source(str(private), name="far")
    with pytest.raises(SourceElsewhere, match="is on 'far'"):
        machine("near", "ann").adopt_source("far")


def test_a_new_source_of_ones_own_is_ones_own_at_once(machine, private):
    own = machine("laptop", "ann")
    own.sync(str(private), name="mine")
    own.close()
    again = machine("laptop", "ann")
    assert [one.name for one in again.own_sources()] == ["mine"]
    assert unadopted_sources(again.core, again.sources()) == []
    again.update("diary", description="New.")
    assert [one.name for one in machine("desk", "ann").own_sources()] == []
    assert [one.name for one in machine("laptop", "bob").own_sources()] == []


def test_a_stranger_takes_nothing_out_of_a_walk_by_adding_what_lies_in_it(victim, machine, private):
    own = write_skill(private.parent / "own" / "alpha").parent
    victim.sync(str(own), name="own")
    with machine("victim", "mallory") as stranger:
        stranger.add_source(str(own / "alpha"), name="hole")
    mine = machine("victim", "ann")
    assert mine.sync(verify=True, allow_prune=True).removed == ()
    assert mine.get("alpha").source == "own"
    assert mine.delete("alpha").source == "own"


class TestCommands:
    @pytest.fixture
    def run(self, server_database, victim):
        def run(*arguments):
            environment = {"SKILL_REGISTRY_HOST": "victim"}
            ran = CliRunner().invoke(
                program, ["--db", server_database, *arguments], env=environment
            )
            return ran.exit_code, ran.stdout, ran.stderr

        return run

    def test_a_sync_says_what_it_leaves_out_and_how_it_is_adopted(self, run, private, victim):
        status, _, told = run("sync")
        assert status == 1
        assert (
            f"private: not synced, because another user or machine added it under this host's name ({private})"
            in told
        )
        assert "skill-registry source adopt private" in told
        assert "other machines" not in told
        status, _, told = run("sync", "private")
        assert (status, "skill-registry source adopt private" in told) == (1, True)
        status, _, told = run("source", "adopt", "private")
        assert (status, f"private is {private} (personal)." in told) == (1, True)
        assert "pass --yes to confirm" in told
        assert run("source", "adopt", "private", "--yes")[:2] == (
            0,
            f"Adopted the source private (personal): {private}\n",
        )
        status, said, told = run("sync")
        assert (status, "added elsewhere" in told) == (0, False)
        assert "+ diary" in said

    def test_what_was_synced_here_says_nothing(self, run, tmp_path, victim):
        write_skill(tmp_path / "own" / "alpha")
        status, _, told = run("sync", str(tmp_path / "own"))
        assert (status, "added elsewhere" in told) == (0, False)
        assert "private: not synced, because" in run("sync")[2]
