"""list, search, tags, kinds, categories: what they print to a pipe."""

import json
import re

import pytest

from tests.conftest import write_skill

pytestmark = pytest.mark.reads

KEYS = [
    "ref",
    "name",
    "description",
    "kind",
    "category",
    "tags",
    "scope",
    "source",
    "path",
    "version",
    "license",
    "author",
    "created_at",
    "updated_at",
    "content_hash",
    "tree_hash",
    "status",
    "shadowed",
    "copies",
    "origin",
]


def names(result):
    assert result.exit_code == 0, result.output
    return [entry["name"] for entry in json.loads(result.stdout)]


def test_list_prints_a_ref_and_a_description_a_line_in_a_pipe(library, cli):
    result = cli("list")
    assert result.stdout == (
        "haiku\tWrite a haiku about anything.\n"
        "pdf-forms\tFill PDF forms from a table of values.\n"
        "review\tReview a pull request.\n"
    )
    assert result.stderr == ""


@pytest.mark.both
def test_list_json_has_exactly_the_documented_keys_of_every_skill(library, cli):
    skills = json.loads(cli("list", "--all", "--json").stdout)
    assert [list(skill) for skill in skills] == [[*KEYS, "quarantined", "yanked"]] * 4
    by_name = {skill["name"]: skill for skill in skills}
    assert by_name["pdf-forms"]["version"] == "1.10"
    assert by_name["pdf-forms"]["tags"] == ["pdf", "forms"]
    assert by_name["pdf-forms"]["path"] == str(library / "pdf-forms")
    assert by_name["pdf-forms"]["source"] == "mine"
    assert by_name["pdf-forms"]["shadowed"] is False
    assert by_name["haiku"]["kind"] is None
    assert by_name["broken"]["status"] == "invalid"


def test_json_lines_are_one_object_each_and_equal_to_the_array(library, cli):
    lines = cli("list", "--format", "jsonl").stdout.splitlines()
    assert [json.loads(line) for line in lines] == json.loads(cli("list", "--json").stdout)


@pytest.mark.parametrize("how", [["--json"], ["--format", "json"], ["--format", "names", "--json"]])
def test_json_is_an_array_and_one_line_break(library, cli, how):
    printed = cli("list", *how, "--limit", "1").stdout
    assert len(json.loads(printed)) == 1
    assert printed.endswith("]\n")


def test_names_are_refs_and_each_ref_can_be_shown(library, cli):
    refs = cli("list", "--format", "names").stdout.splitlines()
    assert refs == ["haiku", "pdf-forms", "review"]
    assert all(cli("show", ref).exit_code == 0 for ref in refs)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--tag", "forms"], ["haiku", "pdf-forms"]),
        (["--tag", "forms", "--tag", "pdf"], ["pdf-forms"]),
        (["--any-tag", "pdf", "--any-tag", "writing"], ["haiku", "pdf-forms"]),
        (["--kind", "workflow"], ["pdf-forms"]),
        (["--category", "documents"], ["pdf-forms"]),
        (["--scope", "personal"], ["haiku", "pdf-forms", "review"]),
        (["--scope", "team"], []),
        (["--source", "mine", "--limit", "1"], ["haiku"]),
        (["--status", "invalid"], ["broken"]),
        (["--status", "no-document"], []),
        (["--status", "no document"], []),
        (["--status", "Invalid"], ["broken"]),
        (["--created-until", "2024-03-01"], ["review"]),
        (["--created-since", "2024-03-02", "--tag", "pdf"], ["pdf-forms"]),
        (["--updated-since", "7d"], []),
        (["--updated-until", "1d"], ["haiku", "pdf-forms", "review"]),
        (["--reverse"], ["review", "pdf-forms", "haiku"]),
        (["--sort", "created", "--reverse", "--limit", "1"], ["review"]),
        (["--offset", "1", "--limit", "1"], ["pdf-forms"]),
        (["--all"], ["broken", "haiku", "pdf-forms", "review"]),
    ],
    ids=" ".join,
)
def test_list_filters(library, cli, options, expected):
    assert names(cli("list", *options, "--json")) == expected


def test_a_source_may_be_named_by_its_folder(library, cli):
    assert names(cli("list", "--source", str(library), "--json")) == names(cli("list", "--json"))


def test_an_unknown_source_is_refused_with_the_known_ones(library, cli):
    result = cli("list", "--source", "other")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "'mine'" in result.stderr


def test_a_date_that_is_none_is_wrong_usage(library, cli):
    result = cli("list", "--created-since", "soon")
    assert result.exit_code == 2
    assert "7d" in result.stderr


def test_an_empty_registry_says_what_to_do_next(newcomer):
    result = newcomer("list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "skill-registry sync FOLDER" in result.stderr
    assert "source discover" in result.stderr
    assert newcomer("list", "--json").stdout == "[]\n"


def test_filters_that_match_nothing_say_so(library, cli):
    result = cli("list", "--tag", "forms", "--kind", "workflow", "--updated-since", "2100-01-01")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No skills match.\n")


def test_search_prints_ref_and_snippet(library, cli):
    result = cli("search", "fill", "forms")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].startswith("pdf-forms\t")


def test_search_json_adds_how_well_and_where_it_matched(library, cli):
    hits = json.loads(cli("search", "fill forms", "--json").stdout)
    assert [*KEYS, "score", "snippet", "confidence", "alike"] == list(hits[0])
    assert hits[0]["name"] == "pdf-forms"
    assert hits[0]["score"] >= hits[-1]["score"]


def test_search_takes_the_filters_of_list(library, cli):
    assert names(cli("search", "forms", "--tag", "writing", "--json")) == ["haiku"]


def test_search_that_finds_nothing_is_no_error(library, cli):
    result = cli("search", "zzzz")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "No skills match.\n")
    assert cli("search", "zzzz", "--json").stdout == "[]\n"


@pytest.mark.parametrize("query", ["--", "--dry-run OR (", '"', "AND", "a*b:c^", "NEAR(", "'; --"])
def test_no_query_is_a_syntax_error(library, cli, query):
    assert cli("search", "--", query).exit_code == 0


@pytest.mark.parametrize("query", [[], [""], ["  ", "\t"]])
def test_an_empty_query_is_wrong_usage(library, cli, query):
    result = cli("search", *query)
    assert result.exit_code == 2
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("command", "plain", "entry"),
    [
        ("tags", "forms\t2\npdf\t1\nwriting\t1\n", {"tag": "forms", "count": 2}),
        ("kinds", "workflow\t1\n", {"kind": "workflow", "count": 1}),
        ("categories", "documents\t1\n", {"category": "documents", "count": 1}),
    ],
)
def test_facets_are_counted(library, cli, command, plain, entry):
    assert cli(command).stdout == plain
    assert json.loads(cli(command, "--json").stdout)[0] == entry
    assert json.loads(cli(command, "--format", "jsonl").stdout.splitlines()[0]) == entry
    first = plain.split("\t", 1)[0]
    assert cli(command, "--format", "names").stdout.splitlines()[0] == first


def test_a_shadowed_skill_is_listed_with_all(library, cli, tmp_path, skill):
    write_skill(tmp_path / "team" / "haiku", description="The team's haiku.")
    assert cli("sync", str(tmp_path / "team"), "--scope", "team").exit_code == 0
    listed = json.loads(cli("list", "--json").stdout)
    assert [one["description"] for one in listed if one["name"] == "haiku"] == ["The team's haiku."]
    everything = json.loads(cli("list", "--all", "--json").stdout)
    assert [one["shadowed"] for one in everything if one["name"] == "haiku"].count(True) == 1


def test_no_row_of_a_table_ends_in_spaces(library, terminal, cli, tmp_path, skill):
    write_skill(tmp_path / "team" / "haiku", description="The team's haiku.")
    assert cli("sync", str(tmp_path / "team"), "--scope", "team").exit_code == 0
    (library / "empty").mkdir()
    (library / "empty" / "SKILL.md").write_text("---\nname: empty\n---\n")
    cli("sync")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", terminal("list", "--all", columns=60).out).splitlines()
    assert [line for line in lines if line.startswith("empty ") and line.endswith("invalid")]
    assert [line for line in lines if line != line.rstrip()] == []
