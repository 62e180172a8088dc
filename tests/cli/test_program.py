"""The program around the commands: global options, errors, exit statuses, broken pipes."""

import ast
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from registry import __version__, errors
from registry.cli.app import exit_status
from tests.cli.conftest import REPOSITORY
from tests.conftest import OLD, interpreted

HEAVY = ["sqlalchemy", "alembic", "rich", "mcp", "yaml"]
READING = [
    ["--help"],
    ["--version"],
    ["list"],
    ["list", "--tag", "forms", "--updated-since", "10y", "--json"],
    ["search", "forms"],
    ["show", "haiku"],
    ["why", "haiku"],
    ["why", "haiku", "--query", "poems"],
    ["eval"],
    ["tags"],
    ["kinds"],
    ["categories"],
    ["stats"],
    ["source", "list"],
    ["db", "info"],
    ["completion", "bash"],
]
SCRIPT = """
import json, sys
from registry.cli.app import root
heavy = sys.argv[1].split(",")
for command in json.loads(sys.argv[2]):
    try:
        root.main(command)
    except SystemExit as end:
        assert not end.code, (command, end.code)
    sys.stderr.write(repr([*command, *(name for name in heavy if name in sys.modules)]) + chr(10))
"""


def imported(database, heavy, *commands):
    """Run commands one after the other; return what they print, and each with what it imports."""
    asked = SCRIPT, ",".join(heavy), json.dumps(commands)
    ran = interpreted("-c", *asked, SKILL_REGISTRY_DB=str(database))
    assert ran.returncode == 0, ran.stderr
    told = [line for line in ran.stderr.splitlines() if line.startswith("[")]
    return ran.stdout, [ast.literal_eval(line) for line in told]


@pytest.mark.file
def test_a_read_command_imports_nothing_heavy(library, database):
    _, told = imported(database, HEAVY, *READING)
    assert told == READING


@pytest.mark.file
def test_a_sync_that_finds_new_times_alone_keeps_them_and_imports_nothing_heavy(
    library, database, root
):
    document = root / "haiku" / "SKILL.md"
    os.utime(document, ns=(OLD * 10**9, OLD * 10**9 + 7))
    said, told = imported(database, ["sqlalchemy", "alembic", "rich"], ["sync"])
    assert " 0 updated, " in said
    assert told == [["sync"]]
    with closing(sqlite3.connect(database)) as connection:
        (kept,) = connection.execute(
            "SELECT mtime_ns FROM skill_files f JOIN skills s ON s.id = f.skill_id "
            "WHERE s.name = 'haiku' AND f.path = 'SKILL.md'"
        ).fetchone()
    assert kept == OLD * 10**9 + 7


@pytest.mark.file
def test_a_check_reads_files_and_imports_nothing_that_writes(library, database):
    _, told = imported(database, ["sqlalchemy", "alembic"], ["check", "haiku"])
    assert told == [["check", "haiku"]]


def test_help_imports_no_command_and_no_service():
    script = (
        "import sys\nfrom registry.cli.app import root\n"
        "try:\n    root.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print([m for m in sys.modules if m.startswith(('registry.cli.commands.', "
        "'registry.api', 'registry.catalog'))], file=sys.stderr)"
    )
    ran = interpreted("-c", script)
    assert (ran.returncode, ran.stderr) == (0, "[]\n")


def test_version(interpreter):
    ran = interpreter("--version")
    assert (ran.status, ran.out, ran.err) == (0, f"skill-registry {__version__}\n", "")


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("command", [[], ["list"], ["source"], ["source", "add"], ["db", "check"]])
def test_help_is_data(process, command, option):
    ran = process(*command, option)
    assert ran.status == 0
    assert ran.out.startswith("Usage: skill-registry")
    assert ran.err == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["list", "--nonsense"],
        ["list", "--limit", "many"],
        ["list", "--limit", "-1"],
        ["list", "--scope", "galaxy"],
        ["list", "--status", "fine"],
        ["list", "--format", "xml"],
        ["list", "superfluous"],
        ["show"],
        ["source", "add"],
        ["source", "nonsense"],
        ["completion", "tcsh"],
        ["--config", "/does/not/exist.yaml", "list"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_status_2_and_said_on_stderr(process, arguments):
    ran = process(*arguments)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err
    assert "Traceback" not in ran.err


def test_a_mistyped_command_is_told_the_near_one(cli):
    assert "Did you mean 'list'?" in cli("lsit").stderr
    assert "Did you mean 'discover'?" in cli("source", "discver").stderr


@pytest.mark.file
def test_global_options_work_before_and_after_the_command(library, database, process, tmp_path):
    other = str(tmp_path / "other.db")
    expected = process("list", "--json").stdout
    for arguments in (["--db", str(database), "list"], ["list", "--db", str(database)]):
        assert process(*arguments, "--json", SKILL_REGISTRY_DB=other).stdout == expected
    url = process("--db", f"sqlite:///{database}", "list", "--json", SKILL_REGISTRY_DB=other)
    assert url.stdout == expected
    assert other in process("list", "--json", SKILL_REGISTRY_DB=other).err


def test_the_settings_file_comes_from_the_option_or_the_environment(process, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text("nonsense: 1\n")
    for ran in (
        process("--config", str(settings), "list"),
        process("list", "--config", str(settings)),
        process("list", SKILL_REGISTRY_CONFIG=str(settings)),
    ):
        assert ran.status == 2
        assert "nonsense" in ran.err


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.DatabaseBusy(path="x", seconds=5.0), 3),
        (errors.DatabaseBehind(path="x", revision="9"), 3),
        (errors.DatabaseTooNew(path="x", revision="9"), 3),
        (errors.DatabaseTooOld(path="x", revision="9"), 3),
        (errors.DatabaseCorrupt(path="x", reason="y"), 3),
        (errors.DatabaseProblem(path="x", reason="y"), 3),
        (errors.UsageProblem(message="x"), 2),
        (errors.SettingsProblem(path="x", message="y"), 2),
        (errors.SkillNotFound("x"), 1),
        (errors.SyncRunning(owner="process 1"), 1),
        (errors.SourceInvalid(path="x", reason="y"), 1),
    ],
    ids=lambda value: getattr(value, "code", ""),
)
def test_each_error_has_its_exit_status(error, status):
    assert exit_status(error) == status


def test_a_server_that_does_not_answer_is_said_without_the_password(process):
    ran = process("--db", "postgresql://user:secret@127.0.0.1:1/db", "list")
    assert (ran.status, ran.out) == (3, "")
    assert "secret" not in ran.err
    assert "postgresql+psycopg://user@127.0.0.1:1/db can't be reached" in ran.err


def test_an_unexpected_error_is_one_line(newcomer, monkeypatch):
    def broken(*_arguments, **_options):
        raise RuntimeError("a\nb")

    monkeypatch.setattr("registry.api.SkillRegistry.stats", broken)
    result = newcomer("stats")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert "Internal error (RuntimeError: a)" in result.stderr
    assert "--verbose" in result.stderr


def test_the_details_of_an_unexpected_error_are_for_those_who_ask(database, process, monkeypatch):
    script = (
        "import registry.api as s\n"
        "def broken(*a, **k): raise RuntimeError('inner')\n"
        "s.SkillRegistry.stats = broken\n"
        "from registry.cli.app import root\n"
        "root.main(['--verbose', 'stats'])"
    )
    ran = interpreted("-c", script)
    assert ran.returncode == 1
    assert "RuntimeError: inner" in ran.stderr
    assert "broken" in ran.stderr


def test_a_reader_that_leaves_early_is_no_error(library, skill, database, cli):
    for number in range(300):
        skill(f"many-{number}", description="words " * 100)
    cli("sync")
    reader, writer = os.pipe()
    os.close(reader)  # whoever reads is gone before the first byte
    child = subprocess.Popen(
        [sys.executable, "-m", "registry", "list"],
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, "SKILL_REGISTRY_DB": str(database)},
        cwd=REPOSITORY,
    )
    os.close(writer)
    _, said = child.communicate()
    assert (child.returncode, said) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")
def test_a_full_disk_is_said(library, database):
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "registry", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            env={**os.environ, "SKILL_REGISTRY_DB": str(database)},
            cwd=REPOSITORY,
        )
    assert ran.returncode == 1
    assert ran.stderr == b"Error: Can't write the output: No space left on device.\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")
def test_where_nothing_can_be_said_the_status_still_is(library, database):
    environ = {**os.environ, "SKILL_REGISTRY_DB": str(database)}
    environ.pop("PYTHONUNBUFFERED", None)  # else the interpreter itself has nothing left to say
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "registry", "trash", "list"],
            stdout=subprocess.DEVNULL,
            stderr=full,
            check=False,
            env=environ,
            cwd=REPOSITORY,
        )
    assert ran.returncode == 1


@pytest.mark.parametrize(
    "command", ["source discover", "pull --agent claude-code haiku", "check .", "sync ."]
)
def test_a_current_folder_that_is_gone_is_said(library, cli, tmp_path, monkeypatch, command):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    ran = cli(*command.split())
    assert ran.exit_code == 2
    assert ran.stderr.endswith(
        "Error: The current folder no longer exists; change to another folder.\n"
    )


def test_closed_streams_do_not_crash_it(library, database):
    command = f'"{sys.executable}" -m registry list >&- 2>&-'
    ran = subprocess.run(
        ["/bin/sh", "-c", command],
        check=False,
        env={**os.environ, "SKILL_REGISTRY_DB": str(database)},
        cwd=REPOSITORY,
    )
    assert ran.returncode == 0


def test_an_interrupt_is_130(newcomer, monkeypatch):
    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("registry.api.SkillRegistry.stats", interrupted)
    result = newcomer("stats")
    assert result.exit_code == 130
    assert result.stderr == "Interrupted.\n"


def test_the_entry_function_raises_system_exit_in_a_foreign_process(capsys):
    from registry.cli import main

    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"skill-registry {__version__}\n"


@pytest.mark.parametrize("options", ["", "--verbose", "--db=x"])
@pytest.mark.parametrize("group", ["", "source", "trash", "db", "tools"])
def test_a_group_alone_says_what_it_offers_and_no_more(process, options, group):
    """As git does: its help, and a status that is no success."""
    ran = process(*options.split(), *group.split())
    assert (ran.status, ran.stderr) == (1, b"")
    assert ran.stdout == process(*group.split(), "--help").stdout
