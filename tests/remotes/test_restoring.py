"""db restore: a backup goes on at another place, with another home and other folders."""

import json
import os
import shutil
import sqlite3

import pytest

from registry.api import SkillRegistry
from registry.settings import data_folder
from tests.conftest import write_skill
from tests.remotes.upstream import document

pytestmark = pytest.mark.file


def sources(cli, *db):
    return {one["name"]: one for one in json.loads(cli(*db, "source", "list", "--json").stdout)}


def tag(upstream):
    upstream.git("tag", "-f", "v1", upstream.head(), at=upstream.bare)


@pytest.fixture
def backup(cli, upstream, tmp_path):
    """A backup of a registry with a local folder and a pinned repository; its machine is gone."""
    home = tmp_path / "ann"
    write_skill(home / "team" / "skills" / "tea", description="First.")
    upstream.write("skills/alpha/SKILL.md", document("alpha"))
    upstream.commit()
    tag(upstream)
    assert cli("sync", str(home / "team" / "skills"), "--name", "team").exit_code == 0
    assert cli("update", "tea", "--description", "Second.").exit_code == 0
    assert cli("sync", f"{upstream.url}#v1", "--name", "up").exit_code == 0
    file = tmp_path / "backup.db"
    assert cli("db", "backup", str(file)).exit_code == 0
    shutil.rmtree(data_folder())
    home.rename(tmp_path / "gone")
    return file


@pytest.fixture
def elsewhere(backup, tmp_path, monkeypatch):
    """Another home folder, with a copy of the skills; the options that name a database there."""
    home = tmp_path / "bob"
    shutil.copytree(tmp_path / "gone" / "team", home / "team")
    monkeypatch.setenv("HOME", str(home))
    return "--db", str(home / "registry.db")


def test_the_skills_of_a_backup_are_written_to_a_machine_without_their_folder(
    cli, backup, elsewhere, tmp_path
):
    shutil.rmtree(tmp_path / "bob" / "team")
    restored = cli(*elsewhere, "db", "restore", str(backup))
    assert "skill-registry source update team --folder DIR\n" in restored.stderr
    way = "restore --source team --missing"
    assert f"create the folder, run this command, then: skill-registry {way}\n" in restored.stderr
    new = tmp_path / "bob" / "new"
    new.mkdir()
    assert cli(*elsewhere, "source", "update", "team", "--folder", str(new)).exit_code == 0
    assert cli(*elsewhere, *way.split()).exit_code == 0
    assert "Second." in (new / "tea" / "SKILL.md").read_text()


def test_a_backup_is_restored_on_another_machine_and_synced(cli, backup, elsewhere, tmp_path):
    restored = cli(*elsewhere, "db", "restore", str(backup))
    assert restored.exit_code == 0
    assert restored.stdout.endswith(f"registry.db from {backup} (2 sources, 3 skills)\n")
    folder = tmp_path / "bob" / "team" / "skills"
    told = f"skill-registry source update team --folder {folder}\n"
    assert f"team: there is no folder {tmp_path}/ann/team/skills here" in restored.stderr
    assert told in restored.stderr
    synced = cli(*elsewhere, "sync")
    assert synced.exit_code == 1  # the folder is still missing, and its skill stays
    assert sources(cli, *elsewhere)["team"]["skills"] == 1
    assert sources(cli, *elsewhere)["up"]["last_result"] == "ok"
    assert cli(*elsewhere, "show", "alpha").exit_code == 0
    assert cli(*elsewhere, *told.split()[1:]).exit_code == 0
    synced = cli(*elsewhere, "sync")
    assert (synced.exit_code, synced.stderr) == (0, "")
    assert len(cli(*elsewhere, "history", "tea").stdout.splitlines()) == 2
    assert sources(cli, *elsewhere)["up"]["path"].startswith(str(data_folder()))


def test_a_tag_that_moved_since_the_backup_is_reported(cli, backup, elsewhere, upstream):
    upstream.write("skills/alpha/SKILL.md", document("alpha", "Another."))
    upstream.commit()
    tag(upstream)
    assert cli(*elsewhere, "db", "restore", str(backup)).exit_code == 0
    synced = cli(*elsewhere, "sync", "up")
    assert "the tag v1 moved" in synced.stderr
    assert sources(cli, *elsewhere)["up"]["skills"] == 2


def test_a_database_that_was_copied_by_hand_says_how_to_fetch_again(cli, backup, elsewhere):
    os.makedirs(os.path.dirname(elsewhere[1]), exist_ok=True)
    shutil.copy(backup, elsewhere[1])
    synced = cli(*elsewhere, "sync", "up")
    way = "skill-registry source adopt up"
    assert f"to fetch it again, run: {way}" in synced.stderr
    assert cli(*elsewhere, *way.split()[1:], "--yes").exit_code == 0
    assert cli(*elsewhere, "sync", "up").exit_code == 0
    path = sources(cli, *elsewhere)["up"]["path"]
    assert cli(*elsewhere, "source", "adopt", "up", "--yes").exit_code == 0
    assert sources(cli, *elsewhere)["up"]["path"] == path  # this checkout is already here


def test_a_registry_is_replaced_only_if_told_and_is_kept_beside(cli, backup, elsewhere, tmp_path):
    write_skill(tmp_path / "bob" / "own" / "coffee")
    cli(*elsewhere, "sync", str(tmp_path / "bob" / "own"))
    refused = cli(*elsewhere, "db", "restore", str(backup))
    assert refused.exit_code == 2
    assert "to replace it, add --overwrite" in refused.stderr
    assert list(sources(cli, *elsewhere)) == ["own"]
    with SkillRegistry.open(elsewhere[1]) as reading:
        assert [one.name for one in reading.list()] == ["coffee"]
        done = cli(*elsewhere, "db", "restore", str(backup), "--overwrite", "--json")
        saved = json.loads(done.stdout)["replaced"]
        # a program that has the file open sees the new content
        assert {"alpha", "tea"} < {one.name for one in reading.list()}
    assert list(sources(cli, "--db", saved)) == ["own"]
    assert cli(*elsewhere, "db", "check").exit_code == 0


def test_what_is_no_sound_backup_replaces_nothing(cli, backup, elsewhere, tmp_path):
    missing = cli(*elsewhere, "db", "restore", str(tmp_path / "nothing.db"))
    assert (missing.exit_code, "there is no registry at" in missing.stderr) == (2, True)
    with sqlite3.connect(tmp_path / "strange.db") as connection:
        connection.execute("CREATE TABLE other (x)")
    connection.close()
    assert (
        "another program" in cli(*elsewhere, "db", "restore", str(tmp_path / "strange.db")).stderr
    )
    with sqlite3.connect(backup) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("DELETE FROM sources")
    connection.close()
    damaged = cli(*elsewhere, "db", "restore", str(backup))
    assert (damaged.exit_code, "is damaged" in damaged.stderr) == (3, True)
    assert sources(cli, *elsewhere) == {}
    same = cli("--db", str(backup), "db", "restore", str(backup))
    assert "is the database itself" in same.stderr
