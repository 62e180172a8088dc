"""Documentation is tested like the rest: every command has help, an example and a place."""

import click

from registry.cli import PROGRAM
from registry.cli.app import COMMANDS, root
from tests.reference import GROUPS, helps, pages


def commands(group=root, path=()):
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


ALL = dict(commands())


def test_the_generated_pages_are_current():
    stale = [path.name for path, text in pages() if path.read_text(encoding="utf-8") != text]
    assert stale == [], "run: make docs"


def test_every_command_is_on_one_page():
    listed = [name for _, names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS)


SOURCE = ("add", "adopt", "discover", "list", "remove", "trust", "update")


def test_all_commands_of_this_version_are_there():
    assert {" ".join(path) for path in ALL} == {
        *COMMANDS,
        *(f"source {name}" for name in SOURCE),
        "mcp install",
        "mcp uninstall",
        *(f"proposal {name}" for name in ("list", "show", "approve", "reject")),
        *(f"token {name}" for name in ("create", "list", "revoke")),
        *(f"trash {name}" for name in ("list", "empty")),
        *(f"version {name}" for name in ("add", "list", "deprecate", "yank")),
        *(f"tools {name}" for name in ("list", "schema", "call")),
        *(
            f"db {name}"
            for name in ("info", "check", "backup", "restore", "copy", "upgrade", "prune")
        ),
        *(f"db {name}" for name in ("grant", "revoke", "grants", "audit")),
    }


def test_every_command_has_help_and_an_example():
    for path, command in ALL.items():
        assert command.help, path
        assert f"{PROGRAM} {path[0]}" in " ".join(command.examples), path
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{path}: {parameter.name} has no help"


def test_the_first_line_of_the_help_is_what_the_list_of_commands_says():
    assert {name: ALL[(name,)].help.split("\n")[0] for name in COMMANDS} == COMMANDS


def test_examples_fit_into_the_help():
    for name, text in helps(root, PROGRAM, None):
        assert max(map(len, text.splitlines())) <= 88, name


def test_a_list_of_commands_cuts_no_sentence(process):
    groups = [path for path, one in ALL.items() if isinstance(one, click.Group)]
    helped = [process(*path, "--help", COLUMNS="60").stdout for path in groups]
    lines = [line for text in helped for line in text.decode().splitlines()]
    assert ("db",) in groups
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage:")] == []
