"""`skill-registry completion`."""

import click

from registry.cli import PROGRAM
from registry.cli.group import Command
from registry.cli.run import COMPLETION_VARIABLE
from registry.cli.session import Session


@click.command(
    cls=Command,
    examples=(
        'eval "$(skill-registry completion bash)"     # in ~/.bashrc',
        'eval "$(skill-registry completion zsh)"      # in ~/.zshrc',
        "skill-registry completion fish | source      # in ~/.config/fish/config.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, *, shell: str) -> None:
    """Print the script that completes commands and names in a shell.

    Load it in your shell's start-up file; then the tab key completes commands, options, and the
    names of skills, tags, kinds and sources.
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101  # Click knows the three shells of the argument
    # The class's own `source` asks the installed bash for its version first; the script is enough.
    script = kind(ctx.find_root().command, {}, PROGRAM, COMPLETION_VARIABLE)
    text = script.source_template % script.source_vars()
    ctx.ensure_object(Session).console.write([text.strip()])
