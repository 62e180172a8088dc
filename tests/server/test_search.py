"""What a search of many skills asks the server, and what it leaves out."""

import psycopg
import pytest

from registry.api import SkillRegistry
from registry.catalog.search import find, rank
from registry.db.postgres import search_sql
from registry.db.postgres.search import VectorIndex
from registry.settings import Settings
from tests.conftest import write_skill

pytestmark = pytest.mark.server

SKILLS = 120
QUESTIONS = (
    "plan",
    "team",
    "plan team",
    "plan rota",
    "team rota night",
    "I can't plan a rota for the team",
    "fourth night",
)
OTHERS = (
    "nigh",  # begins a word
    "tea rot",
    "team-rota",
    "night nicht",
    "の夜 team",
    '"team number"',
    "mail the team at night",  # says email in other words
)


@pytest.fixture
def library(server_database, root):
    """Words that all skills have, half of them, every tenth, and two."""
    for number in range(SKILLS):
        said = ["plan"]
        said += ["team"] if number % 2 else []
        said += ["rota"] if number % 10 == 0 else []
        said += ["night"] if number in {7, 100} else []
        body = f"A {' '.join(said)} of number {number}.\n\n{'More words. ' * (number % 7)}"
        write_skill(root / f"one-{number}", description=f"Says {' '.join(said)}.", body=body)
    with SkillRegistry.open(server_database, settings=Settings()) as registry:
        registry.sync(str(root), name="mine")
        # As if it had not analyzed the table yet: it knows of no common words.
        forget = "DELETE FROM pg_statistic WHERE starelid = 'search_texts'::regclass"
        changed(server_database, forget)
        yield registry


def answers(registry):
    return [
        [
            [hit.ref for hit in registry.search(question, limit=12, tags=tags)]
            for tags in ((), ("x",))
        ]
        for question in QUESTIONS
    ]


def test_what_the_server_knows_of_common_words_changes_no_answer(
    library, server_database, monkeypatch
):
    monkeypatch.setattr(search_sql, "COMMON", 20)
    monkeypatch.setattr(rank, "COMMON", 30)
    monkeypatch.setattr(find, "MAX_RANKED", 12)
    counted = answers(library)
    changed(server_database, "ANALYZE search_texts")
    found = library.core.reader.rows("SELECT word FROM registry_common_words()")
    known = {word for (word,) in found}
    assert {"plan", "team"} <= known
    assert answers(library) == counted
    assert all(found for found, _ in counted)


def test_a_source_of_its_own_is_found_though_all_others_come_first(library, root, monkeypatch):
    """Of a common word some are looked at first, and all where these do not pass the filters."""
    monkeypatch.setattr(search_sql, "COMMON", 20)
    write_skill(root.parent / "late" / "last", description="Says plan.")
    library.sync(str(root.parent / "late"), name="late")
    assert [hit.name for hit in library.search("plan", source="late")] == ["last"]
    assert [hit.name for hit in library.search("plan team", source="late")] == ["last"]


@pytest.fixture
def far(library, address, proxy):
    """Another client of the library, and a proxy that counts what it waits for."""
    with SkillRegistry.open(address, settings=Settings()) as registry:
        registry.search("warm up")
        yield registry, proxy


def hits(registry, question, limit=50):
    found = registry.search(question, limit=limit)
    return [(hit.ref, hit.score, hit.confidence) for hit in found]


@pytest.mark.parametrize(
    ("limits", "at_most"),
    [
        ({}, 2),
        ({"MAX_BODY_TERMS": 1}, 2),
        ({"MAX_TEXTS": 13}, 2),
        ({"EVERYWHERE": 60}, 4),  # no more texts were looked at than are counted
    ],
)
def test_what_is_asked_at_once_is_what_would_be_asked_one_after_the_other(
    far, server_database, monkeypatch, limits, at_most
):
    """Which words are looked for in bodies, and which stand for others, is chosen by the server."""
    registry, proxy = far
    for name, value in limits.items():
        monkeypatch.setattr(rank, name, value)
    asked = (*QUESTIONS[:-1], *OTHERS)
    at_once, waited = [], []
    for question in asked:
        with proxy.counting() as said:
            at_once.append(hits(registry, question))
        waited.append(len(said))
    assert not [one for one in zip(asked, waited, strict=True) if one[1] > at_most]
    assert min(waited) == 2
    monkeypatch.setattr(VectorIndex, "expect", lambda *_: None)
    for question, found in zip(asked, at_once, strict=True):
        changed(server_database)
        with proxy.counting() as said:
            assert hits(registry, question) == found, question
        assert len(said) > 2


def test_what_others_changed_since_is_found_by_who_asked_before(far, library):
    registry, proxy = far
    library.create("late", description="Says hebdomadal.", source="mine")
    with proxy.counting() as said:
        found = hits(registry, "hebdomadal plan")
    assert found == hits(library, "hebdomadal plan")
    assert found[0][0] == "late"
    assert len(said) == 2, said


def test_what_the_server_learnt_since_of_common_words_is_asked_again(
    far, library, server_database, monkeypatch
):
    monkeypatch.setattr(search_sql, "COMMON", 20)
    monkeypatch.setattr(find, "MAX_RANKED", 5)
    registry, proxy = far
    changed(server_database, "ANALYZE search_texts")
    with proxy.counting() as said:
        found = hits(registry, "team rota night", 5)
    assert len(said) == 3, said
    assert found == hits(library, "team rota night", 5) != []


def changed(address, *statements):
    """Let all who read know that something is another."""
    with psycopg.connect(address.replace("+psycopg", ""), autocommit=True) as connection:
        for one in (*statements, "UPDATE data_version SET number = number + 1"):
            connection.execute(one)


def test_a_word_that_is_spelt_alike_is_found_among_those_that_others_brought_and_took_since(
    far, library
):
    registry, _ = far
    assert not registry.search("hebdomadel").total
    library.create("weekly", description="Hebdomadal.", source="mine")
    library.create("others", description="Hebdomadol.", source="mine")
    assert {hit.name for hit in registry.search("hebdomadil")} <= {"weekly", "others"}
    assert registry.search("hebdomadil").total == 1
    library.delete("weekly")
    assert [hit.name for hit in registry.search("hebdomadel")] == ["others"]
    library.delete("others")
    assert not registry.search("hebdomadel").total


def test_words_are_learnt_of_what_was_committed_late(far, library, server_database):
    """By who had begun before the words were asked for, and ended after it."""
    registry, _ = far
    address = server_database.replace("+psycopg", "")
    heads = "to_tsvector('stems', 'hebdomadal')"
    with psycopg.connect(address) as late:
        late.execute("SELECT pg_current_xact_id()")
        library.create("early", description="Quokka.", source="mine")
        assert registry.search("quokko").total == 1
        one = "(SELECT s.id FROM skills s WHERE s.name = 'one-7' AND s.live = 1)"
        late.execute(f"UPDATE search_texts SET head = {heads} WHERE skill_id = {one}")
        late.execute("UPDATE data_version SET number = number + 1")
    assert registry.search("hebdomadol").total == 1
