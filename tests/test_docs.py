"""The Python on the pages runs as it stands there, from the first block to the last."""

import pytest

from tests.conftest import REPOSITORY, write_skill
from tests.pages import run, told


@pytest.mark.file
def test_the_tutorial_prints_what_it_says(tmp_path):
    page = REPOSITORY / "docs" / "python.md"
    assert len(told(page)) > 20
    assert run(page, tmp_path) == told(page)


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
