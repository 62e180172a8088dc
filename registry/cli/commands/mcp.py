"""`skill-registry mcp`."""

import os
import sys
from typing import Any, Final

import click

from registry.cli import escape, options
from registry.cli.commands.mcp_install import install
from registry.cli.commands.tools import binding_options
from registry.cli.group import Command, Listing
from registry.cli.session import Session
from registry.toolsets.open import TOOLSETS

TOKEN: Final = "SKILL_REGISTRY_TOKEN"  # noqa: S105  # the variable's name

STDIO: Final = (
    "This speaks to an MCP client over stdin and stdout, and nothing typed here means anything to "
    "it.\n'skill-registry mcp install --client NAME' makes a client start it; Ctrl-C ends it."
)


def _address(text: str) -> tuple[str, int]:
    """Split ``HOST:PORT``; an IPv6 host stands in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004
        raise ValueError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8080.")
    return host, int(port)


class Serving(Command, Listing):
    """Serves when it is called alone; what sets it up is a command below it."""


@click.group(
    cls=Serving,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND]",
    starts_new=True,
    examples=(
        "skill-registry mcp                          # over stdio, for a client's configuration",
        "skill-registry mcp --read-only --personality coder",
        "skill-registry mcp --toolset wave",
        "skill-registry mcp --http 127.0.0.1:8080    # at http://127.0.0.1:8080/mcp",
        "skill-registry mcp install --client claude  # writes the client's configuration",
    ),
)
@click.option(
    "--toolset",
    "toolsets",
    type=click.Choice(TOOLSETS),
    multiple=True,
    default=("native",),
    show_default=True,
    help="Whose tools to serve (repeatable, where no two tools have one name).",
)
@binding_options
@click.option(
    "--no-watch",
    is_flag=True,
    help="Don't follow the folders by file events; 'sync' is then left to you.",
)
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    type=options.Parsed("address", _address),
    help="Serve streamable HTTP at /mcp instead of stdio.",
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    *,
    toolsets: tuple[str, ...],
    no_watch: bool,
    address: tuple[str, int] | None,
    **limits: Any,
) -> None:
    """Serve the tools to an MCP client.

    Speaks over stdin and stdout, as clients start it, or over HTTP. Skills are served as resources
    too, also by the extension for skills. While it serves, the registry follows the folders by
    itself. Over stdio the skills of projects are those of the client's roots, where it names any.
    An HTTP address that other machines reach needs a token in SKILL_REGISTRY_TOKEN.
    """
    if ctx.invoked_subcommand is not None:
        return
    import logging

    session: Session = ctx.obj
    console = session.console
    level = logging.INFO if session.verbose else logging.WARNING
    logging.basicConfig(level=level, stream=console.err, format="%(levelname)s: %(message)s")
    try:
        from registry.mcp.server import Serving, SkillServer
        from registry.mcp.transports import serve_http, serve_stdio
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types", "anyio", "uvicorn"}:
            raise
        told = "The MCP server is an extra: pip install 'skill-registry[mcp]'"
        raise click.ClickException(told) from error
    serving = Serving(
        toolsets=tuple(dict.fromkeys(toolsets)),
        workdir=limits.pop("workdir"),
        limits=limits,
        roots=address is None,
        watch=not no_watch,
    )
    server = SkillServer(session.registry, serving)
    if address is None:
        _tell_if_empty(session)
        if console.is_terminal and sys.stdin.isatty():
            console.note(STDIO)
        serve_stdio(server)
        return
    host, port = address

    def on_start() -> None:
        console.note(f"Serving http://{host}:{port}/mcp; Ctrl-C ends it.")
        _tell_if_empty(session)

    serve_http(
        server,
        host,
        port,
        os.environ.get(TOKEN) or None,
        on_start=on_start,
    )


def _tell_if_empty(session: Session) -> None:
    """Print that there is no database yet: else a client only sees that nothing is found."""
    if session.registry.core.reader.empty:
        session.console.note(
            f"No database at {escape.line(session.registry.path)}, so there are no skills. "
            "To create it, run: skill-registry sync FOLDER"
        )


command.add_command(install)
