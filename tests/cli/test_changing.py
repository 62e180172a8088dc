"""create, update, delete, restore and trash, as people call them."""

import json

import pytest

from tests.conftest import write_skill


@pytest.fixture
def program(cli):
    def run(*arguments, check=False, stdin=None):
        result = cli(*arguments, input=stdin)
        if check:
            assert result.exit_code == 0, result.output
        return result

    return run


@pytest.fixture
def filled(program, tmp_path):
    (tmp_path / "skills").mkdir()
    program("sync", str(tmp_path / "skills"), check=True)
    program("create", "notes", "--description", "Take notes.", "--tag", "text", check=True)
    return tmp_path / "skills"


@pytest.mark.both
def test_a_created_skill_is_a_folder_and_is_listed(program, filled):
    assert "description: Take notes." in (filled / "notes" / "SKILL.md").read_text()
    assert program("list", "--format", "names").stdout == "notes\n"
    shown = json.loads(program("show", "notes", "--json").stdout)
    assert (shown["tags"], shown["version"], shown["status"]) == (["text"], None, "ok")


def test_a_new_skill_has_no_version_that_a_later_edit_would_reuse(program, filled):
    program("update", "notes", "--description", "Take better notes.", check=True)
    checked = program("check", "--json", "--all", "notes", check=True)
    assert [one["findings"] for one in json.loads(checked.stdout)] == [[]]
    assert program("version", "list", "notes").stdout == ""
    program("version", "add", "notes", "1.0.0", check=True)
    assert program("version", "list", "notes").stdout.startswith("1.0.0\t")


def test_a_body_comes_from_a_file_or_from_standard_input(program, filled, tmp_path):
    (tmp_path / "body.md").write_text("# From a file\n")
    program("create", "one", "--description", "x", "--body", str(tmp_path / "body.md"), check=True)
    assert (filled / "one" / "SKILL.md").read_text().endswith("# From a file\n")
    program("create", "two", "--description", "x", "--body", "-", stdin="# Piped\n", check=True)
    assert (filled / "two" / "SKILL.md").read_text().endswith("# Piped\n")


def test_parameters_are_written_and_read(program, filled):
    made = program(
        "create",
        "weather",
        "--description",
        "x",
        "--json",
        "--param",
        "city:string:Where to look",
        "--param",
        "days?:number",
        check=True,
    )
    parameters = json.loads(made.stdout)["parameters"]
    assert [(p["name"], p["type"], p["required"]) for p in parameters] == [
        ("city", "string", True),
        ("days", "number", False),
    ]


def test_an_update_changes_what_is_given_and_nothing_else(program, filled):
    before = (filled / "notes" / "SKILL.md").read_text()
    program("update", "notes", "--description", "Keep notes.", check=True)
    after = (filled / "notes" / "SKILL.md").read_text()
    assert after == before.replace("Take notes.", "Keep notes.")


def test_an_update_with_a_stale_hash_is_refused(program, filled):
    seen = json.loads(program("show", "notes", "--json").stdout)["content_hash"]
    program("update", "notes", "--kind", "workflow", "--if-hash", seen, check=True)
    late = program("update", "notes", "--kind", "reference", "--if-hash", seen)
    assert late.exit_code == 1
    assert "changed on disk" in late.stderr


def test_an_edit_by_hand_stops_update_and_delete_until_forced(program, filled):
    write_skill(filled / "notes", description="By hand.")
    for command in (["update", "notes", "--kind", "x"], ["delete", "notes"]):
        refused = program(*command)
        assert (refused.exit_code, "changed on disk" in refused.stderr) == (1, True)
        way = "run: skill-registry sync (or repeat the command with --force)\n"
        assert refused.stderr.endswith(way)
    program("delete", "notes", "--force", check=True)
    assert not (filled / "notes").exists()


def test_after_an_edit_by_hand_the_printed_sync_lets_the_change_be_made(program, filled):
    write_skill(filled / "notes", description="By hand.")
    refused = program("rename", "notes", "records")
    assert refused.stderr.endswith("run: skill-registry sync\n")
    program("sync", check=True)
    program("rename", "notes", "records", check=True)


def test_an_update_without_a_difference_says_that_nothing_changed(program, filled):
    twice = [program("update", "notes", "--kind", "workflow", check=True) for _ in range(2)]
    assert [one.stdout.partition(" ")[0] for one in twice] == ["Updated", "Unchanged"]
    assert program("undo", "--list").stdout.count("update notes") == 1


@pytest.mark.both
def test_a_deleted_skill_comes_back_and_the_trash_be_emptied(program, filled):
    program("delete", "notes", check=True)
    assert program("list", "--format", "names").stdout == ""
    assert [one["name"] for one in json.loads(program("trash", "list", "--json").stdout)] == [
        "notes"
    ]
    program("restore", "notes", check=True)
    assert (filled / "notes" / "SKILL.md").exists()
    program("delete", "notes", check=True)
    assert program("trash", "empty", stdin="n\n").exit_code == 1
    program("trash", "empty", "--yes", check=True)
    assert program("restore", "notes").exit_code == 1


def test_what_cannot_be_done_is_said_in_words(program, filled):
    for arguments, status, words in [
        (["create", "Bad Name", "--description", "x"], 1, "can't be a skill's name"),
        (["create", "../up", "--description", "x"], 1, "can't be a skill's name"),
        (["create", "con", "--description", "x"], 1, "can't be a skill's name"),
        (["create", "notes", "--description", "x"], 1, "already"),
        (["create", "other"], 2, "--description"),
        (["create", "other", "--description", "x", "--source", "none"], 1, "source"),
        (["create", "other", "--description", "x", "--param", "a:colour"], 2, "not a type"),
        (["update", "notes"], 2, "Nothing to change"),
        (["update", "notes", "--description", ""], 1, "a skill needs a description"),
        (["update", "nothing", "--kind", "x"], 1, "No skill named"),
        (["delete", "nothing"], 1, "No skill named"),
        (["restore", "nothing"], 1, "The trash has no skill"),
    ]:
        result = program(*arguments)
        assert result.exit_code == status
        assert words in result.stderr
        assert "Traceback" not in result.stderr


def test_of_several_sources_one_must_be_named(program, filled, tmp_path):
    (tmp_path / "more").mkdir()
    program("sync", str(tmp_path / "more"), check=True)
    unclear = program("create", "other", "--description", "x")
    assert (unclear.exit_code, "--source" in unclear.stderr) == (1, True)
    program("create", "other", "--description", "x", "--source", "more", check=True)
    assert (tmp_path / "more" / "other" / "SKILL.md").exists()


class TestSeveral:
    @pytest.fixture
    def three(self, program, filled):
        for name in ("one", "two"):
            program("create", name, "--description", "x", "--tag", "Draft", check=True)
        return filled

    def tags(self, program, name):
        return json.loads(program("show", name, "--json").stdout)["tags"]

    def test_several_skills_are_deleted_and_each_is_told(self, program, three):
        ran = program("delete", "one", str(three / "two"), "one", check=True)
        assert ran.stdout.splitlines() == [
            "Deleted one.",
            "Deleted two.",
            "To undo, run: skill-registry undo",
        ]
        assert program("list", "--format", "names").stdout == "notes\n"

    def test_json_of_several_is_an_array_and_of_one_an_object(self, program, three):
        assert json.loads(program("delete", "one", "--json").stdout)["name"] == "one"
        gone = json.loads(program("delete", "two", "notes", "--json").stdout)
        assert [one["name"] for one in gone] == ["two", "notes"]

    @pytest.mark.parametrize("command", [["delete"], ["update", "--kind", "x"]], ids=" ".join)
    def test_a_wrong_name_among_several_stops_all(self, program, three, command):
        before = program("list", "--json").stdout
        ran = program(*command, "one", "nonsense", "two")
        assert (ran.exit_code, ran.stdout) == (1, "")
        assert "'nonsense'" in ran.stderr
        assert program("list", "--json").stdout == before

    def test_one_that_cannot_be_deleted_is_told_and_the_others_are(self, program, three):
        write_skill(three / "one", description="By hand.")
        ran = program("delete", "one", "two")
        assert ran.exit_code == 1
        assert "changed on disk" in ran.stderr
        assert ran.stdout.startswith("Deleted two.")
        assert (three / "one").exists()
        assert not (three / "two").exists()

    def test_tags_are_added_and_taken_away_from_several(self, program, three):
        program(
            *("update", "one", "two", "notes", "--add-tag", "Poetry", "--remove-tag", "DRAFT"),
            check=True,
        )
        assert self.tags(program, "one") == ["poetry"]
        assert sorted(self.tags(program, "notes")) == ["poetry", "text"]

    def test_the_last_tag_can_be_taken_away(self, program, three):
        program("update", "one", "--remove-tag", "draft", check=True)
        assert self.tags(program, "one") == []

    def test_tags_are_not_added_over_an_edit_by_hand(self, program, three):
        write_skill(three / "one", description="By hand.", extra="tags: [mine]\n")
        ran = program("update", "one", "--add-tag", "poetry")
        assert (ran.exit_code, "changed on disk" in ran.stderr) == (1, True)
        assert "poetry" not in (three / "one" / "SKILL.md").read_text()
        program("update", "one", "--add-tag", "poetry", "--force", check=True)
        assert sorted(self.tags(program, "one")) == ["mine", "poetry"]

    def test_what_goes_with_one_skill_is_wrong_usage_with_several(self, program, three):
        for arguments in [
            ["update", "one", "two", "--description", "x"],
            ["update", "one", "--tag", "a", "--add-tag", "b"],
            ["delete", "one", "two", "--if-hash", "sha256:0"],
            ["show", "one", "two", "--revision", "1"],
        ]:
            assert program(*arguments).exit_code == 2
