"""What may stand for a database: a path, or an address; nothing that is half of either."""

from pathlib import Path

import pytest

from registry.api import SkillRegistry
from registry.db.open import open_backend
from registry.errors import DatabaseProblem
from registry.settings import Settings

SECRET = "hunter2"

MISTAKEN = [
    Path(f"postgresql://u:{SECRET}@h/db"),
    Path(f"postgresql://u:{SECRET}@h/db").absolute(),
    Path("sqlite:///x.db"),
    f"postgresql:/u:{SECRET}@h/db",
    f"postgresql:u:{SECRET}@h/db",
    f"postgresql+psycopg//u:{SECRET}@h/db",
    f"postgresql+psycopg/u:{SECRET}@h/db",
    f"POSTGRESQL:/u:{SECRET}@h/db",
    f"/srv/postgresql:/u:{SECRET}@h/db",
    f"~/postgres:/u:{SECRET}@h/db",
    "sqlite:/x.db",
    "sqlite:x.db",
    f"mysql://u:{SECRET}@h/d",
    f"http://u:{SECRET}@h/d",
    "file:x",
    "notes:2026.db",
]

AMBIGUOUS = [
    f"postgresql://u:p@{SECRET}@h/db",
    f"postgresql://u:p@{SECRET}/s@h/db",
    f"postgresql://u:p@{SECRET}?s@h/db",
    f"postgresql://u:p@{SECRET}:s@h/db",
]


@pytest.mark.parametrize("given", MISTAKEN, ids=str)
def test_half_an_address_is_neither_a_file_nor_a_server(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(DatabaseProblem) as caught, SkillRegistry.open(given, settings=Settings()):
        pass
    assert set(tmp_path.rglob("*")) == before
    said = str(caught.value)
    assert SECRET not in said
    assert "sqlite:///PATH" in said
    assert "postgresql+psycopg://USER@HOST/DATABASE" in said


@pytest.mark.parametrize("given", AMBIGUOUS)
def test_no_part_of_a_password_is_taken_for_a_host(given):
    with pytest.raises(DatabaseProblem, match="%40") as caught:
        open_backend(given, Settings())
    assert SECRET not in str(caught.value)


def test_an_address_without_slashes_is_said_with_how_to_write_it(tmp_path):
    with pytest.raises(DatabaseProblem, match="as text, not as a Path"):
        open_backend(Path("postgresql://u@h/db"), Settings())
    with pytest.raises(DatabaseProblem, match=r"\./ before the name of a file"):
        open_backend("notes:2026.db", Settings())


def test_the_environment_is_held_to_the_same(monkeypatch):
    environ = {"SKILL_REGISTRY_DB": f"postgresql:/u:{SECRET}@h/db"}
    with pytest.raises(DatabaseProblem) as caught:
        open_backend(None, Settings(), environ)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "given",
    [
        "./a:b.db",
        "x/a:b.db",
        "/x/a:b.db",
        "/x/c:/b.db",
        ":memory:",
        "postgresql/r.db",
        "sqlite/me@work.db",
        "/srv/postgresql/me@work.db",
    ],
)
def test_a_path_may_have_a_colon(given, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_backend(given, Settings()).path == str((tmp_path / given).absolute())
    assert open_backend(Path(f"./x/{given}"), Settings()).path.endswith(given.removeprefix("."))


def test_a_path_in_a_sqlite_address_is_taken_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert open_backend("sqlite:///a:b.db", Settings()).path == str(tmp_path / "a:b.db")
    assert open_backend("sqlite:////x/y.db", Settings()).path == "/x/y.db"


def test_a_backup_goes_to_no_address(registry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    registry.create_database()
    with pytest.raises(DatabaseProblem) as caught:
        registry.backup(f"postgresql://u:{SECRET}@h")
    assert SECRET not in str(caught.value)
