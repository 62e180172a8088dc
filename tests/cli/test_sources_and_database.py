"""source, stats and db."""

import json
import sqlite3

import pytest

from tests.conftest import write_skill


@pytest.mark.both
def test_sources_are_listed_with_everything_known(library, cli):
    (source,) = json.loads(cli("source", "list", "--json").stdout)
    assert list(source) == [
        "name",
        "path",
        "scope",
        "priority",
        "enabled",
        "skills",
        "last_sync_at",
        "last_result",
        "host",
        "remote",
        "held",
        "owner",
        "team",
        "review",
    ]
    assert (source["name"], source["path"], source["skills"]) == ("mine", str(library), 4)
    assert cli("source", "list").stdout == f"mine\tpersonal\t4\t{library}\n"
    assert cli("source", "list", "--format", "names").stdout == "mine\n"


def test_the_line_for_each_agents_own_client_is_listed(library, cli):
    found = json.loads(
        cli("source", "list", "--clients", "https://example.org/x/", "--json").stdout
    )
    url = "https://example.org/x/git/source/mine.git"
    line = f"npx openskills install {url}"
    assert {"source": "mine", "client": "openskills", "command": line} in found
    lines = cli("source", "list", "--clients", "https://example.org/x").stdout.splitlines()
    assert f"mine\tCodex\tcodex plugin marketplace add {url}" in lines
    assert len(lines) == len(found)
    assert cli("source", "list", "--clients", "example.org").exit_code == 2
    assert cli("source", "list", "--clients", "https://x.org", "--remote").exit_code == 2


def test_add_registers_and_says_what_comes_next(root, cli):
    result = cli("source", "add", str(root), "--scope", "team", "--name", "work", "--priority", "3")
    assert result.exit_code == 0
    assert result.stdout == f"Registered the source work (team): {root}\n"
    assert "skill-registry sync work" in result.stderr
    (source,) = json.loads(cli("source", "list", "--json").stdout)
    assert (source["scope"], source["priority"], source["last_sync_at"]) == ("team", 3, None)
    again = cli("source", "add", str(root))
    assert again.exit_code == 1
    assert "'work'" in again.stderr


@pytest.mark.both
def test_remove_forgets_the_skills_and_leaves_the_folder(library, cli):
    result = cli("source", "remove", "mine")
    assert result.exit_code == 0
    assert f"Removed the source mine and its 4 skills; {library} is not changed." in result.stdout
    assert (library / "haiku" / "SKILL.md").exists()
    assert cli("list", "--json").stdout == "[]\n"
    assert cli("source", "remove", "mine").exit_code == 1


def test_a_source_with_a_new_empty_folder_says_how_to_fill_it(library, cli, tmp_path):
    (tmp_path / "new").mkdir()
    ran = cli("source", "update", "mine", "--folder", str(tmp_path / "new"))
    way = "restore --source mine --missing"
    assert ran.stderr == f"To write its skills to this folder, run: skill-registry {way}\n"
    assert cli(*way.split()).exit_code == 0
    assert (tmp_path / "new" / "haiku" / "SKILL.md").exists()


def test_a_source_whose_folder_was_moved_keeps_the_history_of_its_skills(library, cli, tmp_path):
    cli("update", "haiku", "--description", "Other words.")
    cli("source", "update", "mine", "--priority", "7")
    before = cli("history", "haiku").stdout
    assert before.count("\n") == 2
    moved = library.rename(tmp_path / "moved")
    ran = cli("source", "update", "mine", "--folder", str(moved))
    assert ran.stdout == f"Changed the source mine (personal, priority 7): {moved}\n"
    assert ran.stderr == "To read it, run: skill-registry sync mine\n"
    assert cli("sync").stdout.startswith("0 added, 0 updated, 0 moved, 0 removed, 4 unchanged")
    assert cli("history", "haiku").stdout == before
    cli("update", "haiku", "--description", "New words.")
    assert "New words." in (moved / "haiku" / "SKILL.md").read_text()
    assert cli("db", "check").exit_code == 0


def test_a_source_gets_no_folder_that_is_missing_or_that_another_source_has(library, cli, tmp_path):
    other = write_skill(tmp_path / "other" / "beta").parent
    cli("sync", str(other), "--name", "other")
    missing = "there is no such folder. First create it, or move the skills there."
    for folder, why in ((tmp_path / "no", missing), (other, "'other'")):
        ran = cli("source", "update", "mine", "--folder", str(folder))
        assert (ran.exit_code, ran.stdout) == (1, "")
        assert why in ran.stderr
    assert {line.split("\t")[3] for line in cli("source", "list").stdout.splitlines()} == {
        str(library),
        str(other),
    }


def test_discover_finds_the_folders_of_agents(cli, tmp_path, root):
    claude = tmp_path / "home" / ".claude" / "skills"
    claude.mkdir(parents=True)
    project = tmp_path / "project"
    (project / ".github" / "skills").mkdir(parents=True)
    result = cli("source", "discover", str(project))
    assert result.stdout.splitlines() == [
        f"{claude}\tpersonal\t-",
        f"{project}/.github/skills\tproject\t-",
    ]
    assert f"skill-registry sync {claude}\n" in result.stderr
    assert "--scope project" in result.stderr
    cli("sync", str(claude))
    (found, _) = json.loads(cli("source", "discover", str(project), "--json").stdout)
    assert found == {
        "path": str(claude),
        "scope": "personal",
        "suggested_name": "claude",
        "source": "claude",
    }


@pytest.mark.parametrize("ask", [["list"], ["search", "pdf"], ["list", "--tag", "x"]])
def test_sources_that_were_never_read_are_not_called_empty(cli, root, tmp_path, ask):
    write_skill(root / "pdf", description="Reads every PDF.")
    cli("source", "add", str(root), "--name", "mine")
    told = cli(*ask)
    command = "To sync it, run: skill-registry sync\n"
    assert (told.exit_code, told.stderr) == (0, f"1 source is not synced yet: mine. {command}")
    write_skill(tmp_path / "other" / "one")
    cli("sync", str(tmp_path / "other"))
    told = cli("search", "pdf").stderr
    assert told == f"1 source is not synced yet: mine. {command}No skills match.\n"
    cli("sync")
    assert cli("list", "--tag", "x").stderr == "No skill has the tag 'x': no skill has a tag.\n"


def test_discover_registers_what_is_new_where_it_is_asked_to(cli, tmp_path):
    for below in ("home/.claude/skills", "shop/.claude/skills"):
        (tmp_path / below).mkdir(parents=True)
    shop = str(tmp_path / "shop")
    result = cli("source", "discover", shop, "--register")
    assert result.exit_code == 0
    assert "Registered 2 sources. To read the skills, run: skill-registry sync" in result.stderr
    rows = [line.split("\t")[1:] for line in result.stdout.splitlines()]
    assert rows == [["personal", "claude"], ["project", "shop-claude"]]
    again = cli("source", "discover", shop, "--register")
    assert (again.exit_code, again.stdout) == (0, result.stdout)
    assert "Registered" not in again.stderr


@pytest.mark.both
def test_stats_count_everything(library, cli):
    stats = json.loads(cli("stats", "--json").stdout)
    assert (stats["skills"], stats["visible"], stats["sources"]) == (4, 3, 1)
    assert stats["by_status"]["invalid"] == 1
    assert "skills\t4 in 1 source\n" in cli("stats").stdout


@pytest.mark.both
def test_info_describes_the_database(library, cli, database):
    facts = json.loads(cli("db", "info", "--json").stdout)
    assert (facts["path"], facts["exists"], facts["skills"]) == (str(database), True, 4)
    assert f"path\t{database}\n" in cli("db", "info").stdout


@pytest.mark.file
def test_info_before_the_first_sync_makes_no_database(cli, database):
    assert json.loads(cli("db", "info", "--json").stdout)["exists"] is False
    assert not database.exists()


@pytest.mark.both
def test_a_sound_database_passes(library, cli):
    result = cli("db", "check")
    assert (result.exit_code, result.stdout) == (0, "The database is sound.\n")


@pytest.mark.file
def test_a_damaged_database_is_status_3(library, cli, database):
    with sqlite3.connect(database) as connection:
        connection.execute("INSERT INTO search_heads (search_heads) VALUES ('delete-all')")
    connection.close()
    result = cli("db", "check")
    assert result.exit_code == 3
    assert "index" in result.stdout
    assert "skill-registry sync" in result.stderr


@pytest.mark.file
def test_backup_writes_a_copy_that_works_and_overwrites_only_when_told(library, cli, tmp_path):
    copy = tmp_path / "copy.db"
    assert cli("db", "backup", str(copy)).exit_code == 0
    assert len(json.loads(cli("--db", str(copy), "list", "--json").stdout)) == 3
    assert cli("db", "backup", str(copy)).exit_code == 2
    assert cli("db", "backup", str(copy), "--overwrite").exit_code == 0


@pytest.mark.file
def test_a_copy_says_how_many_tokens_it_leaves_behind(library, cli, database, tmp_path):
    copied = cli("db", "copy", str(database), str(tmp_path / "first.db"))
    assert (copied.exit_code, "token" in copied.stderr) == (0, False)
    for name in ("anna", "bob"):
        assert cli("token", "create", name, "--read").exit_code == 0
    copied = cli("db", "copy", str(database), str(tmp_path / "second.db"))
    assert copied.exit_code == 0
    assert "2 tokens were not copied. To create a new token, run: skill-registry token create" in (
        copied.stderr
    )
    assert cli("--db", str(tmp_path / "second.db"), "token", "list").stdout == ""


@pytest.mark.file
def test_upgrade_says_what_it_did(cli, database):
    assert f"Created the database {database} (schema " in cli("db", "upgrade").stdout
    assert "is up to date" in cli("db", "upgrade").stdout


@pytest.mark.file
@pytest.mark.parametrize("command", [["list"], ["sync"], ["db", "info"], ["stats"]])
def test_a_file_that_is_no_database_is_status_3(cli, database, command):
    database.parent.mkdir(parents=True)
    database.write_bytes(b"this is a text, and no database at all" * 50)
    result = cli(*command)
    assert (result.exit_code, result.stdout) == (3, "")
    assert str(database) in result.stderr


@pytest.mark.file
def test_a_database_of_a_newer_version_is_status_3(library, cli, database):
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    result = cli("list")
    assert result.exit_code == 3
    assert "newer skill-registry" in result.stderr


def test_who_adds_reading_to_a_right_that_includes_it_is_told_so(cli, library):
    for right in ("--approve", "--publish", "--write", "--admin"):
        ran = cli("token", "create", "eve", "--read", right)
        assert ran.exit_code == 2
        assert "The other rights include reading: leave out --read." in ran.stderr
    assert cli("token", "list").stdout == ""
