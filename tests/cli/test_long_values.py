"""A row of a hostile database may be very long: the memory of who reads it stays flat."""

import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from tests.cli.conftest import run

PEAK = """
import os, sys
from registry.cli import main
try:
    main()
finally:
    with open("/proc/self/status") as file:
        peak = next(line for line in file if line.startswith("VmHWM")).split()[1]
    print("PEAK", peak, file=sys.stderr)
"""


@pytest.fixture
def described(database, root, skill):
    """Give the skill alpha a description of so many characters: ``described(number)``."""
    skill("alpha")
    skill("beta")
    assert run("--db", str(database), "sync", str(root)).exit_code == 0

    def describe(characters):
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute(
                "UPDATE skills SET description = printf('%.*c', ?, 'x') WHERE name = 'alpha'",
                [characters],
            )

    return describe


@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["show", "alpha"], ["prompt"]])
def test_a_long_description_is_cut_off(database, described, command):
    described(2 << 20)
    done = run("--db", str(database), *command)
    assert done.exit_code == 0
    assert 1 << 16 <= done.stdout.count("x") < 200_000


def test_the_check_of_the_database_names_it(database, described):
    described(2 << 20)
    done = run("--db", str(database), "db", "check")
    assert done.exit_code == 1
    assert "the description of skill alpha is longer than a SKILL.md may be" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of the memory is read from /proc")
@pytest.mark.parametrize(
    "command", ["list", "list --json", "search does", "show alpha", "db check"]
)
def test_a_value_that_is_never_stored_is_refused_unread(database, described, command, environ):
    described(200 << 20)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *command.split()],
        capture_output=True,
        check=False,
        env=environ,
        text=True,
    )
    assert done.returncode == 3
    assert "a value of more than 67108864 bytes" in done.stderr
    assert int(done.stderr.split("PEAK ")[1]) < 150 << 10
