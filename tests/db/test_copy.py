"""A copy of a registry holds the same rows, and is found by the same words."""

from contextlib import closing

import pytest

from registry.api import SkillRegistry
from registry.db import copy as copying
from registry.db import schema
from registry.db.open import open_backend
from registry.errors import DatabaseProblem, UsageProblem
from registry.settings import Settings

STAYS = {"journal", "changes", "alembic_version", "data_version", "leases"}
TABLES = [table for table in schema.metadata.sorted_tables if table.name not in STAYS]


def rows(backend, tables=TABLES):
    """Everything that readers see, as it is stored; where it is belongs to the machine."""
    found = {}
    for table in tables:
        columns = [column.name for column in table.columns if column.name != "host"]
        keys = ", ".join(column.name for column in table.primary_key.columns)
        sql = f"SELECT {', '.join(columns)} FROM {table.name} ORDER BY {keys}"
        found[table.name] = backend.reader.rows(sql)
    return found


@pytest.fixture
def full(registry, root, skill):
    """Twelve skills with a past, findings and uses."""
    for name in ("alpha", "beta", "gamma", *(f"s{number}" for number in range(8))):
        (skill(name, extra="tags: [a, b]\n") / "more.txt").write_text(name)
    skill("weather", description="查询天气")
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_bytes(b"\xff")
    (root / "dead").symlink_to("nowhere")
    registry.sync(str(root), name="mine")
    registry.update("alpha", description="New.")
    registry.delete("beta")
    registry.toolset("native").call("read_skill", {"name": "alpha"})
    registry.core.usage.write()
    return registry


@pytest.fixture
def target(tmp_path):
    with closing(open_backend(tmp_path / "copy.db", Settings())) as backend:
        yield backend


def test_a_copy_is_equal_however_many_pages_it_takes(full, target, monkeypatch):
    monkeypatch.setattr(copying, "PAGE", 10)
    told = []
    copied = copying.copy(full.core.backend, target, lambda *what: told.append(what))
    before = rows(full.core.backend)
    assert rows(target) == before
    assert (copied.sources, copied.skills) == (1, 12)
    assert (copied.revisions, copied.contents) == tuple(
        len(before[table]) for table in ("revisions", "contents")
    )
    assert [what for what in told if what[0] == "copying skills"] == [
        ("copying skills", done, 12) for done in (10, 12)
    ]
    ends = {doing: (done, total) for doing, done, total in told}
    assert all(done == total for done, total in ends.values())
    assert ends["copying revisions"] == (copied.revisions, copied.revisions)
    with SkillRegistry.open(target.path, settings=Settings()) as copy:
        assert copy.check_database() == []
        for words in ("天气", "new", "gamma"):
            assert [hit.ref for hit in copy.search(words)] == [
                hit.ref for hit in full.search(words)
            ]
        assert copy.sync().unchanged == 12
        assert copy.restore("beta").name == "beta"


def test_what_is_unfinished_is_not_copied(full, target):
    with full.core.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE skills SET live = 0 WHERE name = 'gamma'")
    assert copying.copy(full.core.backend, target).skills == 11
    assert target.reader.rows("SELECT count(*) FROM skills") == [(11,)]
    stray = "SELECT count(*) FROM diagnostics WHERE skill_id NOT IN (SELECT id FROM skills)"
    assert target.reader.rows(stray) == [(0,)]


def test_only_a_registry_is_copied_and_never_over_another(full, target, tmp_path):
    nothing = open_backend(tmp_path / "none.db", Settings())
    with closing(nothing), pytest.raises(UsageProblem, match="there is no registry at"):
        copying.copy(nothing, target)
    copying.copy(full.core.backend, target)
    with pytest.raises(UsageProblem, match="holds a registry already"):
        copying.copy(full.core.backend, target)


def test_a_copy_that_fails_leaves_the_target_empty(full, target, monkeypatch):
    from registry.db.write import statements

    real = statements.insert_rows

    def insert(connection, into, found, **more):
        if into.name == "usage":
            raise DatabaseProblem(path="x", reason="no space left")
        real(connection, into, found, **more)

    monkeypatch.setattr(statements, "insert_rows", insert)
    with pytest.raises(DatabaseProblem, match="no space left"):
        copying.copy(full.core.backend, target)
    monkeypatch.undo()
    assert target.reader.rows("SELECT count(*) FROM skills") == [(0,)]
    assert copying.copy(full.core.backend, target).skills == 12
