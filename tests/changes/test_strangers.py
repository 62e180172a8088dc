"""Whatever rows of a journal and notes in a trash say: nothing outside the sources is different."""

import json
import os
import shutil
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from registry.api import SkillRegistry
from registry.changes import signer
from registry.cli.app import root as program
from registry.db.read.listing import Filters
from registry.db.schema import journal
from registry.errors import RegistryError
from registry.settings import Settings
from tests.changes.dying import dies
from tests.changes.planted import NUMBER, seen, state_of
from tests.conftest import write_skill

ESCAPES = "\x1b]0;owned\x07\x1b[2J"


class Home:
    """A user's home with a source, what lies around it, and real records that can be copied."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "work" / "skills"
        self.database = base / "data" / "registry.db"
        self.docs = base / "docs"
        self.docs.mkdir()
        (self.docs / "precious").write_text("mine")
        (self.docs / "skill").mkdir()
        write_skill(self.docs / "skill", name="outside")
        for name in ("alpha", "beta", "gamma"):
            write_skill(self.root / name)
        with self.open() as registry:
            registry.sync(str(self.root), name="mine")
            self.kept = registry.delete("gamma")
            self.uid = self.kept.uid
            dies(registry, lambda it: it.update("beta", description="New.", files={"x": b"x"}))
            rows = registry.core.reader.rows("SELECT id FROM journal")
        ((self.pending,),) = rows

    def open(self) -> SkillRegistry:
        return SkillRegistry.open(self.database, settings=Settings())

    def outside(self) -> dict[str, object]:
        """Return all that no change may touch."""
        return seen(self.base, without=(self.root, state_of(self.root), self.database.parent)) | {
            "work": sorted(os.listdir(self.root.parent))
        }

    def paths(self) -> list[str]:
        state, ops = state_of(self.root), state_of(self.root, "ops")
        return [
            *(str(self.docs), str(self.docs / "precious"), str(self.docs / "skill")),
            *("../../docs", "../../docs/skill", "alpha/../../../docs", "..", ".", "", "/", "\0"),
            *("alpha", "alpha/SKILL.md", "beta", "new", "link", "link/precious", "x" * 5000),
            *(str(state), f"ops/{self.pending}/tree", f"ops/{NUMBER}/tree", f"{ops}/../../docs"),
            *(f"trash/{self.kept.id}/tree", "trash/../../../docs", ESCAPES),
            f"ops/{self.pending}/../../../../docs",
        ]


@pytest.fixture(scope="module")
def home():
    """A home that is set up once; each example has a copy of it at the same place."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder, pytest.MonkeyPatch.context() as patch:
        base = Path(folder) / "home"
        base.mkdir()
        patch.setenv("HOME", str(base))
        made = Home(base)
        shutil.copytree(base, base.with_name("saved"), symlinks=True)
        yield made


@pytest.fixture(autouse=True)
def _at_home(home, _home, monkeypatch):
    """The key that signed what lies there is this user's in every test."""
    monkeypatch.setenv("HOME", str(home.base))


def reset(home: Home) -> None:
    shutil.rmtree(home.base)
    shutil.copytree(home.base.with_name("saved"), home.base, symlinks=True)


def anything(home: Home) -> st.SearchStrategy[object]:
    return st.one_of(
        st.sampled_from(home.paths()),
        st.text(max_size=20),
        st.none(),
        st.integers(-(2**63), 2**63 - 1),
        st.binary(max_size=20),
        st.floats(allow_nan=False),
    )


def row_of(draw: st.DrawFn, home: Home, source_id: int) -> dict[str, object]:
    """Draw a row: like one of ours, with some of its columns replaced by anything."""
    row: dict[str, object] = {
        "id": draw(st.sampled_from([NUMBER, home.pending, home.kept.id, "x", ESCAPES, "../ops"])),
        "host": draw(st.sampled_from(["", "", "elsewhere", ESCAPES])),
        "source_id": source_id,
        "root": draw(st.sampled_from([str(home.root), str(home.docs), str(home.base), ""])),
        "kind": draw(st.sampled_from(["create", "update", "delete", "evil"])),
        "folder": draw(st.sampled_from(home.paths())),
        "target": draw(st.sampled_from(home.paths())),
        "staged": draw(st.sampled_from(home.paths())),
        "base": draw(st.sampled_from([None, "0" * 64])),
        "new": draw(st.sampled_from([None, "0" * 64])),
        "exchange": draw(st.integers(-1, 2)),
        "uid": draw(st.sampled_from([None, home.uid])),
        "created_at": None,
        "started_at": draw(st.sampled_from(["2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z"])),
    }
    for column in draw(st.sets(st.sampled_from(sorted({*row} - {"source_id"})), max_size=3)):
        value = draw(anything(home))
        row[column] = "" if value is None and column not in {"base", "new", "uid"} else value
    return row


def plant_rows(draw: st.DrawFn, home: Home) -> None:
    with sqlite3.connect(home.database) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        (source_id,) = connection.execute("SELECT id FROM sources").fetchone()
        if draw(st.booleans()):
            connection.execute("DELETE FROM journal")
        columns = [column.name for column in journal.columns]
        for _ in range(draw(st.integers(0, 3))):
            row = row_of(draw, home, source_id)
            marks = ", ".join("?" * len(columns))
            names = ", ".join(columns)
            connection.execute(
                f"INSERT OR REPLACE INTO journal ({names}) VALUES ({marks})",
                [row[column] for column in columns],
            )
        for column in draw(st.sets(st.sampled_from(["target", "staged", "root", "base"]))):
            value = draw(st.sampled_from(home.paths()))
            connection.execute(
                f"UPDATE journal SET {column} = ? WHERE id = ?", (value, home.pending)
            )
    connection.close()


def plant_notes(draw: st.DrawFn, home: Home) -> None:
    """Lay notes into the state folder, as whoever made the folder around a source could."""
    state = state_of(home.root)
    signed = (state / "trash" / home.kept.id / "meta.json").read_text()
    record = (state / "ops" / home.pending / "record").read_text()
    for area, name in (("trash", "meta.json"), ("ops", "record"), ("ops", "owner")):
        for _ in range(draw(st.integers(0, 2))):
            number = draw(st.sampled_from([NUMBER, "f" * 16, ESCAPES, "x"]))
            kept = state / area / number
            if not kept.exists():
                kept.mkdir(mode=0o700)
                content = draw(st.sampled_from(["tree", "link", "nothing"]))
                if content == "tree":
                    write_skill(kept / "tree", name="evil")
                elif content == "link":
                    (kept / "tree").symlink_to(home.docs)
            facts = json.loads(signed)["record"] | {
                "folder": draw(st.sampled_from(home.paths())),
                "deleted_at": "2999-01-01T00:00:00Z",
                "name": draw(st.sampled_from(["alpha", ESCAPES])),
            }
            half = json.loads(signed)
            half["record"]["folder"] = draw(st.sampled_from(home.paths()))
            texts = [signed, record, json.dumps(facts), json.dumps(half), "[]", "", "{" * 2000]
            (kept / name).write_text(draw(st.sampled_from(texts)))
            (kept / name).chmod(draw(st.sampled_from([0o600, 0o644])))


def use_all_of_it(home: Home) -> str:
    """Do what users do, whatever it answers; return all that a terminal would be sent."""
    said = []
    commands = (
        f"list trash-list sync db-check restore-{NUMBER} restore-gamma delete-alpha "
        "update-beta trash-list trash-empty"
    )
    for command in commands.split():
        words = command.split("-")
        more = {"update": ["--description", "Again."], "trash": []}.get(words[0], [])
        if words[-1] == "empty":
            more = ["--yes"]
        ran = CliRunner().invoke(program, ["--db", str(home.database), *words, *more])
        assert ran.exception is None or isinstance(ran.exception, SystemExit), command
        assert "Internal error" not in ran.output, command
        said.append(ran.output)
    return "".join(said)


@settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_whatever_strangers_plant_nothing_outside_is_different(home, data):
    reset(home)
    (home.root / "link").symlink_to(home.docs)
    before = home.outside()
    plant_rows(data.draw, home)
    plant_notes(data.draw, home)
    said = use_all_of_it(home)
    assert "\x1b]0;" not in said
    assert home.outside() == before
    with home.open() as registry, suppress(RegistryError):
        assert {one.name for one in registry.list(Filters(all=True))} <= {"alpha", "beta", "gamma"}


def test_where_nobody_planted_anything_what_is_ours_is_finished_and_restored(home):
    """A control: what is left alone above would else have been done."""
    reset(home)
    with home.open() as registry:
        assert registry.get("beta").description == "New."
        assert registry.check_database() == []
        assert registry.restore("gamma").name == "gamma"


def test_these_experiments_would_see_a_note_that_is_believed(home, monkeypatch):
    """A control: what is planted is really read, and only the signature keeps it from counting."""
    reset(home)
    kept = state_of(home.root, "trash", NUMBER)
    real = json.loads(state_of(home.root, "trash", home.kept.id, "meta.json").read_text())
    real["record"] |= {"name": "evil", "folder": "evil"}
    for believed in (False, True):
        reset(home)
        write_skill(kept / "tree", name="evil")
        (kept / "meta.json").write_text(json.dumps(real))
        (kept / "meta.json").chmod(0o600)
        kept.chmod(0o700)
        if believed:
            monkeypatch.setattr(signer.hmac, "compare_digest", lambda *_: True)
        use_all_of_it(home)
        assert (home.root / "evil").exists() == believed
