"""The program: its global options, its commands, and what becomes of errors."""

from typing import Any, Final, NoReturn

import click

from registry import __version__
from registry.cli import PROGRAM
from registry.cli.group import LazyGroup, add_global_options
from registry.cli.run import run

COMMANDS: Final = {
    "sync": "Bring the registry in line with the folders on disk.",
    "list": "List skills.",
    "search": "Find skills by what they do.",
    "show": "Show one skill.",
    "why": "Explain why a skill is, or isn't, listed.",
    "tags": "Count the skills of each tag.",
    "kinds": "Count the skills of each kind.",
    "categories": "Count the skills of each category.",
    "stats": "Say what the registry holds, how big and how fresh it is.",
    "create": "Create a skill, on disk and in the registry at once.",
    "update": "Change a skill and leave every other byte as it was.",
    "delete": "Move a skill to the trash.",
    "restore": "Bring a deleted skill back.",
    "trash": "List what was deleted, or end it for good.",
    "history": "List what a skill was like: each content that the registry has seen.",
    "diff": "Show what is different between two revisions of a skill, in all its files.",
    "pull": "Put skills into a folder, as they are now.",
    "import": "Bring in a skill from an archive.",
    "export": "Publish skills for discovery: an index and its artifacts.",
    "prompt": "Print the catalogue for a system prompt.",
    "tools": "List, describe and call the tools that agents are given.",
    "mcp": "Serve the tools to an MCP client.",
    "check": "Check skills for mistakes and risks.",
    "source": "Register, list and remove the folders that hold skills.",
    "db": "Look after the database itself.",
    "completion": "Print the script that completes commands and names in a shell.",
}
"""All commands in the order of the help, each with the first line of its own help."""

MODULES: Final = {
    "tags": "facets",
    "kinds": "facets",
    "categories": "facets",
    "create": "change",
    "update": "change",
    "delete": "trash_can",
    "restore": "trash_can",
    "trash": "trash_can",
    "history": "history",
    "import": "archives",
    "export": "archives",
    "diff": "history",
}
"""Commands that share a module."""


class Root(LazyGroup):
    """The command `skill-registry`."""

    def main(  # type: ignore[override]  # our one way out replaces Click's
        self, args: Any = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run with these arguments, sys.argv's by default, and exit."""
        run(self, args, prog_name or PROGRAM, **extra)


@click.group(
    cls=Root,
    shorts=COMMANDS,
    package="registry.cli.commands",
    modules=MODULES,
    examples=(
        "skill-registry sync ~/.claude/skills   # register a folder and read its skills",
        "skill-registry list                    # what there is",
        "skill-registry search fill pdf forms   # what helps with a task",
        "skill-registry show NAME               # one skill in full",
    ),
)
@click.version_option(
    __version__, prog_name=PROGRAM, message="%(prog)s %(version)s", help="Print the version."
)
def root() -> None:
    """Keep one catalogue over all your agent skills, in step with the folders on disk.

    A skill is a folder with a SKILL.md. Register the folders that hold your skills with
    "sync", then list, search, read and check them as one catalogue. The folders stay yours: one
    sync fills a lost database with all skills again. Their history, usage counts and how sources
    were registered are in the database alone: "db backup" copies it.

    Exit status: 0 done; 1 the request failed, or something was found that was asked for; 2 wrong
    usage; 3 the database can't be used.
    """


add_global_options(root, hidden=False)
