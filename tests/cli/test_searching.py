"""`search` as a person uses it: several queries, near copies, and what is said where nothing fits."""

import json
import re
import shlex

import pytest

from registry.catalog.search.find import MAX_QUERIES
from registry.catalog.search.query import _concepts
from registry.catalog.search.rank import FITS
from tests.conftest import REPOSITORY, write_skill

STEPS = "".join(f"Step {number} of the usual way.\n" for number in range(20))


@pytest.fixture
def library(cli, tmp_path):
    root = tmp_path / "skills"
    write_skill(root / "forms", description="Fill in PDF forms.")
    write_skill(root / "invoices", description="Write invoices for customers.")
    for name in ("deploy", "release"):
        write_skill(root / name, description="Bring a service to production.", body=STEPS)
    assert cli("sync", str(root)).exit_code == 0
    return root


def refs(result):
    assert result.exit_code == 0
    return [line.split("\t")[0] for line in result.stdout.splitlines()]


def test_arguments_with_spaces_are_queries_of_their_own(library, cli):
    assert refs(cli("search", "write invoices", "pdf forms")) == ["invoices", "forms"]
    assert refs(cli("search", "write", "invoices", "pdf")) == ["invoices", "forms"]
    assert refs(cli("search", "pdf", "write invoices")) == ["forms", "invoices"]


def test_too_many_queries_are_an_error(library, cli):
    result = cli("search", *(f"query {number}" for number in range(6)))
    assert result.exit_code == 2
    assert "1 to 5 queries" in result.stderr


def test_near_copies_are_told_in_json_and_marked_in_the_table(library, cli):
    (hit,) = json.loads(cli("search", "bring a service to production", "--json").stdout)
    assert {hit["ref"], *hit["alike"]} == {"deploy", "release"}
    shown = cli("search", "bring a service to production", "--format", "table").stdout
    assert "+1 copy" in shown


def test_where_nothing_fits_that_is_said_beside_the_nearest(library, cli):
    result = cli("search", "write sourdough recipe", "--format", "table")
    assert "invoices" in result.stdout
    assert "No close match: no top result mentions 'sourdough' or 'recipe'" in result.stderr
    assert "Perhaps" not in cli("search", "pdf forms", "--format", "table").stderr


def test_shorter_queries_and_other_spellings_are_told(library, cli):
    result = cli("search", "write a sourdough recipe for customers", "--format", "table")
    assert "Try: skill-registry search write customers\n" in result.stderr
    told = cli("search", "invoces", "--format", "table").stderr
    assert "Searched for 'invoices' instead of 'invoces'." in told


def test_a_description_is_shown_once_where_what_was_typed_stands_nowhere(library, cli):
    shown = cli("search", "costumers Rechnung", "--format", "table").stdout
    assert shown.count("Write invoices") == 1
    assert "Step 0" in cli("search", "step", "--format", "table").stdout


def test_a_pipe_hears_on_stderr_that_nothing_fits(library, cli):
    result = cli("search", "write sourdough recipe")
    assert refs(result)[0] == "invoices"
    assert "No close match" in result.stderr


def test_the_commands_of_the_page_of_search_run_and_its_numbers_are_those_of_the_code(library, cli):
    page = (REPOSITORY / "docs" / "explanation" / "ranking.md").read_text(encoding="utf-8")
    commands = re.findall(r"^(?:\$ )?skill-registry (search .*?)(?: +#.*)?$", page, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        assert cli(*shlex.split(command)).exit_code == 0
    assert f" {FITS}" in page
    assert MAX_QUERIES == 5
    assert "up to five" in page
    assert len(_concepts()) // 100 * 100 == 1700
    assert "1,700 concepts" in page


def test_filters_without_a_query_list_the_skills(library, cli):
    write_skill(library / "redact", extra="tags: [pdf]\n")
    assert cli("sync").exit_code == 0
    for more in ((), ("--json",), ("--limit", "1")):
        found = cli("search", "--tag", "pdf", *more)
        assert found.exit_code == 0
        assert "redact" in found.stdout
        assert "invoices" not in found.stdout
        assert found.stdout == cli("list", "--tag", "pdf", *more).stdout
    for nothing in ((), ("",), ("", "--tag", "pdf")):
        refused = cli("search", *nothing)
        assert refused.exit_code == 2
        assert "Give a QUERY to search for." in refused.stderr
