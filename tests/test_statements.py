"""How often an operation asks the database: a name is resolved once, and the value handed down."""

import re
from contextlib import contextmanager

import pytest
from sqlalchemy import Engine, event

from registry.catalog import browse
from registry.db.read.listing import Filters
from registry.disk.walk import Walk
from tests.conftest import write_skill


@pytest.fixture
def library(registry, root, skill):
    """Twenty skills in one source."""
    for number in range(20):
        skill(f"skill-{number}")
    (root / "skill-1" / "notes.txt").write_text("notes")
    registry.sync(str(root), name="mine")
    registry.update("skill-1", tags=["first"])  # what is made at the first change is made by now
    return registry


@contextmanager
def counting(registry, monkeypatch):
    """Count the SELECTs of the reading lane, and the walks of a folder."""
    counted = {"selects": [], "walks": 0}
    with monkeypatch.context() as patch:
        reader = type(registry.core.backend.reader)
        rows, stream, below = reader.rows, reader.stream, Walk.below

        def ask(self, sql, parameters=()):
            if sql.lstrip().startswith(("SELECT", "WITH")):
                counted["selects"].append(" ".join(sql.split()))
            return rows(self, sql, parameters)

        def ask_for_some(self, sql, parameters=()):
            counted["selects"].append(" ".join(sql.split()))
            return stream(self, sql, parameters)

        def look(self, folder):
            counted["walks"] += 1
            return below(self, folder)

        patch.setattr(reader, "rows", ask)
        patch.setattr(reader, "stream", ask_for_some)
        patch.setattr(Walk, "below", look)
        yield counted


OPERATIONS = {
    "list": (lambda r: r.list(), 1, 0),
    "resolve": (lambda r: r.resolve("skill-1"), 1, 0),
    "get": (lambda r: r.get("skill-1"), 6, 1),
    "read": (lambda r: r.read("mine/skill-1"), 2, 1),
    "read a file": (lambda r: r.read_file("skill-1", "notes.txt"), 2, 1),
    "history": (lambda r: r.history("skill-1"), 4, 1),
    "update": (lambda r: r.update("skill-1", tags=["second"]), 8, 2),
    "update by force": (lambda r: r.update("skill-1", tags=["third"], force=True), 9, 2),
    "change nothing": (lambda r: r.update("skill-1"), 6, 1),
    "delete": (lambda r: r.delete("skill-2"), 3, 3),
    "create": (lambda r: r.create("new", description="d"), 8, 1),
    "create with a file": (lambda r: r.create("new", description="d", files={"a": b""}), 9, 1),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_asks_no_more_than_it_needs(library, operation, monkeypatch):
    run, selects, walks = OPERATIONS[operation]
    library.list()  # which projects there are is asked once after a change
    with counting(library, monkeypatch) as counted:
        run(library)
    assert len(counted["selects"]) <= selects, "\n".join(counted["selects"])
    assert counted["walks"] <= walks


@pytest.mark.parametrize(
    ("arguments", "counts"),
    [
        (["--limit", "5"], 0),
        (["--limit", "5", "--offset", "3", "--json"], 0),
        (["--limit", "5", "--format", "table"], 0),  # it tells the number on a terminal only
        (["--offset", "30"], 1),  # is it nothing, or is there nothing?
        ([], 0),
    ],
)
def test_a_listing_is_counted_only_where_somebody_is_told(
    library, database, arguments, counts, monkeypatch
):
    from click.testing import CliRunner

    from registry.cli.app import root as command

    with counting(library, monkeypatch) as counted:
        ran = CliRunner().invoke(command, ["--db", str(database), "list", *arguments])
    assert ran.exit_code == 0
    asked = counted["selects"]
    assert sum("FROM skills s JOIN sources src" in one for one in asked) >= 1
    assert sum("count(*)" in one for one in asked) == counts, "\n".join(asked)


TOOLS = {
    "read_skill": ({"name": "skill-1"}, 6, 1),
    "read_skill_file": ({"name": "skill-1", "path": "notes.txt"}, 2, 1),
    "update_skill": ({"name": "skill-1", "tags": ["third"]}, 9, 2),
    "delete_skill": ({"name": "skill-3"}, 4, 3),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_a_tool_asks_no_more_than_the_operation_behind_it(library, tool, monkeypatch):
    arguments, selects, walks = TOOLS[tool]
    native = library.toolset("native")
    library.list()
    with counting(library, monkeypatch) as counted:
        answer = native.call(tool, arguments)
    assert "error" not in answer
    assert len(counted["selects"]) <= selects, "\n".join(counted["selects"])
    assert counted["walks"] <= walks


@pytest.mark.server
def test_a_change_of_a_tag_on_a_server_sends_few_statements(new_database, root, skill, monkeypatch):
    import psycopg

    from registry import Settings, SkillRegistry

    skill("alpha")
    with SkillRegistry.open(new_database(), settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
        registry.update("alpha", tags=["first"])
        sent = []
        for name in ("execute", "executemany"):
            real = getattr(psycopg.Cursor, name)

            def send(self, query, *rest, real=real, **more):
                sent.append(" ".join(str(query).split()))
                return real(self, query, *rest, **more)

            monkeypatch.setattr(psycopg.Cursor, name, send)
        commit = psycopg.Connection.commit

        def end(self):
            sent.extend(("BEGIN", "COMMIT"))  # the driver sends the first by itself
            commit(self)

        monkeypatch.setattr(psycopg.Connection, "commit", end)
        registry.update("alpha", tags=["second"])
    settled = [one for one in sent if one.startswith("SELECT set_config(")]
    assert 0 < len(settled) <= 10  # of a transaction, which travel with its first statement
    assert len(sent) - len(settled) <= 38, "\n".join(sent)


def test_the_history_of_a_skill_is_found_without_going_through_all_contents(library, monkeypatch):
    """Of many skills there are as many contents."""
    reader = type(library.core.backend.reader)
    rows, plans = reader.rows, []

    def ask(self, sql, parameters=()):
        if "FROM revisions" in sql:
            plans.extend(step for *_, step in rows(self, f"EXPLAIN QUERY PLAN {sql}", parameters))
        return rows(self, sql, parameters)

    monkeypatch.setattr(reader, "rows", ask)
    assert library.history("skill-1")
    assert any(step.startswith("SEARCH c USING") for step in plans), plans
    assert [step for step in plans if step.startswith("SCAN") and "VIRTUAL" not in step] == []


def test_many_skills_are_counted_without_reading_their_rows(library, monkeypatch):
    """The rows are long; an index has all that is counted."""
    reader = type(library.core.backend.reader)
    rows, plans = reader.rows, []

    def ask(self, sql, parameters=()):
        if "count(*)" in sql:
            plans.extend(step for *_, step in rows(self, f"EXPLAIN QUERY PLAN {sql}", parameters))
        return rows(self, sql, parameters)

    monkeypatch.setattr(reader, "rows", ask)
    monkeypatch.setattr(browse, "FEW", 3)  # more than these are not read by their ids
    view = library.browse()
    assert view.facets("", Filters(updated_since="2001-01-01")).statuses[0].count == 20
    assert view.source_counts()["mine"].listed == 20
    assert sum(size.skills for size in view.sizes()) == 20
    assert library.list(status="invalid", limit=0).total == 0
    skills = [step for step in plans if re.match(r"(SCAN|SEARCH) s\b", step)]
    assert len(skills) >= 5
    assert [step for step in skills if "COVERING INDEX ix_skills_counted" not in step] == []


@pytest.mark.file
def test_the_index_for_counts_serves_no_search_for_single_skills(registry, root):
    """It would read all skills of the source for each skill that a sync stores."""
    plans = []

    def explain(_connection, cursor, sql, parameters, _context, executemany):
        if executemany:
            parameters = parameters[0]
        if sql.lstrip().startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")):
            plain = cursor.connection.cursor()
            plans.extend(
                step for *_, step in plain.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
            )

    event.listen(Engine, "before_cursor_execute", explain)
    try:
        for name in ("alpha", "beta"):
            write_skill(root / name)
        registry.sync(str(root), name="mine")
        write_skill(root / "alpha", description="Edited.", age=None)
        registry.sync()
        registry.update("beta", description="Edited.")
    finally:
        event.remove(Engine, "before_cursor_execute", explain)
    assert len(plans) > 50
    assert [step for step in plans if re.match(r"SEARCH .*ix_skills_counted", step)] == []
