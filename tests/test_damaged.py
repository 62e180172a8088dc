"""Whatever a database holds and whatever is asked of it: a right answer, or an error of ours."""

import json
import os
import random
import sqlite3
from contextlib import closing

import pytest
from click.testing import CliRunner

from registry.api import SkillRegistry
from registry.cli.app import root as program
from registry.core import UNEXPECTED
from registry.db.read.listing import Filters
from registry.errors import DatabaseCorrupt, DatabaseProblem, RegistryError, UsageProblem
from registry.settings import Settings
from tests.conftest import write_skill

SETTINGS = Settings(usage=False)
HUGE = [1 << 63, -(1 << 63) - 1, 10**40]
JUNK = [
    None,
    7,
    -1,
    *HUGE,
    1.5,
    float("inf"),
    float("nan"),
    b"alpha",
    ["alpha"],
    {"a": 1},
    object(),
]
JUNK += ["\ud800", "a/\udfff", "a\0b", "x" * 100_000]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Return the bytes of a small database with skills of all kinds, in one file."""
    home = tmp_path_factory.mktemp("sound")
    for number in range(12):
        folder = write_skill(
            home / "skills" / f"cat{number % 3}" / f"skill-{number}",
            description=f"Fills pdf forms, way {number}.",
            extra=f"tags: [a, t{number}]\nkind: workflow\nversion: {number}\n",
            body="# How\n\n" + "Step by step. " * 30,
        )
        (folder / "run.sh").write_bytes(b"echo\n" * 50 * number)
    write_skill(home / "skills" / "dup" / "skill-1", description="Another.")
    path = home / "sound.db"
    with SkillRegistry.open(path, settings=SETTINGS) as registry:
        registry.sync(str(home / "skills"), name="mine")
        write_skill(home / "skills" / "cat0" / "skill-0", description="Changed.")
        registry.sync()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    return path.read_bytes()


def other_bytes(data, chance):
    for _ in range(chance.randint(1, 40)):
        data[chance.randrange(100, len(data))] = chance.randrange(256)


def other_page(data, chance):
    page = chance.randrange(1, len(data) // 4096) * 4096
    data[page : page + 4096] = chance.randbytes(4096)


def zeros(data, chance):
    place = chance.randrange(100, len(data) - 512)
    data[place : place + 512] = bytes(512)


def a_page_twice(data, chance):
    here, there = (chance.randrange(1, len(data) // 4096) * 4096 for _ in range(2))
    data[here : here + 4096] = data[there : there + 4096]


def calls(registry):
    """Return everything that reads."""
    asked = [
        lambda: list(registry.list()),
        lambda: list(registry.list(Filters(all=True), sort="updated", limit=5)),
        lambda: registry.list(Filters(tags=["a"])),
        lambda: registry.search("pdf forms"),
        lambda: registry.get("skill-3"),
        lambda: registry.read("skill-3"),
        lambda: registry.history("skill-0"),
        lambda: registry.read_revision("skill-0", 1),
        lambda: registry.why("skill-4"),
        registry.check,
        registry.stats,
        registry.usage_counts,
        registry.tags,
        registry.kinds,
        registry.categories,
        registry.sources,
        registry.prompt,
        registry.check_database,
        registry.database_info,
        lambda: registry.toolset("wave").tools(),
    ]
    tools = [
        ("native", "list_skills", {}),
        ("native", "search_skills", {"query": "pdf"}),
        ("native", "read_skill", {"name": "skill-3"}),
        ("basic", "list_skills", {}),
        ("miniclaw", "list_skills", {}),
        ("miniclaw", "read_skill", {"name": "skill-3"}),
        ("ethos", "skills_list", {}),
        ("wave", "Skill", {"skill_name": "skill-3"}),
    ]
    for toolset, tool, arguments in tools:
        asked.append(
            lambda toolset=toolset, tool=tool, arguments=arguments: registry.toolset(toolset).call(
                tool, arguments
            )
        )
    return asked


@pytest.mark.file
@pytest.mark.parametrize("damage", [other_bytes, other_page, zeros, a_page_twice])
def test_a_damaged_file_is_answered_rightly_or_refused_in_words(request, sound, tmp_path, damage):
    refused = answered = 0
    for seed in range(30 if request.config.getoption("--every-step") else 12):
        data = bytearray(sound)
        damage(data, random.Random(seed))
        path = tmp_path / f"{seed}.db"
        path.write_bytes(data)
        try:
            registry = SkillRegistry.open(path, settings=SETTINGS)
        except DatabaseProblem:
            refused += 1
            continue
        with registry:
            for call in calls(registry):
                try:
                    call()
                    answered += 1
                except RegistryError as error:
                    refused += isinstance(error, DatabaseCorrupt)
    assert refused > 2
    assert answered > 40


COMMANDS = [
    "list",
    "list --all --json",
    "search pdf",
    "show skill-3",
    "check",
    "stats",
    "why skill-4",
]
COMMANDS += ["prompt", "tags", "history skill-0", "source list", "db info", "db check"]


@pytest.mark.file
def test_no_command_ends_in_an_internal_error_over_a_damaged_file(sound, tmp_path):
    unusable = 0
    for seed in range(40):
        data = bytearray(sound)
        [other_bytes, other_page, zeros, a_page_twice][seed % 4](data, random.Random(1000 + seed))
        path = tmp_path / f"{seed}.db"
        path.write_bytes(data)
        for command in random.Random(seed).sample(COMMANDS, 4):
            result = CliRunner().invoke(program, ["--db", str(path), *command.split()])
            assert "Internal error" not in result.output, (seed, command)
            if result.exit_code == 3:
                unusable += 1
                assert "Error: The database" in result.output or "damaged" in result.output
    assert unusable > 5


WRONG = {
    "a name that is bytes": "UPDATE skills SET name = x'ff00', ref = x'ff00'",
    "a folder that is bytes": "UPDATE skills SET folder = x'ff00' WHERE name = 'alpha'",
    "a tag list that is bytes": "UPDATE skills SET tags = x'ff'",
    "front matter that is no JSON": "UPDATE documents SET front_matter = '{'",
    "front matter nested deeply": "UPDATE documents SET front_matter = '" + "[" * 200_000 + "'",
    "parameters of another shape": "UPDATE skills SET parameters = '7'",
    "files of another shape": "UPDATE revisions SET files = '[[1]]'",
    "a scope that there is not": "UPDATE sources SET scope = 'x'",
    "a path that is bytes": "UPDATE sources SET path = x'00ff'",
    "text that is bytes": "UPDATE documents SET text = x'ff00'",
    "a severity that there is not": "UPDATE diagnostics SET severity = 'x'",
    "a path that ends in the middle": "UPDATE sources SET path = CAST(x'2f610062' AS TEXT)",
    "a file that ends in the middle": "UPDATE skills SET document = CAST(x'610062' AS TEXT)",
    "a folder that ends in the middle": "UPDATE skills SET folder = 'a' || char(0) || name",
    "parameters of another kind": "UPDATE skills SET parameters = '[[1]]'",
    "parameters that say too much": 'UPDATE skills SET parameters = \'[{"name": "a", "x": 1}]\'',
    "what was done, nested deeply": "UPDATE audit SET detail = '" + "[" * 200_000 + "'",
    "tools that are lists": "UPDATE skills SET required_tools = '[[1]]'",
}


@pytest.mark.file
@pytest.mark.parametrize("sql", WRONG.values(), ids=WRONG)
def test_values_that_no_program_of_ours_stores_are_damage(filled, root, tmp_path, sql):
    (root / "beta" / "SKILL.md").write_bytes(b"\xff")
    filled.sync()
    path = filled.path
    filled.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(sql).rowcount > 0
        connection.commit()
    damaged = 0
    with SkillRegistry.open(path, settings=SETTINGS) as registry:
        asked = [*calls(registry), lambda: registry.get("alpha"), lambda: registry.get("beta")]
        asked += [
            lambda: registry.history("alpha"),
            lambda: registry.toolset("ethos").call("x", {}),
        ]
        for call in asked:
            try:
                call()
            except RegistryError as error:
                damaged += isinstance(error, DatabaseCorrupt)
    printed = [
        CliRunner().invoke(program, ["--db", path, *command.split()])
        for command in (
            *("list --all --json", "list --all", "show alpha", "check", "prompt", "stats"),
            f"pull --all --to {tmp_path / 'pulled'}",
            *("update alpha --tag new", "sync --verify", "db audit"),
        )
    ]
    assert all(isinstance(result.exception, SystemExit | None) for result in printed)
    assert not any("Internal error" in result.output for result in printed)
    told = damaged or any(result.exit_code == 3 for result in printed)
    assert told or sql in {WRONG["a scope that there is not"], WRONG["text that is bytes"]}


def test_a_failure_of_our_own_is_not_laid_at_the_databases_door(filled, monkeypatch):
    from registry.db.read import summary

    def fail(_reader):
        raise KeyError("ours")

    monkeypatch.setattr(summary, "stats", fail)
    with pytest.raises(KeyError, match="ours"):
        filled.stats()


def test_an_empty_file_of_a_skill_is_no_damage(filled, root):
    (root / "alpha" / "empty.py").touch()
    filled.sync()
    with pytest.raises(TypeError):
        filled.update("alpha", desc="An unknown field.")


@pytest.mark.parametrize("number", HUGE)
def test_numbers_beyond_64_bits_are_numbers_like_others(filled, number):
    below = number < 0
    assert list(filled.list(offset=max(number, 0))) == ([] if not below else list(filled.list()))
    if not below:
        assert [one.name for one in filled.list(limit=number)] == ["alpha", "beta"]
        assert len(filled.search("well", offset=number)) == 0
        assert len(filled.search("well", limit=number)) == 2
        assert filled.prune(keep=number) == (0, 0)
        native = filled.toolset("native")
        answer = native.call("list_skills", {"offset": number})
        assert (answer["skills"], answer["total"], answer["next_offset"]) == ([], 2, None)
        assert native.call("search_skills", {"query": "well", "offset": number})["skills"] == []
        assert native.call("read_skill", {"name": "alpha", "offset": number})["body"] == ""
    with pytest.raises(RegistryError):
        filled.read_revision("alpha", number)


@pytest.mark.file
@pytest.mark.parametrize("number", ["9223372036854775808", "1" + "0" * 40])
def test_the_command_line_takes_numbers_of_any_size(filled, root, number):
    def run(*arguments):
        result = CliRunner().invoke(program, ["--db", filled.path, *arguments])
        assert "Internal error" not in result.output
        return result

    assert run("list", "--limit", number).exit_code == 0
    assert run("list", "--offset", number).exit_code == 0
    assert run("search", "well", "--limit", number).exit_code == 0
    assert run("search", "well", "--offset", number).exit_code == 0
    assert run("prompt", "--max-chars", number).exit_code == 0
    assert run("db", "prune", "--keep", number).exit_code == 0
    assert run("diff", "alpha", number).exit_code == 1
    more = root.with_name("more")
    more.mkdir()
    assert run("source", "add", str(more), "--priority", number).exit_code == 2
    for tool in ("list_skills", "search_skills"):
        arguments = json.dumps({"query": "x"} if tool == "search_skills" else {})
        sent = arguments[:-1] + (", " if "x" in arguments else "") + f'"offset": {number}}}'
        assert run("tools", "call", "--toolset", "native", tool, sent).exit_code == 0


def test_a_whole_number_with_a_point_is_one(filled):
    native = filled.toolset("native")
    assert len(native.call("list_skills", {"limit": 1.0})["skills"]) == 1
    assert native.call("read_skill", {"name": "alpha", "offset": 2.0, "max_chars": 3.0})["body"]
    assert native.call("list_skills", {"offset": 1e300})["skills"] == []


def test_what_names_nothing_is_refused_in_words(filled):
    for junk in JUNK:
        asked = [
            filled.get,
            filled.read,
            filled.resolve,
            filled.why,
            filled.history,
            filled.delete,
            filled.restore,
            filled.remove_source,
            filled.toolset,
            lambda junk: filled.read_file("alpha", junk),
            lambda junk: filled.update(junk, description="x"),
            lambda junk: filled.create(junk, description="x"),
            lambda junk: filled.check([junk]),
            filled.seen_by,
        ]
        for call in asked:
            with pytest.raises(
                RegistryError if isinstance(junk, str) else (RegistryError, *UNEXPECTED)
            ):
                call(junk)


def test_what_can_not_be_stored_is_refused(filled, root):
    with pytest.raises(UsageProblem, match="half characters, or is too large"):
        filled.add_source(str(root / "alpha"), priority=10**40)


def test_no_tool_of_any_toolset_raises_for_what_a_model_sends(filled):
    for junk in JUNK:
        usual = {"name": "alpha", "skill_name": "alpha", "query": "x", "path": "SKILL.md"}
        usual |= {"description": "x", "implementation": "x"}
        for name in ("native", "basic", "miniclaw", "ethos", "wave"):
            toolset = filled.toolset(name, source="mine")
            for tool in toolset.tools():
                keys = list(tool.parameters.get("properties", {}))
                for key in keys:
                    sent = {one: usual[one] for one in keys if one in usual} | {key: junk}
                    assert isinstance(toolset.call(tool.name, sent), dict)
                assert isinstance(toolset.call(tool.name, junk), dict)
            assert isinstance(toolset.call(junk, {}), dict)


def a_folder(path):
    path.mkdir()


def a_loop(path):
    path.symlink_to(path.name)


def a_pipe(path):
    os.mkfifo(path)


def nowhere(path):
    path.symlink_to("/nonexistent/lock")


@pytest.mark.file
@pytest.mark.parametrize("make", [a_folder, a_loop, a_pipe, nowhere])
@pytest.mark.parametrize("ending", [".lock", ".sync.lock"])
def test_a_lock_that_cannot_be_opened_is_named(filled, root, tmp_path, make, ending):
    path = tmp_path / "registry.db"
    filled.backup(str(path))
    make(path.with_name(path.name + ending))
    told = []
    for command in (["sync"], ["db", "check"], ["sync"], ["show", "alpha"], ["db", "prune"]):
        result = CliRunner().invoke(program, ["--db", str(path), *command])
        assert "Internal error" not in result.output
        assert result.exit_code in {0, 3}
        told.append(result.exit_code)
        (root / "alpha" / "SKILL.md").write_text("---\nname: alpha\ndescription: N.\n---\n")
    assert 3 in told or (make is a_pipe and ending == ".lock")


EVIL = "x \x1b]0;owned\x07\x1b[2J\u202e\n\x9b31m"


@pytest.mark.file
@pytest.mark.parametrize(
    ("column", "command"),
    [
        ("skills.created_at", "show alpha"),
        ("skills.updated_at", "show alpha"),
        ("skills.status", "show alpha"),
        ("sources.scope", "show alpha"),
        ("diagnostics.line", "show alpha"),
    ],
)
def test_what_no_program_of_ours_stores_steers_no_terminal_either(filled, column, command):
    filled.close()
    table, name = column.split(".")
    with closing(sqlite3.connect(filled.path)) as connection:
        connection.execute(
            "INSERT INTO diagnostics (source_id, skill_id, folder, code, severity, message, path) "
            "SELECT source_id, id, folder, 'x', 'error', 'x', 'SKILL.md' FROM skills"
        )
        assert connection.execute(f"UPDATE {table} SET {name} = ?", (EVIL,)).rowcount > 0
        connection.commit()
    result = CliRunner().invoke(program, ["--db", filled.path, *command.split()])
    assert "Internal error" not in result.output
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(result.output)


@pytest.mark.file
@pytest.mark.parametrize("path", ["", "/", "//", ".", "skills"])
def test_what_is_asked_of_a_source_at_a_strange_path_comes_to_an_end(filled, path):
    filled.close()
    with closing(sqlite3.connect(filled.path)) as connection:
        connection.execute("UPDATE sources SET path = ?", (path,))
        connection.commit()
    for command in ("why alpha", "show alpha", "list --all", "source list"):
        result = CliRunner().invoke(program, ["--db", filled.path, *command.split()])
        assert isinstance(result.exception, SystemExit | None)


@pytest.mark.file
@pytest.mark.parametrize("path", ["", ".", "skills"])
def test_a_source_whose_path_is_not_absolute_is_nowhere(filled, root, monkeypatch, path):
    filled.close()
    with closing(sqlite3.connect(filled.path)) as connection:
        connection.execute("UPDATE sources SET path = ?", (path,))
        connection.commit()
    monkeypatch.chdir(root.parent if path == "skills" else root)
    before = sorted(root.rglob("*"))
    write_skill(root / "gamma")
    with SkillRegistry.open(filled.path, settings=SETTINGS) as registry:
        assert not registry.sync().added
        with pytest.raises(RegistryError):
            registry.update("alpha", description="Elsewhere.")
        with pytest.raises(RegistryError):
            registry.delete("alpha")
    assert sorted(root.rglob("*")) == sorted({*before, root / "gamma", root / "gamma" / "SKILL.md"})
