"""One command is one undo: all skills that a command changed go back together."""

import json
import shutil

import pytest

from tests.conftest import write_skill

BROKEN = "---\nname: {name}\ndescription: Use when: asked\n---\nBody.\n"


@pytest.fixture
def skills(cli, tmp_path):
    """Three skills of one source, each of which `check --fix` changes."""
    root = tmp_path / "many"
    for name in ("one", "three", "two"):
        folder = root / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(BROKEN.format(name=name))
    assert cli("sync", str(root), "--name", "many").exit_code == 0
    return root


def texts(root):
    return {path.parent.name: path.read_text() for path in sorted(root.glob("*/SKILL.md"))}


@pytest.mark.both
def test_one_undo_takes_back_all_that_check_fix_changed(cli, skills):
    before = texts(skills)
    assert cli("check", "--fix", "--yes").exit_code == 0
    assert all(texts(skills)[name] != before[name] for name in before)
    done = cli("undo", "--yes")
    assert (done.exit_code, done.stdout) == (0, "Undone: check --fix one and 2 more skills\n")
    assert "The last command (check) changed 3 skills:" in done.stderr
    assert done.stderr.count("gets its earlier version (many/") == 3
    told = [line.split("'")[1] for line in done.stderr.splitlines() if "earlier version" in line]
    heads = [line for line in done.stderr.splitlines() if line.startswith("--- ")]
    assert heads == [f"--- SKILL.md ({name}, revision 2)" for name in told]
    assert texts(skills) == before
    assert cli("undo", "--yes").stderr == "Error: There is nothing to undo.\n"


@pytest.mark.both
def test_one_undo_brings_back_all_skills_that_one_delete_removed(cli, skills):
    before = texts(skills)
    told = cli("delete", "one", "two", "three")
    assert told.exit_code == 0
    deleted = ["Deleted one.", "Deleted two.", "Deleted three."]
    assert told.stdout.splitlines() == [*deleted, "To undo, run: skill-registry undo"]
    assert texts(skills) == {}
    assert cli("undo", "--yes").exit_code == 0
    assert texts(skills) == before


def test_one_undo_takes_back_an_update_of_two_skills_and_no_earlier_command(cli, skills):
    before = texts(skills)
    cli("update", "one", "two", "--add-tag", "a")
    between = texts(skills)
    cli("update", "two", "three", "--add-tag", "b")
    assert cli("undo", "--yes").exit_code == 0
    assert texts(skills) == between
    assert cli("undo", "--yes").exit_code == 0
    assert texts(skills) == before


def test_nothing_is_undone_if_one_of_the_skills_was_changed_since(cli, skills):
    cli("update", "one", "two", "three", "--add-tag", "a")
    with (skills / "one" / "SKILL.md").open("a") as document:
        document.write("By hand.\n")
    left = texts(skills)
    refused = cli("undo", "--yes")
    assert refused.exit_code == 1
    assert "Can't undo the update of 'one': it was changed since." in refused.stderr
    assert texts(skills) == left


def test_an_edit_is_undone(cli, skills, monkeypatch, tmp_path):
    before = texts(skills)
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho 'More.' >> \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    assert cli("edit", "two").exit_code == 0
    assert texts(skills) != before
    done = cli("undo", "--yes")
    assert (done.exit_code, done.stdout) == (0, "Undone: edit two\n")
    assert "-More.\n" in done.stderr
    assert texts(skills) == before


def test_an_edit_that_broke_the_skill_is_undone(cli, skills, monkeypatch, tmp_path):
    before = texts(skills)
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf -- '---\\nname: [\\n---\\n' > \"$1\"\n")
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    assert cli("edit", "two").exit_code == 1
    assert texts(skills) != before
    assert cli("undo", "--yes").exit_code == 0
    assert texts(skills) == before


def test_undo_list_shows_each_command_with_its_time(cli, skills):
    assert "Nothing to undo" in cli("undo", "--list").stderr
    cli("create", "new", "--description", "x")
    cli("update", "one", "two", "--add-tag", "a")
    listed = cli("undo", "--list")
    assert listed.exit_code == 0
    first, second = listed.stdout.splitlines()
    assert first.endswith("Z\tupdate one and 1 more skill\tmany/one")
    assert second.endswith("Z\tcreate new\tmany/new")
    told = json.loads(cli("undo", "--list", "--json").stdout)
    assert [(one["command"], len(one["changes"])) for one in told] == [("update", 2), ("create", 1)]
    assert len(texts(skills)) == 4
    assert cli("undo", "--list", "--skip").exit_code == 2


def test_one_undo_takes_back_a_pull_of_several_skills(cli, skills, tmp_path):
    project = tmp_path / "project"
    write_skill(project / "mine")
    assert cli("pull", "one", "two", "--to", str(project)).exit_code == 0
    assert cli("undo", "--yes").exit_code == 0
    assert sorted(path.name for path in project.iterdir() if path.name != "skills.lock.json") == [
        "mine"
    ]


def test_a_rename_is_undone(cli, skills):
    before = texts(skills)
    done = cli("rename", "one", "four")
    assert done.stdout == f"Renamed one to four: {skills / 'four'}\n"
    assert sorted(texts(skills)) == ["four", "three", "two"]
    undone = cli("undo", "--yes")
    assert undone.stdout == "Undone: rename four\n"
    assert texts(skills) == before
    assert cli("mv", "one", "five").exit_code == 0


def test_the_list_names_commands_as_they_were_typed(cli, terminal, skills, tmp_path):
    cli("check", "--fix", "--yes")
    cli("restore", "one", "--revision", "1")
    shutil.make_archive(str(tmp_path / "four"), "zip", tmp_path, "many/two")
    shutil.rmtree(skills / "two")
    cli("sync")
    assert cli("import", str(tmp_path / "four.zip"), "--source", "many").exit_code == 0
    lines = cli("undo", "--list").stdout.splitlines()
    told = ["import two", "restore --revision one", "check --fix one and 2 more skills"]
    assert [line.split("\t")[1] for line in lines] == told
    assert lines[0].startswith("20")
    assert "just now\timport two\tmany/two\n" in terminal("undo", "--list").out
    kinds = [one["kind"] for one in json.loads(cli("undo", "--list", "--json").stdout)]
    assert kinds == ["create", "update", "update"]


def test_a_rename_that_keeps_the_folder_is_called_a_rename(cli, skills):
    before = write_skill(skills / "four", name="five").joinpath("SKILL.md").read_text()
    cli("sync")
    assert cli("rename", "five", "four").exit_code == 0
    assert cli("undo", "--list").stdout.split("\t")[1:] == ["rename four", "many/four\n"]
    undone = cli("undo", "--yes")
    assert undone.stdout == "Undone: rename four\n"
    assert undone.stderr.startswith("Undo rename: 'four' gets its earlier name (many/four, ")
    assert texts(skills)["four"] == before


def test_the_list_shows_the_project_and_the_agents_of_a_pull(cli, skills, tmp_path, monkeypatch):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    cli("pull", "one", "--agent", "cursor", "--agent", "claude-code")
    cli("pull", "one", "two", "--agent", "claude-code", "--global")
    cli("pull", "--remove", "one", "--agent", "claude-code")
    cli("pull", "two", "--to", "copies")
    assert [line.split("\t")[1:] for line in cli("undo", "--list").stdout.splitlines()] == [
        ["pull two", f"{project}/copies"],
        ["pull --remove one", f"{project} (claude-code)"],
        ["pull one, two", "all projects (claude-code)"],
        ["pull one", f"{project} (claude-code, cursor)"],
    ]


def test_a_removal_of_what_was_pulled_is_listed_as_one(cli, skills, tmp_path):
    to = str(tmp_path / "project")
    cli("pull", "one", "two", "--to", to)
    cli("pull", "--remove", "one", "--to", to)
    listed = [line.split("\t")[1] for line in cli("undo", "--list").stdout.splitlines()]
    assert listed == ["pull --remove one", "pull one, two"]
    assert json.loads(cli("undo", "--list", "--json").stdout)[0]["kind"] == "pull"
    done = cli("undo", "--yes")
    assert done.stderr.startswith("Undo pull --remove: one (")
    assert done.stdout == "Undone: pull --remove one\n"
