"""The program: its global options, its commands, and its error messages."""

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, NoReturn, TextIO

import click

from registry import __version__
from registry.cli import PROGRAM, escape
from registry.cli.group import Group, add_global_options
from registry.cli.session import Console, Session, Status
from registry.errors import (
    DatabaseProblem,
    RegistryError,
    SettingsProblem,
    SkillNotFound,
    UsageProblem,
)
from registry.text import is_encodable

COMPLETION_VARIABLE = "_SKILL_REGISTRY_COMPLETE"


def run(root: click.Group, args: Sequence[str] | None, program: str, **extra: Any) -> NoReturn:
    """Run ``root`` and exit. No exception except SystemExit leaves this function."""
    complete = os.environ.get(COMPLETION_VARIABLE)
    if complete:
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(root, {}, program, COMPLETION_VARIABLE, complete))
    console = Console()
    session = Session(console)
    arguments = list(sys.argv[1:] if args is None else args)
    try:
        with session:
            status = _invoke(root, arguments, program, session, extra)
        console.flush()
    except KeyboardInterrupt:
        console.note("Interrupted.")
        status = Status.INTERRUPTED
    except Exception as error:  # noqa: BLE001  # the last resort, so that no user sees a traceback
        status = Status.FAILED
        with suppress(OSError):  # stderr may be unwritable
            status = Status(_report(session, error, arguments))
    try:
        console.err.flush()
    except OSError:  # otherwise Python would flush again at its exit and change the status
        _discard(console.err)
    sys.exit(int(status))


def _invoke(
    root: click.Group, args: list[str], program: str, session: Session, extra: dict[str, Any]
) -> int:
    try:
        with root.make_context(program, args, obj=session, **extra) as context:
            root.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        _say(session.console, error)
        return error.exit_code
    except click.Abort:
        session.console.note("Aborted.")
        return Status.FAILED
    return Status.DONE


def _say(console: Console, error: click.ClickException) -> None:
    """Print the error in the command line, and the command that shows the help."""
    context = getattr(error, "ctx", None)
    if context is not None:
        console.note(context.get_usage())
        console.note(f"Try '{context.command_path} --help' for help.\n")
    console.error(error.format_message())


def _report(session: Session, error: Exception, arguments: Sequence[str]) -> int:
    console = session.console
    if isinstance(error, OSError) and error.errno in {errno.EPIPE, errno.ENOSPC}:
        # The program that reads the pipe has closed it (`| head`), or the disk is full. More output
        # would also fail.
        _discard(console.out)
        if error.errno == errno.EPIPE:
            return Status.DONE
        console.error(f"Can't write the output: {error.strerror}.")
        return Status.FAILED
    if isinstance(error, UnicodeEncodeError) and not all(map(is_encodable, arguments)):
        console.error("An argument is not UTF-8 text.")
        return Status.USAGE
    if isinstance(error, RegistryError):
        from registry.cli.hints import hint

        console.error(f"{error} {hint(error, arguments)}".rstrip())
        if isinstance(error, SkillNotFound):
            with suppress(RegistryError, ValueError), session:
                if message := _whereabouts(session, error):
                    console.note(escape.text(message))
        return exit_status(error)
    known = _nowhere(error) or _damage(session, error)
    if known is not None:
        return _report(session, known, arguments)
    if session.verbose:
        import traceback

        console.err.write(escape.text(traceback.format_exc()))
    reason = f"{type(error).__name__}: {error}".splitlines()[0]
    details = "the lines above" if session.verbose else "the output of --verbose"
    console.error(f"Internal error ({reason}). Please report it with the command and {details}.")
    return Status.FAILED


def _whereabouts(session: Session, error: SkillNotFound) -> str:
    """Return a sentence that tells where a missing skill may be; "" if this is unknown."""
    from registry.cli.hints import trashed, unsynced

    registry, name = session.registry, error.facts["name"]
    if not registry.sources():
        return "The registry is empty. To fill it, run: skill-registry sync FOLDER"
    message = unsynced(registry, name)
    return message or (trashed(registry, name) if type(error) is SkillNotFound else "")


def _nowhere(error: Exception) -> UsageProblem | None:
    """Return an error if a command failed because the current folder was deleted, else None."""
    if isinstance(error, FileNotFoundError):
        try:
            os.getcwd()
        except OSError:
            return UsageProblem(
                message="The current folder no longer exists; change to another folder."
            )
    return None


def _damage(session: Session, error: Exception) -> DatabaseProblem | None:
    """If the error occurred because the database is damaged, return the damage, else None."""
    from registry.core import UNEXPECTED

    if not isinstance(error, UNEXPECTED):
        return None
    with suppress(RegistryError, *UNEXPECTED), session:
        return session.registry.core.damage()
    return None


def exit_status(error: RegistryError) -> Status:
    """Return the exit status for an error."""
    if isinstance(error, DatabaseProblem):
        return Status.DATABASE
    if isinstance(error, UsageProblem | SettingsProblem):
        return Status.USAGE
    return Status.FAILED


def _discard(stream: TextIO) -> None:
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)


COMMANDS: Final = {
    "sync": "Sync the registry with its sources: folders and remote addresses.",
    "list": "List skills.",
    "search": "Find skills by what they do.",
    "show": "Show one skill, or several.",
    "why": "Explain why a skill is, or isn't, listed.",
    "eval": "Run the search prompts that skills ship, and report how often each skill is found.",
    "copies": "List copies: skills in several places, and near-duplicates under other names.",
    "tags": "Count the skills of each tag.",
    "kinds": "Count the skills of each kind.",
    "categories": "Count the skills of each category.",
    "stats": "Print counts, sizes and the age of the last sync.",
    "create": "Create a skill on disk and in the registry.",
    "update": "Change the metadata, parameters or body of skills.",
    "rename": "Rename a skill: its folder and the name in its SKILL.md.",
    "edit": "Open a skill's SKILL.md in your editor, then sync and check it.",
    "delete": "Move skills to the trash.",
    "restore": "Restore deleted skills, or an earlier revision of a skill.",
    "undo": "Undo the last command that changed skills.",
    "trash": "List the deleted skills, or remove them permanently.",
    "history": "List the revisions of a skill, or without NAME the changes of all skills.",
    "diff": "Compare two revisions of a skill, or two skills, with all their files.",
    "version": "Name versions of a skill, and deprecate or withdraw them.",
    "pull": "Install skills for agents or into a folder, and update them.",
    "agents": "List the supported agents and their skill folders.",
    "import": "Copy skills from an archive or an address into your own source.",
    "export": "Export a skill to a zip file, or skills for a web site or git.",
    "publish": "Send a skill to a registry: to a server, or into a source on this machine.",
    "proposal": "Review proposals: changes that wait for approval in sources under review.",
    "prompt": "Print the list of skills for a system prompt.",
    "tools": "List, describe and call the tools for agents.",
    "mcp": "Serve the tools to an MCP client.",
    "serve": "Serve the web catalogue: pages, the same facts as JSON, and /mcp.",
    "token": "Manage the access tokens of the web catalogue and /mcp.",
    "check": "Check skills for mistakes and risks.",
    "source": "Register, list, change and remove sources of skills.",
    "db": "Check, back up, copy and upgrade the database; manage rights on a server.",
    "config": "Print the current settings, and where each one is set.",
    "completion": "Print a shell script that completes commands and names.",
}
"""All commands in the order of the help, each with the first sentence of its help text."""

MODULES: Final = {
    "archives": ("import", "export"),
    "change": ("create", "update", "rename", "edit"),
    "config": ("config", "completion"),
    "mcp": ("mcp",),
    "pull": ("pull", "agents"),
    "search": ("search", "why", "eval"),
    "serve": ("serve", "token"),
    "show": ("show", "history", "diff"),
    "stats": ("stats", "tags", "kinds", "categories", "copies"),
    "tools": ("tools", "prompt"),
    "trash": ("delete", "restore", "trash"),
}
"""Modules with several commands, and the names of their commands.

Each function has the name of its command (with a final ``_`` if needed). In all other modules, the
function is called ``command``.
"""


class Root(Group):
    """The command `skill-registry`, which imports only the module of the called subcommand."""

    def main(  # type: ignore[override]  # replaces Click's way to exit
        self, args: Any = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        """Run with these arguments (default: sys.argv), and exit."""
        run(self, args, prog_name or PROGRAM, **extra)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of the help."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command, and return the command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        shared = next((module for module, names in MODULES.items() if cmd_name in names), None)
        module = import_module(f"registry.cli.commands.{shared or cmd_name}")
        name = cmd_name if shared else "command"
        command = getattr(module, f"{name}_", None) or getattr(module, name)
        assert isinstance(command, click.Command)  # noqa: S101  # otherwise a programming error
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=(
        "skill-registry sync ~/.claude/skills   # register a folder and read its skills",
        "skill-registry list                    # the available skills",
        "skill-registry search fill pdf forms   # skills for a task",
        "skill-registry show NAME               # one skill in full",
    ),
)
@click.version_option(
    __version__, prog_name=PROGRAM, message="%(prog)s %(version)s", help="Print the version."
)
def root() -> None:
    """Keep one catalogue of all your agent skills, in sync with the folders on disk.

    A skill is a folder with a SKILL.md. Register the folders that hold your skills with "sync";
    then list, search, read and check them as one catalogue. The folders stay yours: if you lose the
    database, one sync reads all skills again. Only the database has their history, usage counts and
    the settings of sources: "db backup" copies it.

    Other names of commands: ls (list), rm (delete), mv (rename), find (search), and outdated (pull
    --check).

    Exit status: 0 success; 1 the request failed, or a check found problems; 2 wrong usage; 3 the
    database can't be used.
    """


add_global_options(root, hidden=False)
