"""What is asked of the database by those who list, offer, watch and serve skills."""

import pytest

from registry.db.read import listing, skills
from registry.db.read.journal import has_entries, unfinished_changes
from registry.db.read.listing import Filters, candidates, manifests
from registry.db.read.sources import list_sources, roots
from registry.db.read.summary import registered
from tests.conftest import write_skill

EVERYTHING = Filters(all=True)
HIDDEN = "disable-model-invocation: true\n"


@pytest.fixture
def library(registry, tmp_path):
    """A source of many kinds, a project that hides one of its skills, and a skill that is a root.

    The folder pdf0 sorts right after all that is below pdf: '0' follows '/'.
    """
    mine, whole = tmp_path / "mine", tmp_path / "whole"
    (write_skill(mine / "pdf", body="Body of pdf.\n") / "run.sh").write_text("echo\n")
    (mine / "pdf" / "run.sh").chmod(0o755)
    (write_skill(mine / "pdf" / "inner") / "data.txt").write_text("data")
    (write_skill(mine / "pdf0") / "other.txt").write_text("other")
    write_skill(mine / "quiet", extra=HIDDEN)
    write_skill(mine / "broken", description="", body="")
    write_skill(mine / "review")
    (write_skill(mine / "old") / "SKILL.md").rename(mine / "old" / "skill.md")
    write_skill(tmp_path / "project" / "review")
    (write_skill(whole) / "top.txt").write_text("top")
    (write_skill(whole / "sub") / "deep.txt").write_text("deep")
    registry.sync(str(mine), name="mine")
    registry.sync(str(tmp_path / "project"), name="project", scope="project")
    registry.sync(str(whole), name="whole", scope="community")
    return registry


@pytest.fixture
def reader(library):
    return library.core.reader


def source_id(library, name):
    return next(source.id for source in library.sources() if source.name == name)


def paths(manifest):
    return [file.path for file in manifest.files]


def test_a_manifest_holds_all_files_below_and_those_of_skills_inside(reader):
    found = {one.ref: one for one in manifests(reader, Filters())}
    assert list(found) == ["inner", "old", "pdf", "pdf0", "quiet", "review", "sub", "whole"]
    assert paths(found["pdf"]) == ["SKILL.md", "inner/SKILL.md", "inner/data.txt", "run.sh"]
    assert paths(found["inner"]) == ["SKILL.md", "data.txt"]
    assert paths(found["pdf0"]) == ["SKILL.md", "other.txt"]
    assert paths(found["whole"]) == ["SKILL.md", "sub/SKILL.md", "sub/deep.txt", "top.txt"]
    assert paths(found["sub"]) == ["SKILL.md", "deep.txt"]
    pdf = found["pdf"]
    assert (pdf.name, pdf.source, pdf.folder, pdf.document) == ("pdf", "mine", "pdf", "SKILL.md")
    assert pdf.text.endswith("Body of pdf.\n")
    assert pdf.description == "Does one thing well."
    assert (pdf.files[2].size, pdf.files[2].hash[:7]) == (4, "sha256:")
    assert found["old"].document == "skill.md"


def test_manifests_come_in_pages(reader):
    refs = [one.ref for one in manifests(reader, Filters())]
    pages = [manifests(reader, Filters(), limit=3, offset=start) for start in (0, 3, 6, 9)]
    assert [[one.ref for one in page] for page in pages] == [refs[:3], refs[3:6], refs[6:], []]
    assert pages[0][2].files


def test_what_models_are_offered_is_what_is_visible_and_does_not_hide(reader):
    refs = ["inner", "old", "pdf", "pdf0", "review", "sub", "whole"]
    assert [offer.ref for offer in listing.offers(reader)] == refs
    review = listing.offers(reader)[4]
    assert review == ("review", "project", "Does one thing well.", "project", "review")
    _, hashes = listing.TreeHashes().read(reader)
    assert set(hashes) == set(refs)
    assert all(digest.startswith("sha256:") for digest in hashes.values())


def test_some_offers_are_the_wanted_ones_first_and_the_true_total(reader):
    for first, most, expected in [
        ([], 3, ["inner", "old", "pdf"]),
        (["sub", "old"], 4, ["sub", "old", "inner", "pdf"]),
        (["quiet", "nothing", "whole"], 2, ["whole", "inner"]),
        (["sub", "whole"], 1, ["sub"]),
        ([], 100, ["inner", "old", "pdf", "pdf0", "review", "sub", "whole"]),
    ]:
        offers, total = listing.some_offers(reader, first, most)
        assert ([offer.ref for offer in offers], total) == (expected, 7)


def test_a_policy_decides_about_usable_skills_that_nothing_hides(reader):
    found = {one.skill.ref: one for one in candidates(reader, judged=False)}
    usable = ["inner", "old", "pdf", "pdf0", "quiet", "review", "sub", "whole"]
    assert sorted(found) == usable
    assert [ref for ref, one in found.items() if one.hidden] == ["quiet"]
    assert {one.needs for one in found.values()} == {None}
    assert [one.skill.ref for one in candidates(reader, judged=False, name="review")] == ["review"]
    assert len(list(candidates(reader, judged=True, name="review"))) == 2


def test_skills_are_found_by_name_by_place_and_by_number(library, reader):
    mine = source_id(library, "mine")
    assert (skills.is_known(reader, "pdf"), skills.is_known(reader, "nothing")) == (True, False)
    assert skills.folder_of_name(reader, mine, "inner") == "pdf/inner"
    assert skills.folder_of_name(reader, mine, "whole") is None
    inner = skills.by_place(reader, mine, "pdf/inner")
    assert skills.by_id(reader, inner.id) == inner
    assert (inner.place, inner.folder, inner.is_visible) == ("mine/pdf/inner", "pdf/inner", True)
    assert skills.by_place(reader, mine, "nothing") is None
    assert skills.by_id(reader, 10**6) is None
    assert not skills.by_place(reader, mine, "review").is_visible
    assert not skills.by_place(reader, mine, "broken").is_visible
    assert [one.skill.source for one in skills.same_name(reader, "review")] == ["project", "mine"]
    assert [one.skill.ref for one in skills.same_name(reader, "mine/review")] == ["mine/review"]
    assert skills.visible_refs(reader, "review") == ["review"]
    assert skills.refs_of(reader, [inner.id, 10**6]) == {inner.id: "inner"}
    assert skills.refs_of(reader, []) == {}


def test_a_handle_finds_the_place_and_the_names(reader):
    def found(handle):
        placed, named = skills.by_handle(reader, handle)
        return [one.place for one in placed], [one.place for one in named]

    assert found("review") == ([], ["mine/review", "project/review"])
    assert found("mine/pdf") == (["mine/pdf"], ["mine/pdf"])
    assert found("mine/inner") == ([], ["mine/pdf/inner"])
    assert found("mine/pdf/inner") == (["mine/pdf/inner"], ["mine/pdf/inner"])
    assert found("nothing/at-all") == ([], [])


def test_a_skill_is_read_with_its_files_and_text(library, reader):
    pdf = skills.by_place(reader, source_id(library, "mine"), "pdf")
    assert [(file.path, file.executable) for file in skills.files(reader, pdf.id)] == [
        ("SKILL.md", False),
        ("run.sh", True),
    ]
    text, start, front = skills.load_content(reader, pdf.id)[0]
    assert (text[start:].strip(), front["name"]) == ("Body of pdf.", "pdf")
    assert skills.load_content(reader, 10**6) == (None, (), (), [])
    (body, skill) = skills.bodies_and_skills(reader, [pdf.id], reader.visibility)[pdf.id]
    assert (body.strip(), skill.ref) == ("Body of pdf.", "pdf")


def test_what_is_unusual_or_unusable_is_found(library, reader):
    mine = source_id(library, "mine")
    broken = skills.by_place(reader, mine, "broken")
    assert skills.broken(reader) == [broken]
    assert "error" in {finding.severity for finding in skills.findings(reader, broken.id)}
    assert skills.unusual_documents(reader) == {("mine", "old"): "skill.md"}


def test_a_watcher_asks_whose_file_it_is_and_what_was_below(library, reader):
    mine, whole = (source_id(library, name) for name in ("mine", "whole"))
    assert skills.innermost(reader, mine, "pdf/inner/x/file") == "pdf/inner"
    assert skills.innermost(reader, mine, "pdf/docs/file") == "pdf"
    assert skills.innermost(reader, mine, "nothing/file") is None
    assert skills.innermost(reader, whole, "s/file") == "."
    assert skills.innermost(reader, whole, "sub/file") == "sub"
    below = {name: skills.has_below(reader, mine, name) for name in ("pdf", "pd", "pdf/x", "q")}
    assert below == {"pdf": True, "pd": False, "pdf/x": False, "q": False}
    assert sorted(skills.folders(reader, whole)) == [".", "sub"]


def test_sources_are_listed_the_strongest_first_and_counted_where_asked(library, reader, tmp_path):
    counted = [(one.name, one.skills) for one in list_sources(reader)]
    assert counted == [("project", 1), ("mine", 7), ("whole", 2)]
    assert {one.skills for one in list_sources(reader, counted=False)} == {0}
    host = library.core.host
    assert roots(reader, host) == [str(tmp_path / name) for name in ("project", "mine", "whole")]
    assert roots(reader, "another machine") == []
    assert registered(reader)[1:] == (3, 10)
    assert (has_entries(reader), unfinished_changes(reader, host)) == (False, [])


def test_the_whole_is_counted(library):
    stats = library.stats()
    assert (stats.skills, stats.visible, stats.shadowed, stats.hidden) == (10, 8, 1, 1)
    assert dict(stats.by_scope) == {"project": 1, "personal": 5, "community": 2}
    assert sum(stats.by_status.values()) == 10
    assert stats.by_status["invalid"] == 1
    assert (stats.sources, stats.tags, stats.kinds, stats.names) == (3, 0, 0, 9)
    assert stats.files == 15
    assert stats.bytes > 500
    assert stats.oldest_sync <= stats.newest_sync


def test_what_a_sync_compares_with_is_in_the_order_of_the_walk(library, reader):
    mine = source_id(library, "mine")
    stored = list(skills.fingerprints(reader, mine))
    assert [one.position for one in stored] == sorted(one.position for one in stored)
    assert {one.folder for one in stored} == set(skills.folders(reader, mine))
    facts = skills.files_and_findings(reader, [stored[0].id])[stored[0].id][0]
    assert all(len(stat) == 5 and digest for stat, digest in facts.values())
    (gone,) = skills.removed_skills(reader, [stored[0].id])
    assert (gone.id, gone.folder) == (stored[0].id, stored[0].folder)
    assert skills.removed_skills(reader, []) == []


def test_a_word_that_no_skill_or_no_index_holds_finds_nothing(library):
    for words in ("x" * 3000, "zyzzyva"):
        found = library.search(words)
        assert (found.items, found.total, found.confidence) == ((), 0, 0.0)


def test_a_result_in_use_stays_in_memory_among_many_others(library):
    reader, loaded = library.core.reader, []
    for number in range(150):
        reader.remembered(f"result {number}", lambda _: None)
        reader.remembered("in use", loaded.append)
    assert len(loaded) == 1
    reader.remembered("result 0", loaded.append)
    assert len(loaded) == 2
