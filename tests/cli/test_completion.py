"""Completion of names in the shell."""

import pytest

from registry.cli.app import COMPLETION_VARIABLE


@pytest.fixture
def complete(process):
    """Return what bash is offered for the last of these words."""

    def run(*words, **environ):
        ran = process(
            **{
                COMPLETION_VARIABLE: "bash_complete",
                "COMP_WORDS": " ".join(["skill-registry", *words]),
                "COMP_CWORD": str(len(words)),
                **environ,
            }
        )
        assert ran.err == ""
        return [line.split(",", 1)[1] for line in ran.out.splitlines() if line]

    return run


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(process, shell):
    ran = process("completion", shell)
    assert ran.status == 0
    assert COMPLETION_VARIABLE in ran.out
    assert f"{shell}_complete" in ran.out


def test_commands_are_completed(complete):
    assert complete("s") == ["sync", "search", "show", "stats", "serve", "source"]
    assert complete("source", "a") == ["add", "adopt"]


@pytest.mark.both
def test_names_come_from_the_catalogue(library, complete):
    assert complete("show", "p") == ["pdf-forms"]
    assert complete("why", "h")[0] == "haiku"
    assert complete("list", "--tag", "f") == ["forms"]
    assert complete("list", "--kind", "w") == ["workflow"]
    assert complete("list", "--category", "d") == ["documents"]
    assert complete("list", "--source", "m") == ["mine"]
    assert complete("sync", "m")[0] == "mine"
    assert complete("source", "remove", "") == ["mine"]


def test_the_database_of_the_command_line_is_asked(library, complete, database, tmp_path):
    other = str(tmp_path / "other.db")
    assert complete("show", "p", SKILL_REGISTRY_DB=other) == []
    assert complete("--db", str(database), "show", "p", SKILL_REGISTRY_DB=other) == ["pdf-forms"]


@pytest.mark.file
def test_completion_is_silent_when_the_database_is_unusable(complete, database):
    database.parent.mkdir(parents=True)
    database.write_bytes(b"no database" * 1000)
    assert complete("show", "p") == []
