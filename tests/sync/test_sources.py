"""Sources as people name them: what is registered, what is meant, what is suggested."""

import os
import shutil
import sqlite3
from contextlib import closing

import pytest

from registry.errors import (
    SourceElsewhere,
    SourceExists,
    SourceInvalid,
    SourceNotFound,
    SourceUnclear,
    UsageProblem,
)
from registry.settings import Settings
from registry.sync.sources import MAX_NAME, suggest_name
from tests.cli.conftest import run
from tests.conftest import write_skill


@pytest.fixture
def two(registry, tmp_path):
    """Two sources, each with a skill: ``one`` and ``other``."""
    for name in ("one", "other"):
        write_skill(tmp_path / name / f"of-{name}")
        registry.sync(str(tmp_path / name), name=name)
    return registry


@pytest.fixture
def change(database):
    """Change what is stored of a source."""

    def execute(words):
        with closing(sqlite3.connect(database)) as connection:
            connection.execute(f"UPDATE sources SET {words}")
            connection.commit()

    return execute


@pytest.mark.both
def test_a_source_that_is_added_is_enabled_and_empty_until_it_is_synced(registry, root):
    source = registry.add_source(str(root), name="mine", scope="team", priority=3)
    (stored,) = registry.sources()
    assert source == registry.sources()[0]
    assert (stored.enabled, stored.skills, stored.last_sync_at) == (True, 0, None)
    assert (stored.name, stored.scope, stored.priority) == ("mine", "team", 3)


def test_a_folder_is_registered_once_and_a_name_is_given_once(two, root, tmp_path):
    with pytest.raises(SourceExists) as caught:
        two.add_source(str(tmp_path / "one"), name="again")
    assert caught.value.facts["name"] == "one"
    with pytest.raises(SourceExists) as caught:
        two.add_source(str(root), name="other")
    assert caught.value.facts["path"] == os.path.realpath(tmp_path / "other")
    assert [source.name for source in two.sources()] == ["one", "other"]


def test_a_sync_gives_no_other_name_to_a_source(two, tmp_path):
    assert two.sync(str(tmp_path / "one"), name="one").complete
    with pytest.raises(SourceExists) as caught:
        two.sync(str(tmp_path / "one"), name="again")
    assert caught.value.facts["name"] == "one"


def test_a_file_that_is_no_archive_is_no_address(registry, skill, root, monkeypatch):
    skill("alpha")
    monkeypatch.chdir(root.parent)
    with pytest.raises(SourceInvalid, match="it is not a folder"):
        registry.sync(f"{root.name}/alpha/SKILL.md")


def test_the_sources_there_are_are_named_to_who_names_another(registry, skill, root):
    skill("alpha")
    registry.sync(str(root), name="mine")
    with pytest.raises(SourceNotFound, match=r"Registered: 'mine'\."):
        registry.sync("yours")


@pytest.mark.both
def test_a_removed_source_is_told_with_the_skills_it_had(two):
    assert two.remove_source("one").skills == 1
    assert [source.name for source in two.sources()] == ["other"]
    assert [skill.name for skill in two.list()] == ["of-other"]


def test_a_sync_of_one_source_leaves_the_others_for_later(two, tmp_path):
    for name in ("one", "other"):
        write_skill(tmp_path / name / f"new-{name}")
    assert two.sync("one").added == ("new-one",)
    assert two.sync(str(tmp_path / "other")).added == ("new-other",)


def test_the_folder_of_a_skill_means_its_source_and_no_other(two, tmp_path):
    write_skill(tmp_path / "other" / "new")
    assert [one.name for one in two.sync(str(tmp_path / "other" / "new")).sources] == ["other"]
    write_skill(tmp_path / "otherwise" / "alone")
    report = two.sync(str(tmp_path / "otherwise" / "alone"))
    assert [one.path for one in report.sources] == [
        os.path.realpath(tmp_path / "otherwise" / "alone")
    ]


@pytest.mark.both
def test_a_sync_does_not_change_the_scope_of_a_source_but_names_the_command_that_does(two):
    for options in ({}, {"dry_run": True}):
        with pytest.raises(UsageProblem) as refused:
            two.sync("one", scope="team", **options)
        assert str(refused.value) == (
            "The source one has the scope personal; to change it, run: "
            "skill-registry source update one --scope team"
        )
    assert {source.scope for source in two.sources()} == {"personal"}
    assert two.sync("one", scope="personal").complete


def test_name_and_scope_go_with_one_folder(two, tmp_path):
    for more in ({"name": "x"}, {"scope": "team"}):
        with pytest.raises(UsageProblem, match="go with a folder"):
            two.sync(**more)
    with pytest.raises(UsageProblem, match="single folder"):
        two.sync(str(tmp_path / "one"), str(tmp_path / "other"), name="x")


@pytest.mark.file
def test_a_source_that_is_switched_off_is_synced_only_when_it_is_named(two, change):
    change("enabled = 0 WHERE name = 'one'")
    assert [source.name for source in two.sync().sources] == ["other"]
    assert [source.name for source in two.sync("one").sources] == ["one"]


@pytest.mark.file
def test_a_source_of_another_machine_is_left_to_it(two, change, tmp_path):
    change("host = 'elsewhere' WHERE name = 'one'")
    assert [source.name for source in two.sync().sources] == ["other"]
    assert [source.name for source in two.own_sources()] == ["other"]
    with pytest.raises(SourceElsewhere):
        two.sync("one")
    assert two.create("new", description="D.").source == "other"
    assert two.sync(str(tmp_path / "one"), name="mine").added == ("mine/of-one",)


class TestTarget:
    """Where a new skill goes."""

    @pytest.mark.both
    def test_to_the_only_source(self, registry, root):
        registry.add_source(str(root), name="mine")
        assert registry.create("alpha", description="D.").source == "mine"

    def test_without_a_source_the_error_names_the_method_or_the_command(self, registry, database):
        registry.create_database()
        with pytest.raises(SourceUnclear, match="No sources are registered yet") as caught:
            registry.create("alpha", description="D.")
        assert caught.value.__notes__ == ["To register a folder, call registry.sync(FOLDER)."]
        told = run("--db", str(database), "create", "alpha", "--description", "D.").stderr
        assert "To register a folder, run: skill-registry sync FOLDER" in told
        assert "registry.sync" not in told

    def test_of_several_to_the_one_that_is_named_or_set(self, two):
        with pytest.raises(SourceUnclear) as caught:
            two.create("alpha", description="D.")
        assert caught.value.facts["known"] == ["one", "other"]
        assert two.create("alpha", description="D.", source="other").source == "other"
        two.core.settings = Settings(default_source="one")
        assert two.create("beta", description="D.").source == "one"
        with pytest.raises(SourceNotFound):
            two.create("gamma", description="D.", source="none")


class TestRefused:
    @pytest.mark.parametrize(
        ("name", "good"),
        [("x" * MAX_NAME, True), ("x" * (MAX_NAME + 1), False), ("", False), ("a\tb", False)],
    )
    def test_a_name_is_short_and_printable(self, registry, root, name, good):
        if good:
            assert registry.add_source(str(root), name=name).name == name
        else:
            with pytest.raises(UsageProblem, match="1 to 64 printable"):
                registry.add_source(str(root), name=name)

    def test_a_folder_whose_name_is_no_text(self, registry, root):
        odd = os.fsencode(root) + b"/caf\xe9"
        os.mkdir(odd)
        with pytest.raises(SourceInvalid) as caught:
            registry.add_source(os.fsdecode(odd))
        assert caught.value.facts["reason"] == "its name is not UTF-8 text"

    def test_a_folder_that_holds_what_was_deleted(self, two, tmp_path):
        two.delete("of-one")
        state = tmp_path / ".one.skill-registry"
        with pytest.raises(SourceInvalid, match="own state"):
            two.add_source(str(state))

    def test_a_folder_that_can_not_be_listed(self, registry, root, monkeypatch):
        def refuse(path):
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(os, "scandir", refuse)
        with pytest.raises(SourceInvalid) as caught:
            registry.add_source(str(root))
        assert caught.value.facts["reason"] == "Permission denied"

    @pytest.mark.parametrize(
        ("target", "expected"),
        [("no-name", SourceNotFound), ("./none", SourceInvalid), ("~none/x", SourceInvalid)],
    )
    def test_a_word_is_a_name_and_what_looks_like_a_path_a_folder(self, registry, target, expected):
        with pytest.raises(expected):
            registry.sync(target)


class TestSuggestedNames:
    @pytest.mark.parametrize(
        ("path", "name"),
        [
            ("/home/me/.claude/skills", "claude"),
            ("/home/me/library", "library"),
            ("/home/me/.miniclaw/workspace/skills", "miniclaw"),
            ("/skills", "skills"),
            ("/home/me/my notes", "my-notes"),
            ("/home/" + "x" * 70 + "y", "x" * (MAX_NAME - 1) + "y"),
        ],
    )
    def test_a_source_is_named_after_what_its_folder_belongs_to(self, path, name):
        assert suggest_name(path, []) == name

    def test_a_name_that_is_taken_grows_to_the_left_and_then_counts(self):
        taken = []
        for _ in range(5):
            taken.append(suggest_name("/a/b/c/.claude/skills", taken))
        assert taken == ["claude", "c-claude", "b-c-claude", "claude-2", "claude-3"]


class TestDiscovery:
    def test_known_places_below_home_and_project_are_found(self, registry, tmp_path):
        home, project = tmp_path / "home", tmp_path / "work" / "project"
        for place in (home / ".claude/skills", project / ".claude/skills"):
            place.mkdir(parents=True)
        (project / ".github/skills").mkdir(parents=True)
        (home / ".codex").mkdir()
        (home / ".codex/skills").write_text("no folder")
        registry.add_source(str(home / ".claude/skills"), name="mine")

        def found(*where):
            return [
                (os.path.relpath(one.path, tmp_path), one.scope, one.suggested_name, one.source)
                for one in registry.discover(*where)
            ]

        below_home = [("home/.claude/skills", "personal", "mine", "mine")]
        assert found(str(home)) == found(str(home), str(home)) == below_home
        assert found(str(home), str(project)) == [
            *below_home,
            ("work/project/.claude/skills", "project", "claude", None),
            ("work/project/.github/skills", "project", "github", None),
        ]


def test_what_a_source_does_not_have_cannot_be_changed(registry, root, skill):
    skill("alpha")
    registry.sync(str(root), name="mine")
    with pytest.raises(UsageProblem, match=r"no priorty to change; there are: ref, new_name"):
        registry.update_source("mine", priorty=2)
    assert registry.sources()[0].priority == 0


def test_a_repository_that_is_no_folder_of_skills_is_refused_with_its_address(registry, tmp_path):
    bare = tmp_path / "my team.git"
    for name in ("HEAD", "objects", "refs"):
        (bare / name).mkdir(parents=True)
    with pytest.raises(SourceInvalid, match=f"bare repository: its address is {bare.as_uri()}"):
        registry.sync(str(bare))
    with pytest.raises(SourceInvalid, match=f"to pin a repository: {bare.as_uri()}#v1"):
        registry.sync(f"{bare}#v1")
    assert registry.sources() == []


@pytest.fixture
def nested(registry, root, skill):
    """Register a source, and later a source in it that has all but one of its skills."""
    for number in range(12):
        skill(f"team/skill-{number}")
    skill("own")
    registry.sync(str(root), name="all")
    registry.sync(str(root / "team"), name="team")
    return registry


@pytest.mark.both
def test_skills_that_a_later_source_inside_has_are_handed_over_without_a_question(nested):
    report = nested.sync()
    assert {one.name: (one.outcome, one.kept) for one in report.sources} == {
        "all": ("ok", 0),
        "team": ("ok", 0),
    }
    assert {one.name: one.skills for one in nested.sources()} == {"all": 1, "team": 12}
    assert nested.sync().complete


def test_a_source_that_holds_nothing_but_a_later_source_is_in_line(nested):
    nested.delete("own")
    first, second = nested.sync(), nested.sync()
    assert first.complete
    assert second.complete
    assert {one.name: one.skills for one in nested.sources()} == {"all": 0, "team": 12}


def test_skills_below_a_later_source_that_is_away_are_kept(nested, root):
    shutil.rmtree(root / "team")
    outcomes = {one.name: one.outcome for one in nested.sync().sources}
    assert outcomes == {"all": "shrunk", "team": "missing"}
    assert {one.name: one.skills for one in nested.sources()} == {"all": 13, "team": 12}
