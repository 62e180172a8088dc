"""One name with the same files in several places is one skill, wherever it lies."""

import pytest

from registry.api import SkillRegistry
from registry.db.read.listing import Filters
from registry.errors import SkillAmbiguous, SkillNotFound
from registry.settings import Personality, Settings
from tests.conftest import OLD, write_skill


@pytest.fixture
def homes(tmp_path, registry):
    """Folders of three agents, each a source of its own."""

    def make(*names, scope="personal"):
        for name in names:
            root = tmp_path / name
            root.mkdir(exist_ok=True)
            yield root

    def sync(scopes=None):
        for root in sorted(tmp_path.glob("agent-*")):
            registry.sync(str(root), scope=(scopes or {}).get(root.name, "personal"))

    make.sync = sync
    return make


def refs(skills):
    return [skill.ref for skill in skills]


def test_the_same_files_in_two_folders_are_listed_and_found_once(homes, registry):
    for root in homes("agent-a", "agent-b", "agent-c"):
        write_skill(root / "pdf", description="Reads PDF files.")
    homes.sync()
    [skill] = registry.list()
    assert (skill.ref, skill.source) == ("pdf", "agent-a")
    assert skill.copies == ("agent-b/pdf", "agent-c/pdf")
    assert registry.get("pdf").copies == skill.copies
    assert refs(registry.search("pdf")) == ["pdf"]
    everything = registry.list(Filters(all=True))
    assert refs(everything) == ["pdf", "agent-b/pdf", "agent-c/pdf"]
    assert [one.shadowed for one in everything] == [False, True, True]
    assert everything[1].copies == ("pdf", "agent-c/pdf")
    assert registry.get("agent-b/pdf").source == "agent-b"


def test_copies_within_one_source_are_one_skill_too(homes, registry):
    [root] = homes("agent-a")
    write_skill(root / "office" / "pdf", name="pdf")
    write_skill(root / "print" / "pdf", name="pdf")
    homes.sync()
    [skill] = registry.list()
    assert (skill.ref, skill.copies) == ("pdf", ("agent-a/print/pdf",))


def test_a_weaker_source_of_the_same_files_is_a_copy_of_what_hides_it(homes, registry):
    for root in homes("agent-a", "agent-b"):
        write_skill(root / "pdf")
    homes.sync({"agent-a": "community"})
    [skill] = registry.list()
    assert (skill.source, skill.copies) == ("agent-b", ("agent-a/pdf",))


def test_differing_files_of_equal_rank_stay_apart_and_their_copies_do_not_count(homes, registry):
    one, two, three = homes("agent-a", "agent-b", "agent-c")
    write_skill(one / "pdf", description="One way.")
    write_skill(two / "pdf", description="Another way.")
    write_skill(three / "pdf", description="One way.")
    homes.sync()
    assert refs(registry.list()) == ["agent-a/pdf", "agent-b/pdf"]
    with pytest.raises(SkillAmbiguous) as refused:
        registry.get("pdf")
    assert refused.value.facts["refs"] == ("agent-a/pdf", "agent-b/pdf")


def test_a_copy_that_is_edited_is_one_no_more_and_becomes_one_again(homes, registry):
    one, two = homes("agent-a", "agent-b")
    for root in (one, two):
        write_skill(root / "pdf")
    homes.sync()
    write_skill(two / "pdf", description="Other.")
    homes.sync()
    assert refs(registry.list()) == ["agent-a/pdf", "agent-b/pdf"]
    assert [skill.copies for skill in registry.list()] == [(), ()]
    write_skill(two / "pdf")
    homes.sync()
    assert [(skill.ref, skill.copies) for skill in registry.list()] == [("pdf", ("agent-b/pdf",))]


def test_when_the_listed_one_goes_a_copy_takes_its_place(homes, registry):
    for root in homes("agent-a", "agent-b"):
        write_skill(root / "pdf")
    homes.sync()
    registry.remove_source("agent-a")
    assert [(skill.ref, skill.source) for skill in registry.list()] == [("pdf", "agent-b")]


def test_a_skill_that_cannot_be_used_is_no_copy(homes, registry):
    for root in homes("agent-a", "agent-b"):
        folder = write_skill(root / "pdf")
        (folder / "SKILL.md").write_text("---\nname: [\n---\n")
    homes.sync()
    assert registry.list().total == 0
    assert [skill.copies for skill in registry.list(Filters(all=True))] == [(), ()]


def test_of_very_many_copies_the_first_are_named(homes, registry):
    [root] = homes("agent-a")
    for number in range(60):
        write_skill(root / f"place-{number:02}" / "pdf", name="pdf")
    homes.sync()
    [skill] = registry.list()
    assert len(skill.copies) == 50


BODY = "Open the file. Read all the pages. Take out the tables. Check the sums. Write CSV. "


def related(registry, name=None):
    return [(one.name, one.relation, refs(one.skills)) for one in registry.copies(name)]


def test_names_in_several_places_are_told_with_what_differs_the_newest_first(homes, registry):
    one, two = homes("agent-a", "agent-b")
    for root in (one, two):
        write_skill(root / "pdf", body=BODY)
    write_skill(one / "review", body="Old.")
    write_skill(two / "review", body="New.", age=OLD + 100)
    write_skill(two / "alone")
    homes.sync()
    same = ("pdf", "identical", ["pdf", "agent-b/pdf"])
    differing = ("review", "differing", ["agent-b/review", "agent-a/review"])
    assert related(registry) == [same, differing]
    assert related(registry, "agent-b/pdf") == [same]
    assert related(registry, "review") == [differing]
    assert related(registry, "alone") == []
    with pytest.raises(SkillNotFound):
        registry.copies("nothing")


def test_nearly_the_same_text_under_another_name_is_told_of_one_skill(homes, registry):
    [root] = homes("agent-a")
    write_skill(root / "pdf", description="Takes tables out of PDF files.", body=BODY)
    write_skill(
        root / "pdf-tables",
        description="Takes all tables out of PDF files.",
        body=f"{BODY}Then stop.",
    )
    write_skill(root / "csv", description="Something quite different.", body=BODY)
    write_skill(root / "haiku", body="Write three lines, of five, seven and five syllables.")
    homes.sync()
    assert related(registry, "pdf") == [("pdf", "alike", ["pdf-tables"])]
    assert related(registry, "haiku") == []


def test_why_says_of_a_copy_what_stands_for_it(homes, registry):
    for root in homes("agent-a", "agent-b"):
        write_skill(root / "pdf")
    homes.sync()
    listed, copy = registry.why("pdf")
    assert [reason.message for reason in listed.reasons] == [
        "in the registry, nothing shadows or hides it; the same files are in agent-b/pdf"
    ]
    assert [reason.code for reason in copy.reasons] == ["copy"]
    assert not copy.listed


def test_a_copy_of_a_skill_of_a_team_that_is_not_seen_is_seen(tmp_path, database):
    settings = Settings(personalities={"me": Personality(name="me", team="mine")})
    for team in ("mine", "theirs"):
        write_skill(tmp_path / team / "deploy")
    with SkillRegistry.open(database, settings=settings) as registry:
        registry.sync(str(tmp_path / "theirs"), name="theirs", scope="team")
        registry.sync(str(tmp_path / "mine"), name="mine", scope="team")
        [listed] = registry.list()
        assert listed.source == "theirs"
        shown = registry.toolset("native", personality="me").call("list_skills", {})
        assert [(one["ref"], one["source"]) for one in shown["skills"]] == [("deploy", "mine")]
