"""A database, settings and folders of ours that are something else, or open to other users."""

import os
import sqlite3
from contextlib import closing

import pytest

from tests.remotes.upstream import Upstream

pytestmark = pytest.mark.file


@pytest.fixture
def pipe(tmp_path):
    """A FIFO: a program that opens it waits until another program writes to it."""
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


@pytest.mark.parametrize(
    "command",
    [["db", "check"], ["db", "info"], ["list"], ["sync", "."], ["db", "copy", "pipe", "new.db"]],
    ids=" ".join,
)
def test_a_pipe_is_not_a_database(process, pipe, command):
    ran = process("--db", pipe, *command)
    assert (ran.status, ran.out) == (3, "")
    assert "it is not a regular file" in ran.err


def test_a_pipe_is_not_a_settings_file(process, pipe):
    ran = process("--config", pipe, "list")
    assert (ran.status, ran.out) == (2, "")
    assert "it is not a regular file" in ran.err


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE skills SET folder = '../../../etc' WHERE folder = 'haiku'",
        "UPDATE skills SET folder = '/etc' WHERE folder = 'haiku'",
        "UPDATE skills SET folder = 'a' || char(0) || 'b' WHERE folder = 'haiku'",
        "UPDATE skill_files SET path = '../x' WHERE path = 'notes.txt'",
        "UPDATE sources SET path = path || char(0)",
        """UPDATE revisions SET files = '[["../x", false, 1, "sha256:0"]]'""",
    ],
)
def test_a_path_that_leads_out_of_a_source_is_damage(cli, library, database, change):
    (library / "haiku" / "notes.txt").write_text("More.")
    cli("sync")
    assert cli("db", "check").exit_code == 0
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute(change).rowcount > 0
        connection.commit()
    ran = cli("db", "check")
    assert ran.exit_code == 3
    assert "that can be used" in ran.output


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_other_users_can_write_nothing_of_ours_whatever_the_umask(
    open_umask, interpreter, tmp_path
):
    homes = {f"XDG_{name}_HOME": str(tmp_path / name / "home") for name in ("DATA", "CACHE")}
    upstream = Upstream(tmp_path / "upstream")
    upstream.skill("alpha")
    upstream.commit()
    there = str(tmp_path / "there")
    ran = interpreter("pull", upstream.url, "--to", there, SKILL_REGISTRY_DB="", **homes)
    assert ran.status == 0, ran.err
    ours = tmp_path / "DATA" / "home" / "skill-registry"
    assert ours.stat().st_mode & 0o777 == 0o700
    assert (ours / "registry.db").stat().st_mode & 0o022 == 0
    assert all(one.stat().st_mode & 0o077 == 0 for one in (ours / "checkouts").iterdir())
    new = str(tmp_path / "new" / "registry.db")
    assert interpreter("--db", new, "sync", there, **homes).status == 0
    assert (tmp_path / "new").stat().st_mode & 0o022 == 0
    assert (tmp_path / "new" / "registry.db").stat().st_mode & 0o022 == 0


def test_a_folder_that_other_users_may_write_is_warned_of_and_stays(cli, library, database):
    assert "Other users" not in cli("db", "info").stderr
    database.parent.chmod(0o777)
    for command in ("info", "check"):
        ran = cli("db", command)
        assert ran.exit_code == 0
        assert (
            f"Other users can write to {database.parent}. To prevent it, run: chmod go-w"
            in ran.stderr
        )
    assert database.parent.stat().st_mode & 0o777 == 0o777
