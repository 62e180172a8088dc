"""What a search of many skills asks the server, and what it leaves out."""

import re
from itertools import pairwise

import psycopg
import pytest

from benchmarks.proxy import Proxy
from registry.api import SkillRegistry
from registry.db.postgres import search
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
    monkeypatch.setattr(search, "COMMON", 20)
    monkeypatch.setattr("registry.catalog.search.rank.COMMON", 30)
    monkeypatch.setattr("registry.catalog.search.find.MAX_RANKED", 12)
    counted = answers(library)
    with psycopg.connect(server_database.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("ANALYZE search_texts")
        connection.execute("UPDATE data_version SET number = number + 1")
    known = {word for _, word, _ in library.core.reader.rows(search._ESTIMATES)}
    assert {"plan", "team"} <= known
    assert answers(library) == counted
    assert all(found for found, _ in counted)


def test_a_source_of_its_own_is_found_though_all_others_come_first(library, root, monkeypatch):
    """Of a common word some are looked at first, and all where these do not pass the filters."""
    monkeypatch.setattr(search, "COMMON", 20)
    write_skill(root.parent / "late" / "last", description="Says plan.")
    library.sync(str(root.parent / "late"), name="late")
    assert [hit.name for hit in library.search("plan", source="late")] == ["last"]
    assert [hit.name for hit in library.search("plan team", source="late")] == ["last"]


def test_a_sentence_waits_for_few_answers(library, server_database):
    host, port = re.search(r"@([^:/]+):(\d+)/", server_database).groups()
    proxy = Proxy(host, int(port))
    try:
        address = re.sub(r"@[^/]+/", f"@127.0.0.1:{proxy.port}/", server_database)
        with SkillRegistry.open(address, settings=Settings()) as registry:
            registry.search("warm up")
            with proxy.counting() as said:
                assert registry.search("which team has a night rota to plan")
            assert 0 < len(said) <= 13, said
    finally:
        proxy.close()


def test_words_of_heads_are_found_by_how_they_begin(library):
    words = library.core.reader.index.vocabulary(library.core.reader, "")
    assert all(one < other for one, other in pairwise(words))
    beginning = library.core.reader.index.vocabulary(library.core.reader, "n")
    assert beginning == [word for word in words if word.startswith("n")] != []
