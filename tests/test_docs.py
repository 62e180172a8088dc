"""The Python on the pages runs as it stands there, from the first block to the last."""

import os
import re
import sqlite3
import subprocess
import sys
import sysconfig
from contextlib import closing

import pytest

from tests.conftest import REPOSITORY, write_skill

VIEWS = "SELECT name FROM sqlite_master WHERE type = 'view'"
FENCE = re.compile(r"```(\w*)$")


def script_of(page):
    """Return the blocks of a page as one program, each line where it is on the page."""
    lines, language = [], None
    for line in page.splitlines():
        fence = FENCE.match(line)
        if fence:
            language = None if language is not None else fence[1]
        lines.append("" if fence or language != "python" else line)
    return "\n".join(lines) + "\n"


def run(page, folder, *before):
    """Run a page in an empty folder and a home of its own, after commands; return what it prints."""
    environ = {
        "HOME": os.environ["HOME"],
        "PATH": f"{sysconfig.get_path('scripts')}:/usr/bin:/bin",
        "PYTHONPATH": str(REPOSITORY),
    }
    for command in before:
        subprocess.run(command, check=True, cwd=folder, env=environ, capture_output=True)
    # Compiled under the page's name, so that what fails is found there.
    program = "import sys; exec(compile(sys.stdin.read(), sys.argv[1], 'exec'))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, page.name],
        input=script_of(page.read_text(encoding="utf-8")),
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environ,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.mark.file
@pytest.mark.parametrize(("name", "lines"), [("python.md", 20), ("database.md", 8)])
def test_a_page_prints_what_it_says(tmp_path, name, lines):
    page = REPOSITORY / "docs" / name
    told = re.findall(r"^# -> (.*)$", script_of(page.read_text(encoding="utf-8")), re.MULTILINE)
    assert len(told) > lines
    assert run(page, tmp_path) == told


@pytest.mark.file
def test_the_page_of_the_database_names_the_columns_of_each_view(registry):
    page = (REPOSITORY / "docs" / "database.md").read_text(encoding="utf-8")
    registry.create_database()
    with closing(sqlite3.connect(registry.path)) as connection:
        views = [name for (name,) in connection.execute(VIEWS)]
        assert len(views) == 4
        for view in views:
            (row,) = re.findall(rf"^\| `{view}` \| [^|]+ \| (.*) \|$", page, re.MULTILINE)
            named = re.findall(r"`(\w+)`", re.sub(r"\([^()]*\)", "", row))
            found = connection.execute(f"SELECT * FROM {view}")
            assert named == [column[0] for column in found.description]


@pytest.mark.file
def test_the_python_of_the_readme_runs(tmp_path):
    pytest.importorskip("mcp")
    folder = tmp_path / "home" / ".claude" / "skills"
    write_skill(folder / "merge-pdfs", description="Merge PDF files.", extra="tags: [office]\n")
    write_skill(folder / "review", description="Review a pull request.")
    printed = run(REPOSITORY / "README.md", tmp_path, ["skill-registry", "sync", str(folder)])
    assert printed == ["review Review a pull request.", "merge-pdfs Merge PDF files."]


def test_a_block_that_fails_is_found_by_its_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```sh\nls\n```\n\n```python\nx = 1\n```\n\n```python\nx / 0\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md\", line 12"):
        run(page, tmp_path)
