"""Commands that are imported when they are called, and that end their help with examples."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from keyword import iskeyword
from typing import Any, Final

import click

from registry.cli.run import Status
from registry.cli.session import Session

HELP_SETTINGS: Final = {"help_option_names": ["-h", "--help"]}


class Command(click.Command):
    """A command whose help ends with examples, and that takes the global options too."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        settings.setdefault("context_settings", HELP_SETTINGS)
        super().__init__(*args, **settings)
        self.examples = examples
        add_global_options(self, hidden=True)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)


class Group(click.Group):
    """A group whose help ends with examples and keeps the order of its commands.

    Called without a command it prints its help and fails, as git does.
    """

    command_class = Command

    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        settings.setdefault("context_settings", HELP_SETTINGS)
        settings.setdefault("subcommand_metavar", "COMMAND [ARGS]...")
        settings |= {"invoke_without_command": True, "callback": _help_alone}
        super().__init__(*args, **settings)
        self.examples = examples

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they are useful."""
        del ctx
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called, or say which one is near."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"There is no command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(self.examples, formatter)


class LazyGroup(Group):
    """A group that knows its commands by name and first line, and imports the one that is called.

    The command ``name`` is the attribute ``command`` (or, where several share a module, ``name``)
    of the module ``package.name``; ``modules`` maps names to other modules.
    """

    def __init__(
        self,
        *args: Any,
        shorts: Mapping[str, str],
        package: str,
        modules: Mapping[str, str],
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.shorts = shorts
        self.package = package
        self.modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which they are useful."""
        del ctx
        return list(self.shorts)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in self.shorts:
            return None
        shared = self.modules.get(cmd_name)
        module = import_module(f"{self.package}.{shared or cmd_name}")
        command = getattr(module, f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name, None)
        command = command if shared else module.command
        assert isinstance(command, click.Command)  # noqa: S101  # a programming error
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(self.shorts.items()))


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write example lines as they are: a wrapped command line can't be copied."""
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':{formatter.current_indent}}{example}\n")


def add_global_options(command: click.Command, *, hidden: bool) -> None:
    """Let a command take the global options; after the command's name they work as before it."""
    command.params += [
        click.Option(
            ["--db"],
            metavar="PATH|URL",
            envvar=None if hidden else "SKILL_REGISTRY_DB",
            show_envvar=not hidden,
            expose_value=False,
            callback=_remember,
            hidden=hidden,
            help="A database file, or postgresql+psycopg://USER@HOST/DATABASE. By default a file "
            "in the platform's data folder.",
        ),
        click.Option(
            ["--config"],
            metavar="FILE",
            envvar=None if hidden else "SKILL_REGISTRY_CONFIG",
            show_envvar=not hidden,
            expose_value=False,
            callback=_remember,
            hidden=hidden,
            help="The settings file (YAML).",
        ),
        click.Option(
            ["--verbose", "-v"],
            is_flag=True,
            default=False,
            expose_value=False,
            callback=_remember,
            hidden=hidden,
            help="Say more: whole lists, minor findings, details of internal errors.",
        ),
    ]


@click.pass_context
def _help_alone(ctx: click.Context) -> None:
    """Print the help of a group that is called without a command."""
    if ctx.invoked_subcommand is None:
        ctx.ensure_object(Session).console.write([ctx.get_help()])
        ctx.exit(Status.FAILED)


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value and param.name:
        setattr(ctx.ensure_object(Session), param.name, value)
