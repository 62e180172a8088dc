"""Write docs/commands.md: the help of every command, in one document.

Run as ``python -m tests.reference docs/commands.md``; without a file it prints.
"""

import sys
from collections.abc import Iterator
from typing import Final

import click

from registry.cli import PROGRAM
from registry.cli.app import root

WIDTH: Final = 88

_OPENING: Final = """\
# Commands

What `skill-registry COMMAND --help` says, in one place. This page is generated: `make docs`
writes it anew.
"""


def reference() -> str:
    """Return the document."""
    sections = [_OPENING]
    for path, text in helps(root, PROGRAM, None):
        level = "##" if path.count(" ") < 2 else "###"  # program and command
        sections.append(f"{level} {path}\n\n```text\n{text}\n```\n")
    return "\n".join(sections)


def helps(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[tuple[str, str]]:
    """Yield the full name and the help of a command and of all below it."""
    context = click.Context(
        command,
        parent=parent,
        info_name=name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        **command.context_settings,
    )
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from helps(found, below, context)


def main() -> None:
    """Write the document to the file that is named, or to stdout."""
    text = reference()
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
