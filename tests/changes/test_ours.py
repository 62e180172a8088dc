"""Only what this user began is finished: a row of the journal is a hint, whoever wrote it."""

import os
import shutil
from functools import partial

import pytest

from registry.api import SkillRegistry
from registry.errors import ChangeRefused
from registry.settings import Settings
from tests.changes.dying import dies, dies_between_two_renames
from tests.changes.planted import NUMBER, digest, plant_row, rows, seen, state_of
from tests.conftest import OLD, write_skill


@pytest.fixture
def outside(tmp_path):
    """Folders of the user that no source holds."""
    for name in (".ssh", "docs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "precious").write_text("mine")
    return tmp_path


def opened(database):
    return SkillRegistry.open(database, settings=Settings())


def update(registry):
    registry.update("alpha", description="New.", files={"more.txt": b"more"})


@pytest.mark.both
@pytest.mark.parametrize("kind", ["create", "update", "delete"])
@pytest.mark.parametrize("has_state", [False, True], ids=["untouched", "changed before"])
def test_what_a_strangers_row_names_is_neither_moved_nor_removed(
    registry, root, alpha, outside, database, kind, has_state
):
    """Each of these was carried out when the victim listed the skills."""
    if has_state:
        registry.update("alpha", kind="prompt")
    ssh, docs = outside / ".ssh", outside / "docs"
    planted = {
        "create": {"staged": str(ssh), "new": digest(ssh)},
        "update": {"staged": str(docs), "base": digest(docs), "target": "alpha"},
        "delete": {"staged": str(docs), "base": "other", "target": "gone"},
    }
    plant_row(registry, kind=kind, **planted[kind])
    with registry.core.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE journal SET exchange = 0 WHERE kind = 'create'")
    before = seen(outside, without=(outside / "state",))
    with opened(database) as victim:
        assert [one.name for one in victim.list()] == ["alpha"]
        assert rows(victim) == 1
        (said,) = victim.check_database()
        assert NUMBER in said
        assert "you did not begin here" in said
    assert seen(outside, without=(outside / "state",)) == before
    with opened(database) as victim:  # and it is in nobody's way
        assert victim.update("alpha", description="New.").description == "New."
        assert victim.create("beta", description="Second.").name == "beta"
        assert victim.finish_changes() == 0
    assert sorted(os.listdir(root)) == ["alpha", "beta"]
    for folder in (ssh, docs):
        assert (folder / "precious").read_text() == "mine"


@pytest.mark.both
def test_however_many_rows_others_planted_an_open_asks_the_same_of_the_database(
    registry, root, alpha, database, monkeypatch
):
    registry.update("alpha", kind="prompt")  # there is a state folder
    reader, asked = type(registry.core.reader), []
    real = reader.rows

    def noted(self, sql, *more):
        asked.append(sql)
        return real(self, sql, *more)

    monkeypatch.setattr(reader, "rows", noted)

    def questions():
        asked.clear()
        opened(database).close()
        return len(asked)

    plant_row(registry)
    few = questions()
    for number in range(300):
        plant_row(registry, id=f"{number:016x}")
    assert questions() == few > 0


def test_a_row_that_says_something_else_than_we_signed_is_left_alone(
    registry, root, alpha, database
):
    dies(registry, update)
    with registry.core.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE journal SET target = 'beta', folder = 'beta'")
    left = sorted(os.listdir(state_of(root, "ops")))
    with opened(database) as again:
        assert rows(again) == 1
        assert len(again.check_database()) == 1
        again.create("gamma", description="x")
        assert sorted(os.listdir(state_of(root, "ops"))) == left
    with registry.core.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE journal SET target = 'alpha', folder = 'alpha'")
    with opened(database) as again:
        assert (rows(again), again.check_database()) == (0, [])
        assert again.get("alpha").description == "New."


@pytest.mark.both
def test_where_somebody_struck_the_row_out_an_edit_is_not_lost(registry, root, alpha, database):
    edit = partial(write_skill, alpha, description="By hand.", age=OLD + 9)
    dies(registry, update, edit=edit)
    with registry.core.writer.transaction() as connection:
        connection.exec_driver_sql("DELETE FROM journal")
    with opened(database) as again:
        again.create("beta", description="x")
    (kept,) = state_of(root, "conflict").iterdir()
    assert "By hand." in (kept / "SKILL.md").read_text()
    assert os.listdir(state_of(root, "ops")) == []


def test_between_two_renames_no_row_can_say_that_it_was_an_exchange(
    registry, root, alpha, database, monkeypatch
):
    """The only copy of the skill lies in the state folder then."""
    dies_between_two_renames(monkeypatch, registry, update)
    assert not alpha.exists()
    for said in (1, 0):
        with registry.core.writer.transaction() as connection:
            connection.exec_driver_sql(f"UPDATE journal SET exchange = {said}")
    with opened(database) as again:
        assert again.get("alpha").description == "New."
        assert rows(again) == 0


def test_what_another_user_or_another_database_began_is_not_ours(
    registry, root, alpha, database, tmp_path, monkeypatch
):
    dies(registry, update)
    mine = seen(root)
    with monkeypatch.context() as patch:
        (tmp_path / "other").mkdir()
        patch.setenv("HOME", str(tmp_path / "other"))
        with opened(database) as other:
            assert rows(other) == 1
            assert len(other.check_database()) == 1
    with SkillRegistry.open(tmp_path / "another.db", settings=Settings()) as other:
        other.sync(str(root), name="mine")
        facts = registry.core.reader.rows(
            "SELECT id, kind, folder, target, staged, base, new, started_at FROM journal"
        )[0]
        names = "id kind folder target staged base new started_at".split()
        plant_row(other, **dict(zip(names, facts, strict=True)))
    with SkillRegistry.open(tmp_path / "another.db", settings=Settings()) as other:
        assert rows(other) == 1
    assert seen(root) == mine
    with opened(database) as again:
        assert (rows(again), again.get("alpha").description) == (0, "New.")


def test_a_record_of_one_change_is_none_of_another(registry, root, alpha, database):
    dies(registry, update)
    ops = state_of(root, "ops")
    (real,) = ops.iterdir()
    shutil.copytree(real, ops / NUMBER)
    (ops / NUMBER).chmod(0o700)
    facts = registry.core.reader.rows(
        "SELECT kind, folder, target, base, new, started_at FROM journal"
    )[0]
    names = "kind folder target base new started_at".split()
    plant_row(registry, **dict(zip(names, facts, strict=True)))
    with opened(database) as again:
        assert again.core.reader.rows("SELECT id FROM journal") == [(NUMBER,)]
        assert [path.name for path in ops.iterdir()] == [NUMBER]


def test_what_a_version_that_did_not_sign_left_is_reported_and_left(
    registry, root, alpha, database
):
    """Its state folder was private, its notes were not signed."""
    operation = state_of(root, "ops", NUMBER)
    for name in ("ops", "trash", "conflict"):
        state_of(root, name).mkdir(mode=0o700, parents=True)
    state_of(root).chmod(0o700)
    shutil.copytree(alpha, operation / "tree")
    (operation / "owner").write_text(registry.core.writer.path)
    plant_row(registry, kind="update", folder="alpha", target="alpha", staged=f"{operation}/tree")
    before = seen(root.parent, without=(root.parent / "state",))
    with opened(database) as again:
        (said,) = again.check_database()
        assert NUMBER in said
        assert seen(root.parent, without=(root.parent / "state",)) == before
        again.update("alpha", description="New.")
        assert (operation / "tree" / "SKILL.md").exists()


@pytest.mark.file
def test_a_row_that_is_no_text_at_all_is_in_nobodys_way(registry, root, alpha, database):
    plant_row(registry)
    with registry.core.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE journal SET id = CAST(x'ff' AS TEXT), target = x'00ff'")
    with opened(database) as again:
        (said,) = again.check_database()
        assert "can't be read" in said
        assert again.update("alpha", description="New.").description == "New."


def test_a_change_of_ours_whose_lock_is_none_waits_until_it_is_one(
    registry, root, alpha, database, tmp_path
):
    dies(registry, update)
    lock = state_of(root, "lock")
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with opened(database) as again:
        assert rows(again) == 1
        with pytest.raises(ChangeRefused, match="it is a link"):
            again.delete("alpha")
    lock.unlink()
    with opened(database) as again:
        assert (rows(again), again.get("alpha").description) == (0, "New.")
    assert not (tmp_path / "elsewhere").exists()


def test_an_open_without_a_change_of_ours_makes_and_locks_nothing(registry, root, alpha, database):
    plant_row(registry)
    with opened(database) as again:
        assert again.finish_changes() == 0
        assert again.trash() == []
        again.check_database()
    assert not state_of(root).exists()
    assert not os.path.exists(os.path.expanduser("~/.local/share/skill-registry/state.key"))
