"""import and export, as people call them."""

import json
import os
import zipfile

import pytest


@pytest.mark.both
def test_an_export_names_what_it_wrote_and_what_it_left_out(cli, library, skill, tmp_path):
    skill("Not_Allowed")
    cli("sync")
    result = cli("export", "--all", "--well-known", str(tmp_path / "site"))
    assert result.stdout.startswith("Exported 3 skills: ")
    assert "Left out Not_Allowed: only the letters" in result.stderr
    told = json.loads(cli("export", "haiku", "--well-known", str(tmp_path), "--json").stdout)
    assert [one["name"] for one in told["skills"]] == ["haiku"]
    assert cli("export", "--well-known", str(tmp_path)).exit_code == 2


def test_an_export_without_a_place_names_the_ways_out(cli, library):
    result = cli("export", "--tag", "forms")
    assert result.exit_code == 2
    assert (
        "Error: Missing FILE.zip, --well-known DIR (the root of a web site) or --git DIR."
        in result.stderr
    )
    assert result.stderr.endswith("run: skill-registry pull NAME --to DIR\n")


def test_a_file_that_keeps_a_skill_from_being_exported_steers_no_terminal(cli, library, root):
    outside = root.parent / "\x1b[2Joutside"
    outside.write_text("x")
    (root / "haiku" / "link").symlink_to(outside)
    result = cli("export", "haiku", "--well-known", str(root.parent / "site"))
    assert result.exit_code == 1
    assert "\\x1b[2Joutside" in result.output
    assert "\x1b" not in result.output


@pytest.mark.both
def test_an_import_names_what_it_made_or_why_it_did_not(cli, library, tmp_path):
    path = str(tmp_path / "a.skill")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("SKILL.md", "---\nname: packed\ndescription: In a box.\n---\n")
    assert cli("import", path).stdout.startswith("Imported packed: ")
    again = cli("import", path)
    assert again.exit_code == 1
    assert "A skill 'packed' already exists" in again.output
    assert cli("import", str(tmp_path / "nothing.zip")).exit_code == 1


@pytest.mark.parametrize("sources", [0, 1, 2])
@pytest.mark.parametrize("file", ["nothere.zip", "sub/nothere.tar.gz", "./nothere", "nothere"])
def test_a_file_that_is_not_there_is_named_before_anything_else(newcomer, tmp_path, sources, file):
    for number in range(sources):
        (tmp_path / str(number)).mkdir()
        newcomer("sync", str(tmp_path / str(number)))
    refused = newcomer("import", file)
    assert refused.exit_code == 1
    assert refused.stderr == f"Error: {file!r} can't be used: there is no such file.\n"


def test_a_skill_is_exported_to_a_zip_that_a_colleague_imports(cli, library, root, tmp_path):
    script = root / "haiku" / "run.sh"
    script.write_text("echo\n")
    script.chmod(0o777)
    cli("sync")
    file = tmp_path / "haiku.zip"
    done = cli("export", "haiku", str(file))
    assert (done.exit_code, done.stdout) == (0, f"Exported haiku: {file}\n")
    with zipfile.ZipFile(file) as archive:
        modes = {one.filename: one.external_attr >> 16 for one in archive.infolist()}
    assert modes == {"haiku/SKILL.md": 0o100644, "haiku/run.sh": 0o100755}
    before = file.read_bytes()
    refused = cli("export", "haiku", str(file))
    assert refused.exit_code == 1
    assert "the file exists already. To replace it, add --force." in refused.stderr
    os.utime(script, (0, 0))
    again = cli("export", "mine/haiku", str(file), "--force", "--json")
    assert (json.loads(again.stdout)["path"], file.read_bytes()) == (str(file), before)
    (tmp_path / "theirs").mkdir()
    theirs = "--db", str(tmp_path / "theirs.db")
    cli(*theirs, "source", "add", str(tmp_path / "theirs"))
    assert cli(*theirs, "import", str(file)).exit_code == 0
    for name in ("SKILL.md", "run.sh"):
        copy = tmp_path / "theirs" / "haiku" / name
        assert copy.read_bytes() == (root / "haiku" / name).read_bytes()
    assert os.access(tmp_path / "theirs" / "haiku" / "run.sh", os.X_OK)


def test_without_a_file_the_zip_has_the_name_of_the_skill(cli, library, tmp_path, monkeypatch):
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    file = tmp_path / "there" / "haiku.zip"
    done = cli("export", "mine/haiku")
    assert (done.exit_code, done.stdout) == (0, f"Exported haiku: {file}\n")
    file.write_bytes(b"mine")
    refused = cli("export", "haiku")
    assert refused.exit_code == 1
    told = "the file exists already. To replace it, add --force. Or name another FILE.zip.\n"
    assert refused.stderr.endswith(told)
    assert file.read_bytes() == b"mine"
    assert cli("export", "haiku", "--force").exit_code == 0
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == ["haiku/SKILL.md"]


@pytest.mark.parametrize(
    "typed",
    [
        ["a.zip"],
        ["haiku", "review", "a.zip"],
        ["--all", "a.zip"],
        ["haiku", "a.zip", "--tag", "x"],
        ["--all", "--force"],
        ["haiku", "a.zip", "--force", "--git", "there"],
    ],
    ids=" ".join,
)
def test_a_zip_holds_one_skill(cli, library, tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    ran = cli("export", *typed)
    assert ran.exit_code == 2
    assert "A zip file holds one skill" in ran.stderr
    assert not (tmp_path / "a.zip").exists()
