"""A database that an older program filled opens with all its history, on both databases."""

import hmac
import json
import os
from contextlib import contextmanager

import pytest

from registry.api import SkillRegistry
from registry.db.interface import KNOWN_REVISIONS, SCHEMA_REVISION
from registry.errors import DatabaseTooOld, SkillGone
from registry.settings import Settings, data_folder
from tests.conftest import write_skill
from tests.older import file_at_0015, move, server_at_0015
from tests.program import run

SETTINGS = Settings(host="ann-pc")
KEY = bytes(range(32))


@pytest.fixture
def folder(root):
    """The folders of the skills as the older program left them."""
    knots = write_skill(
        root / "knots",
        description="Ties ropes and lines.",
        body="# How\n\nFirst the bowline.\n",
        extra="tags: [rope, sailing]\n",
    )
    (knots / "run.sh").write_text("echo bowline\n")
    write_skill(root / "tents", description="Pitches tents.", body="# Tents\n\nHammer the pegs.\n")
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_text("---\nname: broken\n---\n\nNo description.\n")
    return root


@pytest.fixture(
    params=[
        pytest.param("file", marks=pytest.mark.file),
        pytest.param("server", marks=pytest.mark.server),
    ]
)
def address(request, folder, tmp_path):
    """A database at revision 0015, with all that there was then."""
    if request.param == "file":
        path = tmp_path / "ann" / "registry.db"
        file_at_0015(path, folder)
        yield str(path)
        return
    databases = request.getfixturevalue("databases")
    url = server_at_0015(databases, folder)
    yield url
    databases.drop(url)


@contextmanager
def upgraded(address):
    with SkillRegistry.open(address, settings=SETTINGS, upgrade=True) as registry:
        registry.create_database()
        if "://" in address:  # as this user did on this machine then
            registry.adopt_source("mine")
        yield registry


def sync_twice(registry):
    """Return what a second sync finds unchanged; the first one applies rules that are new since."""
    first = registry.sync()
    assert (first.added, first.moved, first.removed) == ((), (), ())
    return registry.sync().unchanged


def change(registry, sql):
    with registry.core.writer.transaction() as connection:
        return connection.exec_driver_sql(sql)


def sign(registry, root):
    """Let the recorded changes be this user's: the signature has the place of the database in it."""
    data_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    key = data_folder() / "state.key"
    key.touch(0o600)
    key.write_bytes(KEY)
    columns = ("number", "kind", "uid", "name", "folder", "before", "after", "made_at")
    sql = f"SELECT {', '.join(columns)} FROM changes"
    for number, *values in registry.core.reader.rows(sql):
        signed = {
            "purpose": "undo",
            "number": number,
            "user": os.geteuid(),
            "database": registry.core.backend.identity,
            "root": str(root),
            "facts": dict(zip(columns[1:], values, strict=True)),
        }
        text = json.dumps(signed, sort_keys=True, separators=(",", ":"))
        signature = hmac.new(KEY, text.encode(), "sha256").hexdigest()
        change(registry, f"UPDATE changes SET signature = '{signature}' WHERE number = '{number}'")


def test_skills_history_counts_and_search_are_there_after_the_upgrade(address, folder):
    with upgraded(address) as registry:
        assert registry.database_info().revision == SCHEMA_REVISION
        assert [skill.name for skill in registry.list()] == ["broken", "knots", "tents"]
        (source,) = registry.sources()
        assert (source.name, source.path, source.own) == ("mine", str(folder), True)
        assert [hit.name for hit in registry.search("bowline")] == ["knots"]
        assert [hit.name for hit in registry.search("tying sailing")] == ["knots"]
        assert registry.get("knots").tags == ("rope", "sailing")
        history = registry.history("knots")
        assert [(one.number, one.current) for one in history] == [(3, True), (2, False), (1, False)]
        assert b"Ties ropes.\n" in registry.read_revision("knots", 1)
        assert registry.read_revision("knots", 1, "run.sh") == b"echo bowline\n"
        assert "-description: Ties ropes.\n+description: Ties ropes and" in registry.diff(
            "knots", 1
        )
        assert [(one.ref, one.read) for one in registry.usage_counts()] == [("knots", 2)]
        with pytest.raises(SkillGone, match=r"deleted 2026-11-23T"):
            registry.get("soup")
        assert sync_twice(registry) == 3
        assert registry.check_database() == []


def test_the_changes_of_before_the_upgrade_can_be_undone(address, folder):
    with upgraded(address) as registry:
        sign(registry, folder)
    environ = {**os.environ, "SKILL_REGISTRY_HOST": "ann-pc"}
    # What was deleted is in no trash any more: the test has the database alone.
    for option in ("--skip", "--yes", "--yes"):
        undone = run(["--db", address, "undo", option], environ=environ)
        assert undone.status == 0, undone
    assert "Ties ropes.\n" in (folder / "knots" / "SKILL.md").read_text()
    with upgraded(address) as registry:
        assert sync_twice(registry) == 3
        assert [one.number for one in registry.history("knots") if one.current] == [1]
        registry.update("knots", body="# How\n\nFirst the hitch.\n")
        assert len(registry.history("knots")) == 4
        assert registry.check_database() == []


@pytest.mark.parametrize("revision", KNOWN_REVISIONS[1:-1])
def test_a_database_of_any_later_revision_opens_with_its_history(address, revision):
    move(address, revision, "upgrade")
    with upgraded(address) as registry:
        assert sync_twice(registry) == 3
        assert len(registry.history("knots")) == 3
        assert registry.restore("soup").description == "Cooks leeks."


@pytest.mark.parametrize("revision", ["0001", "0014", "0017", "1f3a"])
def test_an_older_schema_is_refused_with_the_way_out_and_left_alone(address, revision):
    with upgraded(address) as registry:
        change(registry, f"UPDATE alembic_version SET version_num = '{revision}'")
    with pytest.raises(DatabaseTooOld, match=rf"its schema \({revision}\) is from before the"):
        SkillRegistry.open(address, settings=SETTINGS, upgrade=True)
    for command in (["list"], ["sync"], ["db", "upgrade"], ["db", "info"]):
        ran = run(["--db", address, *command], environ=dict(os.environ))
        assert (ran.status, ran.out) == (3, "")
        assert "can't be upgraded" in ran.err
        assert "skill-registry --db NEW sync FOLDER..." in ran.err
        assert "newer" not in ran.err
