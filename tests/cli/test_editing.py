"""`edit`: an editor on the skill's file, then what changed and what is to be said of it."""

import os
import shutil

import pytest


@pytest.fixture
def editor(tmp_path):
    """An editor that does what a shell script says with the file, ``$1``."""

    def write(script):
        path = tmp_path / "an editor"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return f"'{path}'"

    return write


def test_an_edit_is_synced_checked_and_shown(library, cli, editor):
    command = editor(r"""sed -i 's/^description: .*/description: Write a limerick./' "$1" """)
    ran = cli("edit", "haiku", env={"EDITOR": command})
    assert ran.exit_code == 0, ran.stderr
    assert "-description: Write a haiku about anything." in ran.stdout
    assert "+description: Write a limerick." in ran.stdout
    assert "haiku: " in ran.stdout
    assert "Write a limerick." in cli("list").stdout


def test_visual_comes_before_editor_and_may_have_options(library, cli, editor, tmp_path):
    command = editor(f'echo "$@" > {tmp_path}/given')
    cli("edit", "haiku", env={"VISUAL": f"{command} --wait", "EDITOR": "false"})
    assert (tmp_path / "given").read_text() == f"--wait {library}/haiku/SKILL.md\n"


def test_an_edit_that_breaks_the_skill_says_so_and_fails(library, cli, editor):
    ran = cli(
        "edit", "haiku", env={"EDITOR": editor("""printf -- '---\nname: haiku\n---\n' > "$1" """)}
    )
    assert ran.exit_code == 1
    assert "error" in ran.stdout
    assert "description" in ran.stdout


def test_a_skill_renamed_in_its_file_is_found_again(library, cli, editor):
    ran = cli("edit", "haiku", env={"EDITOR": editor('sed -i "s/^name: .*/name: limerick/" "$1"')})
    assert ran.exit_code == 0
    assert "limerick: " in ran.stdout
    assert "limerick" in cli("list", "--format", "names").stdout


def test_an_edit_of_nothing_says_so(library, cli):
    ran = cli("edit", "haiku", env={"EDITOR": "true"})
    assert (ran.exit_code, ran.stdout) == (0, "")
    assert f"Editing {library}/haiku/SKILL.md" in ran.stderr
    assert "Nothing changed." in ran.stderr


def test_an_editor_that_fails_is_said(library, cli):
    assert "ended with status 1" in cli("edit", "haiku", env={"EDITOR": "false"}).stderr
    ran = cli("edit", "haiku", env={"EDITOR": "/no/such/editor"})
    assert ran.exit_code == 1
    assert "'/no/such/editor' can't be started: No such file or directory." in ran.stderr


@pytest.mark.reads
def test_without_an_editor_it_says_how_to_name_one(library, cli):
    ran = cli("edit", "haiku", env={"EDITOR": "", "VISUAL": None})
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "EDITOR=nano skill-registry edit haiku" in ran.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_what_can_only_be_read_is_refused(library, cli):
    (library / "haiku" / "SKILL.md").chmod(0o444)
    ran = cli("edit", "haiku", env={"EDITOR": "true"})
    assert ran.exit_code == 1
    assert "install a copy" in ran.stderr


def test_a_linked_skill_is_edited_where_it_is(library, cli):
    (library / "poem").symlink_to("haiku")
    cli("sync")
    ran = cli("edit", str(library / "poem"), env={"EDITOR": "true"})
    assert f"Editing {library}/haiku/SKILL.md" in ran.stderr


def test_a_skill_that_is_not_there_is_told_before_any_editor(library, cli, editor, tmp_path):
    ran = cli("edit", "hiaku", env={"EDITOR": editor(f"touch {tmp_path}/started")})
    assert ran.exit_code == 1
    assert "'haiku'" in ran.stderr
    assert not (tmp_path / "started").exists()


def test_the_copies_that_an_edit_leaves_are_named(library, cli, editor, tmp_path):
    shutil.copytree(library / "haiku", tmp_path / "other" / "haiku")
    cli("sync", str(tmp_path / "other"), "--name", "other")
    said = cli("edit", "haiku", env={"EDITOR": editor('echo More. >> "$1"')}).stderr.splitlines()
    assert said[1:] == [
        "1 copy is unchanged: other/haiku",
        "To compare the copies, run: skill-registry copies haiku",
    ]
