"""Teams: who reads for one sees its sources and those of none, and nothing tells of the others."""

from contextlib import closing

import psycopg
import pytest
from sqlalchemy import make_url

from registry.api import SkillRegistry
from registry.db.copy import copy
from registry.db.open import open_backend
from registry.db.postgres.rights import VIEWS
from registry.db.read.listing import Filters, TreeHashes
from registry.db.write.usage import SkillPlace
from registry.errors import RegistryError, RightMissing, SkillNotFound, UsageProblem
from registry.model import record
from registry.remotes.sources import new_shorthand
from registry.settings import Settings
from tests.conftest import write_skill

pytestmark = pytest.mark.server

SECRET = "indigo"
"""A word that the other team's skills alone have, in each of their parts."""


@pytest.fixture
def world(world):
    for role in ("alice", "bianca"):
        world.add(role, "write")
    world.add("rita", "read", "red")
    world.add("carol", "read")
    return world


@pytest.fixture
def red(world, tmp_path):
    """A source of all, and one of the red team, with skills of one name in both."""
    for place, name in (("open", "pdf"), ("open", "notes"), ("red", "pdf"), ("red", "plan")):
        write_skill(tmp_path / place / name, body=f"# The {name} of {place}\n")
    alice = world.open("alice")
    alice.sync(str(tmp_path / "open"), name="open")
    alice.add_source(str(tmp_path / "red"), name="red")
    alice.update_source("red", team="red")
    alice.sync()
    return alice


@pytest.fixture
def fill_blue(world, tmp_path):
    """Let another team have a source with skills, namesakes and copies among them."""

    def fill():
        bianca = world.open("bianca")
        folder = tmp_path / "blue"
        write_skill(folder / f"{SECRET}-plan", description=f"The {SECRET} plan for notes.")
        (folder / f"{SECRET}-plan" / f"{SECRET}.txt").write_text(f"{SECRET} file\n")
        write_skill(folder / "pdf", body=f"# {SECRET}\n", extra=f"tags: [{SECRET}]\n")
        # A copy, and one that is stronger, of what everybody sees.
        write_skill(folder / "notes", body="# The notes of open\n")
        write_skill(
            folder / "plan",
            body=f"# {SECRET} plan\n",
            extra=f"category: {SECRET}\nkind: {SECRET}\n",
        )
        write_skill(folder / f"{SECRET}-gone")
        bianca.add_source(str(folder), name=f"{SECRET}-blue", scope="team", priority=9)
        bianca.update_source(f"{SECRET}-blue", team=f"{SECRET}-team")
        bianca.sync()
        bianca.update(f"{SECRET}-blue/pdf", body=f"# {SECRET} again\n")
        bianca.delete(f"{SECRET}-gone")
        bianca.core.usage.read(f"{SECRET}-blue", "pdf")
        bianca.core.usage.write()
        return bianca

    return fill


def answers(registry):
    """Return what a registry says of everything there is."""

    def tried(ask):
        try:
            return record(ask())
        except RegistryError as error:
            return f"{type(error).__name__}: {error}"

    every = Filters(all=True)
    questions = {
        "list": lambda: [record(one) for one in registry.list()],
        "list all": lambda: [record(one) for one in registry.list(every)],
        "total": lambda: registry.list(limit=1).total,
        "count": lambda: registry.list(Filters(tags=[SECRET])).total,
        "iter": lambda: [one.ref for one in registry.iter()],
        "left out": registry.left_out,
        "tags": lambda: [record(one) for one in registry.tags()],
        "kinds": lambda: [record(one) for one in registry.kinds()],
        "categories": lambda: [record(one) for one in registry.categories()],
        "stats": lambda: record(registry.stats()),
        "usage": lambda: [record(one) for one in registry.usage_counts()],
        "sources": lambda: [record(one) for one in registry.sources()],
        "copies": lambda: [repr(one) for one in registry.copies()],
        "database": lambda: (registry.database_info().sources, registry.database_info().skills),
        "check": lambda: [repr(one) for one in registry.check()],
        "soundness": registry.check_database,
        "prompt": lambda: registry.prompt().text,
        "trash": registry.trash,
    }
    for view in VIEWS:
        questions[f"view {view}"] = lambda view=view: sorted(
            registry.core.reader.rows(f"SELECT * FROM {view}"), key=repr
        )
    for word in ("pdf", "notes", "plan", SECRET, f"{SECRET} plan notes", "indigos"):
        questions[f"search {word}"] = lambda word=word: [
            record(hit) for hit in registry.search(word)
        ]
        questions[f"explained {word}"] = lambda word=word: repr(registry.why_found("pdf", word))
    names = ["pdf", "notes", "plan", "open/pdf", "red/pdf", "red/plan"]
    names += [f"{SECRET}-plan", f"{SECRET}-blue/pdf", f"{SECRET}-gone", "indig-plan"]
    for name in names:
        questions[f"show {name}"] = lambda name=name: record(registry.get(name))
        questions[f"file {name}"] = lambda name=name: registry.read_file(name, f"{SECRET}.txt")
        questions[f"history {name}"] = lambda name=name: [
            record(one) for one in registry.history(name)
        ]
        questions[f"past {name}"] = lambda name=name: registry.read_revision(name, 1)
        questions[f"diff {name}"] = lambda name=name: registry.diff(name)
        questions[f"why {name}"] = lambda name=name: repr(registry.why(name))
    return {key: tried(ask) for key, ask in questions.items()}


def test_a_reader_of_a_team_is_answered_as_if_the_others_were_not_there(world, red, fill_blue):
    rita = world.open("rita")
    before = answers(rita)
    assert before["list"]
    assert {skill["ref"] for skill in before["list"]} == {"notes", "pdf", "red/pdf", "red/plan"}
    bianca = fill_blue()
    assert bianca.search(SECRET).total >= 2
    after = answers(rita)
    assert {key: after[key] for key in after if after[key] != before[key]} == {}
    # Each of these would tell: who sees all is answered differently.
    told = answers(world.open("carol"))
    plan, gone = f"{SECRET}-plan", f"{SECRET}-gone"
    assert {key for key in told if told[key] != before[key]} >= {
        *("list", "list all", "total", "count", "iter", "tags", "kinds", "categories", "stats"),
        *("usage", "sources", "prompt", "copies", "database", f"search {SECRET}", "search plan"),
        *("search notes", f"show {plan}", f"file {plan}", f"history {plan}", f"why {plan}"),
        *(f"past {plan}", f"history {gone}", f"past {gone}", f"diff {SECRET}-blue/pdf"),
    }
    # Words that were asked before are answered anew, in another process as well.
    assert answers(world.open("rita", host="other-pc"))["list"] == before["list"]


def test_a_short_address_that_begins_like_an_unseen_source_is_any_other_address(
    world, red, fill_blue
):
    fill_blue()
    rita, carol = world.open("rita").core, world.open("carol").core
    for slip in ("nosuch", f"{SECRET}-gone", "pdf"):
        address = new_shorthand(rita, f"{SECRET}-blue/{slip}")
        assert address is not None
        assert address.url == f"https://github.com/{SECRET}-blue/{slip}"
        with pytest.raises((SkillNotFound, UsageProblem)):
            new_shorthand(carol, f"{SECRET}-blue/{slip}")
    with pytest.raises(SkillNotFound):
        new_shorthand(rita, "red/nosuch")


def test_who_reads_for_no_team_sees_all_and_each_is_found_by_its_ref(world, red, fill_blue):
    fill_blue()
    carol = world.open("carol")
    refs = {skill.ref for skill in carol.list()}
    blue = f"{SECRET}-blue"
    assert refs == {
        *("notes", "pdf", "red/pdf", "red/plan"),
        *(f"{blue}/notes", f"{blue}/pdf", f"{blue}/plan", f"{blue}/{SECRET}-plan"),
    }
    assert [carol.get(ref).ref for ref in sorted(refs)] == sorted(refs)
    assert carol.read_file(f"{SECRET}-plan", f"{SECRET}.txt") == f"{SECRET} file\n".encode()
    assert len(carol.history(f"{blue}/pdf")) == 2


def test_a_reader_of_two_teams_sees_both_and_one_that_is_let_out_of_teams_sees_all(
    world, red, fill_blue
):
    fill_blue()
    rita = world.open("rita")
    world.grant("rita", "read", f"{SECRET}-team")
    assert len(rita.list()) == 8
    world.as_dba("DELETE FROM teams")
    assert len(world.open("rita").list()) == 8
    world.grant("rita", "read", "red")
    world.grant("rita", "read")
    assert len(world.open("rita").list()) == 8


def test_a_member_of_a_group_is_bound_by_its_team_and_one_that_may_become_it_as_well(
    world, red, fill_blue
):
    fill_blue()
    world.add("group", "read", "red")
    world.add("member")
    world.add("becoming", "read")
    world.as_dba(f"GRANT {world.name('group')} TO {world.name('member')}, {world.name('becoming')}")
    for role in ("member", "becoming"):
        assert len(world.open(role).list()) == 4


def test_an_owner_sees_its_own_whatever_the_team(world, red, fill_blue):
    bianca = fill_blue()
    world.grant("bianca", "write", "red")
    assert len(bianca.list()) == 8
    world.grant("alice", "write", "red")
    alice = world.open("alice")
    assert len(alice.list()) == 4
    with pytest.raises(RightMissing, match="not of the team"):
        alice.update_source("open", team=f"{SECRET}-team")


@pytest.fixture
def everything(world, red, fill_blue):
    bianca = fill_blue()
    bianca.tokens().create("a-token-of-bianca")
    uid, tree, content = bianca.core.reader.rows(
        "SELECT s.uid, s.tree_hash, s.content_hash FROM skills s WHERE s.live = 1 "
        f"AND s.name = '{SECRET}-plan'"
    )[0]
    return [SECRET, uid, tree, content, "a-token-of-bianca"]


RELATIONS = (
    "SELECT c.relname FROM pg_class c WHERE c.relnamespace = CAST('public' AS regnamespace) "
    "AND c.relkind IN ('r', 'v', 'm', 'p', 'f')"
)


def test_a_copy_keeps_whose_a_source_is_and_for_which_team_and_brings_nobodys_rights(
    world, red, databases
):
    other = databases.empty()
    as_rita = make_url(other).set(username=world.name("rita")).render_as_string(hide_password=False)
    with (
        closing(open_backend(world.url(world.owner), Settings())) as first,
        closing(open_backend(other, Settings())) as second,
    ):
        copy(first, second)
        owner = world.name("alice")
        told = second.reader.rows("SELECT name, owner, team FROM sources ORDER BY name")
        assert told == [("open", owner, None), ("red", owner, "red")]
    with pytest.raises(RightMissing), SkillRegistry.open(as_rita) as registry:
        registry.list()
    databases.drop(other)


def test_no_table_and_no_view_tells_a_reader_of_another_team(world, everything):
    leaking, refused = [], []
    relations = [name for (name,) in world.as_dba(RELATIONS)]
    assert {"skills", "contents", "revision", "audit", "content_uses"} <= set(relations)
    for name in relations:
        sql = f"SELECT CAST(x AS text), to_jsonb(x) #>> '{{}}' FROM {name} x"
        try:
            found = str(world.sql("rita", sql))
        except psycopg.errors.InsufficientPrivilege:
            refused.append(name)
            continue
        leaking += [(name, word) for word in everything if word in found]
    assert leaking == []
    assert set(refused) == {"hosts", "teams"}
    # Who may see them finds them so: what was looked for is there.
    assert SECRET in str(world.sql("carol", "SELECT CAST(x AS text) FROM documents x"))


QUESTIONS = (
    "SELECT unnest(registry_match('head', 'indigo'::tsquery, 1, NULL))",
    "SELECT unnest(registry_match('body', 'indigo'::tsquery, 1, NULL))",
    "SELECT 1 WHERE registry_count('head', 'indigo'::tsquery, NULL) > 0",
    "SELECT 1 WHERE registry_count('body', 'indigo'::tsquery, NULL) > 0",
    "SELECT word FROM search_words WHERE word = 'indigo'",
    "SELECT word FROM ts_stat('SELECT head FROM search_texts') WHERE word LIKE 'indig%'",
    "SELECT 1 FROM pg_stats WHERE most_common_vals::text LIKE '%indigo%'",
    "SELECT 1 FROM search_texts WHERE 1 / (CASE WHEN head @@ 'indigo' THEN 0 ELSE 1 END) = 2",
    "SELECT 1 FROM sources WHERE name LIKE '%indigo%'",
    "SELECT registry_teams()",
)


def test_no_function_and_no_clever_question_does_either(world, everything):
    world.as_dba("ANALYZE")
    for sql in QUESTIONS:
        assert SECRET not in str(world.sql("rita", sql)), sql
        if "registry_" in sql and "registry_teams" not in sql:
            assert world.sql("carol", sql), sql
            assert world.sql("rita", sql) == [], sql


def test_functions_that_are_not_for_readers_are_refused(world, everything):
    for call in (
        "SELECT registry_note('right granted', 'rita', NULL)",
        "CALL registry_refresh_names(NULL)",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            world.sql("rita", call)


def test_every_table_of_the_registry_has_policies(world):
    """One that a later migration adds is no way around them."""
    bare = world.as_dba(
        "SELECT relname FROM pg_class WHERE relnamespace = CAST('public' AS regnamespace) "
        "AND relkind = 'r' AND NOT relrowsecurity"
    )
    assert {name for (name,) in bare} == {"alembic_version", "data_version"}


def test_a_watching_process_notices_that_its_role_got_another_team(world, red):
    world.add("zoe", "read", "blue")
    registry = world.open("zoe")
    hashes = TreeHashes()
    _, before = hashes.read(registry.core.reader)
    world.as_dba(f"GRANT {world.name('rita')} TO {world.name('zoe')}")
    _, now = hashes.read(registry.core.reader)
    assert now == {one.ref: one.tree_hash for one in registry.list()}
    assert (len(before), len(now)) == (2, 4)


def test_counts_of_use_are_added_only_to_what_is_seen(world, red, fill_blue):
    bianca = fill_blue()
    counted = bianca.usage_counts()
    usage = world.open("rita").core.usage
    usage.found([SkillPlace(f"{SECRET}-blue", "pdf"), SkillPlace("red", "pdf")])
    usage.write()
    now = {one.ref: one.found for one in world.open("carol").usage_counts()}
    assert now["red/pdf"] == 1
    assert [one for one in bianca.usage_counts() if SECRET in one.ref] == [
        one for one in counted if SECRET in one.ref
    ]


def test_who_asks_is_found_out_once_for_a_statement_and_not_for_each_row(world, red, monkeypatch):
    from registry.db.postgres.session import Session

    rita = world.open("rita")
    plans = []
    ask = Session.ask

    def explained(session, questions):
        whole = list(questions)
        for sql, values in whole:
            if sql.lstrip().startswith(("SELECT", "WITH")):
                lines = ask(session, [(f"EXPLAIN (COSTS OFF) {sql}", values)])[0]
                plans.append([line for (line,) in lines])
        return ask(session, whole)

    monkeypatch.setattr(Session, "ask", explained)
    rita.list(limit=5)
    rita.get("red/pdf")
    rita.search("plan")
    rita.history("red/pdf")
    rita.tags()
    assert len(plans) > 10
    conditions = [
        line
        for plan in plans
        for line in plan
        if line.lstrip().startswith(("Filter:", "Index Cond:", "Join Filter:", "Recheck Cond:"))
    ]
    assert any("InitPlan" in line for plan in plans for line in plan)
    assert [line for line in conditions if "registry_" in line or "SESSION_USER" in line] == []
