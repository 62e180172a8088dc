"""The Python interface, as a program that embeds it calls it: values, kinds, mistakes."""

import ast
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import registry
from registry.api import SkillRegistry
from registry.core import UNEXPECTED
from registry.db.interface import KNOWN_REVISIONS
from registry.db.read.listing import Filters
from registry.errors import RegistryError, SourceNotFound, UsageProblem
from registry.settings import Settings
from tests.conftest import REPOSITORY, interpreted, write_skill
from tests.older import make_older

NOW = datetime.now(UTC)


def all_errors(kind=RegistryError):
    """Return the public class of errors and all that are made of it."""
    found = {kind}.union(*map(all_errors, kind.__subclasses__()))
    return {one for one in found if one.__module__.startswith("registry.errors")}


@pytest.fixture
def filled(registry, root):
    """Three skills: of today, of thirty days ago at noon, and of a year ago."""
    for name, created in (
        ("today", f"{NOW:%Y-%m-%dT%H:%M:%SZ}"),
        ("monthly", f"{NOW - timedelta(days=30):%Y-%m-%d}T12:00:00Z"),
        ("yearly", f"{NOW - timedelta(days=365):%Y-%m-%d}T12:00:00Z"),
    ):
        write_skill(root / name, extra=f"tags: [office]\ncreated_at: {created}\n")
    registry.sync(str(root))
    return registry


def names(registry, **wanted):
    return {skill.name for skill in registry.list(Filters(**wanted))}


MONTH_AGO = (NOW - timedelta(days=30)).date()


def test_the_beginning_of_a_time_is_told_in_every_way_that_a_date_is_written(filled):
    for since in [
        "31d",
        "31 days",
        timedelta(days=31),
        MONTH_AGO,
        f"{MONTH_AGO}",
        datetime(*MONTH_AGO.timetuple()[:3], tzinfo=UTC),
        datetime(*MONTH_AGO.timetuple()[:3]),  # noqa: DTZ001  # without a zone it is UTC
        f"{MONTH_AGO}T00:00:00+00:00",
        f"{MONTH_AGO}T12:00:00Z",
        f"{MONTH_AGO}T14:00:00+02:00",
        datetime(*MONTH_AGO.timetuple()[:3], 14, tzinfo=timezone(timedelta(hours=2))),
    ]:
        assert names(filled, created_since=since) == {"today", "monthly"}


@pytest.mark.parametrize("until", [f"{MONTH_AGO}", MONTH_AGO, f"{MONTH_AGO}T12:00:00+00:00", "29d"])
def test_a_day_that_ends_a_time_belongs_to_it(filled, until):
    assert names(filled, created_until=until) == {"monthly", "yearly"}


@pytest.mark.parametrize(
    "key", [name for name in Filters.__slots__ if name.endswith(("_since", "_until"))]
)
@pytest.mark.parametrize("value", ["some day", "", "13.13.2026", 7, 3.5, b"7d", object()])
def test_what_is_no_time_is_refused(key, value):
    with pytest.raises(UsageProblem, match=key):
        Filters(**{key: value})


@pytest.mark.parametrize(
    "wanted",
    [
        {"tags": "office"},
        {"any_tags": "office"},
        {"tags": b"office"},
        {"tags": [3]},
        {"tags": None},
        {"kind": 3},
        {"scope": "projekt"},
        {"scope": ""},
        {"status": "broken"},
        {"ids": "12"},
    ],
    ids=str,
)
def test_filters_of_a_wrong_kind_or_of_no_such_value_are_refused(wanted):
    [key] = wanted
    with pytest.raises(UsageProblem, match=key):
        Filters(**wanted)


def test_a_source_that_is_not_there_is_no_empty_listing(filled):
    with pytest.raises(SourceNotFound):
        filled.list(Filters(source="skils"))
    with pytest.raises(SourceNotFound):
        filled.search("today", Filters(source="skils"))
    assert len(filled.list(Filters(source=filled.sources()[0].name))) == 3


def test_a_text_where_a_list_belongs_is_refused_and_nothing_is_written(filled):
    for call in (
        lambda: filled.create("new", description="New.", tags="office"),
        lambda: filled.update("today", tags="office"),
        lambda: filled.check("today"),
    ):
        with pytest.raises(UsageProblem, match="list"):
            call()
    assert filled.list(Filters(all=True)).total == 3
    assert filled.get("today").tags == ("office",)


def test_a_wrong_value_is_an_error_and_changes_nothing(filled):
    for call in [
        lambda r: r.list(sort="nosuch"),
        lambda r: r.list(limit=-1),
        lambda r: r.list(offset=-1),
        lambda r: r.list(limit="10"),
        lambda r: r.list(Filters(), limit=2.5),
        lambda r: r.search("today", limit=-1),
        lambda r: r.search("today", offset=-5),
        lambda r: r.search(None),
        lambda r: r.get(None),
        lambda r: r.get(3),
        lambda r: r.read(["today"]),
        lambda r: r.read_file("today", None),
        lambda r: r.update("today", files={"a.txt": "text"}),
        lambda r: r.update("today", files=["a.txt"]),
        lambda r: r.create("new", description=None),
        lambda r: r.create("new", description="x", files={"a.txt": "text"}),
        lambda r: r.sync(3),
        lambda r: r.toolset("nosuch"),
        lambda r: r.delete(b"today"),
        lambda r: r.history(3.5),
        lambda r: r.restore({"name": "today"}),
    ]:
        with pytest.raises((RegistryError, *UNEXPECTED)) as caught:
            call(filled)
        assert str(caught.value)
        assert filled.list().total == 3


def test_paths_may_be_paths(registry, root, tmp_path):
    write_skill(root / "today")
    registry.sync(Path(root))
    assert registry.read_file("today", Path("SKILL.md"))
    registry.backup(tmp_path / "copy.db")
    [checked] = registry.check([root / "today"])
    assert checked.name == "today"
    assert registry.why(root / "today")


def test_a_registry_in_memory_is_whole_and_leaves_no_file(root, monkeypatch, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    write_skill(root / "today")
    with SkillRegistry.open(":memory:", settings=Settings()) as registry:
        registry.sync(str(root))
        registry.update("today", body="New.\n")
        assert registry.search("today").total == 1
        assert [one.number for one in registry.history("today")]
    assert list(empty.iterdir()) == []


def test_two_registries_in_memory_have_nothing_in_common(root):
    write_skill(root / "today")
    with (
        SkillRegistry.open(":memory:", settings=Settings()) as one,
        SkillRegistry.open(":memory:", settings=Settings()) as other,
    ):
        one.sync(str(root))
        assert (one.list().total, other.list().total) == (1, 0)


def test_a_closed_registry_says_that_it_is_closed(filled):
    filled.close()
    filled.close()
    for call in (filled.list, filled.sources, lambda: filled.get("today"), filled.sync):
        with pytest.raises(RegistryError, match="closed"):
            call()


def test_every_name_that_the_package_offers_is_there_and_is_listed():
    for name in registry.__all__:
        assert getattr(registry, name) is not None
    assert set(registry.__all__) <= set(dir(registry))
    with pytest.raises(AttributeError, match="nosuch"):
        _ = registry.nosuch


def test_every_error_is_offered():
    assert {kind.__name__ for kind in all_errors()} <= set(registry.__all__)


@pytest.mark.file
def test_a_program_that_logs_hears_of_no_migration_and_keeps_its_own(tmp_path, root):
    write_skill(root / "alpha")
    older = tmp_path / "older" / "registry.db"
    make_older(older, KNOWN_REVISIONS[-2])
    script = """
import logging, sys
logging.basicConfig(level=logging.DEBUG, format="%(name)s: %(message)s")
import registry
with registry.SkillRegistry.open(sys.argv[1], settings=registry.Settings()) as opened:
    opened.sync(sys.argv[2])
assert "alembic.runtime.migration" in sys.modules
logging.getLogger("alembic.runtime.migration").info("of the program's own database")
"""
    run = interpreted("-W", "error", "-c", script, older, root)
    assert (run.returncode, run.stdout) == (0, "")
    assert run.stderr == "alembic.runtime.migration: of the program's own database\n"


def test_a_database_is_opened_with_nothing_given_by_place_but_its_name():
    """Python 3.13 warns of it, and 3.15 refuses it."""
    calls = [
        (path.name, node.lineno)
        for path in (REPOSITORY / "registry").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "sqlite3.connect"
        and len(node.args) > 1
    ]
    assert calls == []


def test_importing_the_package_imports_nothing_of_it():
    script = (
        "import sys, registry; dir(registry); registry.__version__\n"
        "print(sorted(name for name in sys.modules if name.startswith('registry')))\n"
        "registry.SkillNotFound, registry.Skill\n"
        "print('registry.api' in sys.modules)"
    )
    run = interpreted("-c", script)
    assert run.stdout.splitlines() == ["['registry']", "False"]


def test_a_registry_without_a_database_warns_once(tmp_path, caplog):
    path = tmp_path / "typo.db"
    with SkillRegistry.open(path) as registry:
        assert registry.list().total == 0
        assert registry.search("anything").total == 0
    (told,) = caplog.messages
    assert told == (f"No database at {path}, so there are no skills. To create it, sync a folder.")
    assert not path.exists()


def test_the_search_tool_says_that_no_folder_is_registered(tmp_path):
    with SkillRegistry.open(tmp_path / "new.db") as registry:
        found = registry.toolset("native").call("search_skills", {"query": "pdf"})
    assert found["note"].startswith("The registry is empty. The user has to")


def test_a_value_of_a_wrong_type_is_a_type_error_with_a_message(filled):
    with pytest.raises(TypeError, match="a value of this type"):
        filled.update("today", kind=3)
