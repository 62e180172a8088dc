"""How words are made alike for PostgreSQL's index; no database is needed to say so."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.db.interface import Pattern
from registry.db.postgres.search_sql import text_query
from registry.text import fold, lexemes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café Straße", "cafe strasse"),
        ("snake_case and-hyphen", "snake case and hyphen"),
        ("数据库", "数据 据库 库"),
        ("ﬁne Ⅷ", "fine viii"),
        ("e\u0301te\u0301 \u0301 Å\u0323ngstrom", "ete angstrom"),
        ("\0 \u202e'quoted' \\", "quoted"),
    ],
)
def test_words_are_small_letters_without_accents(text, expected):
    assert lexemes(text) == expected


@given(st.text())
def test_no_text_gets_out_of_its_quotes(text):
    query = text_query(Pattern(tuple(text.split()), prefix=True))
    assert query.count("'") == 2 * (query.count(" <-> ") + 1) if query else True
    assert "\\" not in query


@given(st.text(max_size=20))
def test_what_is_folded_stays_so(text):
    assert fold(fold(text)) == fold(text)


@given(st.text(alphabet="aé\u0301\u0323\u0338ǖは\u3099ﬁ \u05b0"))
def test_all_marks_go_wherever_they_stand(text):
    assert not any(map(unicodedata.combining, fold(text)))


def test_a_word_that_no_index_holds_asks_for_nothing():
    assert text_query(Pattern(("x" * 5000,), prefix=False)) == ""
    assert text_query(Pattern(("...",), prefix=False)) == ""
