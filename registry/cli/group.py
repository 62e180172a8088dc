"""Click classes for commands: examples in the help, and global options after the command's name."""

import os
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import click

from registry.cli.session import Session, Status


class _WithExamples(click.Command):
    def __init__(self, *args: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write example lines without wrapping, so that users can copy them."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for example in self.examples:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class Command(_WithExamples):
    """A command with examples in its help, which also accepts the global options.

    If ``starts_new``, the command works without an existing database.
    """

    def __init__(self, *args: Any, starts_new: bool = False, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.starts_new = starts_new
        add_global_options(self, hidden=True)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, and raise an error if an option is repeated.

        Otherwise Click would silently use the last value. A global option may occur before and
        after the command, because a shell alias may set it.
        """
        if not ctx.resilient_parsing:
            given: dict[str | None, click.Option] = {}
            for one in self._parsed(ctx, args):
                if not isinstance(one, click.Option) or one.multiple or one.count:
                    continue
                before = given.get(one.name, one)
                if before is not one:
                    ctx.fail(f"{before.opts[0]} and {one.opts[0]} can't be combined.")
                if one.name in given and not one.is_flag:
                    ctx.fail(f"{one.opts[0]} can't be repeated.")
                given[one.name] = one
        return super().parse_args(ctx, args)

    def _parsed(self, ctx: click.Context, args: Sequence[str]) -> Sequence[click.Parameter]:
        """Return the given parameters in order.

        If a parameter is unknown, suggest an alternative.
        """
        from registry.cli.aliases import EXTRA, OPTIONS

        name = ctx.command_path.partition(" ")[2]
        try:
            _, extra, given = self.make_parser(ctx).parse_args(list(args))
        except click.NoSuchOption as error:
            meant = OPTIONS.get(name, {}).get(error.option_name)
            if meant is None:
                raise
            ctx.fail(f"No such option {error.option_name!r}. Did you mean {meant}?")
        if extra and name in EXTRA:
            meant = EXTRA[name].get(extra[0], EXTRA[name][""])
            ctx.fail(f"{name!r} takes no argument {extra[0]!r}. Did you mean {meant}?")
        if extra and not self.allow_extra_args:
            takes = " ".join(self.collect_usage_pieces(ctx)[1:])
            message = f"{name!r} takes no argument {extra[0]!r}."
            if takes:
                message = f"{extra[0]!r} is one argument too many: {name!r} takes {takes}."
            example = self.examples[0].partition(" # ")[0].rstrip()
            ctx.fail(f"{message} Example: {example}")
        return given

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        ctx.ensure_object(Session).starts_new = self.starts_new
        return super().invoke(ctx)


class Listing(click.Group):
    """A group that lists its commands with the complete first sentence of their help."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with their first sentence of help, which Click would shorten."""
        del ctx
        with formatter.section("Commands"):
            whole = ((name, one.get_short_help_str(1000)) for name, one in self.commands.items())
            formatter.write_dl(list(whole))


class Group(_WithExamples, Listing):
    """A group with examples at the end of its help, and with a fixed order of its commands.

    Without a subcommand, it prints its help and fails, as git does.
    """

    def __init__(self, *args: Any, **settings: Any) -> None:
        settings |= {"invoke_without_command": True, "callback": _help_alone}
        super().__init__(*args, subcommand_metavar="COMMAND [ARGS]...", **settings)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of the help."""
        del ctx
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command by its name or alias; if there is none, suggest a similar name."""
        known = self.list_commands(ctx)
        if args[0] not in known:
            from registry.cli.aliases import ALIASES

            aliases = (one for one in ALIASES.get(args[0], ()) if one[0] in known)
            args = [*next(aliases, args[:1]), *args[1:]]
        name = args[0]
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            from registry.cli.aliases import SUGGESTIONS

            meant = SUGGESTIONS.get("" if ctx.parent is None else ctx.info_name or "", {}).get(
                name, ""
            )
            if not meant and (near := get_close_matches(name, known, n=1)):
                meant = repr(near[0])
            hint = f" Did you mean {meant}{'.' if '?' in meant else '?'}" if meant else ""
            ctx.fail(f"There is no command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


def session_command(
    *examples: str, group: click.Group | None = None, **settings: Any
) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that turns a function with a session parameter into a command.

    If ``group`` is given, the command becomes part of this group.
    """

    def make(function: Callable[..., None]) -> click.Command:
        name = function.__name__.rstrip("_")
        command = click.command(name, cls=Command, examples=examples, **settings)

        @wraps(function)
        def run(session: Session, **given: Any) -> None:
            from registry.db.audit_context import audit_context

            # the path of the command, without the program's own name
            path = click.get_current_context().command_path.partition(" ")[2]
            with audit_context(path, command=os.urandom(8).hex()):
                function(session, **given)

        made = command(click.pass_obj(run))
        if group is not None:
            group.add_command(made)
        return made

    return make


def add_global_options(command: click.Command, *, hidden: bool) -> None:
    """Add the global options to a command, so that they also work after its name."""
    shared: dict[str, Any] = {"expose_value": False, "callback": _remember, "hidden": hidden}

    def variable(name: str) -> dict[str, Any]:
        return {} if hidden else {"envvar": f"SKILL_REGISTRY_{name}", "show_envvar": True}

    command.params += [
        click.Option(
            ["--db"],
            metavar="PATH|URL",
            help=(
                "A database file or a URL postgresql+psycopg://USER@HOST/DATABASE (default: a file "
                "in the platform's data folder)."
            ),
            **variable("DB"),
            **shared,
        ),
        click.Option(
            ["--config"],
            metavar="FILE",
            help="The settings file, in YAML.",
            **variable("CONFIG"),
            **shared,
        ),
        click.Option(
            ["--verbose", "-v"],
            is_flag=True,
            default=False,
            help="Print more: complete lists, minor findings, details of internal errors.",
            **shared,
        ),
    ]


@contextmanager
def needs_extra(extra: str, what: str, packages: Container[str]) -> Iterator[None]:
    """Raise an error that names the extra if one of its packages can't be imported."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in packages:
            raise
        message = (
            f"{what} is not installed. To install it, run in the checkout of skill-registry: "
            f"pip install '.[{extra}]'"
        )
        raise click.ClickException(message) from error


@click.pass_context
def _help_alone(ctx: click.Context) -> None:
    """Print the help of a group that is called without a subcommand."""
    if ctx.invoked_subcommand is None:
        ctx.ensure_object(Session).console.write([ctx.get_help()])
        ctx.exit(Status.FAILED)


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value and param.name:
        setattr(ctx.ensure_object(Session), param.name, value)
