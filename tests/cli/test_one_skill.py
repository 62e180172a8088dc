"""show and why."""

import json

import pytest

from tests.cli.test_listings import KEYS

pytestmark = pytest.mark.reads


def test_show_is_readable(library, cli):
    result = cli("show", "pdf-forms")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:2] == ["pdf-forms", "Fill PDF forms from a table of values."]
    assert "Tags        pdf, forms" in lines
    assert "Kind        workflow" in lines
    assert f"Folder      {library}/pdf-forms" in lines
    assert "  SKILL.md" in lines
    assert lines[-1] == "Read the table, then fill every form."


def test_show_json_has_the_keys_of_a_listing_and_the_whole_skill(library, cli):
    skill = json.loads(cli("show", "pdf-forms", "--json").stdout)
    assert list(skill)[: len(KEYS)] == KEYS
    assert {"body", "files", "diagnostics", "front_matter", "location"} <= set(skill)
    assert skill["front_matter"]["name"] == "pdf-forms"
    assert skill["front_matter"]["version"] == "1.10"
    assert skill["body"].strip().endswith("fill every form.")
    assert list(skill["files"][0]) == ["path", "size", "hash", "executable"]
    assert {"code", "severity", "category", "path", "line", "message", "fix"} == set(
        skill["diagnostics"][0]
    )
    assert skill["path"] == cli("show", "pdf-forms", "--path").stdout.rstrip("\n")


def test_raw_prints_the_file_byte_for_byte(library, process):
    for name in ("pdf-forms", "broken"):
        ran = process("show", name, "--raw")
        assert ran.stdout == (library / name / "SKILL.md").read_bytes()
        assert (ran.status, ran.err) == (0, "")


def test_files_lists_every_file(library, cli):
    (library / "haiku" / "scripts").mkdir()
    (library / "haiku" / "scripts" / "run.sh").write_text("echo\n")
    lines = cli("show", "haiku", "--files").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["SKILL.md", "scripts/run.sh"]
    files = json.loads(cli("show", "haiku", "--files", "--json").stdout)
    assert files[1]["size"] == 5


def test_show_never_answers_stale(library, cli):
    document = library / "haiku" / "SKILL.md"
    document.write_text("---\nname: haiku\ndescription: Rewritten.\n---\nNew body.\n")
    assert "Rewritten." in cli("show", "haiku").stdout


def test_show_of_an_invalid_skill_says_what_is_wrong(library, cli):
    result = cli("show", "broken")
    assert result.exit_code == 0
    assert "Status      invalid" in result.stdout
    assert "error" in result.stdout


def test_an_unknown_name_is_refused_with_near_ones(library, cli):
    result = cli("show", "pdf-form")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "'pdf-forms'" in result.stderr


def test_an_unknown_name_in_an_empty_registry_says_that_it_is_empty(newcomer):
    result = newcomer("show", "anything")
    assert result.exit_code == 1
    assert "The registry is empty" in result.stderr


def test_an_ambiguous_name_is_refused_with_refs_that_work(library, cli, skill):
    skill("other/haiku", description="Another one.")
    cli("sync")
    result = cli("show", "haiku")
    assert result.exit_code == 1
    refs = [line.strip() for line in result.stderr.splitlines() if line.startswith("  ")]
    assert len(refs) == 2
    assert all(cli("show", ref).exit_code == 0 for ref in refs)


def test_why_says_that_a_skill_is_listed(library, cli):
    assert cli("why", "haiku").stdout == (
        "haiku\tlisted\tin the registry, nothing shadows or hides it\n"
    )


def test_why_explains_an_invalid_skill(library, cli):
    (explained,) = json.loads(cli("why", "broken", "--json").stdout)
    assert list(explained) == ["ref", "path", "listed", "reasons"]
    assert explained["listed"] is False
    assert explained["reasons"][0]["severity"] == "error"


def test_why_explains_a_folder_that_lies_in_no_source(library, cli, tmp_path):
    (explained,) = json.loads(cli("why", str(tmp_path), "--json").stdout)
    assert explained["ref"] is None
    assert explained["reasons"][0]["code"] == "not-in-source"


def test_why_of_an_unknown_name_fails(library, cli):
    result = cli("why", "zzzz")
    assert (result.exit_code, result.stdout) == (1, "")


def test_why_says_where_a_skill_stands_for_a_query(library, cli):
    (told,) = json.loads(cli("why", "haiku", "--query", "poems of zebras", "--json").stdout)
    assert list(told) == [
        *("ref", "path", "listed", "reasons", "query", "place", "total", "beside", "confidence"),
        *("words", "ahead", "to_write"),
    ]
    assert list(told["words"][0]) == ["word", "said", "telling", "parts"]
    assert told["to_write"][-1] == "zebras"
    # In a pipe the findings are the same as on a terminal.
    shown = cli("why", "haiku", "--query", "zebras")
    assert shown.stdout == cli("why", "haiku", "--query", "zebras", "--format", "table").stdout
    assert "Missing from its name, tags and description: zebras" in shown.stdout


def test_a_table_of_words_shows_where_each_stands(library, cli):
    shown = cli("why", "haiku", "--query", "haiku zebras", "--format", "table").stdout
    assert "haiku: rank 1 of 1" in shown
    assert "not in the skill" in shown
    assert "description: zebras" in shown


def test_filters_of_why_go_with_a_query(library, cli):
    result = cli("why", "haiku", "--tag", "poem")
    assert result.exit_code == 2
    assert "--query" in result.stderr
    (told,) = json.loads(cli("why", "haiku", "--query", "haiku", "--tag", "none", "--json").stdout)
    assert told["place"] is None
    assert "filtered" in [reason["code"] for reason in told["reasons"]]
