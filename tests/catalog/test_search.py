import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.catalog.search.find import make_snippet
from registry.catalog.search.query import parse


@pytest.fixture
def library(registry, root, skill):
    skill("pdf", description="Merge and split documents.", extra="tags: [office]\n")
    skill("release-notes", description="Write release notes from commits.")
    skill(
        "git-helper",
        description="Everyday work with git commits.",
        body="# Git\n\nHow to write a commit message.\n",
    )
    skill(
        "deploy", description="Deploy a container to Kubernetes.", body="Use pdf reports rarely.\n"
    )
    skill("charts", description="Draw charts; node.js and C++ too.")
    skill(
        "fenxi",
        description="\u6570\u636e\u5206\u6790\u5de5\u5177",
        body="\u7528\u4e8e\u9500\u552e\u6570\u636e\u7684\u5206\u6790\u3002\n",
    )
    skill("tegami", description="\u30d3\u30b8\u30cd\u30b9\u30e1\u30fc\u30eb\u3092\u66f8\u304f")
    registry.sync(str(root))
    return registry


def found(library, query, **filters):
    return [hit.name for hit in library.search(query, **filters)]


def test_the_name_weighs_most(library):
    assert found(library, "pdf") == ["pdf", "deploy"]


def test_a_question_is_answered_by_its_telling_words(library):
    assert found(library, "How do I write a commit message?")[0] == "git-helper"
    assert found(library, "What can you do about pdf?") == ["pdf", "deploy"]


def test_the_beginning_of_a_word_finds_it(library):
    assert found(library, "kubern") == ["deploy"]


def test_an_english_ending_does_not_matter(library):
    assert found(library, "deploying containers")[0] == "deploy"


def test_quotes_make_a_phrase(library):
    assert found(library, '"release notes"') == ["release-notes"]
    assert found(library, '"notes release"') == []


def test_tags_are_searched(library):
    assert found(library, "office") == ["pdf"]


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("\u6570\u636e", "fenxi"),
        ("\u5206\u6790", "fenxi"),
        ("\u636e\u5206", "fenxi"),
        ("\u30e1\u30fc\u30eb", "tegami"),
        ("\u66f8\u304f", "tegami"),
    ],
)
def test_text_without_spaces_is_found_by_substring(library, query, name):
    assert found(library, query) == [name]


def test_characters_in_another_order_are_another_word(library):
    assert found(library, "\u636e\u6570") == []


def test_filters_apply_to_a_search(library):
    assert found(library, "pdf", tags=["office"]) == ["pdf"]
    assert found(library, "pdf", tags=["poem"]) == []


def test_nothing_typed_is_a_syntax_error(library):
    for query in [
        '"',
        '""',
        "AND",
        "OR NOT",
        "a NEAR b",
        "name:pdf",
        "(",
        ")",
        "*",
        "pdf*",
        "-pdf",
        "^pdf",
        "{x}",
        "a:b:c",
        "'",
        "\\",
        "\0",
        "C++",
        "node.js",
        "?!",
        "\ud800",
        "e\u0301",
    ]:
        library.search(query)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
def test_any_text_at_all_can_be_searched_for(library, query):
    hits = library.search(query)
    assert len(hits) <= hits.total


def test_operators_are_plain_words(library):
    assert found(library, "pdf AND nothing") == ["pdf", "deploy"]


def test_pages_fit_together_and_the_total_is_true(library):
    everything = found(library, "write draw merge deploy")
    assert len(everything) >= 4
    pages = []
    for offset in range(0, len(everything), 2):
        hits = library.search("write draw merge deploy", limit=2, offset=offset)
        assert hits.total == len(everything)
        pages += [hit.name for hit in hits]
    assert pages == everything


def test_better_matches_score_higher(library):
    hits = library.search("pdf")
    assert hits[0].score > hits[1].score > 0


def test_the_snippet_shows_the_place_that_matched(library):
    hits = library.search("commit message")
    assert "commit message" in hits[0].snippet


def test_a_long_body_is_cut_around_the_match():
    body = "word " * 200 + "needle " + "word " * 200
    snippet = make_snippet(body, "", [("needle",)])
    assert "needle" in snippet
    assert len(snippet) < 180
    assert snippet.startswith("\u2026")
    assert snippet.endswith("\u2026")


def test_a_very_long_question_is_cut():
    assert len(parse("word" + " ".join(map(str, range(5000))))) <= 32


def test_compound_words_count_as_a_whole_and_in_parts():
    assert parse("release-notes") == [("release", "notes"), ("release",), ("notes",)]


def test_a_skill_that_changed_is_found_by_its_new_words_only(library, root, skill):
    skill("deploy", description="Sail a ship.", body="Ahoy.\n", age=1_700_000_100)
    library.sync()
    assert found(library, "kubernetes") == []
    assert found(library, "ship") == ["deploy"]
    skill("fenxi", description="\u6c49\u5b57", body="x\n", age=1_700_000_100)
    library.sync()
    assert found(library, "\u6570\u636e") == []
    assert library.check_database() == []


def test_what_a_filter_lets_through_is_found_however_many_match_better(registry, root, skill):
    for number in range(180):
        skill(f"paint-{number}", description="Paint, paint.", body="Paint.\n")
    for number in range(3):
        about = f"Paint, among many other things of which number {number} is one."
        skill(f"rare-{number}", description=about, extra="tags: [rare]\n", body="Nothing.\n")
    registry.sync(str(root))
    assert "rare-0" not in found(registry, "paint", limit=100)
    assert sorted(found(registry, "paint", tags=["rare"])) == ["rare-0", "rare-1", "rare-2"]


@pytest.mark.parametrize("before", ["", "Ä ", "Ärger \u212aopf ", "\u0130stanbul ", "数据 Ж "])
@pytest.mark.parametrize("typed", ["needle", "ärger", "жук"])
def test_a_snippet_finds_words_whatever_letters_stand_beside_them(before, typed):
    body = f"{'hay ' * 100}{before}{typed.capitalize()} {'hay ' * 100}"
    hidden = "\u0130" in before  # small letters would stand elsewhere, so capitals stay
    assert (typed.capitalize() in make_snippet(body, "", [(typed,)])) != hidden
