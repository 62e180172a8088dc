"""`skill-registry mcp install`."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import click

from registry.cli import PROGRAM, escape, options
from registry.cli.clients import CLIENTS, Client, Unclear
from registry.cli.commands.tools import read_only_option
from registry.cli.group import session_command
from registry.cli.prompts import confirm
from registry.cli.session import Console, Session, Status
from registry.toolsets.open import TOOLSETS

MAX_BYTES: Final = 64 << 20


@session_command(
    "skill-registry mcp install --client claude",
    "skill-registry mcp install --client vscode --project --read-only",
    "skill-registry mcp install --client codex --yes",
    starts_new=True,
)
@click.option(
    "--client", "name", type=click.Choice(list(CLIENTS)), required=True, help="Whose file."
)
@click.option(
    "--project", is_flag=True, help="The file of the project in the current folder, not the user's."
)
@click.option(
    "--toolset",
    "toolsets",
    type=click.Choice(TOOLSETS),
    multiple=True,
    help="Whose tools to serve.",
)
@options.personality_option
@read_only_option
@options.yes_option
def install(
    session: Session,
    *,
    name: str,
    project: bool,
    toolsets: tuple[str, ...],
    personality: str | None,
    read_only: bool,
    yes: bool,
) -> None:
    """Add the server to an MCP client's own configuration file.

    Shows the change first, then asks; without a terminal it needs --yes.
    All else in the file stays as it is, and a copy of it is kept beside it. A file that can't be
    edited safely, such as JSON with comments, is left alone, and what to paste is printed.

    Exit status: 1 where nothing was written that should be.
    """
    console, client = session.console, CLIENTS[name]
    words = [
        *_given(("--db", _absolute(session.db)), ("--config", _absolute(session.config))),
        "mcp",
        *_given(*(("--toolset", one) for one in toolsets), ("--personality", personality)),
        *(["--read-only"] if read_only else []),
    ]
    entry = client.entry(PROGRAM if project else _program(), words)
    path = _path(client, project=project)
    try:
        before = _read(path, project=project)
        after = client.added(before or "", entry)
    except Unclear as error:
        console.error(f"{path} was left alone: {error}. Put this into it by hand:")
        console.write([escape.text(client.snippet(entry)).rstrip("\n")])
        raise click.exceptions.Exit(Status.FAILED) from error
    if before == after:
        console.note(f"{escape.line(path)} has it already.")
        return
    _show(console, path, before or "", after)
    confirm(session, "Write this?", yes=yes)
    try:
        copy = _write(path, before, after, project=project)
    except (OSError, Unclear) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise click.ClickException(f"{path} was not written: {reason}.") from error
    kept = f"; what it was is in {escape.line(copy)}" if copy else ""
    console.note(f"Wrote {escape.line(path)}{kept}. Start the client again to use it.")


def _given(*options: tuple[str, str | None]) -> Iterator[str]:
    """Yield the options that have a value, each before it."""
    for name, value in options:
        if value:
            yield from (name, value)


def _program() -> str:
    """Return this program's path: a client that a desktop starts may have another PATH."""
    started = os.path.abspath(sys.argv[0])
    return shutil.which(PROGRAM) or (started if started.endswith(f"/{PROGRAM}") else PROGRAM)


def _absolute(given: str | None) -> str | None:
    if not given or "://" in given:
        return given
    return os.path.abspath(os.path.expanduser(given))


def _path(client: Client, *, project: bool) -> str:
    if project:
        return os.path.join(os.getcwd(), client.project)
    return os.path.join(os.path.expanduser("~"), client.user)


def _read(path: str, *, project: bool) -> str | None:
    """Return the text of a file; None where there is none. Raises `Unclear`.

    A user may have their own file elsewhere, behind a link; a project's comes from strangers.
    """
    from registry.disk.files import read_file
    from registry.errors import RegistryError

    real = os.path.realpath(path)
    if project and real != os.path.join(os.path.realpath(os.getcwd()), os.path.relpath(path)):
        raise Unclear(f"it is a link to {real}")
    try:
        return read_file(real, MAX_BYTES).data.decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise Unclear("it is not UTF-8 text") from error
    except RegistryError as error:
        raise Unclear(str(error).rstrip(".")) from error


def _show(console: Console, path: str, before: str, after: str) -> None:
    """Print what is changed, without the lines around it: they may hold other servers' secrets."""
    from difflib import unified_diff

    old, new = before.splitlines(), after.splitlines()
    lines = unified_diff(old, new, path if before else os.devnull, path, lineterm="", n=0)
    console.write([console.paint_diff(line) for line in lines])
    console.flush()


def _write(path: str, before: str | None, after: str, *, project: bool) -> str | None:
    """Replace a file in one step, as open as it was, and return its copy.

    Raises OSError, and `Unclear` where somebody changed the file meanwhile.
    """
    real = os.path.realpath(path)
    os.makedirs(os.path.dirname(real), exist_ok=True)
    mode = 0o600 if before is None else os.stat(real).st_mode & 0o777
    draft, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=os.path.dirname(real))
    try:
        with open(draft, "wb") as file:
            file.write(after.encode())
            os.fchmod(draft, mode)
            file.flush()
            os.fsync(draft)
        _compare(path, before, project=project)
        copy = None if before is None else _keep(real, before, mode)
        os.replace(name, real)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    return copy


def _compare(path: str, before: str | None, *, project: bool) -> None:
    if _read(path, project=project) != before:
        raise Unclear("it was changed meanwhile; look at it again")


def _keep(path: str, text: str, mode: int) -> str:
    """Write a copy beside a file, over nothing that is there; return its path."""
    number = 0
    while True:
        copy = f"{path}.bak{number or ''}"
        try:
            descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        except FileExistsError:
            number += 1
            continue
        with open(descriptor, "wb") as file:
            file.write(text.encode())
        return copy
