"""The documentation: its Python runs, its commands exist, its links lead somewhere."""

import re
import shlex
import sqlite3
import warnings
from contextlib import closing
from dataclasses import fields

import click
import pytest
import yaml

from registry.cli import PROGRAM
from registry.cli.app import root
from registry.settings import GlobalIngest, Limits, Settings, parse_settings
from tests.conftest import REPOSITORY, write_skill
from tests.pages import run, told

VIEWS = "SELECT name FROM sqlite_master WHERE type = 'view'"


@pytest.mark.file
@pytest.mark.parametrize(
    ("name", "lines"),
    [("python.md", 20), ("reference/sql-views.md", 8), ("how-to/add-a-kind-of-source.md", 2)],
)
def test_a_page_prints_what_it_says(tmp_path, name, lines):
    page = REPOSITORY / "docs" / name
    assert len(told(page)) > lines
    assert run(page, tmp_path) == told(page)


@pytest.mark.file
def test_the_page_of_the_database_names_the_columns_of_each_view(registry):
    page = (REPOSITORY / "docs" / "reference" / "sql-views.md").read_text(encoding="utf-8")
    registry.create_database()
    with closing(sqlite3.connect(registry.path)) as connection:
        views = [name for (name,) in connection.execute(VIEWS)]
        assert len(views) == 6
        for view in views:
            (row,) = re.findall(rf"^\| `{view}` \| [^|]+ \| (.*) \|$", page, re.MULTILINE)
            named = re.findall(r"`(\w+)`", re.sub(r"\([^()]*\)", "", row))
            found = connection.execute(f"SELECT * FROM {view}")
            assert named == [column[0] for column in found.description]


@pytest.fixture
def office(tmp_path):
    folder = tmp_path / "home" / ".claude" / "skills"
    write_skill(folder / "merge-pdfs", description="Merge PDF files.", extra="tags: [office]\n")
    write_skill(folder / "review", description="Review a pull request.")
    return ["skill-registry", "sync", str(folder)]


@pytest.mark.file
def test_the_python_of_the_readme_runs(tmp_path, office):
    assert run(REPOSITORY / "README.md", tmp_path, office) == ["merge-pdfs Merge PDF files."]


@pytest.mark.file
def test_the_client_of_the_page_about_agents_runs(tmp_path, office):
    pytest.importorskip("mcp")
    page = REPOSITORY / "docs" / "how-to" / "connect-an-agent.md"
    assert run(page, tmp_path, office) == ["review Review a pull request."]


def test_a_block_that_fails_is_found_by_its_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```sh\nls\n```\n\n```python\nx = 1\n```\n\n```python\nx / 0\n```\n")
    with pytest.raises(AssertionError, match=r"page\.md\", line 12"):
        run(page, tmp_path)


DOCUMENTS = [
    *REPOSITORY.glob("*.md"),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
COMMAND = re.compile(rf"^\s*(?:\$ )?({PROGRAM} .*?)(?:\s+(?:#|\||&&|2?>).*)?$", re.MULTILINE)
BLOCK = re.compile(r"^```(?:sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)")


def commands(page):
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for line in COMMAND.findall(block.replace("\\\n", " ")):
            if "$(" not in line:
                yield line


def unparsed(context):
    """Return the arguments of a context that are left for a subcommand."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return [*context.protected_args, *context.args]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_the_commands_of_a_page_are_those_of_the_program(page):
    for line in commands(page):
        command, context = root, None
        rest, name = shlex.split(line)[1:], PROGRAM
        while command is not None:
            # With its settings: Click caches the help option on the command.
            settings = command.context_settings
            context = click.Context(command, parent=context, info_name=name, **settings)
            try:
                command.parse_args(context, rest)
            except click.UsageError as error:
                pytest.fail(f"{line}: {error.message}")
            rest = unparsed(context)
            is_group = isinstance(command, click.Group) and rest
            name, command, rest = (
                command.resolve_command(context, rest) if is_group else (0, None, 0)
            )


def anchors(page):
    """Return the anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_the_links_of_a_page_lead_somewhere(page):
    text = re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        if link.startswith(("http:", "https:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_the_index_and_names_its_reader():
    index = REPOSITORY / "docs" / "README.md"
    listed = {(index.parent / one).resolve() for one in LINK.findall(index.read_text())}
    pages = [one for one in DOCUMENTS if "docs" in one.relative_to(REPOSITORY).parts]
    for page in pages:
        first = page.read_text(encoding="utf-8").split("\n\n")[1]
        assert first.startswith("For "), page
        if page != index and page.parent.name != "commands":
            assert page.resolve() in listed, page


def test_the_page_of_settings_names_every_key_and_its_example_is_valid():
    page = (REPOSITORY / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert set(yaml.safe_load(example)) == {one.name for one in fields(Settings)}
    assert parse_settings(yaml.safe_load(example), "page").limits == Limits()
    rows = set(re.findall(r"^\| `([\w.]+)` \|", page, re.MULTILINE))
    keys = {one.name for one in fields(Settings)} - {"limits"}
    assert rows >= keys | {f"limits.{one.name}" for one in fields(Limits)}
    page = (REPOSITORY / "docs" / "how-to" / "write-a-personality.md").read_text(encoding="utf-8")
    for one in fields(GlobalIngest):
        assert f"| `skills.global_ingest.{one.name}` |" in page


def test_the_readme_is_short_and_names_no_machine():
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1100
    assert "make test" in text  # .ci/run runs it
