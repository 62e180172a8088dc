import pytest

from registry.db.read.listing import Filters
from registry.model import Found
from tests.conftest import OLD, write_skill


@pytest.fixture
def full(registry, tmp_path):
    """Two sources: a project that hides one personal skill, and an invalid skill."""
    mine, project = tmp_path / "mine", tmp_path / "project"
    write_skill(mine / "pdf", extra="tags: [Office, pdf]\nkind: workflow\ncreated: 2024-01-01\n")
    write_skill(
        mine / "text" / "haiku", extra="tags: [poem]\nkind: Reference\ncreated: 2025-06-01\n"
    )
    write_skill(mine / "broken", description="", body="")
    write_skill(mine / "review", description="Mine.", extra="created: 2024-06-01\n")
    write_skill(
        project / "review",
        description="The project's.",
        extra="created: 2026-01-01\n",
        age=OLD + 100,
    )
    registry.sync(str(mine), name="mine")
    registry.sync(str(project), name="project", scope="project")
    return registry


def names(page):
    return [skill.ref for skill in page]


def test_a_filter_shows_just_what_passes_it(full):
    for filters, expected in [
        ({}, ["haiku", "pdf", "review"]),
        ({"tags": ["office"]}, ["pdf"]),
        ({"tags": [" OFFICE "]}, ["pdf"]),
        ({"tags": ["office", "pdf"]}, ["pdf"]),
        ({"tags": ["office", "poem"]}, []),
        ({"any_tags": ["office", "poem"]}, ["haiku", "pdf"]),
        ({"kind": "workflow"}, ["pdf"]),
        ({"kind": "reference"}, ["haiku"]),
        ({"category": "text"}, ["haiku"]),
        ({"scope": "project"}, ["review"]),
        ({"source": "mine"}, ["haiku", "pdf"]),
        ({"source": "mine", "all": True}, ["broken", "haiku", "pdf", "mine/review"]),
        ({"status": "invalid"}, ["broken"]),
        ({"created_since": "2025-01-01T00:00:00Z"}, ["haiku", "review"]),
        ({"created_until": "2025-06-01T00:00:00Z"}, ["haiku", "pdf"]),
        ({"updated_since": "2023-11-14T22:14:00Z"}, ["review"]),
        ({"updated_until": "2023-11-14T22:14:00Z"}, ["haiku", "pdf"]),
    ]:
        page = full.list(Filters(**filters))
        assert names(page) == expected
        assert page.total == len(expected)


def test_names_ascend_dates_descend_and_reverse_turns_both_round(full):
    assert names(full.list()) == ["haiku", "pdf", "review"]
    assert names(full.list(reverse=True)) == ["review", "pdf", "haiku"]
    assert names(full.list(sort="created")) == ["review", "haiku", "pdf"]
    assert names(full.list(sort="created", reverse=True)) == ["pdf", "haiku", "review"]
    assert names(full.list(sort="updated"))[0] == "review"


def test_a_page_knows_the_true_total(full):
    page = full.list(limit=1, offset=1)
    assert (names(page), page.total) == (["pdf"], 3)
    assert full.list(limit=0).total == 3
    assert names(full.list(offset=2)) == ["review"]


def test_a_stronger_source_shadows_a_weaker_one_until_it_goes(full):
    assert full.get("review").description == "The project's."
    assert [s.shadowed for s in full.list(Filters(all=True)) if s.name == "review"] == [True, False]
    full.remove_source("project")
    assert full.get("review").description == "Mine."
    assert full.check_database() == []


def test_an_invalid_skill_shadows_nothing(registry, tmp_path):
    write_skill(tmp_path / "mine" / "review")
    (tmp_path / "project" / "review").mkdir(parents=True)
    (tmp_path / "project" / "review" / "SKILL.md").write_bytes(b"\xff\xfe")
    registry.sync(str(tmp_path / "mine"))
    registry.sync(str(tmp_path / "project"), scope="project")
    assert [skill.scope for skill in registry.list()] == ["personal"]


def test_a_higher_priority_wins_within_one_scope(registry, tmp_path):
    for name in ("one", "two"):
        write_skill(tmp_path / name / "review", description=f"Of {name}.")
    registry.add_source(str(tmp_path / "one"))
    registry.add_source(str(tmp_path / "two"), priority=5)
    registry.sync()
    assert registry.get("review").description == "Of two."


def test_facets_count_visible_skills_the_most_frequent_first(full):
    assert [(f.value, f.count) for f in full.tags()] == [("office", 1), ("pdf", 1), ("poem", 1)]
    assert {f.value for f in full.kinds()} == {"workflow", "Reference"}
    assert [(f.value, f.count) for f in full.categories()] == [("text", 1)]


def test_statistics_add_up(full):
    stats = full.stats()
    assert (stats.skills, stats.visible, stats.shadowed, stats.sources) == (5, 3, 1, 2)
    assert stats.by_status["invalid"] == 1
    assert sum(stats.by_status.values()) == stats.skills


@pytest.mark.file
def test_a_registry_without_a_database_is_empty_and_stays_unmade(registry, database):
    assert (len(registry.list()), registry.list().total) == (0, 0)
    assert registry.search("anything") == Found((), 0, 0.0, ("anything",))
    assert registry.tags() == []
    assert registry.stats().skills == 0
    assert registry.sources() == []
    assert registry.database_info().exists is False
    assert registry.check_database() == []
    assert not database.exists()
