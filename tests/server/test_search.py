"""What a search of many skills asks the server, and that it finds the same as a file."""

import tarfile

import psycopg
import pytest

from registry.api import SkillRegistry
from registry.catalog.search import rank
from registry.db.postgres import search_sql
from registry.db.postgres.search import VectorIndex
from registry.settings import Settings
from tests.conftest import CORPUS, write_skill

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
REAL = 300
REAL_QUESTIONS = (
    """
docker|deploy|review|use|skill|code|data|test|database|security|write|create
docker deploy service|review a pull request|release notes|unit tests|api documentation
excel chart|security audit|pdf form|python script|git commit message|sql query|web page
how do I review a change of the database|turn a recording into notes|dokcer|kubernets
find out why the tests fail at night|plan the day in small steps
""".replace("\n", "|")
    .strip("|")
    .split("|")
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


def test_a_source_of_its_own_is_found_though_all_others_come_first(library, root, monkeypatch):
    """Of a common word some are looked at first, and all where these do not pass the filters."""
    monkeypatch.setattr(search_sql, "LOOKED_AT", 20)
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
        ({"EVERYWHERE": 60}, 2),  # more texts are looked at than are counted
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


@pytest.mark.skipif(not CORPUS.exists(), reason="needs real skills")
def test_a_server_finds_the_same_as_a_file_in_the_same_order(server_database, tmp_path):
    """Of real skills: words that many of them have, few, or none; in names, tags and bodies."""
    with tarfile.open(CORPUS) as archive:
        names = [one for one in archive.getnames() if one.endswith("/SKILL.md")][:REAL]
        archive.extractall(tmp_path / "real", [archive.getmember(one) for one in names])
    with (
        SkillRegistry.open(tmp_path / "file.db", settings=Settings()) as file,
        SkillRegistry.open(server_database, settings=Settings()) as server,
    ):
        for registry in (file, server):
            registry.sync(str(tmp_path / "real"), name="real")
        differ = [
            question
            for question in REAL_QUESTIONS
            if (found := [hit.ref for hit in file.search(question, limit=5)])
            != [hit.ref for hit in server.search(question, limit=5)]
            or not found
        ]
    assert len(differ) <= len(REAL_QUESTIONS) // 20, differ


WORDS = "SELECT word, count(DISTINCT source_id) FROM search_words GROUP BY word ORDER BY word"
TOTALS = """
    SELECT src.name, sum(t.listed), sum(t.texts), sum(t.head_size), sum(t.body_size)
    FROM totals t JOIN sources src ON src.id = t.source_id GROUP BY 1 ORDER BY 1
"""


def test_totals_and_words_are_kept_with_every_change(library, server_database, root):
    """What they count anew is what they were."""
    write_skill(root.parent / "other" / "one-7", description="Also says plan.")
    library.sync(str(root.parent / "other"), name="other", scope="team")
    library.create("made", description="Says hebdomadal.", source="mine")
    library.update("made", body="More.\n")
    library.delete("one-8")
    write_skill(root / "one-9", description="Says another thing.")
    write_skill(root / "broken", extra="name: twice\n  - [\n")
    library.sync()
    address = server_database.replace("+psycopg", "")
    with psycopg.connect(address) as connection:
        kept = connection.execute(TOTALS).fetchall()
        connection.execute("SELECT registry_count_totals()")
        assert connection.execute(TOTALS).fetchall() == kept
        words = dict(connection.execute(WORDS).fetchall())
        said = "SELECT word FROM ts_stat('SELECT head FROM search_texts')"
        assert {word for (word,) in connection.execute(said)} <= words.keys()
    assert sum(row[1] for row in kept) == library.list(limit=1).total
    assert "hebdomad" in words
    assert words["plan"] == 2
