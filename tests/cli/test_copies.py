"""`skill-registry copies`, and copies wherever a skill is shown."""

import json

import pytest

from tests.conftest import write_skill


@pytest.fixture
def copied(cli, tmp_path):
    for name in ("one", "two"):
        write_skill(tmp_path / name / "pdf", description="Reads PDF files.")
        write_skill(tmp_path / name / "review", body=f"The way of {name}.")
        cli("sync", str(tmp_path / name), "--name", name)


def test_what_lies_in_several_places_is_listed_in_lines(copied, cli):
    assert cli("copies").output.splitlines() == [
        "pdf\tidentical\tpdf two/pdf",
        "review\tdiffering\tone/review two/review",
    ]
    assert cli("copies", "--format", "names").output.splitlines() == ["pdf", "review"]


def test_json_has_the_skills_of_each(copied, cli):
    [one] = json.loads(cli("copies", "pdf", "--json").stdout)
    assert (one["name"], one["relation"]) == ("pdf", "identical")
    assert [skill["ref"] for skill in one["skills"]] == ["pdf", "two/pdf"]
    assert one["skills"][0]["copies"] == ["two/pdf"]


def test_where_nothing_is_copied_that_is_said(library, cli):
    answer = cli("copies")
    assert (answer.stdout, answer.exit_code) == ("", 0)
    assert "Every name lies in one place." in answer.stderr


def test_a_skill_shows_where_else_it_is(copied, cli):
    assert "Also in     two/pdf" in cli("show", "pdf").output
    assert "Also in" not in cli("show", "one/review").output


def test_a_skill_shows_the_links_that_lead_to_it(cli, tmp_path):
    write_skill(tmp_path / "one" / "pdf")
    link = tmp_path / "two" / "pdf"
    link.parent.mkdir()
    link.symlink_to("../one/pdf")
    cli("sync", str(tmp_path / "two"), "--name", "two")
    cli("sync", str(tmp_path / "one"), "--name", "one")
    assert f"Linked at   {link}\n" in cli("show", "pdf").output
    shown = json.loads(cli("show", "pdf", "--json").stdout)
    assert shown["copies"] == []
    assert [(one["code"], one["severity"]) for one in shown["diagnostics"]] == [
        ("link-known", "info")
    ]
    deleted = cli("delete", "pdf", "--json")
    assert json.loads(deleted.stdout)["name"] == "pdf"
    assert f"The link '{link}' now leads nowhere." in deleted.stderr
    assert f"{link}: warning link-broken" in cli("check").stdout
