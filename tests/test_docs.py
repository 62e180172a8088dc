"""The Python on the pages runs as it stands there, from the first block to the last."""

import re
import sqlite3
from contextlib import closing

import pytest

from tests.conftest import REPOSITORY, write_skill
from tests.pages import run, told

VIEWS = "SELECT name FROM sqlite_master WHERE type = 'view'"


@pytest.mark.file
@pytest.mark.parametrize(("name", "lines"), [("python.md", 20), ("database.md", 8)])
def test_a_page_prints_what_it_says(tmp_path, name, lines):
    page = REPOSITORY / "docs" / name
    assert len(told(page)) > lines
    assert run(page, tmp_path) == told(page)


@pytest.mark.file
def test_the_page_of_the_database_names_the_columns_of_each_view(registry):
    page = (REPOSITORY / "docs" / "database.md").read_text(encoding="utf-8")
    registry.create_database()
    with closing(sqlite3.connect(registry.path)) as connection:
        views = [name for (name,) in connection.execute(VIEWS)]
        assert len(views) == 6
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
