"""With what others enter: made once, known again, and nobody else's."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from registry.db.read.access import all_tokens
from registry.db.write.access import add_token
from registry.errors import PersonalityNotFound, SourceNotFound, TokenNotFound, UsageProblem


@pytest.fixture
def tokens(registry):
    return registry.tokens()


def test_a_token_is_known_again_and_the_database_has_only_its_hash(registry, tokens):
    token, shown = tokens.create("anna", write=True, lasts=timedelta(days=90))
    assert shown.startswith("skr_")
    found = tokens.known(shown)
    assert (found.name, found.write, found.number) == ("anna", True, token.number)
    assert tokens.known(shown[:-1]) is None
    assert tokens.known("") is None
    assert shown not in str(all_tokens(registry.core.reader))
    assert token.expires_at > token.created_at


def test_one_that_is_over_is_known_no_more_but_is_listed(tokens):
    token, shown = tokens.create("anna", lasts=timedelta(seconds=-1))
    assert tokens.known(shown) is None
    assert [one.number for one in tokens.list()] == [token.number]
    assert tokens.list()[0].is_expired


def test_one_that_is_revoked_is_gone(tokens):
    token, shown = tokens.create("anna")
    other, _ = tokens.create("anna")
    with pytest.raises(UsageProblem, match="several tokens"):
        tokens.revoke("anna")
    tokens.revoke(token.number)
    assert tokens.known(shown) is None
    assert tokens.revoke("anna").number == other.number
    with pytest.raises(TokenNotFound):
        tokens.revoke("anna")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE tokens SET expires_at = NULL",
        "UPDATE tokens SET write = 1",
        "UPDATE tokens SET source = NULL",
        "UPDATE tokens SET name = 'root'",
        "UPDATE tokens SET signature = 'x'",
        "UPDATE tokens SET number = 'other'",
    ],
)
def test_who_may_write_to_the_database_can_neither_make_nor_widen_one(
    registry, tokens, root, skill, change
):
    skill("alpha")
    registry.sync(str(root), name="mine")
    _, shown = tokens.create("anna", source="mine", lasts=timedelta(days=1))
    assert tokens.known(shown) is not None
    before = all_tokens(registry.core.reader)
    with registry.core.writer.transaction() as connection:
        connection.execute(text(change))
    assert all_tokens(registry.core.reader) != before
    assert tokens.known(shown) is None
    assert tokens.list() == []


def test_a_row_of_a_strangers_own_lets_nobody_in(registry, tokens):
    _, shown = tokens.create("anna")
    (row,) = all_tokens(registry.core.reader)
    tokens.revoke("anna")
    with registry.core.writer.transaction() as connection:
        add_token(connection, row._replace(signature="0" * 64))
    assert len(all_tokens(registry.core.reader)) == 1
    assert tokens.known(shown) is None


def test_when_it_was_used_is_written_down(tokens):
    _, shown = tokens.create("anna")
    assert tokens.list()[0].used_at is None
    tokens.known(shown)
    assert tokens.list()[0].used_at is not None


def test_what_no_token_can_be_for_is_refused(tokens):
    for name in ("", "x" * 65, "a\nb"):
        with pytest.raises(UsageProblem):
            tokens.create(name)
    with pytest.raises(PersonalityNotFound):
        tokens.create("anna", personality="nobody")
    with pytest.raises(SourceNotFound):
        tokens.create("anna", source="nowhere")
