"""Who is visible under which name, after each thing that can change it."""

import shutil

import pytest

from registry.db.read.listing import Filters
from registry.db.visibility import IMPORTING, RESOLVING
from registry.db.write import skills
from registry.db.write.names import refresh_names
from tests.conftest import OLD, write_skill

EVERYTHING = Filters(all=True)


@pytest.fixture
def two(registry, tmp_path):
    """A personal skill that a project's hides, and one beside each."""
    for source, other in (("mine", "alpha"), ("project", "beta")):
        write_skill(tmp_path / source / "review", description=f"Of {source}.")
        write_skill(tmp_path / source / other)
    registry.sync(str(tmp_path / "mine"), name="mine")
    registry.sync(str(tmp_path / "project"), name="project", scope="project")
    return registry


def refs(registry, filters=None):
    return [skill.ref for skill in registry.list(filters)]


def test_a_hidden_skill_is_seen_again_when_the_stronger_source_goes(two):
    assert refs(two) == ["alpha", "beta", "review"]
    assert refs(two, EVERYTHING) == ["alpha", "beta", "mine/review", "review"]
    two.remove_source("project")
    assert refs(two) == refs(two, EVERYTHING) == ["alpha", "review"]
    assert two.list()[1].description == "Of mine."
    assert two.search("project").total == 0
    assert two.core.reader.rows("SELECT count(*) FROM skills") == [(2,)]


def test_another_scope_changes_who_hides_whom(two, tmp_path):
    two.update_source("mine", scope="project")
    assert refs(two) == ["alpha", "beta", "mine/review", "project/review"]
    two.update_source("project", scope="team")
    assert refs(two) == ["alpha", "beta", "review"]
    assert {skill.source for skill in two.list() if skill.name == "review"} == {"mine"}


def test_a_priority_counts_within_a_scope_only_however_high(registry, tmp_path):
    for source in ("low", "high", "team"):
        write_skill(tmp_path / source / "review", description=f"Of {source}.")
    registry.add_source(str(tmp_path / "low"), name="low", priority=-3)
    registry.add_source(str(tmp_path / "high"), name="high", priority=10**9)
    registry.add_source(str(tmp_path / "team"), name="team", scope="team", priority=-(10**9))
    registry.sync()
    assert [source.name for source in registry.sources()] == ["team", "high", "low"]
    (shown,) = registry.list()
    assert (shown.ref, shown.source) == ("review", "team")
    assert [skill.shadowed for skill in registry.list(EVERYTHING)] == [True, True, False]
    registry.remove_source("team")
    (shown,) = registry.list()
    assert (shown.ref, shown.source) == ("review", "high")
    assert refs(registry, EVERYTHING) == ["low/review", "review"]


@pytest.mark.parametrize("state", [IMPORTING, RESOLVING])
def test_what_a_copy_has_of_a_first_import_cut_off_is_shown_by_the_next_sync(two, state):
    before = [(one.ref, one.shadowed, one.copies) for one in two.list(EVERYTHING)]
    with two.core.writer.transaction() as connection:
        connection.exec_driver_sql(f"UPDATE sources SET enabled = {state}, last_sync_at = NULL")
        refresh_names(connection, None)
    assert refs(two) == []
    two.sync()
    assert [(one.ref, one.shadowed, one.copies) for one in two.list(EVERYTHING)] == before


def test_an_invalid_skill_hides_nothing(two, tmp_path):
    write_skill(tmp_path / "project" / "review", description="", body="", age=OLD + 9)
    two.sync()
    assert refs(two) == ["alpha", "beta", "review"]
    assert two.resolve("review").source == "mine"
    assert refs(two, EVERYTHING) == ["alpha", "beta", "review", "project/review"]


def test_equals_in_one_source_are_told_apart_by_their_folders(registry, root):
    write_skill(root / "a", name="same")
    write_skill(root / "b" / "c", name="same", description="Differs.")
    registry.sync(str(root), name="mine")
    assert refs(registry) == ["mine/a", "mine/b/c"]
    write_skill(root / "b" / "c", name="other", age=OLD + 9)
    registry.sync()
    assert refs(registry) == ["other", "same"]


def test_a_folder_called_like_another_skill_stands_in_the_way_of_its_short_ref(two, tmp_path):
    """The ref mine/review would mean the folder: who has that name is called by its own folder."""
    write_skill(tmp_path / "mine" / "elsewhere", name="review", age=OLD)
    (tmp_path / "mine" / "review" / "SKILL.md").unlink()
    write_skill(tmp_path / "mine" / "review", name="other", age=OLD + 9)
    two.sync()
    assert refs(two, EVERYTHING) == ["alpha", "beta", "other", "mine/elsewhere", "review"]
    assert two.check_database() == []


def test_a_name_that_begins_like_an_address_is_no_ref_once_there_is_that_source(registry, tmp_path):
    write_skill(tmp_path / "mine" / "x", name="team/deploy")
    registry.sync(str(tmp_path / "mine"), name="mine")
    before = refs(registry, EVERYTHING)
    (tmp_path / "team").mkdir()
    registry.add_source(str(tmp_path / "team"), name="team")
    assert before == ["team/deploy"]
    assert refs(registry, EVERYTHING) == ["mine/team/deploy"]
    registry.remove_source("team")
    assert refs(registry, EVERYTHING) == before


def test_a_source_can_not_be_registered_twice(two, tmp_path):
    from registry.errors import SourceExists

    (tmp_path / "new").mkdir()
    with pytest.raises(SourceExists):
        two.add_source(str(tmp_path / "new"), name="mine")
    with pytest.raises(SourceExists):
        two.add_source(str(tmp_path / "mine"), name="another")
    assert [source.name for source in two.sources()] == ["project", "mine"]


def test_many_names_are_worked_out_like_few(two, tmp_path, monkeypatch):
    monkeypatch.setattr("registry.db.write.names._AT_ONCE", 1)
    write_skill(tmp_path / "mine" / "beta")
    write_skill(tmp_path / "mine" / "gamma")
    two.sync()
    assert refs(two, EVERYTHING) == [
        "alpha",
        "mine/beta",
        "beta",
        "gamma",
        "mine/review",
        "review",
    ]


def test_what_is_gone_is_not_found_by_its_words_under_the_next_one(registry, root, skill):
    """A version's number is given again; the index must have forgotten what it stood for."""
    skill("alpha")
    for name, words in (("weather", "查询天气"), ("plain", "Forecasts.")):
        skill(name, description=words, age=None)
        registry.sync(str(root))
        registry.delete(name)
        skill("next", description="Nothing of that.", age=None)
        registry.sync()
        assert (registry.search("天气").total, registry.search("forecasts").total) == (0, 0)
        assert registry.check_database() == []
        registry.delete("next")


def test_what_an_edit_replaces_is_cleared_away_when_it_is_read(two, tmp_path):
    write_skill(tmp_path / "mine" / "alpha", description="By hand.", age=OLD + 9)
    assert two.get("alpha").description == "By hand."
    rows = two.core.reader.rows("SELECT live, count(*) FROM skills GROUP BY live")
    assert rows == [(1, 4)]


def write(root, folder, name, words, age):
    target = root / folder
    write_skill(target, name=name, description=words, body="" if not words else "Do it.\n", age=age)


# Folder, name and description of two sources, before and after one sync.
KEPT = {
    "alone, edited": ([("a", "a", "One.")], [("a", "a", "Two.")]),
    "alone, invalid by now": ([("a", "a", "One.")], [("a", "a", "")]),
    "alone, valid by now": ([("a", "a", "")], [("a", "a", "One.")]),
    "names exchanged": (
        [("a", "a", "One."), ("b", "b", "Two.")],
        [("a", "b", "One."), ("b", "a", "Two.")],
    ),
    "one takes the name of another, which is edited": (
        [("a", "a", "One."), ("b", "b", "Two.")],
        [("a", "a", "Three."), ("b", "a", "Two.")],
    ),
    "a new one of the name of one that is edited": (
        [("a", "a", "One.")],
        [("a", "a", "Two."), ("c", "a", "Three.")],
    ),
    "one of two of a name goes, the other is edited": (
        [("a", "a", "One."), ("c", "a", "Three.")],
        [("a", "a", "Two.")],
    ),
    "a folder gets the name of one that is edited": (
        [("x", "a", "One."), ("y", "a", "Two.")],
        [("x", "a", "Three."), ("y", "a", "Two."), ("a", "other", "Four.")],
    ),
    "copies, of which one is edited": (
        [("x", "a", "One."), ("y", "a", "One.")],
        [("x", "a", "Two."), ("y", "a", "One.")],
    ),
    "one of the name of another source, edited": (
        [("x", "alpha", "One.")],
        [("x", "alpha", "Two.")],
    ),
}


@pytest.mark.both
@pytest.mark.parametrize("kept", KEPT)
def test_what_is_known_of_a_name_after_a_sync_is_what_is_worked_out_anew(two, tmp_path, kept):
    """Where nothing is different for a name nothing is worked out: what was known has to hold."""
    mine = tmp_path / "mine"
    before, after = KEPT[kept]
    for one in before:
        write(mine, *one, OLD)
    two.sync()
    for folder in {one[0] for one in before} - {one[0] for one in after}:
        shutil.rmtree(mine / folder)
    for one in after:
        write(mine, *one, OLD + 9)
    assert two.sync(allow_prune=True).updated
    known = "SELECT source_id, folder, ref, shadowed, bare, copies FROM skills ORDER BY 1, 2"
    found = two.core.reader.rows(known)
    with two.core.writer.transaction() as connection:
        refresh_names(connection, None)
    assert two.core.reader.rows(known) == found
    assert two.check_database() == []


def test_nothing_is_worked_out_for_the_name_of_one_that_is_only_edited(two, tmp_path, monkeypatch):
    asked = []

    def refresh(connection, names):
        asked.append(set(names))
        refresh_names(connection, names)

    monkeypatch.setattr(skills, "refresh_names", refresh)
    write_skill(tmp_path / "mine" / "alpha", description="Edited.", age=OLD + 9)
    write_skill(tmp_path / "mine" / "review", description="Edited, too.", age=OLD + 9)
    assert two.sync().updated == ("alpha", "mine/review")
    assert asked == [{"review"}]
    assert refs(two, EVERYTHING) == ["alpha", "beta", "mine/review", "review"]
