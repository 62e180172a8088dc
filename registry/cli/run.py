"""The one way in and out: run a command, put errors into words, return an exit status."""

import errno
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import IntEnum
from typing import Any, NoReturn, TextIO

import click

from registry.cli import escape
from registry.cli.console import Console
from registry.cli.session import Session
from registry.errors import (
    DatabaseProblem,
    RegistryError,
    SettingsProblem,
    SkillNotFound,
    UsageProblem,
)
from registry.text import is_encodable

COMPLETION_VARIABLE = "_SKILL_REGISTRY_COMPLETE"


class Status(IntEnum):
    """Exit statuses (DESIGN.md, The command line)."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    DATABASE = 3
    INTERRUPTED = 130


def run(root: click.Group, args: Sequence[str] | None, program: str, **extra: Any) -> NoReturn:
    """Run ``root`` and exit. No exception but SystemExit leaves this function."""
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
    except Exception as error:  # noqa: BLE001  # the last resort: no traceback reaches a user
        status = Status.FAILED
        with suppress(OSError):  # nothing can be said, either
            status = Status(_report(session, error, arguments))
    try:
        console.err.flush()
    except OSError:  # what is left in it would be tried again at the end, and change the status
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
    """Say what is wrong with the command line, and where its help is."""
    context = getattr(error, "ctx", None)
    if context is not None:
        console.note(context.get_usage())
        console.note(f"Try '{context.command_path} --help' for help.\n")
    console.error(error.format_message())


def _report(session: Session, error: Exception, arguments: Sequence[str]) -> int:
    console = session.console
    if isinstance(error, OSError) and error.errno in {errno.EPIPE, errno.ENOSPC}:
        # Nobody reads on (`| head`), or the disk is full: what is left can't be written either.
        _discard(console.out)
        if error.errno == errno.EPIPE:
            return Status.DONE
        console.error(f"The output can't be written: {error.strerror}.")
        return Status.FAILED
    if isinstance(error, UnicodeEncodeError) and not all(map(is_encodable, arguments)):
        console.error("An argument is not UTF-8 text.")
        return Status.USAGE
    if isinstance(error, RegistryError):
        from registry.cli.hints import hint

        console.error(f"{error} {hint(error, arguments)}".rstrip())
        if isinstance(error, SkillNotFound):
            with suppress(RegistryError, ValueError), session:
                if told := _whereabouts(session, error):
                    console.note(escape.text(told))
        return exit_status(error)
    known = _nowhere(error) or _damage(session, error)
    if known is not None:
        return _report(session, known, arguments)
    if session.verbose:
        import traceback

        console.err.write(escape.text(traceback.format_exc()))
    reason = f"{type(error).__name__}: {error}".splitlines()[0]
    details = "the lines above" if session.verbose else "what --verbose prints then"
    console.error(f"Internal error ({reason}). Please report it with the command and {details}.")
    return Status.FAILED


def _whereabouts(session: Session, error: SkillNotFound) -> str:
    """Say where a skill may be that was not found, in a line; empty where nobody knows."""
    from registry.cli.hints import trashed, unsynced

    registry, name = session.registry, error.facts["name"]
    if not registry.sources():
        return "The registry is empty: 'skill-registry sync FOLDER' fills it."
    told = unsynced(registry, name)
    return told or (trashed(registry, name) if type(error) is SkillNotFound else "")


def _nowhere(error: Exception) -> UsageProblem | None:
    """Return why a command failed that asked for the current folder, if there is none."""
    if isinstance(error, FileNotFoundError):
        try:
            os.getcwd()
        except OSError:
            return UsageProblem(message="The current folder is gone: go to another one.")
    return None


def _damage(session: Session, error: Exception) -> DatabaseProblem | None:
    """Return the damage of the database, if that is why a command failed."""
    from registry.core import UNEXPECTED

    if not isinstance(error, UNEXPECTED):
        return None
    with suppress(RegistryError, *UNEXPECTED), session:
        return session.registry.core.damage()
    return None


def exit_status(error: RegistryError) -> Status:
    """Return the exit status that an error means."""
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
