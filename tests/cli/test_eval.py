"""eval: what it prints, and how it fails."""

import json

import pytest

from tests.conftest import write_skill


@pytest.fixture
def shipped(cli, root):
    folder = write_skill(root / "leaflet", description="Fold paper into booklets.")
    write_skill(root / "press", description="Print brochures.")
    prompts = ["fold paper", "print brochures"]
    (folder / "evals.json").write_text(json.dumps(prompts))
    assert cli("sync", str(root)).exit_code == 0
    return root


def test_each_skill_is_a_line_and_the_total_goes_to_stderr(cli, shipped):
    result = cli("eval")
    assert result.stdout == "leaflet\t2\t50%\t50%\t\tpress\n"
    assert "2 prompts of 1 skill: 50% found their skill first" in result.stderr
    assert "Most won by: press (1)" in result.stderr
    assert result.exit_code == 0


def test_failed_prompts_are_shown_with_what_won(cli, shipped):
    assert cli("eval", "--failed").stdout == "leaflet\tnone\tpress\tprint brochures\n"


def test_a_share_below_the_least_fails(cli, shipped):
    assert cli("eval", "--min", "50").exit_code == 0
    assert cli("eval", "--min", "51").exit_code == 1
    assert cli("eval", "--min", "51", "--json").exit_code == 1
    assert cli("eval", "--min", "101").exit_code == 2


def test_json_has_the_total_each_skill_and_each_answer(cli, shipped):
    told = json.loads(cli("eval", str(shipped / "leaflet"), "--json").stdout)
    assert list(told) == ["total", "skills", "problems"]
    score = ["prompts", "hit_at_1", "hit_at_5", "negatives", "false_alarms", "competitors"]
    assert list(told["total"]) == score
    (skill,) = told["skills"]
    assert list(skill) == ["ref", "path", "score", "answers"]
    assert list(skill["answers"][0]) == [
        *("prompt", "path", "wanted", "place", "first", "confidence", "passed")
    ]
    failed = json.loads(cli("eval", "--failed", "--json").stdout)
    assert [a["prompt"] for one in failed["skills"] for a in one["answers"]] == ["print brochures"]


def test_no_prompts_are_said_and_fail_only_where_a_share_is_asked_for(cli, shipped):
    result = cli("eval", "press")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No skill here has prompts" in result.stderr
    assert cli("eval", "press", "--min", "0").exit_code == 1


def test_a_broken_file_is_counted_and_named_on_request(cli, shipped):
    (shipped / "press" / "evals.json").write_text("{\x1b[31m")
    cli("sync")
    assert "1 file of prompts could not be read" in cli("eval").stderr
    told = cli("eval", "--failed").stderr
    assert "press: evals.json: it is not JSON" in told


def test_a_file_with_more_prompts_than_are_asked_is_not_called_useless(cli, shipped):
    (shipped / "press" / "evals.json").write_text(json.dumps([f"page {n}" for n in range(501)]))
    cli("sync")
    assert (
        "1 file of prompts could not be read completely; to see why, add --failed."
        in cli("eval").stderr
    )
    assert "of 501 prompts only the first 500 are used" in cli("eval", "--failed").stderr


def test_prompts_that_would_command_a_terminal_are_shown_escaped(cli, shipped):
    (shipped / "leaflet" / "evals.json").write_text(json.dumps(["\x1b]0;owned\x07 zebra\nx"]))
    cli("sync")
    for arguments in (["eval", "--failed"], ["eval", "--json"], ["eval"]):
        result = cli(*arguments)
        assert "\x1b" not in result.output
    assert "owned" in cli("eval", "--failed").stdout
