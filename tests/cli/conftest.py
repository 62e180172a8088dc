"""Drive the command line as its users do: in a pipe, on a terminal, in this process."""

import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from fcntl import ioctl
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from registry.cli.app import root as command
from tests import program
from tests.conftest import Kept, keep_library, only_reads, write_skill
from tests.program import REPOSITORY, Ran

Cli = Callable[..., Result]
Process = Callable[..., Ran]


@pytest.fixture
def cli(database: Path) -> Cli:
    """Run a command in this process, in a pipe: ``cli("list", "--json")``."""
    return partial(run, "--db", str(database))


@pytest.fixture
def newcomer() -> Cli:
    """Run a command as somebody who has just installed the program, and names no database."""
    return run


def run(*arguments: str, **extra: object) -> Result:
    result = CliRunner().invoke(command, arguments, **extra)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result


@pytest.fixture
def environ(database: Path) -> dict[str, str]:
    """The environment of a command in a process of its own."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "SKILL_REGISTRY_DB": str(database)}


@pytest.fixture
def process(environ: dict[str, str], tmp_path: Path) -> Process:
    """Run a command in a process of its own, in a pipe."""

    def run(*arguments: str | bytes, **more: str) -> Ran:
        return program.run(arguments, environ={**environ, **more}, cwd=tmp_path)

    return run


@pytest.fixture
def interpreter(environ: dict[str, str], tmp_path: Path) -> Process:
    """Run a command as people start it: with an interpreter of its own, in a pipe."""

    def run(*arguments: str | bytes, **more: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "registry", *arguments],
            capture_output=True,
            check=False,
            env={**environ, **more},
            cwd=tmp_path,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def terminal(environ: dict[str, str], tmp_path: Path) -> Process:
    """Run a command on a terminal of so many columns; stdout and stderr come as one.

    It has patience: on a busy machine, too, it draws no bar. ``typed`` waits for it.
    """

    def run(
        *arguments: str, columns: int = 80, rows: int = 50, typed: bytes = b"", **more: str
    ) -> Ran:
        ours, theirs = pty.openpty()
        os.write(ours, typed)
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        child = program.start(
            arguments,
            environ={
                **{key: value for key, value in environ.items() if key != "COLUMNS"},
                "TERM": "xterm-256color",
                "PAGER": "cat",
                **more,
            },
            cwd=tmp_path,
            streams=(theirs, theirs, theirs),
            before=program.patient,
        )
        os.close(theirs)
        printed = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            printed += piece
        os.close(ours)
        child.join()
        return Ran(child.exitcode, printed.replace(b"\r\n", b"\n"), b"")

    return run


def fill(root: Path) -> None:
    """Write three skills that can be used and one that can't."""
    write_skill(
        root / "pdf-forms",
        description="Fill PDF forms from a table of values.",
        extra="kind: workflow\ncategory: documents\ntags: [pdf, forms]\nversion: 1.10\n"
        "created: 2024-06-01\n",
        body="# Fill forms\n\nRead the table, then fill every form.\n",
    )
    write_skill(
        root / "haiku",
        description="Write a haiku about anything.",
        extra="tags: [writing, forms]\ncreated: 2025-01-01\n",
    )
    write_skill(
        root / "review", description="Review a pull request.", extra="created: 2024-03-01\n"
    )
    (root / "broken").mkdir()
    (root / "broken" / "SKILL.md").write_bytes(b"\xff\xfe\x00 not text \x00")


@pytest.fixture(scope="module")
def kept(new_database: Callable[[], Path | str], tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """The library of a module that only reads."""
    return keep_library(new_database(), tmp_path_factory.mktemp("kept"), fill)


@pytest.fixture
def library(request: pytest.FixtureRequest) -> Path:
    """A registered source with three skills that can be used and one that can't."""
    if only_reads(request):
        shared: Kept = request.getfixturevalue("kept")
        return shared.root
    root: Path = request.getfixturevalue("root")
    request.getfixturevalue("settled")
    fill(root)
    result = request.getfixturevalue("cli")("sync", str(root), "--name", "mine")
    assert result.exit_code == 0, result.output
    return root
