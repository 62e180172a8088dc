"""`skill-registry completion`."""

import click

from registry.cli import PROGRAM
from registry.cli.app import COMPLETION_VARIABLE
from registry.cli.group import session_command
from registry.cli.session import Session


@session_command(
    'eval "$(skill-registry completion bash)"     # in ~/.bashrc',
    'eval "$(skill-registry completion zsh)"      # in ~/.zshrc',
    "skill-registry completion fish | source      # in ~/.config/fish/config.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(session: Session, *, shell: str) -> None:
    """Print the script that completes commands and names in a shell.

    Load it in your shell's start-up file; then the tab key completes commands, options, and the
    names of skills, tags, kinds and sources.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101  # Click knows the three shells of the argument
    # The class's own `source` asks the installed bash for its version first; the script is enough.
    root = click.get_current_context().find_root().command
    script = kind(root, {}, PROGRAM, COMPLETION_VARIABLE)
    text = script.source_template % script.source_vars()
    session.console.write([text.strip()])
