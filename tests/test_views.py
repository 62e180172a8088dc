"""What people read from the database by plain SQL is what the commands say."""

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import make_url

from registry.api import SkillRegistry
from registry.db.read.listing import Filters
from registry.db.write.usage import DAYS, WAIT
from registry.model import record
from registry.settings import Settings
from tests.conftest import write_skill

VIEWS = {
    "skill": "ref name description kind category tags scope source path version license author "
    "created_at updated_at content_hash tree_hash status shadowed hidden folder host project "
    "origin_url origin_ref origin_commit held file_count bytes listed found read last_read_at uid",
    "skill_tag": "ref name tag",
    "revision": "skill number name seen_at what current document content_hash tree_hash uid",
    "usage_by_day": "day skill listed found read uid",
    "source": "name scope priority enabled skills held path host project owner team precedence "
    "added_at last_sync_at last_result remote_kind remote_url remote_ref remote_part "
    "remote_version fetched_at review",
    "finding": "skill source folder severity code path line message fix",
}


@pytest.fixture
def library(registry, tmp_path):
    """Skills of every kind in two sources and a project, one of them with a past."""
    mine, team = tmp_path / "mine", tmp_path / "team"
    tags = r"""tags: ["it's", 'say "x"', 'back\\slash', 'line\nbreak', 'ünï']"""
    (write_skill(mine / "office" / "pdf", extra=f"{tags}\nversion: 2\n") / "run.sh").write_text("x")
    write_skill(mine / "plain", description="“Quoted”, 'it' and \\.")
    write_skill(mine / "both", extra="disable-model-invocation: true\nlicense: MIT\nkind: tool\n")
    write_skill(mine / "broken", description="", body="")
    write_skill(team / "both", body="Another.\n")
    write_skill(tmp_path / "project" / "local", extra="tags: [office]\n")
    registry.sync(str(mine), name="mine")
    registry.sync(str(team), name="team", scope="team")
    registry.sync(str(tmp_path / "project"), name="project", scope="project")
    registry.update("plain", description="New.")
    shutil.rmtree(mine / "plain")
    write_skill(mine / "plain", body="By hand.\n")
    registry.sync()
    return registry


@pytest.fixture
def ask(database, library):
    """Ask by the bare driver, as any other program does; rows are by their columns' names."""
    if isinstance(database, str):
        import psycopg

        address = make_url(database).set(drivername="postgresql")
        opened = psycopg.connect(address.render_as_string(hide_password=False), autocommit=True)
    else:
        opened = sqlite3.connect(f"file:{database}?mode=ro", uri=True)

    def rows(sql):
        found = opened.execute(sql)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    with closing(opened):
        yield rows


def use(registry, tool, **arguments):
    assert "error" not in registry.toolset("native").call(tool, arguments)
    registry.core.usage.write()


def test_a_view_has_the_columns_that_are_documented(ask, library):
    for view, columns in VIEWS.items():
        use(library, "read_skill", name="pdf")
        rows = ask(f"SELECT * FROM {view}")
        assert rows
        assert list(rows[0]) == columns.split()


def test_the_skills_are_those_of_the_listing_of_all(ask, library, tmp_path):
    listed = {skill.ref: skill.to_dict() for skill in library.list(Filters(all=True))}
    assert listed.keys() == {"pdf", "plain", "broken", "both", "mine/both", "local"}
    asked = {row["ref"]: row for row in ask("SELECT * FROM skill")}
    assert asked.keys() == listed.keys()
    for ref, skill in listed.items():
        row = asked[ref] | {"tags": json.loads(asked[ref]["tags"])}
        del skill["copies"], skill["origin"]
        assert {key: row[key] for key in skill} == skill
    assert {row["ref"] for row in ask("SELECT ref FROM skill WHERE hidden")} == {"mine/both"}
    shadowed = {row["ref"] for row in ask("SELECT ref FROM skill WHERE shadowed")}
    assert shadowed == {ref for ref, skill in listed.items() if skill["shadowed"]} == {"mine/both"}
    assert asked["broken"]["status"] == "invalid"
    assert (asked["pdf"]["file_count"], asked["pdf"]["folder"]) == (2, "office/pdf")
    projects = {row["project"] for row in ask("SELECT project FROM skill")}
    assert projects == {None, str(tmp_path)}
    assert {row["host"] for row in ask("SELECT host FROM skill")} == {library.core.host}


@pytest.mark.server
def test_on_a_server_a_view_shows_no_more_than_who_asks_may_see(ask, library):
    (version,) = ask("SELECT CAST(current_setting('server_version_num') AS integer) AS number")
    named = ", ".join(f"'{view}'" for view in VIEWS)
    options = ask(f"SELECT relname, reloptions FROM pg_class WHERE relname IN ({named})")
    expected = ["security_invoker=true"] if version["number"] >= 150000 else None
    assert {one["relname"]: one["reloptions"] for one in options} == dict.fromkeys(VIEWS, expected)


@pytest.mark.parametrize("facts", [(None, None), ("v1", "a" * 40)], ids=["plain", "pinned"])
def test_an_installed_copy_has_the_origin_that_its_lock_records(ask, library, tmp_path, facts):
    columns = "SELECT origin_url, origin_ref, origin_commit FROM skill WHERE ref = 'plain'"
    none = dict.fromkeys(("origin_url", "origin_ref", "origin_commit"))
    assert ask(columns) == [none]
    folder = tmp_path / "mine"
    library.pull([library.resolve("local")], str(folder))
    lock = folder / "skills.lock.json"
    data = json.loads(lock.read_text())
    url, (ref, commit) = "https://example.org/team.git", facts
    entry = data["skills"].pop("local")
    skill = library.get("plain")
    origin = {"url": url, "ref": ref, "commit": commit, "path": "plain"}
    data["skills"]["plain"] = {
        **entry,
        "name": "plain",
        "tree_hash": skill.tree_hash,
        "origin": origin,
    }
    lock.write_text(json.dumps(data))
    library.sync()
    assert ask(columns) == [dict(zip(none, (url, ref, commit), strict=True))]
    assert library.get("plain").origin.to_dict() == origin
    (folder / "plain" / "run.sh").write_text("new")
    library.sync()
    assert ask(columns) == [none]


def test_tags_are_a_json_array_whatever_they_hold_and_have_a_view_of_their_own(ask, library):
    tags = {skill.ref: set(skill.tags) for skill in library.list(Filters(all=True)) if skill.tags}
    assert len(tags["pdf"]) == 5
    held = {row["ref"]: set(json.loads(row["tags"])) for row in ask("SELECT * FROM skill")}
    assert {ref: some for ref, some in held.items() if some} == tags
    pairs = {(row["ref"], row["tag"]) for row in ask("SELECT * FROM skill_tag")}
    assert pairs == {(ref, tag) for ref, some in tags.items() for tag in some}
    facets = {facet.value: facet.count for facet in library.tags()}
    counted = ask("SELECT tag, count(*) AS count FROM skill_tag GROUP BY tag")
    assert {row["tag"]: row["count"] for row in counted} == facets


def test_the_revisions_are_those_of_the_history(ask, library):
    history = library.history("plain")
    assert len(history) > 1
    rows = ask("SELECT * FROM revision WHERE skill = 'plain' ORDER BY number DESC")
    for row, one in zip(rows, history, strict=True):
        told = record(one)
        same = "number name seen_at current document content_hash tree_hash uid".split()
        assert {key: row[key] for key in same} == {key: told[key] for key in same}
        assert row["what"] == ("added" if one.number == 1 else "updated")
    total = sum(len(library.history(skill.ref)) for skill in library.list(Filters(all=True)))
    assert ask("SELECT count(*) AS count FROM revision") == [{"count": total}]


def test_what_is_gone_keeps_its_past_without_a_handle_and_has_it_again_when_it_is_back(
    ask, library
):
    use(library, "read_skill", name="plain")
    uid = library.history("plain")[0].uid
    of_it = f"FROM revision WHERE uid = '{uid}'"
    before = ask(f"SELECT * {of_it} ORDER BY number")
    library.delete("plain")
    assert ask("SELECT * FROM skill WHERE name = 'plain'") == []
    assert {(row["skill"], row["current"]) for row in ask(f"SELECT * {of_it}")} == {(None, False)}
    days = f"SELECT skill, read FROM usage_by_day WHERE uid = '{uid}'"
    assert ask(days) == [{"skill": None, "read": 1}]
    library.restore("plain")
    assert ask(f"SELECT * {of_it} ORDER BY number") == before
    assert ask(days) == [{"skill": "plain", "read": 1}]


def test_what_lost_its_document_is_no_skill(ask, library, tmp_path):
    (tmp_path / "mine" / "office" / "pdf" / "SKILL.md").unlink()
    library.sync()
    assert ask("SELECT * FROM skill WHERE name = 'pdf'") == []
    assert ask("SELECT * FROM skill_tag WHERE ref = 'pdf'") == []
    assert {row["skill"] for row in ask("SELECT * FROM revision WHERE name = 'pdf'")} == {None}


def test_the_sources_are_those_of_the_list(ask, library):
    library.update_source("team", priority=3)
    rows = {row["name"]: row for row in ask("SELECT * FROM source")}
    listed = {source.name: source.to_dict() for source in library.sources()}
    assert rows.keys() == listed.keys() == {"mine", "team", "project"}
    for name, source in listed.items():
        del source["remote"]
        assert {key: rows[name][key] for key in source} == source
        assert rows[name]["remote_url"] is None
        assert rows[name]["added_at"] <= rows[name]["last_sync_at"]
    assert rows["mine"]["skills"] == 4
    total = ask("SELECT count(*) AS count FROM skill WHERE source = 'mine'")
    assert total == [{"count": 4}]


def test_the_findings_are_those_of_each_skill_and_of_places_that_are_none(ask, library, tmp_path):
    (tmp_path / "mine" / "empty").mkdir()
    (tmp_path / "mine" / "away").symlink_to(tmp_path / "team" / "both")
    library.sync()
    keys = "severity code path line message fix".split()
    by_skill = {}
    for row in ask("SELECT * FROM finding WHERE skill IS NOT NULL"):
        by_skill.setdefault(row["skill"], []).append({key: row[key] for key in keys})
    for skill in library.list(Filters(all=True)):
        told = [one.to_dict() for one in library.get(f"{skill.source}/{skill.folder}").diagnostics]
        expected = [{key: one[key] for key in keys} for one in told]
        found = by_skill.get(skill.ref, [])
        assert sorted(found, key=str) == sorted(expected, key=str)
    assert by_skill["broken"]
    places = ask("SELECT folder, code FROM finding WHERE skill IS NULL AND source = 'mine'")
    assert {"folder": "away", "code": "link-known"} in places
    library.update("broken", description="Not broken any more.")
    assert ask("SELECT * FROM finding WHERE skill = 'broken' AND severity = 'error'") == []


def today():
    return f"{datetime.now(UTC):%Y-%m-%d}"


def test_uses_are_counted_by_day_as_in_all(ask, library):
    before = today()
    use(library, "list_skills")
    use(library, "read_skill", name="pdf")
    use(library, "read_skill", name="pdf")
    use(library, "search_skills", query="pdf")
    days = {row["day"] for row in ask("SELECT day FROM usage_by_day")}
    assert days
    assert days <= {before, today()}  # it may be midnight
    added = ask(
        "SELECT skill AS ref, CAST(sum(listed) AS INTEGER) AS listed, "
        "CAST(sum(found) AS INTEGER) AS found, CAST(sum(read) AS INTEGER) AS read "
        "FROM usage_by_day GROUP BY skill ORDER BY skill"
    )
    told = sorted(library.usage_counts(), key=lambda one: one.ref)
    keys = ("ref", "listed", "found", "read")
    assert added == [{key: getattr(one, key) for key in keys} for one in told]
    assert {"ref": "pdf", "listed": 1, "found": 1, "read": 2} in added
    in_all = "SELECT ref, listed, found, read FROM skill WHERE listed + found + read > 0"
    assert ask(f"{in_all} ORDER BY ref") == added
    (pdf,) = ask("SELECT last_read_at FROM skill WHERE ref = 'pdf'")
    assert pdf["last_read_at"] == next(one.last_read_at for one in told if one.ref == "pdf")


def test_uses_of_another_day_are_counted_apart(ask, library, monkeypatch):
    use(library, "read_skill", name="pdf")
    monkeypatch.setattr("registry.db.write.usage.utc_now", lambda: "2999-12-31T23:59:59Z")
    use(library, "read_skill", name="pdf")
    use(library, "read_skill", name="pdf")
    rows = ask("SELECT day, read FROM usage_by_day WHERE skill = 'pdf' ORDER BY day")
    assert [row["read"] for row in rows] == [1, 2]
    assert rows[1]["day"] == "2999-12-31"


def test_a_sync_that_finds_something_forgets_days_that_are_long_ago(
    ask, library, tmp_path, monkeypatch
):
    now = datetime.now(UTC)
    for age in (DAYS + 2, DAYS - 2):
        told = f"{now - timedelta(days=age):%Y-%m-%dT00:00:00Z}"
        with monkeypatch.context() as patch:
            patch.setattr("registry.db.write.usage.utc_now", lambda told=told: told)
            use(library, "read_skill", name="pdf")
    assert len(ask("SELECT * FROM usage_by_day")) == 2
    write_skill(tmp_path / "mine" / "new")
    library.sync()
    (left,) = ask("SELECT * FROM usage_by_day")
    assert left["day"] > f"{now - timedelta(days=DAYS):%Y-%m-%d}"
    assert ask("SELECT read FROM skill WHERE ref = 'pdf'") == [{"read": 2}]


def test_a_flush_is_two_statements_however_much_was_counted(library):
    from registry.db.write import usage

    rows = [(1, 0, 0, "2026-01-01T00:00:00Z", None, None, "mine", str(n)) for n in range(1000)]
    totals, days = usage.statements(library.core.reader, rows)
    assert (len(totals[1]), len(days[1])) == (1, 2)


@pytest.mark.file  # a server refuses it: tests/server/test_attackers.py
def test_uids_that_a_stranger_made_equal_keep_no_count_from_being_written(ask, library):
    with library.core.writer.transaction() as connection:
        connection.exec_driver_sql("UPDATE skills SET uid = 'same' WHERE name IN ('pdf', 'plain')")
    both = [
        (1, 0, 0, "2026-01-01T00:00:00Z", None, None, "mine", f) for f in ("office/pdf", "plain")
    ]
    assert library.core.backend.add_usage(both, WAIT)
    (day,) = {(row["uid"], row["listed"]) for row in ask("SELECT * FROM usage_by_day")}
    assert day == ("same", 2)


def test_a_copy_and_a_backup_have_the_views_and_the_days(ask, library, tmp_path):
    use(library, "read_skill", name="pdf")
    library.backup(str(tmp_path / "copy.db"))
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        for view, columns in VIEWS.items():
            found = copy.execute(f"SELECT * FROM {view}")
            assert [column[0] for column in found.description] == columns.split()
            here = [tuple(row.values()) for row in ask(f"SELECT * FROM {view}")]
            place = columns.split().index("host") if view in {"skill", "source"} else None
            without = {
                (*row[:place], *row[place + 1 :]) if place else row for row in found.fetchall()
            }
            assert without == {(*r[:place], *r[place + 1 :]) if place else r for r in here}
    with SkillRegistry.open(tmp_path / "copy.db", settings=Settings()) as copied:
        assert copied.check_database() == []


def test_pruning_leaves_the_views_in_line(ask, library):
    library.update("local", description="Two.")
    library.update("local", description="Three.")
    forgotten, _ = library.prune(keep=1)
    assert forgotten
    rows = ask("SELECT number, what, current FROM revision WHERE skill = 'local'")
    assert [(row["what"], row["current"]) for row in rows] == [("updated", True)]


def test_no_view_shows_what_is_signed_or_what_is_in_the_files(ask, library):
    use(library, "read_skill", name="pdf")
    rows = [row for view in VIEWS for row in ask(f"SELECT * FROM {view}")]
    shown = json.dumps(rows)
    signatures = [
        signature
        for (signature,) in library.core.reader.rows(
            "SELECT signature FROM changes WHERE signature <> ''"
        )
    ]
    assert signatures
    assert not [one for one in [*signatures, "Step by step."] if one in shown]
    assert "Does one thing well." in shown
