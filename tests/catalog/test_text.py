"""How words are made alike for PostgreSQL's index; no database is needed to say so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.db.asked import Pattern
from registry.db.remote.words import text_query
from registry.text import fold, lexemes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café Straße", "cafe strasse"),
        ("snake_case and-hyphen", "snake case and hyphen"),
        ("数据库", "数据 据库 库"),
        ("ﬁne Ⅷ", "fine viii"),
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


def test_a_word_that_no_index_holds_asks_for_nothing():
    assert text_query(Pattern(("x" * 5000,), prefix=False)) == ""
    assert text_query(Pattern(("...",), prefix=False)) == ""
