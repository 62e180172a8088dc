"""`skill-registry copies`, and copies wherever a skill is shown."""

import json
import os

import pytest

from tests.conftest import OLD, write_skill


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
    assert "No copies: every name is in one place, and no two skills are similar." in answer.stderr


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


CHANGES = {
    "update": (("update", "pdf", "--tag", "x"), "changes"),
    "restore": (("restore", "pdf", "--revision", "1"), "changes"),
    "delete": (("delete", "pdf"), "deletes"),
}


@pytest.fixture
def tripled(copied, cli, tmp_path):
    write_skill(tmp_path / "three" / "pdf", description="Reads PDF files.")
    cli("sync", str(tmp_path / "three"), "--name", "three")
    # So that there is a revision to go back to.
    assert cli("update", "pdf", "--kind", "prompt", "--copies").exit_code == 0


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_says_which_copies_it_left(tripled, cli, change):
    arguments, verb = CHANGES[change]
    answer = cli(*arguments, "--json")
    assert (answer.exit_code, json.loads(answer.stdout)["name"]) == (0, "pdf")
    said = [one for one in answer.stderr.splitlines() if "now refers to" not in one]
    names = "two/pdf, three/pdf" if change != "delete" else None
    assert said[0].startswith("2 copies are unchanged: ")
    assert names is None or names in said[0]
    do = verb.removesuffix("s")
    again = f"To {do} them as well: 'skill-registry undo', then repeat the command with --copies."
    if verb == "deletes":
        assert said[1] == again
    else:
        assert said[1:] == [again, "To compare the copies, run: skill-registry copies pdf"]
        assert cli("copies", "pdf").output.startswith("pdf\tdiffering\t")


def test_a_delete_of_one_copy_names_how_to_delete_all(tripled, cli):
    deleted = cli("delete", "one/pdf")
    assert "To delete them as well: 'skill-registry undo', then repeat" in deleted.stderr
    assert cli("undo", "--yes").exit_code == 0
    again = cli("delete", "one/pdf", "--copies")
    assert "2 copies are also deleted: two/pdf, three/pdf" in again.stderr


@pytest.mark.parametrize("change", CHANGES)
def test_with_copies_all_are_changed_and_that_is_said(tripled, cli, change):
    arguments, verb = CHANGES[change]
    answer = cli(*arguments, "--copies")
    assert answer.exit_code == 0
    done = {"changes": "changed", "deletes": "deleted"}[verb]
    assert answer.stderr == f"2 copies are also {done}: two/pdf, three/pdf\n"
    [left] = json.loads(cli("copies", "pdf", "--json").stdout or "[]") or [None]
    assert left is None if change == "delete" else left["relation"] == "identical"


def test_one_copy_is_told_as_one(copied, cli):
    assert cli("update", "pdf", "--tag", "x").stderr.splitlines()[:2] == [
        "1 copy is unchanged: two/pdf",
        "To change it as well: 'skill-registry undo', then repeat the command with --copies.",
    ]


def test_what_is_said_of_the_copies_that_were_left_can_be_done(tripled, cli):
    cli("update", "pdf", "--add-tag", "x")
    assert cli("undo", "--yes").exit_code == 0
    assert cli("update", "pdf", "--add-tag", "x", "--copies").exit_code == 0
    [found] = json.loads(cli("copies", "pdf", "--json").stdout)
    assert found["relation"] == "identical"


def test_a_skill_without_copies_says_nothing_of_them(copied, cli):
    assert cli("update", "one/review", "--tag", "x", "--copies").stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("update", "pdf", "--tag", "x", "--copies", "--force"),
        ("delete", "pdf", "--copies", "--force"),
    ],
)
def test_copies_goes_with_no_force(copied, cli, arguments):
    assert cli(*arguments).exit_code == 2


def test_copies_that_are_named_themselves_are_changed_once(copied, cli):
    deleted = cli("delete", "pdf", "two/pdf", "--copies")
    assert (deleted.exit_code, deleted.stderr) == (0, "1 copy is also deleted: two/pdf\n")


def test_a_change_that_changes_nothing_says_nothing_of_copies(copied, cli):
    assert cli("update", "pdf", "--description", "Reads PDF files.").stderr == ""


def test_equal_places_of_a_name_are_not_called_different(cli, tmp_path):
    for number, (source, text) in enumerate((("a", "Old."), ("b", "Old."), ("c", "New."))):
        folder = write_skill(tmp_path / source / "pdf", description=text)
        os.utime(folder / "SKILL.md", (OLD + number, OLD + number))
        assert cli("sync", str(tmp_path / source)).exit_code == 0
    told = cli("copies", "pdf", "--format", "table").stdout
    assert [line.split(", ")[1] for line in told.splitlines() if "Z, " in line] == [
        "newest",
        "differs",
        "same as b/pdf",
    ]


def test_no_near_duplicate_is_called_the_newest(cli, tmp_path):
    """Their order is by name; and of those of one skill, the skill itself may be newer."""
    steps = "Open the file. Read all the pages. Take out the tables. Check the sums. Write CSV. "
    for number, (name, more) in enumerate((("pdf", ""), ("pdf-tables", "Then stop."))):
        text = f"Takes {'all ' * number}tables out of PDF files."
        folder = write_skill(tmp_path / "all" / name, description=text, body=f"{steps}{more}")
        os.utime(folder / "SKILL.md", (OLD + number, OLD + number))
    cli("sync", str(tmp_path / "all"))
    for arguments in ((), ("pdf",), ("pdf-tables",)):
        told = cli("copies", *arguments, "--format", "table").stdout
        assert "near-duplicates under other names" in told
        assert "newest" not in told


def test_the_installed_copies_of_a_skill_are_named(copied, cli, tmp_path, monkeypatch):
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "shop")
    write_skill(tmp_path / "one" / "alone", description="Quite another.", body="Alone.")
    cli("sync")
    nothing = "No copies: the skill is in one source, and no other skill is similar.\n"
    assert cli("copies", "alone").stderr == nothing
    for name in ("alone", "one/pdf"):
        assert cli("pull", name, "-a", "codex", "-a", "claude-code").exit_code == 0
    place = f"{tmp_path}/shop/.agents/skills"
    assert cli("copies", "alone").stderr == f"{nothing}alone is installed in {place}/alone\n"
    assert f"pdf is installed in {place}/pdf\n" in cli("copies", "pdf").stderr


def test_diff_compares_two_skills(copied, cli, tmp_path):
    (tmp_path / "two" / "review" / "more.txt").write_text("More.\n")
    for other in ("two/review", f"{tmp_path}/two/review"):
        compared = cli("diff", "one/review", other)
        assert compared.exit_code == 0
        assert "--- SKILL.md (one/review)\n+++ SKILL.md (two/review)\n" in compared.stdout
        assert "\n-The way of one.\n" in compared.stdout
        assert "+More.\n" in compared.stdout
    assert cli("diff", "one/pdf", "two/pdf").stderr == "No differences.\n"
    assert "No skill named 'nothing'" in cli("diff", "one/pdf", "nothing").stderr


@pytest.mark.parametrize("wrong", [("0",), ("two/pdf", "2"), ("two/pdf", "--upstream")])
def test_diff_refuses_what_is_neither_two_revisions_nor_two_skills(copied, cli, wrong):
    assert cli("diff", "one/pdf", *wrong).exit_code == 2
