"""Which skills come first, which take one place, and when nothing fits."""

import pytest

from registry.catalog.search import find
from registry.errors import UsageProblem
from registry.model import Found
from tests.conftest import OLD, write_skill

LINES = "".join(f"Step {number} of the usual way to do it.\n" for number in range(30))


@pytest.fixture
def library(registry, root, skill):
    skill("forms", description="Fill in PDF forms.", body="Nothing more.\n")
    skill("paint", description="Draw with fillColor.", body="pdf " * 40 + "forms\n")
    skill("invoices", description="Write invoices for customers.", body="Money.\n")
    skill("k8s", description="Deploy to Kubernetes.", body="Charts.\n")
    skill("sockets", description="Talk over a websocket.", body="Bytes.\n")
    skill("contract", description="审查合同的条款。", body="合同。\n")
    skill("memory", description="Memory forensics of a disk image.", body="Bytes.\n")
    registry.sync(str(root))
    return registry


def names(library, *queries, **more):
    return [hit.name for hit in library.search(queries=queries, **more)]


def test_a_body_alone_never_beats_a_head_that_says_the_same(library):
    assert names(library, "pdf forms")[0] == "forms"


def test_no_body_comes_before_a_head_that_has_the_only_word_however_many_there_are(
    registry, root, skill
):
    heads = [f"tea-{number}" for number in range(30)]
    for name in heads:
        skill(name, description=f"A kind of tea, {name}.", body="Leaves.\n")
    for name in ("milk", "cups"):
        skill(name, description="Something else.", body=f"{name} for tea, and tea again.\n")
    registry.sync(str(root))
    found = registry.search("tea", limit=40)
    assert {hit.name for hit in found[:30]} == set(heads)
    assert {hit.name for hit in found[30:]} == {"milk", "cups"}
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)


def test_a_word_within_a_word_is_no_match(library):
    assert names(library, "fill pdf forms") == ["forms", "paint"]
    assert names(library, "color") == []


def test_a_word_that_no_skill_has_stands_for_those_that_begin_with_it(library):
    assert names(library, "kubern") == ["k8s"]


@pytest.mark.parametrize("typed", ["kuberentes", "kubernets", "Kubernetse"])
def test_a_misspelt_word_stands_for_the_nearest(library, typed):
    assert names(library, f"{typed} deploy")[0] == "k8s"
    assert names(library, typed) == ["k8s"]


def test_a_word_with_another_spelling_is_reported(library):
    assert library.search("kuberentes deploy").respelled == (("kuberentes", "kubernetes"),)
    assert library.search("kubern").respelled == ()
    assert library.search("kubernetes").respelled == ()


@pytest.mark.both
def test_a_typing_error_that_some_bodies_have_is_mended_if_many_skills_have_the_word(
    registry, root, skill, monkeypatch
):
    for number in range(40):
        skill(f"check-{number}", description=f"Review number {number}.", body="Bytes.\n")
    skill("typo", description="Anything.", body="A reveiw.\n")
    registry.sync(str(root))
    assert names(registry, "reveiw") == ["typo"]  # one body in 41 is not seldom
    monkeypatch.setattr("registry.catalog.search.rank._SELDOM", 20)
    assert names(registry, "reveiw pictures") == ["typo"]  # the other word is not that frequent
    monkeypatch.setattr("registry.catalog.search.rank._TIMES", 20)
    found = registry.search("reveiw please")
    assert found.respelled == (("reveiw", "review"),)
    assert found[0].name.startswith("check-")


def test_the_work_for_misspelt_words_has_a_limit(library, monkeypatch):
    tried = []
    real = library.core.reader.index.known
    monkeypatch.setattr(
        library.core.reader.index,
        "known",
        lambda reader, some: tried.append(some) or real(reader, some),
    )
    library.search("qzwxa qzwxb qzwxc qzwxd qzwxe qzwxf qzwxg")
    assert len(tried) == 4
    library.search("q" * 5000)
    assert len(tried) == 4
    assert max(map(len, tried)) < 2000


def test_a_known_english_word_is_not_taken_for_a_typing_error(library, root, skill):
    skill("inject", description="Inject code.", body="Bytes.\n")
    library.sync(str(root))
    assert names(library, "insect") == []


@pytest.mark.both
@pytest.mark.parametrize(
    ("typed", "written"),
    [("powerbi", "Power BI"), ("power bi", "PowerBI"), ("one login", "OneLogin")],
)
def test_a_compound_is_found_in_both_spellings(registry, root, skill, typed, written):
    skill("compound", description=f"Use {written}.", body="Bytes.\n")
    for number in range(3):
        skill(f"other-{number}", description="Login, or power.", body="Bytes.\n")
    registry.sync(str(root))
    assert names(registry, typed)[0] == "compound"


def test_if_nothing_fits_shorter_queries_are_suggested(library):
    found = library.search("please fill the volcano forms about gardens")
    assert found.confidence < find.FITS
    assert found.shorter == ("fill forms",)
    assert library.search("fill pdf forms").shorter == ()


def test_everyday_words_hardly_count_whether_a_skill_fits(library):
    asked = "honestly I would love to fill my terrible stupid pdf forms tomorrow"
    assert library.search(asked).confidence >= find.FITS
    assert library.search("fill volcano forms").confidence < find.FITS


def test_if_nothing_fits_english_words_are_suggested_for_others(library):
    found = library.search("Rechnung für den Garten des Nachbarn")
    assert found.confidence < find.FITS
    assert found.shorter[0].startswith("invoice")


def test_what_was_known_of_words_is_forgotten_when_the_database_changes(library, root, skill):
    assert names(library, "kubern") == ["k8s"]  # no skill has the word yet
    skill("kubern", description="Kubern itself.", body="Bytes.\n")
    library.sync(str(root))
    assert names(library, "kubern steps") == ["kubern"]


@pytest.mark.both
def test_a_word_of_all_bodies_is_looked_for_there_only_where_few_heads_have_it(
    registry, root, skill, monkeypatch
):
    monkeypatch.setattr("registry.catalog.search.rank.EVERYWHERE", 6)
    monkeypatch.setattr("registry.catalog.search.rank.MAX_RANKED", 3)
    for name in ("one", "two", "three"):
        skill(name, description=f"Tea of {name}.", body="Tea, water.\n")
    for name in ("four", "five", "six"):
        skill(name, description=f"The {name}th.", body="Tea, water.\n")
    registry.sync(str(root))
    assert set(names(registry, "tea")) == {"one", "two", "three"}
    assert len(names(registry, "water")) == 6


def test_of_words_that_many_have_the_rarer_is_looked_for_in_bodies(
    registry, root, skill, monkeypatch
):
    monkeypatch.setattr("registry.catalog.search.rank.SMALL", 3)
    monkeypatch.setattr("registry.catalog.search.rank.MAX_TEXTS", 3)
    for number in range(9):
        skill(f"all-{number}", description="Anything.", body="Apples.\n")
    for number in range(4):
        skill(f"some-{number}", description="Anything.", body="Pears.\n")
    registry.sync(str(root))
    for query in ("apples pears", "pears apples"):
        assert {name[:4] for name in names(registry, query)} == {"some"}


def test_of_long_words_nothing_is_remembered(library, monkeypatch):
    asked = []
    real = library.core.reader.index.counts

    def counts(reader, patterns, most, among):
        asked.extend(patterns)
        return real(reader, patterns, most, among)

    monkeypatch.setattr(library.core.reader.index, "counts", counts)
    long = "x" * 100
    names(library, f"forensics {long} one")
    first = len(asked)
    assert first > 0
    names(library, f"forensics {long} two")
    again = {pattern.words[0] for pattern in asked[first:]}
    assert "two" in again
    assert long in again
    assert "forensics" not in again


def test_two_words_find_what_is_written_as_one(library):
    assert names(library, "web socket") == ["sockets"]


def test_letters_of_the_width_of_chinese_characters_are_letters(library):
    assert names(library, "\uff30\uff24\uff26") == names(library, "pdf")
    assert library.search("\uff58\uff39").missing == ("xy",)


def test_part_of_a_run_of_characters_is_found(library):
    assert names(library, "帮我看看合同条款有没有问题") == ["contract"]
    assert names(library, "合") == ["contract"]
    assert names(library, '"合同条款"') == []
    assert names(library, '"合同的条款"') == ["contract"]


def test_a_question_in_another_language_finds_a_skill_in_english(library):
    assert names(library, "内存取证")[0] == "memory"
    assert names(library, "Rechnungen schreiben")[0] == "invoices"


def test_several_queries_are_answered_in_turn(library):
    assert names(library, "invoices", "websocket", "pdf forms") == [
        "invoices",
        "sockets",
        "forms",
        "paint",
    ]
    assert names(library, "pdf forms", "fill forms") == ["forms", "paint"]
    assert names(library, "pdf forms", "websocket", limit=1, offset=1) == ["sockets"]
    assert library.search("pdf", queries=["websocket"]).total == 3
    assert library.search(["pdf", "websocket"]) == library.search(queries=["pdf", "websocket"])


def test_pages_fit_together_beyond_the_best_of_each_list(registry, root, skill, monkeypatch):
    monkeypatch.setattr("registry.catalog.search.find.MAX_RANKED", 5)
    for number in range(12):
        about = f"Tea{' of leaves' * number}."
        skill(f"tea-{number}", description=about, body="Tea.\n" * (number + 1) + "Other.\n" * 9)
    registry.sync(str(root))
    assert registry.search("tea", limit=3).total < 12
    pages = [names(registry, "tea", limit=2, offset=offset) for offset in range(0, 14, 2)]
    assert [len(page) for page in pages] == [2, 2, 2, 2, 2, 2, 0]
    together = [name for page in pages for name in page]
    assert together == names(registry, "tea", limit=100)
    assert len(set(together)) == 12


def test_a_near_copy_that_is_found_further_on_takes_no_place_of_its_own(
    registry, root, skill, monkeypatch
):
    monkeypatch.setattr("registry.catalog.search.find.MAX_RANKED", 5)
    for name in ("tea-time", "copy"):
        skill(name, description="Tea for those who take the time.", body=LINES)
    for number in range(4):
        skill(f"tea-{number}", description=f"Tea of {number}.", body=f"Leaves {number}.\n")
    registry.sync(str(root))
    assert registry.search("tea", limit=1).total == 5
    found = registry.search("tea", limit=100)
    assert [{hit.name, *hit.alike} for hit in found if hit.alike] == [{"tea-time", "copy"}]
    assert found.total == len(found) == 5


def test_a_first_page_that_copies_make_short_is_ranked_once_and_the_next_one_follows(
    registry, root, skill, monkeypatch
):
    monkeypatch.setattr(find, "MAX_RANKED", 5)
    for number in range(6):
        skill(f"copy-{number}", description="Tea for those who take the time.", body=LINES)
    for number in range(3):
        skill(f"leaf-{number}", description=f"Number {number}.", body=f"Tea, leaves {number}.\n")
    registry.sync(str(root))
    ranked, real = [], find.rank

    def rank(reader, asked, condition, most, *more):
        ranked.append(most)
        return real(reader, asked, condition, most, *more)

    monkeypatch.setattr(find, "rank", rank)
    assert len(names(registry, "tea", limit=5)) == 4
    assert ranked == [5]
    assert names(registry, "tea", limit=5, offset=4) == []
    assert ranked == [5, 20]


@pytest.mark.parametrize("queries", [[], ["a"] * 6])
def test_one_to_five_queries_may_be_asked(library, queries):
    with pytest.raises(UsageProblem, match="1 to 5 queries"):
        library.search(queries=queries)


def test_filters_hold_for_each_query(library):
    assert names(library, "pdf", "websocket", scope="personal") == ["forms", "sockets", "paint"]
    assert names(library, "pdf", "websocket", tags=["none"]) == []


def test_a_name_that_is_exactly_what_was_typed_comes_first(library, skill):
    skill("pdf", description="Something else.", body="Nothing.\n")
    library.sync()
    assert names(library, "PDF")[0] == "pdf"


class TestAlike:
    @pytest.fixture
    def library(self, library, skill):
        skill("steps", description="Take the usual steps to the top.", body=LINES)
        skill(
            "stairs",
            description="Climb the usual steps to the top.",
            body=LINES.replace("Step 7", "Step seven"),
        )
        skill("ladder", description="Steps of a ladder.", body="Quite another text.\n" * 5)
        library.sync()
        return library

    def test_near_copies_take_one_place(self, library):
        found = library.search("steps")
        assert [(hit.name, hit.alike) for hit in found] == [
            ("steps", ("stairs",)),
            ("ladder", ()),
        ]
        assert found.total == 2

    def test_a_text_that_was_changed_is_alike_no_more(self, library, skill):
        skill("stairs", description="Climb steps.", body="Anew.\n" * 5, age=OLD + 9)
        library.sync()
        assert [hit.alike for hit in library.search("steps")] == [(), (), ()]

    def test_those_with_the_same_description_are_alike(self, library, skill):
        for name in ("one", "two"):
            about = "Makes a plan for the week with all that has to be done."
            skill(name, description=about, body=f"{name} way of doing it\n" * 3)
        library.sync()
        (hit,) = library.search("plan for the week")
        assert {hit.name, *hit.alike} == {"one", "two"}

    def test_of_near_copies_that_of_the_strongest_source_is_shown(self, library, tmp_path):
        about = "Climb the usual steps, steps to the top."
        for name, scope in (("shared", "community"), ("project", "project")):
            folder = tmp_path / name
            write_skill(folder / f"{name}-steps", description=about, body=LINES)
            library.sync(str(folder), scope=scope)
        (hit, _) = library.search("steps to the top", all=True)
        assert hit.name == "project-steps"
        assert set(hit.alike) == {"steps", "stairs", "shared-steps"}

    def test_a_shadowed_or_filtered_copy_is_not_told(self, library, root):
        assert [hit.alike for hit in library.search("steps", tags=["none"])] == []


class TestNothingFits:
    def test_what_names_all_words_fits(self, library):
        found = library.search("pdf forms")
        assert (found.confidence, found.missing) == (1.0, ())
        assert found[0].confidence > found[1].confidence

    def test_the_words_that_nothing_names_are_told(self, library):
        found = library.search("write sourdough recipe")
        assert found.confidence < 0.68
        assert found.missing == ("sourdough", "recipe")
        assert found.total > 0

    def test_of_a_compound_that_is_missing_the_parts_are_not_told(self, library):
        assert library.search("forms sour-dough starter").missing == ("sour dough", "starter")
        assert library.search("pdf-invoices xylophone").missing == ("pdf invoices", "xylophone")

    def test_words_are_missing_where_the_confidence_that_is_told_is_too_low(
        self, library, monkeypatch
    ):
        assert library.search("pdf forms xylophone").confidence == 0.65  # a little less, in fact
        monkeypatch.setattr("registry.catalog.search.find.FITS", 0.65)
        assert library.search("pdf forms xylophone").missing == ()
        monkeypatch.setattr("registry.catalog.search.find.FITS", 0.66)
        assert library.search("pdf forms xylophone").missing == ("xylophone",)

    def test_what_nothing_holds_finds_nothing(self, library):
        found = library.search("xylophone")
        assert found == Found((), 0, 0.0, ("xylophone",))

    def test_what_was_found_by_its_beginning_or_nearly_so_fits(self, library):
        assert library.search("kubern").confidence == 1.0
        assert library.search("kuberentes").confidence == 1.0

    @pytest.mark.both
    def test_two_words_and_what_they_make_as_one_are_the_same(self, library, skill):
        skill("pictures", description="Draw with stable diffusion.", body="Bytes.\n")
        skill("models", description="Load StableDiffusion weights.", body="Bytes.\n")
        library.sync()
        found = library.search("stable diffusion")
        assert {hit.name: hit.confidence for hit in found} == {"pictures": 1.0, "models": 1.0}
        found = library.search("web socket sourdough")
        assert found.missing == ("sourdough",)
        assert found[0].confidence > 0.5

    def test_what_was_found_by_other_words_fits(self, library):
        assert library.search("内存取证").confidence >= 0.68

    def test_of_a_page_further_on_the_best_hits_decide(self, library):
        assert library.search("pdf forms", offset=1).confidence == 1.0


@pytest.mark.both
def test_a_skill_and_its_translation_are_one_result(registry, root):
    code = "Run `pdfsplit --pages input.pdf output.pdf`, then `pdfmerge --all`.\n"
    write_skill(root / "a" / "pdf-split", description="Split PDF files.", body=code)
    write_skill(root / "b" / "pdf-split", description="拆分 PDF 文件。", body=f"运行：{code}")
    other = "With `qpdf --empty --pages` you write another document, or `pdftk` does.\n"
    write_skill(root / "c" / "pdf-split", description="用其他工具拆分文件。", body=f"说明：{other}")
    registry.sync(str(root))
    found = registry.search("split pdf 拆分")
    assert [len(hit.alike) for hit in found] == [1, 0]
    assert found.total == 2
