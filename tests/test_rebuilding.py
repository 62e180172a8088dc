"""What a new database, filled from the folders, does not hold, and that a backup holds it."""

import shutil
from pathlib import Path

import pytest

from registry import errors
from registry.api import SkillRegistry
from registry.changes.undo import Undo
from registry.cli.app import root as program
from registry.cli.commands import db
from registry.cli.hints import hint
from registry.errors import NothingToUndo
from registry.settings import Settings
from tests.conftest import OLD, REPOSITORY, write_skill


def facts(registry):
    """All that only a database knows of the one skill."""
    source, skill = registry.sources()[0], registry.list().items[0]
    history = [one.number for one in registry.history(skill.ref)]
    counts = [(one.ref, one.read) for one in registry.usage_counts() if one.read]
    return (source.name, source.scope, source.priority), history, skill.created_at, counts


@pytest.fixture
def lived(database, root, settled):
    with SkillRegistry.open(database, settings=Settings()) as registry:
        registry.add_source(str(root), name="work", scope="team", priority=7)
        write_skill(root / "alpha")
        registry.sync()
        registry.toolset("native").call("read_skill", {"name": "alpha"})
        write_skill(root / "alpha", description="Does two things.", age=OLD + 1_000_000)
        registry.sync()
    with SkillRegistry.open(database, settings=Settings()) as registry:
        yield registry


@pytest.mark.file
def test_a_rebuild_loses_what_the_readme_says_and_a_backup_keeps_it(lived, root, tmp_path):
    before = facts(lived)
    lived.backup(str(tmp_path / "backup.db"))
    with SkillRegistry.open(tmp_path / "backup.db", settings=Settings()) as kept:
        assert facts(kept) == before
    with SkillRegistry.open(tmp_path / "new.db", settings=Settings()) as rebuilt:
        rebuilt.sync(str(root))
        assert [skill.name for skill in rebuilt.list()] == ["alpha"]
        after = facts(rebuilt)
    assert before == (("work", "team", 7), [2, 1], "2023-11-14T22:13:20Z", [("alpha", 1)])
    assert all(one != other for one, other in zip(before, after, strict=True))


@pytest.mark.file
def test_undo_goes_on_where_a_backup_takes_the_place_of_the_database(lived, database, tmp_path):
    lived.create("beta", description="New.")
    lived.backup(str(tmp_path / "backup.db"))
    lived.close()
    with (
        SkillRegistry.open(tmp_path / "backup.db", settings=Settings()) as copy,
        pytest.raises(NothingToUndo),
    ):
        Undo.of(copy.core)
    for ending in ("-wal", "-shm"):
        Path(f"{database}{ending}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", database)
    with SkillRegistry.open(database, settings=Settings()) as back:
        assert Undo.of(back.core).change.name == "beta"


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/back-up-and-restore.md"])
def test_no_page_says_that_nothing_is_lost_with_the_database(page):
    text = " ".join((REPOSITORY / page).read_text(encoding="utf-8").split())
    assert "thrown away" not in text
    assert "db backup" in text


@pytest.mark.parametrize("group", [program, db.command], ids=lambda group: group.name)
def test_the_help_names_the_backup_and_what_it_keeps(group):
    text = " ".join(group.help.split())
    assert "thrown away" not in text
    assert "nothing that" not in text
    assert "backup" in text


def test_who_finds_the_database_damaged_is_told_of_the_backup():
    said = hint(errors.DatabaseCorrupt(path="r.db", reason="malformed"))
    assert "backup" in said
    assert "history" in said
    assert "-wal" in said
