"""A lock names a local source by its name only; a colleague may have another source of this name."""

import json
import shutil

import pytest

from tests.cli.conftest import run
from tests.conftest import write_skill


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A project with a committed skill from Ann's local source, as Bob has it."""
    skills = tmp_path / "ann" / "skills"
    write_skill(skills / "typography", description="Sets headlines in two sizes.")
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    ann = ("--db", str(tmp_path / "ann.db"))
    assert run(*ann, "sync", str(skills), "--name", "agents").exit_code == 0
    assert run(*ann, "pull", "typography", "-a", "claude-code").exit_code == 0
    shutil.rmtree(tmp_path / "ann")
    return project


@pytest.fixture
def bob(tmp_path):
    """Bob's commands; his source has the same name, and another skill of the same name."""
    private = tmp_path / "bob" / "skills"
    write_skill(private / "typography", description="Private notes of Bob.")
    assert run("--db", str(tmp_path / "bob.db"), "sync", str(private), "--name", "agents")
    return lambda *arguments: run("--db", str(tmp_path / "bob.db"), *arguments)


def contents(project):
    return {
        str(path.relative_to(project)): path.read_bytes()
        for path in sorted(project.rglob("*"))
        if path.is_file()
    }


def test_pull_does_not_replace_it_by_an_unrelated_skill_of_the_same_name(clone, bob):
    before = contents(clone)
    checked, pulled = bob("pull", "--check", "--json"), bob("pull", "--json")
    assert [one["state"] for one in json.loads(checked.stdout)] == ["unchanged"]
    assert [one["state"] for one in json.loads(pulled.stdout)] == ["unchanged"]
    assert contents(clone) == before


def test_by_name_it_is_only_replaced_if_that_is_forced(clone, bob):
    before = contents(clone)
    refused = bob("pull", "typography", "-a", "claude-code")
    assert refused.exit_code == 1
    assert "never had its files" in refused.stderr
    assert "add --force" in refused.stderr
    assert contents(clone) == before
    assert bob("pull", "typography", "-a", "claude-code", "--force").exit_code == 0
    assert b"Private notes" in (clone / ".claude/skills/typography/SKILL.md").read_bytes()


def test_where_no_source_had_it_nothing_asks_to_remove_it(clone, tmp_path):
    write_skill(tmp_path / "other" / "haiku")
    database = ("--db", str(tmp_path / "new.db"))
    assert run(*database, "sync", str(tmp_path / "other"), "--name", "agents").exit_code == 0
    checked = run(*database, "pull", "--check")
    assert "--remove" not in checked.stderr
    assert "unchanged" in checked.stdout


def test_a_bare_name_does_not_delete_another_skill_than_the_installed_one(clone, bob, tmp_path):
    refused = bob("delete", "typography")
    assert refused.exit_code == 1
    assert "skill-registry pull --remove typography" in refused.stderr
    assert "skill-registry delete agents/typography" in refused.stderr
    assert (tmp_path / "bob/skills/typography").exists()
    assert bob("delete", "agents/typography").exit_code == 0
    assert not (tmp_path / "bob/skills/typography").exists()
    assert (clone / ".claude/skills/typography").exists()
