"""What was typed becomes terms; no database is needed to say so."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.catalog.search.query import (
    FUNCTION_WORDS,
    _concepts,
    joined,
    joined_in,
    other_words,
    parse,
    pattern,
    stem,
    stems,
)
from registry.text import fold, has_unspaced, split, words


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("Fill PDF forms", ["fill", "pdf", "forms"]),
        ("how do I write a poem", ["write", "poem"]),
        ("wie schreibe ich ein Gedicht", ["schreibe", "gedicht"]),
        ("où est la liste de courses", ["liste", "courses"]),
        ("lista de la compra para la semana", ["lista", "compra", "semana"]),
        ("как написать тесты для кода", ["написать", "тесты", "кода"]),
        ("release-notes", ["release notes", "release", "notes"]),
        ("I can't plan a rota, what's wrong", ["plan", "rota", "wrong"]),
        ("why doesn't the borrow checker's hint work", ["borrow", "checker", "hint", "work"]),
        ("l\u2019architecture d'une application", ["architecture", "application"]),
        ("\uff30\uff24\uff26\uff0f\uff37\uff4f\uff52\uff44", ["pdf word", "pdf", "word"]),
        (
            "\uff83\uff9e\uff70\uff80\u3000\uff02pull request\uff02",
            ["pull request", "デー ータ"],
        ),
        ('"pull request" review', ["pull request", "review"]),
        ("「数据分析」", ["数据 据分 分析"]),
        ("合同审查", ["合同", "同审", "审查"]),
        ("PDF合同审查", ["pdf", "合同", "同审", "审查"]),
        ("我的合同", ["合同"]),
        ("猫", ["猫"]),
        ("レビューのやり方", ["レビ ビュ ュー"]),
        ("代币合约", ["代币", "合约"]),
        ("新奇代币", ["新奇", "奇代", "代币"]),
        ("이슈와 관리", ["이슈", "슈와", "관리"]),
    ],
)
def test_a_query_becomes_terms(query, terms):
    assert [" ".join(term) for term in parse(query)] == terms


@pytest.mark.parametrize("query", ["what is it", "wie ist das", "の", "的", "where to"])
def test_a_query_of_nothing_but_function_words_is_kept(query):
    assert parse(query) != []


@pytest.mark.parametrize("word", ["go", "ai", "ci", "nas", "sem", "r", "c", "make"])
def test_what_names_something_of_the_craft_is_no_function_word(word):
    assert parse(f"{word} tutorial")[0] in {(word,), ("tutorial",)}
    assert word == "make" or word not in FUNCTION_WORDS


def test_neighbouring_words_may_be_written_as_one():
    assert joined(parse("web socket chat")) == [("websocket",), ("socketchat",)]
    assert joined(parse("合同审查")) == []
    assert joined(parse("a ci job")) == []


def test_a_function_word_is_part_of_a_compound_only_in_a_short_query():
    assert ("onelogin",) in joined_in("one login", parse("one login"))
    said = "how much is this going to cost in fines"
    assert ("infines",) not in joined_in(said, parse(said))


@given(st.text(max_size=40))
def test_the_pairs_of_any_text_are_words_of_its_index(text):
    said = set(words(text.casefold()))
    for term in parse(text.casefold()):
        if len(term) == 1 and has_unspaced(term[0]) and len(term[0]) == 2:
            assert term[0] in said


def test_a_term_is_found_in_a_text_as_it_was_written():
    assert re.search(pattern(("数据", "据分", "分析")), "这是数据 分析。")
    assert re.search(pattern(("release", "notes")), "the release-notes")
    assert not re.search(pattern(("notes",)), "footnotes")


@pytest.mark.parametrize(
    ("one", "other"), [("charts", "chart"), ("creating", "create"), ("queries", "query")]
)
def test_inflected_words_have_one_stem(one, other):
    assert stem(one) == stem(other)


def meant(query):
    lay, foreign = other_words(query)
    return {" ".join(term) for term in lay}, {" ".join(term) for term in foreign}


@pytest.mark.parametrize(
    ("query", "english"),
    [
        ("Rechnungen sortieren", "invoice"),
        ("traduire une facture", "invoice"),
        ("内存取证", "memory forensics"),
        ("プルリクエスト", "pull request"),
        ("청구서 관리", "invoice"),
    ],
)
def test_words_of_other_languages_are_said_in_english(query, english):
    assert english in meant(query)[1]


def test_lay_words_are_said_as_authors_say_them():
    assert "contract" in meant("check this agreement")[0]
    assert "contract" not in meant("check this contract agreement")[0]


def test_a_word_that_only_lacks_an_ending_is_not_a_lay_word():
    assert "game engine" in meant("unity scene")[0]
    assert "game engine" not in meant("unit tests")[0]
    assert "game engine" not in meant("units of measure")[0]
    assert "shopping list" in meant("grocery")[0] & meant("groceries")[0]


def test_an_english_word_is_not_taken_for_one_of_another_language():
    lay, foreign = meant("a gift list for the kind chef")
    assert foreign == set()
    assert not lay & {"poison", "child", "manager"}


@pytest.mark.parametrize("query", ["sort them by colour", "which of them is best", "go to it"])
def test_a_function_word_never_stands_for_something_else(query):
    lay, foreign = meant(query)
    assert "dark mode" not in lay
    assert foreign == set()


@pytest.mark.parametrize(
    ("query", "not_meant"),
    [
        ("wie kann ich die Fotos sortieren", "local events"),  # "sortie" is French
        ("planifier mes repas de la semaine", "repair"),  # "reparo" is Spanish
        ("o a e y postal tablet for the desk", "poster"),
    ],
)
def test_only_words_of_the_language_of_the_query_are_translated(query, not_meant):
    assert not_meant not in meant(query)[1]


@pytest.mark.parametrize("query", ["postal", "tablet", "reveiw"])
def test_a_short_word_of_an_unknown_language_is_translated_only_as_it_is_written(query):
    assert meant(query)[1] == set()


def test_the_words_of_a_phrase_may_have_other_words_between_them():
    assert "shopping list" in meant("liste pour mes courses")[1]
    assert "shopping list" not in meant("liste")[1]


def test_function_words_of_the_language_of_a_query_are_no_terms():
    assert parse("die Rechnungen für die Bank") == [("rechnungen",), ("bank",)]
    assert parse("die casting") == [("die",), ("casting",)]


@given(st.text(max_size=60))
def test_any_text_has_other_words_or_none(text):
    lay, foreign = other_words(text)
    assert len(lay) <= 16
    assert len(foreign) <= 16


def test_each_concept_is_written_once_and_as_it_is_compared():
    concepts = _concepts()
    assert all(len(cells) == 11 for cells in concepts)
    names = [cells[0] for cells in concepts]
    assert names == sorted(set(names))
    for cells in concepts:
        for place, cell in enumerate(cells):
            for one in cell.split("|") if cell else []:
                is_text = place in {2, 3, 4} and has_unspaced(one)
                assert one == (one.casefold() if is_text else " ".join(split(fold(one))))
                assert place == 0 or len(one) > 1


@given(st.lists(st.text(alphabet="aeinsgdty\u00e9", max_size=60)))
def test_the_stems_of_words_are_those_of_each(typed):
    assert stems(typed) == {stem(word) for word in typed}
