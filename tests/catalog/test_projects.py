"""A project's skills are seen where the project is, and hide others only there."""

import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.api import SkillRegistry
from registry.db.read.listing import Filters
from registry.errors import SkillAmbiguous
from registry.settings import Settings, parse_settings
from registry.toolsets.base import Context
from registry.toolsets.view import View
from tests.conftest import write_skill

ALL = Filters(all=True)


@pytest.fixture
def world(registry, tmp_path):
    """A user's skills, a team's, and those of two projects with the same names in them."""
    write_skill(tmp_path / "user" / "deploy", description="The user's own deploy.")
    write_skill(tmp_path / "user" / "notes", description="The user's own notes.")
    write_skill(tmp_path / "team" / "deploy", description="The team's deploy.", extra="tags: [t]\n")
    registry.sync(str(tmp_path / "user"), name="user")
    registry.sync(str(tmp_path / "team"), name="team", scope="team")
    for project in ("one", "two"):
        home = tmp_path / "work" / project / ".claude" / "skills"
        for name in ("deploy", "plan"):
            write_skill(
                home / name,
                description=f"The {name} of {project}.",
                extra=f"tags: [{project}]\nkind: k-{project}\ncategory: c-{project}\n",
            )
        registry.sync(str(home), name=project, scope="project")
    return registry


@pytest.fixture
def seen_from(world, tmp_path):
    """The registry as it is seen from a folder below the test's."""

    def look(*folders):
        return world.seen_from(*(str(tmp_path / folder) for folder in folders))

    return look


def shown(registry, filters=None):
    return [(skill.ref, skill.source) for skill in registry.list(filters)]


ELSEWHERE = [("deploy", "team"), ("notes", "user")]
WITHIN = {
    "work/one": [("deploy", "one"), ("notes", "user"), ("plan", "one")],
    "work/two/src/deep": [("deploy", "two"), ("notes", "user"), ("plan", "two")],
    "work": ELSEWHERE,
    "user": ELSEWHERE,
    "work/one-more": ELSEWHERE,
}


def test_a_projects_skills_are_listed_in_its_folder_only_and_hide_others_only_there(seen_from):
    for folder, within in WITHIN.items():
        assert shown(seen_from(folder)) == within


def test_a_bare_name_means_what_is_seen_from_where_one_is(seen_from):
    for folder, within in WITHIN.items():
        here = seen_from(folder)
        for name, source in within:
            assert (here.get(name).source, here.resolve(name).ref) == (source, name)


def test_a_name_that_only_projects_elsewhere_have_is_ambiguous_and_each_ref_finds_its_skill(
    seen_from,
):
    here = seen_from("work")
    with pytest.raises(SkillAmbiguous) as refused:
        here.get("plan")
    assert refused.value.facts["refs"] == ("one/plan", "two/plan")
    assert [here.get(ref).source for ref in refused.value.facts["refs"]] == ["one", "two"]


def test_a_stored_ref_finds_its_skill_from_wherever_it_is_asked_for(seen_from):
    for folder in WITHIN:
        here = seen_from(folder)
        refs = {skill.ref: (skill.source, skill.folder) for skill in here.list(ALL)}
        assert len(refs) == 7
        for ref, place in refs.items():
            found = here.resolve(ref)
            assert (found.ref, (found.source, found.folder)) == (ref, place)


def test_the_skills_that_are_seen_here_are_explained_before_those_of_other_projects(seen_from):
    outside = [one.skill.source for one in seen_from("work").why("deploy")]
    assert (outside[:2], {*outside[2:]}) == (["team", "user"], {"one", "two"})
    assert [one.skill.source for one in seen_from("work/two").why("deploy")][-1] == "one"


def test_all_says_what_the_projects_skill_hides_here(seen_from):
    hidden = {
        folder: {skill.source for skill in seen_from(folder).list(ALL) if skill.shadowed}
        for folder in WITHIN
    }
    assert hidden["work/one"] == {"user", "team"}
    assert hidden["work"] == {"user"}


def test_pages_totals_facets_search_and_statistics_agree_with_the_list(seen_from):
    for folder, within in WITHIN.items():
        here = seen_from(folder)
        listed = list(here.list())
        expected = len(within)
        pages = [here.list(limit=1, offset=at) for at in range(expected)]
        assert [skill for page in pages for skill in page] == listed
        assert {page.total for page in pages} == {expected}
        hits = here.search("own deploy plan notes team")
        assert hits.total == len(hits) == expected
        assert {hit.ref for hit in hits} == {skill.ref for skill in listed}
        for facets, values in (
            (here.tags(), [tag for skill in listed for tag in skill.tags]),
            (here.kinds(), [skill.kind for skill in listed if skill.kind]),
            (here.categories(), [skill.category for skill in listed if skill.category]),
        ):
            assert {one.value: one.count for one in facets} == {v: values.count(v) for v in values}
        stats = here.stats()
        assert (stats.visible, sum(stats.by_scope.values())) == (expected, expected)
        assert stats.shadowed == sum(skill.shadowed for skill in here.list(ALL))
        assert stats.tags == len(here.tags())


def test_what_is_left_out_is_counted_as_far_as_the_filters_ask_for_it(seen_from):
    here = seen_from("work")
    assert here.left_out() == 4
    assert here.left_out(Filters(source="one")) == here.left_out(Filters(tags=["two"])) == 2
    assert here.left_out(Filters(scope="team")) == here.left_out(ALL) == 0
    assert seen_from("work/one").left_out() == 2


def test_of_nested_projects_the_inner_one_comes_first_and_the_outer_one_is_seen_too(
    world, seen_from, tmp_path
):
    inner = tmp_path / "work" / "one" / "vendor" / "inner"
    write_skill(inner / ".agents" / "skills" / "deploy", description="Inner.")
    world.sync(str(inner / ".agents" / "skills"), name="inner", scope="project")
    assert shown(seen_from("work/one/vendor/inner/src")) == [
        ("deploy", "inner"),
        ("notes", "user"),
        ("plan", "one"),
    ]
    assert shown(seen_from("work/one/vendor")) == WITHIN["work/one"]


def test_of_several_folders_the_projects_are_seen_together_that_of_the_first_before_all(seen_from):
    found = shown(seen_from("work/two", "work/one", "user"))
    assert found == WITHIN["work/two/src/deep"]
    found = shown(seen_from("user", "work/one", "work/two"))
    assert found == WITHIN["work/one"]


def test_a_copy_of_a_users_skill_in_a_project_is_listed_once_there(world, seen_from, tmp_path):
    for home in ("work/one/.claude/skills", "work/one/.agents/skills"):
        write_skill(tmp_path / home / "notes", description="The user's own notes.")
    world.sync()
    world.sync(str(tmp_path / "work/one/.agents/skills"), name="agents", scope="project")
    for folder, source in (("work/one", "one"), ("work", "user")):
        (notes,) = (skill for skill in seen_from(folder).list() if skill.name == "notes")
        assert (notes.ref, notes.source) == ("notes", source)
        assert len(notes.copies) == 2
        assert seen_from(folder).search("notes").total == 1
        for other in notes.copies:
            copy = seen_from(folder).resolve(other)
            assert (copy.name, copy.tree_hash) == ("notes", notes.tree_hash)
            assert copy.source != source


def test_within_a_project_the_priority_decides_and_equals_are_ambiguous(world, seen_from, tmp_path):
    for source, priority in (("high", 5), ("low", 0)):
        home = tmp_path / "work" / "one" / source
        write_skill(home / "plan", description=f"The {source} plan.")
        (tmp_path / "work" / "one" / ".git").mkdir(exist_ok=True)
        world.add_source(str(home), name=source, scope="project", priority=priority)
    world.sync()
    here = seen_from("work/one")
    assert ("plan", "high") in shown(here)
    world.remove_source("high")
    assert {one for one in shown(here) if "plan" in one[0]} == {
        ("low/plan", "low"),
        ("one/plan", "one"),
    }
    with pytest.raises(SkillAmbiguous):
        here.get("plan")


def test_an_invalid_skill_of_a_project_hides_nothing_and_is_seen_in_it_alone(
    world, seen_from, tmp_path
):
    write_skill(tmp_path / "work/one/.claude/skills/deploy", description="", body="", age=None)
    write_skill(tmp_path / "user" / "plan", description="", body="")
    world.sync()
    broken = Filters(status="invalid")
    assert shown(seen_from("work/one")) == [("deploy", "team"), *WITHIN["work/one"][1:]]
    assert [source for _, source in shown(seen_from("work/one"), broken)] == ["one", "user"]
    assert [source for _, source in shown(seen_from("work"), broken)] == ["user"]


@pytest.mark.file
@pytest.mark.parametrize(
    ("source", "marker", "project"),
    [
        (".claude/skills", None, "."),
        (".github/skills", None, "."),
        (".miniclaw/workspace/skills", None, "."),
        ("packages/a/.cursor/skills", None, "packages/a"),
        ("packages/a/docs", ".git", "."),
        ("packages/a", "packages/a/.git", "packages/a"),
        ("tools/skills", None, "tools"),
    ],
)
def test_the_project_is_the_folder_that_an_agent_or_git_takes_for_it(
    registry, tmp_path, source, marker, project
):
    base = tmp_path / "base"
    write_skill(base / source / "alpha")
    if marker is not None:
        (base / marker).mkdir()
    registry.sync(str(base / source), scope="project")
    (rows,) = registry.core.reader.rows("SELECT project FROM sources")
    assert rows == (str(base / project) if project != "." else str(base),)


@pytest.mark.file
def test_a_home_folder_under_version_control_is_no_project(registry, tmp_path):
    home = tmp_path / "home"
    subprocess.run(["git", "init", "-q", str(home)], check=True)
    write_skill(home / "code" / "app" / "skills" / "alpha")
    registry.sync(str(home / "code" / "app" / "skills"), scope="project")
    assert shown(registry.seen_from(str(home / "code"))) == []
    assert len(shown(registry.seen_from(str(home / "code" / "app")))) == 1


def test_a_change_of_scope_makes_a_source_a_projects_and_takes_it_back(world, seen_from, tmp_path):
    (tmp_path / "team" / ".git").mkdir()
    world.update_source("team", scope="project")
    assert shown(seen_from("work")) == [("deploy", "user"), ("notes", "user")]
    assert ("deploy", "team") in shown(seen_from("team"))
    world.update_source("team", scope="team")
    assert shown(seen_from("work")) == ELSEWHERE


@pytest.mark.file
def test_a_link_to_the_project_leads_into_it(world, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "work" / "one")
    assert shown(world.seen_from(str(tmp_path / "link"))) == WITHIN["work/one"]


@pytest.mark.file
def test_the_processes_own_folder_is_where_one_is(world, database, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "work" / "one")
    with SkillRegistry.open(database, settings=Settings()) as here:
        assert shown(here) == WITHIN["work/one"]
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with SkillRegistry.open(database, settings=Settings()) as nowhere:
        assert shown(nowhere) == ELSEWHERE
    monkeypatch.chdir(tmp_path)


class TestTools:
    """Each toolset shows what is seen from the folder that it is given."""

    @pytest.fixture
    def told(self, world, tmp_path):
        def call(toolset, tool, arguments, folder, **limits):
            made = world.toolset(toolset, workdir=str(tmp_path / folder), **limits)
            return made.call(tool, arguments)

        return call

    def test_native(self, told):
        for folder, within in WITHIN.items():
            listed = told("native", "list_skills", {}, folder)["skills"]
            assert [(one["ref"], one["source"]) for one in listed] == within
            found = told("native", "search_skills", {"query": "deploy"}, folder)
            assert {one["ref"] for one in found["skills"]} == {"deploy"}
            read = told("native", "read_skill", {"name": "deploy"}, folder)
            assert read["skill"]["source"] == within[0][1]
            is_there = ("plan", "one") in within
            for tool, more in (("read_skill", {}), ("update_skill", {"tags": ["x"]})):
                answer = told("native", tool, {"name": "one/plan", **more}, folder)
                assert ("error" in answer) != is_there, (tool, answer)
            answer = told("native", "delete_skill", {"name": "one/plan"}, folder)
            assert ("error" in answer) != is_there

    def test_native_neither_syncs_nor_restores_nor_writes_to_a_project_elsewhere(
        self, world, told, tmp_path
    ):
        home = tmp_path / "work" / "one" / ".claude" / "skills"
        world.delete("one/plan")
        write_skill(home / "fresh")
        assert told("native", "sync_skills", {}, "work")["added"] == []
        for tool, arguments in (
            ("sync_skills", {"sources": ["one"]}),
            ("restore_skill", {"name": "plan"}),
            ("create_skill", {"name": "more", "description": "d", "source": "one"}),
        ):
            assert "error" in told("native", tool, arguments, "work"), tool
        assert not (home / "plan").exists()
        assert told("native", "sync_skills", {"sources": ["one"]}, "work/one")["added"] == ["fresh"]
        assert told("native", "restore_skill", {"name": "plan"}, "work/one")["skill"]

    def test_what_is_broken_in_a_project_elsewhere_is_told_as_not_found(
        self, world, told, tmp_path
    ):
        home = tmp_path / "work" / "one" / ".claude" / "skills"
        write_skill(home / "broken", description="", body="")
        world.sync()
        answer = told("native", "read_skill", {"name": "broken"}, "work")
        assert answer["error"]["code"] == "skill_not_found"
        answer = told("native", "read_skill", {"name": "broken"}, "work/one")
        assert answer["error"]["code"] == "skill_invalid"
        for folder in ("work", "work/one"):
            answer = told("wave", "Skill", {"skill_name": "broken"}, folder)
            assert ("is invalid" in str(answer)) == (folder == "work/one")

    @pytest.mark.file
    def test_wave(self, world, told, tmp_path):
        for folder, within in WITHIN.items():
            toolset = world.toolset("wave", workdir=str(tmp_path / folder))
            (tool,) = toolset.tools()
            for name, source in within:
                kind = "project" if source in {"one", "two"} else "personal"
                assert f"**{name}** ({kind})" in tool.description
            assert tool.description.count("\n") == len(within) - 1
            answer = told("wave", "Skill", {"skill_name": "plan"}, folder)
            assert answer["success"] == any(ref == "plan" for ref, _ in within)
            if not answer["success"]:
                assert "The plan of" not in str(answer)

    @pytest.mark.file
    def test_basic_shows_its_source_where_that_is_seen(self, told):
        for folder, within in WITHIN.items():
            is_there = ("plan", "one") in within
            listed = told("basic", "list_skills", {}, folder, source="one")
            assert listed == {"skills": ["deploy", "plan"] if is_there else []}
            read = told("basic", "get_skill", {"skill_name": "plan"}, folder, source="one")
            assert ("documentation" in read) == is_there

    @pytest.mark.file
    def test_miniclaw(self, told):
        for folder, within in WITHIN.items():
            answer = told("miniclaw", "list_skills", {}, folder, source="user")
            assert "The plan of" not in str(answer)
            answer = told("miniclaw", "read_skill", {"name": "plan"}, folder, source="one")
            assert answer["success"] == (("plan", "one") in within)

    @pytest.mark.file
    def test_ethos(self, told):
        for folder, within in WITHIN.items():
            text = str(told("ethos", "skills_list", {}, folder))
            for project in ("one", "two"):
                assert (f"The plan of {project}." in text) == (("plan", project) in within)

    def test_a_personality_sees_its_projects_and_what_another_team_hides_elsewhere(
        self, database, world, tmp_path
    ):
        chosen = parse_settings(
            {"personalities": {"coder": {"skills": {"global_ingest": {"mode": "capability"}}}}}, ""
        )
        for folder, sources in (
            ("work/one", {"one", "user"}),
            ("work", {"user"}),
        ):
            with SkillRegistry.open(database, settings=chosen, workdir=tmp_path / folder) as here:
                seen = View(Context(here.core, personality="coder")).skills()
                assert {skill.source for skill in seen} == sources
                listed = here.list(here.seen_by("coder"))
                assert {skill.source for skill in listed} == sources
                deploy = [skill.source for skill in seen if skill.name == "deploy"]
                assert deploy == ["one" if folder == "work/one" else "user"]


NAMES = ("a", "b", "c")
PLACES = ("", "p", "p/q", "r")


@settings(
    max_examples=settings.default.max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(
    skills=st.lists(
        st.tuples(
            st.sampled_from(["user", "team", "p/.claude", "p/.agents", "p/q/.claude", "r/.claude"]),
            st.sampled_from(NAMES),
            st.sampled_from(["one text", "another text"]),
        ),
        unique_by=lambda one: one[:2],
        min_size=1,
    ),
)
def test_from_everywhere_each_name_is_listed_as_the_rules_say(
    lent_database, tmp_path_factory, skills
):
    base = tmp_path_factory.mktemp("world")
    with (
        lent_database() as database,
        SkillRegistry.open(database, settings=Settings(), workdir=base) as registry,
    ):
        for home in {home for home, _, _ in skills}:
            folder = base / home if "/" not in home else base / home / "skills"
            for _, name, text in (one for one in skills if one[0] == home):
                write_skill(folder / name, description=text)
            scope = {"user": "personal", "team": "team"}.get(home, "project")
            registry.sync(str(folder), scope=scope, name=home.replace("/", "-"))
        for place in PLACES:
            here = registry.seen_from(str(base / place))
            chosen = [(one.name, one.description) for one in here.list()]
            assert sorted(chosen) == expected(skills, place)
            assert here.list(limit=1).total == len(chosen)
            assert here.search("text").total == len(chosen)
            assert here.stats().visible == len(chosen)
            refs = [skill.ref for skill in here.list(ALL)]
            assert len(refs) == len(set(refs)) == len(skills)
            assert [here.resolve(ref).ref for ref in refs] == refs


def expected(skills, place):
    """Return (name, text) of what is listed, worked out from the words of the design."""
    around = {
        "p/q": [{"p/q/.claude"}, {"p/.claude", "p/.agents"}],
        "p": [{"p/.claude", "p/.agents"}],
        "r": [{"r/.claude"}],
    }
    listed = []
    for name in NAMES:
        for tier in (*around.get(place, []), {"team"}, {"user"}):
            texts = {text for home, one, text in skills if one == name and home in tier}
            if texts:
                listed += [(name, text) for text in texts]
                break
    return sorted(listed)
