"""What may stand for a database: a path, or an address; nothing that is half of either."""

from contextlib import closing
from pathlib import Path

import hypothesis
import pytest
from click.testing import CliRunner
from hypothesis import strategies as st

from registry.api import SkillRegistry
from registry.cli.app import root as program
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


SHAPES = [
    "postgresql://u:{}@127.0.0.1:1/db",
    "postgresql+psycopg://u:{}@127.0.0.1:1/db",
    "postgres://u:{}@127.0.0.1:1/db",
    "POSTGRESQL://u:{}@127.0.0.1:1/db",
    "PostgreSQL+Psycopg://u:{}@127.0.0.1:1/db",
    "postgresql:///u:{}@127.0.0.1/db",
    "postgresql://u/x:{}@127.0.0.1/db",
    "postgresql:/u:{}@127.0.0.1/db",
    "postgresql:u:{}@127.0.0.1/db",
    "postgresql//u:{}@127.0.0.1/db",
    "postgresql+psycopg//u:{}@127.0.0.1/db",
    "postgresql+psycopg2://u:{}@127.0.0.1/db",
    " postgresql://u:{}@127.0.0.1/db",
    "/srv/postgresql:/u:{}@127.0.0.1/db",
    "//u:{}@127.0.0.1/db",
    "u:{}@127.0.0.1/db",
    "sqlite:///u:{}@127.0.0.1/db",
    "mysql://u:{}@127.0.0.1/db",
    "postgresql://u%3A{}@127.0.0.1:1/db",
    "postgresql://u:{}%40127.0.0.1/db",
    "postgresql://u:{}",
    "postgresql://u:{}@127.0.0.1:1:1/db",
    "postgresql://127.0.0.1:1/db?user=u&password={}",
    "postgresql://127.0.0.1:1/db?sslpassword={}",
    "postgresql://u@127.0.0.1:1/db password={}",
    "postgresql://u@127.0.0.1:1/db;password={}",
    "postgresql://u@127.0.0.1:1/db?options=-c%20password={}",
    "host=127.0.0.1 port=1 password={} dbname=db",
    "dbname=db PASSWORD = '{}' host=127.0.0.1",
    "host=127.0.0.1;pwd={}",
    "jdbc:postgresql://127.0.0.1:1/db?user=u&password={}",
]

special = st.text(st.sampled_from("aZ0:/?#[]@!$&'()*+,;=%~ .\\\"<>|{}^`-_\t\n\0\u00e9\u4e2d\ud800"))


def read(given):
    with closing(open_backend(given, Settings())) as backend:
        assert SECRET not in backend.path
        backend.reader.state()


def said(error):
    """Return all that an error and those before it say of themselves."""
    words = []
    while error is not None:
        words += [str(error), repr(error), *map(repr, vars(error).get("facts", {}).values())]
        error = error.__cause__ or error.__context__
    return "\n".join(words)


@pytest.mark.parametrize("shape", SHAPES)
@hypothesis.settings(
    max_examples=25, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(before=special, after=special)
@hypothesis.example(before="", after="")
@hypothesis.example(before="p@", after="")
@hypothesis.example(before="&@", after="")
@hypothesis.example(before="p@/", after="?x=@")
@hypothesis.example(before="", after="?/")
@hypothesis.example(before="@", after="?")
@hypothesis.example(before="", after="/?")
@hypothesis.example(before="", after="#/")
def test_no_error_about_a_database_says_its_password(shape, before, after, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Of all that may be meant by this, a host after an @ or a port before a / is the likeliest.
    meant = "@" in before + after or "/" in before
    hypothesis.assume(shape != "postgresql://u:{}" or not meant)
    with pytest.raises(DatabaseProblem) as caught:
        read(shape.format(f"{before}{SECRET}{after}"))
    assert SECRET not in said(caught.value)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_command_prints_a_password(shape, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    given = shape.format(SECRET)
    printed = [
        CliRunner().invoke(program, ["--verbose", *arguments], env=env)
        for arguments, env in (
            (["--db", given, "db", "info"], {}),
            (["--db", given, "list", "--json"], {}),
            (["db", "check"], {"SKILL_REGISTRY_DB": given}),
            (["sync", str(tmp_path)], {"SKILL_REGISTRY_DB": given}),
            (["db", "copy", given, "x.db"], {}),
            (["db", "backup", given], {"SKILL_REGISTRY_DB": str(tmp_path / "r.db")}),
        )
    ]
    assert all(result.exit_code != 0 for result in printed)
    assert not any(SECRET in result.output for result in printed)
    assert not any("Internal error" in result.output for result in printed)
    assert SECRET not in caplog.text
    assert not any(SECRET in path.name for path in tmp_path.rglob("*"))


def test_an_address_in_capitals_is_one():
    backend = open_backend("POSTGRESQL://u@127.0.0.1/db", Settings())
    assert backend.path == "postgresql+psycopg://u@127.0.0.1/db"
