import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.db.read.listing import Filters
from registry.errors import SkillAmbiguous, SkillNotFound
from tests.conftest import write_skill


def test_a_name_shared_inside_a_source_is_refused_with_the_refs_to_choose_from(registry, tmp_path):
    write_skill(tmp_path / "src" / "a" / "review", name="review")
    write_skill(tmp_path / "src" / "b" / "review", name="review", body="Another.")
    registry.sync(str(tmp_path / "src"), name="src")
    with pytest.raises(SkillAmbiguous) as caught:
        registry.get("review")
    assert caught.value.facts["refs"] == ("src/a/review", "src/b/review")
    assert registry.get("src/b/review").folder == "b/review"


def test_a_name_shared_by_equal_sources_is_told_apart_by_the_source(registry, tmp_path):
    for source in ("one", "two"):
        write_skill(tmp_path / source / "review", description=f"Of {source}.")
        registry.sync(str(tmp_path / source), name=source)
    assert [skill.ref for skill in registry.list()] == ["one/review", "two/review"]
    with pytest.raises(SkillAmbiguous):
        registry.get("review")
    assert registry.get("two/review").description == "Of two."


def test_a_shadowed_skill_is_still_reached_by_its_ref(registry, tmp_path):
    write_skill(tmp_path / "one" / "review", description="Weak.")
    write_skill(tmp_path / "two" / "review", description="Strong.")
    registry.sync(str(tmp_path / "one"), name="one", scope="community")
    registry.sync(str(tmp_path / "two"), name="two", scope="team")
    assert registry.get("one/review").description == "Weak."
    assert registry.get("review").description == "Strong."


def test_a_name_that_looks_like_another_skills_ref_does_not_hide_it(registry, tmp_path):
    write_skill(tmp_path / "acme" / "pdf", name="pdf")
    write_skill(tmp_path / "acme" / "other", name="pdf", body="Another.")
    write_skill(tmp_path / "other" / "x", name="acme/pdf")
    registry.sync(str(tmp_path / "acme"), name="acme")
    registry.sync(str(tmp_path / "other"), name="other")
    refs = {skill.ref for skill in registry.list()}
    assert {registry.get(ref).ref for ref in refs} == refs
    assert len(refs) == 3


def test_near_names_are_suggested(registry, root, skill):
    for name in ("code-review", "deploy", "pdf-tools"):
        skill(name)
    registry.sync(str(root))
    with pytest.raises(SkillNotFound) as caught:
        registry.get("code_reveiw")
    assert caught.value.facts["similar"] == ("code-review",)
    with pytest.raises(SkillNotFound) as caught:
        registry.get("pdf")
    assert caught.value.facts["similar"] == ("pdf-tools",)


@pytest.mark.parametrize(
    "name", ["", "\0", "a" * 10_000, "../../etc/passwd", "\ud800", "%s", "'; --"]
)
def test_a_hostile_name_is_just_not_found(registry, root, skill, name):
    skill("alpha")
    registry.sync(str(root))
    with pytest.raises(SkillNotFound):
        registry.get(name)


paths = st.lists(st.sampled_from(["a", "b", "one", "x"]), min_size=1, max_size=3).map("/".join)
some_names = st.sampled_from(["a", "b", "one/a", "one", "a/b", "two/x"])


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), paths, some_names), max_size=12)
)
def test_every_ref_finds_exactly_its_own_skill(tmp_path_factory, lent_database, placed):
    from registry.api import SkillRegistry
    from registry.settings import Settings

    base = tmp_path_factory.mktemp("refs")
    scopes = {"one": "personal", "two": "personal", "three": "project"}
    for source in scopes:
        (base / source).mkdir()
    for source, path, name in placed:
        write_skill(base / source / path, name=f'"{name}"')
    with (
        lent_database() as database,
        SkillRegistry.open(database, settings=Settings()) as registry,
    ):
        for source, scope in scopes.items():
            registry.sync(str(base / source), name=source, scope=scope)
        listed = registry.list(Filters(all=True))
        assert len({skill.ref for skill in listed}) == len(listed)
        for skill in listed:
            found = registry.get(skill.ref)
            assert (found.source, found.folder) == (skill.source, skill.folder)
        assert registry.check_database() == []
