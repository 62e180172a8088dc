"""`skill-registry mcp`: serve the tools, and add the server to clients' files."""

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import click

from registry.cli import PROGRAM, escape, options
from registry.cli.commands.tools import binding_options, read_only_option
from registry.cli.group import Command, Listing, needs_extra, session_command
from registry.cli.prompts import confirm
from registry.cli.session import Console, Session, Status
from registry.toolsets.open import TOOLSETS

SERVER: Final = "skills"
"""Name of the server in a client's configuration."""


class Unclear(ValueError):
    """The program can't edit a file safely; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Client:
    """A client's configuration files: of the user (below the home folder) and of a project.

    ``table`` is the key of the servers in the file. If ``typed``, an entry states that the server
    uses stdio.
    """

    user: str
    project: str
    table: str
    typed: bool = False

    @property
    def is_toml(self) -> bool:
        """True if the client's file is TOML, False if it is JSON."""
        return self.user.endswith(".toml")

    def entry(self, command: str, arguments: Sequence[str]) -> dict[str, Any]:
        """Return the entry of a server for the client's file."""
        kind = {"type": "stdio"} if self.typed else {}
        return {**kind, "command": command, "args": list(arguments)}

    def snippet(self, entry: Mapping[str, Any]) -> str:
        """Return the text to paste into an empty file."""
        return self.added("", entry)

    def added(self, text: str, entry: Mapping[str, Any]) -> str:
        """Return the text of the file with the server added. Raises `Unclear`."""
        return (
            _in_toml(text, self.table, entry) if self.is_toml else _in_json(text, self.table, entry)
        )

    def removed(self, text: str) -> str:
        """Return the text of the file without the server. Raises `Unclear`."""
        if not text.strip():
            return text
        return _out_of_toml(text, self.table) if self.is_toml else _out_of_json(text, self.table)


_CODE: Final = (
    "Library/Application Support/Code/User" if sys.platform == "darwin" else ".config/Code/User"
)

CLIENTS: Final[Mapping[str, Client]] = {
    "claude": Client(".claude.json", ".mcp.json", "mcpServers"),
    "cursor": Client(".cursor/mcp.json", ".cursor/mcp.json", "mcpServers"),
    "vscode": Client(f"{_CODE}/mcp.json", ".vscode/mcp.json", "servers", typed=True),
    "codex": Client(".codex/config.toml", ".codex/config.toml", "mcp_servers"),
}


class _Client(click.Choice[str]):
    """The type of an argument that names a client.

    It also accepts the client's name as an agent.
    """

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the client's name."""
        return super().convert("claude" if value == "claude-code" else value, param, ctx)


def _parsed_toml(text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unclear(f"it is not valid TOML: {error}") from error


def _in_toml(text: str, table: str, entry: Mapping[str, Any]) -> str:
    import tomllib

    data = _parsed_toml(text)
    known = data.get(table, {})
    if isinstance(known, dict) and SERVER in known:
        if known[SERVER] == entry:
            return text
        raise Unclear(f"it already has a different {table}.{SERVER}")
    # A JSON string without surrogates is also a valid TOML string.
    rows = (f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in entry.items())
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    made = f"{text}{gap}[{table}.{SERVER}]\n{''.join(rows)}"
    try:
        if tomllib.loads(made) == {**data, table: {**known, SERVER: dict(entry)}}:
            return made
    except (tomllib.TOMLDecodeError, TypeError):
        pass
    raise Unclear(f"its {table} has a form that can't be extended safely")


_ROW: Final = r"[A-Za-z_-]+ = [^\n]*(?:\n|\Z)"


def _out_of_toml(text: str, table: str) -> str:
    import tomllib

    data = _parsed_toml(text)
    rest = _without(data, table)
    if rest == data:
        return text
    found = re.search(rf"(?m)^\[{table}\.{SERVER}\]\n(?:{_ROW})*", text)
    if found is not None:
        before = text[: found.start()]
        made = (before[:-1] if before.endswith("\n\n") else before) + text[found.end() :]
        with suppress(tomllib.TOMLDecodeError):
            now = tomllib.loads(made)
            if rest in (now, {table: {}, **now}):
                return made
    raise Unclear(f"its {table} has a form that can't be changed safely")


def _without(data: Mapping[str, Any], table: str) -> Mapping[str, Any]:
    """Return the content of a file without this program's server. Raises `Unclear`."""
    known = data.get(table, {})
    if not isinstance(known, dict) or SERVER not in known:
        return data
    entry = known[SERVER]
    facts = entry if isinstance(entry, dict) else {}
    words = facts.get("args")
    is_mcp = isinstance(words, list) and "mcp" in words
    if os.path.basename(str(facts.get("command"))) != PROGRAM or not is_mcp:
        raise Unclear(f"its server {SERVER!r} is not from {PROGRAM} mcp install")
    return {**data, table: {key: value for key, value in known.items() if key != SERVER}}


def _parsed_json(text: str, table: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the content of a file, and its servers. Raises `Unclear`."""
    try:
        data = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise Unclear(f"it is not plain JSON (it may have comments): {error}") from error
    known = data.get(table, {}) if isinstance(data, dict) else None
    if not isinstance(known, dict):
        raise Unclear("it does not have the expected content, an object of servers")
    return data, known


def _out_of_json(text: str, table: str) -> str:
    data, _ = _parsed_json(text, table)
    rest = _without(data, table)
    if rest == data:
        return text
    for found in re.finditer(rf'"{table}"\s*:\s*\{{', text):
        for old in re.finditer(rf'"{SERVER}"\s*:\s*', text[found.end() :]):
            start, value = (found.end() + at for at in old.span())
            with suppress(ValueError):
                _, end = json.JSONDecoder().raw_decode(text, value)
                made = _without_member(text, start, end)
                if json.loads(made) == rest:
                    return made
    raise Unclear("it has a key twice")


def _without_member(text: str, start: int, end: int) -> str:
    """Return the text without the member of a JSON object at these offsets, and one comma."""
    before, after = text[:start], text[end:]
    if before.rstrip().endswith(","):
        return before.rstrip()[:-1] + after
    if after.lstrip().startswith(","):
        return before + after.lstrip()[1:].lstrip()
    return before.rstrip() + after.lstrip()  # the object is empty then


def _in_json(text: str, table: str, entry: Mapping[str, Any]) -> str:
    data, known = _parsed_json(text, table)
    if known.get(SERVER) == entry:
        return text
    if not text.strip():
        return json.dumps({table: {SERVER: entry}}, indent=2, ensure_ascii=False) + "\n"
    wanted = {**data, table: {**known, SERVER: dict(entry)}}
    for made in _edits(text, table, entry, is_new=table not in data):
        with suppress(ValueError):
            if json.loads(made) == wanted:
                return made
    raise Unclear("it has a key twice")


def _edits(text: str, table: str, entry: Mapping[str, Any], *, is_new: bool) -> Iterator[str]:
    """Yield versions of the text with the entry.

    In each version, it is at another possible position.
    """
    if is_new:
        yield _with_member(text, text.index("{"), table, {SERVER: entry})
        return
    for found in re.finditer(rf'"{table}"\s*:\s*(?=\{{)', text):
        for old in re.finditer(rf'"{SERVER}"\s*:\s*', text[found.end() :]):
            yield _with_value(text, found.end(), found.end() + old.end(), entry)
        yield _with_member(text, found.end(), SERVER, entry)


def _with_value(text: str, begin: int, at: int, value: object) -> str:
    """Return the text with a new value of a member of the JSON object at ``begin``."""
    _, end = json.JSONDecoder().raw_decode(text, at)
    return text[:at] + _shown(text, begin, value)[0] + text[end:]


def _with_member(text: str, begin: int, key: str, value: object) -> str:
    """Return the text with a new member of the JSON object at ``begin``."""
    _, end = json.JSONDecoder().raw_decode(text, begin)
    inside = text[begin + 1 : end - 1].rstrip()
    shown, gap = _shown(text, begin, value)
    last = begin + 1 + len(inside)
    if inside:
        return f"{text[:last]},{gap}{json.dumps(key)}: {shown}{text[last:]}"
    return f"{text[: begin + 1]}{gap}{json.dumps(key)}: {shown}{gap[:-2]}{text[end - 1 :]}"


def _shown(text: str, begin: int, value: object) -> tuple[str, str]:
    """Return a value as JSON, and the white space before a member, in the object's style."""
    space = re.match(r"\s*", text[begin + 1 :])
    gap = space[0] if space else ""
    line = text[:begin].rpartition("\n")[2]
    outer = line[: len(line) - len(line.lstrip())]
    if text[begin + 1 + len(gap)] == "}":  # the object is empty
        gap = ("\r\n" if "\r\n" in text else "\n") + outer + "  "
    if "\n" not in gap:
        return json.dumps(value, ensure_ascii=False), " "
    indent = gap.rpartition("\n")[2]
    gap = ("\r\n" if "\r\n" in text else "\n") + indent
    step = indent.removeprefix(outer) or "  "
    return json.dumps(value, indent=step, ensure_ascii=False).replace("\n", gap), gap


MAX_BYTES: Final = 64 << 20

_client_options: Final = options.stack(
    click.option(
        "--client",
        "names",
        type=_Client(list(CLIENTS)),
        multiple=True,
        required=True,
        help=(
            "The client to configure (claude is Claude Code; its agent's name works as well). "
            "Repeatable."
        ),
    ),
    click.option(
        "--project",
        is_flag=True,
        help="Write the current project's configuration instead of the user's.",
    ),
)


@session_command(
    "skill-registry mcp install --client claude --client cursor",
    "skill-registry mcp install --client vscode --project --read-only",
    "skill-registry mcp install --client codex --yes",
    starts_new=True,
)
@_client_options
@click.option(
    "--toolset",
    "toolsets",
    type=click.Choice(TOOLSETS),
    multiple=True,
    help="The toolset to serve.",
)
@options.personality_option
@read_only_option
@options.yes_option
def install(
    session: Session,
    *,
    names: tuple[str, ...],
    project: bool,
    toolsets: tuple[str, ...],
    personality: str | None,
    read_only: bool,
    yes: bool,
) -> None:
    """Add the server to the configuration files of MCP clients.

    All changes are shown before you are asked once; without a terminal, --yes is required. The rest
    of a file is not changed, and a backup is written next to it. If a file can't be edited safely,
    such as JSON with comments, the command prints what to paste instead.

    Exit status: 1 if a file was not written.
    """
    words = [
        *_given(("--db", _absolute(session.db)), ("--config", _absolute(session.config))),
        "mcp",
        *_given(*(("--toolset", one) for one in toolsets), ("--personality", personality)),
        *(["--read-only"] if read_only else []),
    ]
    program = PROGRAM if project else _program()
    _change(
        session,
        names,
        lambda client, text: client.added(text, client.entry(program, words)),
        done="already has the server",
        by_hand="Add this by hand:",
        snippet=lambda client: client.snippet(client.entry(program, words)),
        project=project,
        yes=yes,
    )


@session_command(
    "skill-registry mcp uninstall --client claude",
    "skill-registry mcp uninstall --client vscode --project",
    starts_new=True,
)
@_client_options
@options.yes_option
def uninstall(session: Session, *, names: tuple[str, ...], project: bool, yes: bool) -> None:
    """Remove the server from the configuration files of MCP clients.

    Only the entry that "mcp install" wrote is removed; the rest of a file is not changed. All
    changes are shown before you are asked once; without a terminal, --yes is required. A backup is
    written next to each file.

    Exit status: 1 if a file was not written.
    """
    _change(
        session,
        names,
        lambda client, text: client.removed(text),
        done="does not have the server",
        by_hand=f"Remove the server {SERVER!r} by hand.",
        project=project,
        yes=yes,
    )


def _change(
    session: Session,
    names: Sequence[str],
    changed: Callable[[Client, str], str],
    *,
    done: str,
    by_hand: str,
    snippet: Callable[[Client], str] | None = None,
    project: bool,
    yes: bool,
) -> None:
    """Show the changes of the clients' files, ask once, and write the files and their backups.

    ``changed`` returns the new text of a client's file. If a file can't be changed, print
    ``by_hand`` and the ``snippet``, and go on with the other files; the exit status is 1 then.
    """
    console, failed = session.console, False
    changes: list[tuple[str, str | None, str]] = []
    for name in dict.fromkeys(names):
        client = CLIENTS[name]
        path = _path(client, project=project)
        try:
            before = _read(path, project=project)
            after = changed(client, before or "")
        except Unclear as error:
            failed = True
            console.error(f"{path} was not changed: {error}. {by_hand}")
            if snippet is not None:
                console.write([escape.text(snippet(client)).rstrip("\n")])
            continue
        if (before or "") == after:
            console.note(f"{escape.line(path)} {done}.")
            continue
        _show(console, path, before or "", after)
        changes.append((path, before, after))
    if changes:
        question = "Write these changes?" if changes[1:] else "Write this change?"
        confirm(session, question, yes=yes)
    for path, before, after in changes:
        try:
            copy = _write(path, before, after, project=project)
        except (OSError, Unclear) as error:
            failed = True
            reason = error.strerror if isinstance(error, OSError) else error
            console.error(f"{path} was not written: {reason}.")
            continue
        kept = f"; the backup is {escape.line(copy)}" if copy else ""
        console.note(f"Wrote {escape.line(path)}{kept}. Restart the client.")
    if failed:
        raise click.exceptions.Exit(Status.FAILED)


def _given(*options: tuple[str, str | None]) -> Iterator[str]:
    """Yield the command-line options that have a value, each followed by its value."""
    for name, value in options:
        if value:
            yield from (name, value)


def _program() -> str:
    """Return the full path of this program, because a desktop client may have another PATH."""
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
    """Return the text of a file; None if it doesn't exist. Raises `Unclear`.

    The user's own file may be a link to another folder. A project's file must not be a link,
    because other people may have created it.
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
    """Print only the changed lines, because other lines may contain secrets of other servers."""
    from difflib import unified_diff

    old, new = before.splitlines(), after.splitlines()
    lines = unified_diff(old, new, path if before else os.devnull, path, lineterm="", n=0)
    console.write([console.paint_diff(line) for line in lines])
    console.flush()


def _write(path: str, before: str | None, after: str, *, project: bool) -> str | None:
    """Replace a file atomically, with its permissions, and return the path of its backup.

    Raises OSError, and `Unclear` if another program has changed the file since it was read.
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
        raise Unclear("another program changed it in the meantime; run the command again")


def _keep(path: str, text: str, mode: int) -> str:
    """Write a copy beside a file, without overwriting an existing file.

    Return the path of the copy.
    """
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


TOKEN: Final = "SKILL_REGISTRY_TOKEN"  # noqa: S105  # the name of an environment variable

EXTRA: Final = frozenset({"mcp", "mcp_types", "anyio", "h11", "starlette", "uvicorn"})
"""Python packages that the extra ``mcp`` installs."""

STDIO: Final = (
    "This server expects an MCP client on stdin and stdout; Ctrl-C ends it. To "
    "configure a client to\n"
    "start it, run: skill-registry mcp install --client NAME"
)


def _address(text: str) -> tuple[str, int]:
    """Split ``HOST:PORT``. An IPv6 host is in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or int(port) > 65535:  # noqa: PLR2004
        raise ValueError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8080.")
    return host, int(port)


class ServerOptions(Command, Listing):
    """A command group that starts the server if the user gives no subcommand."""


@click.group(
    cls=ServerOptions,
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
    help=("The toolset to serve. Repeatable if no two toolsets have a tool with the same name."),
)
@binding_options
@click.option(
    "--no-watch",
    is_flag=True,
    help="Don't watch the folders for changes; run 'sync' yourself.",
)
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    type=options.Parsed("address", _address),
    help="Serve streamable HTTP at /mcp instead of stdio.",
)
@click.pass_context
def mcp(
    ctx: click.Context,
    /,
    *,
    toolsets: tuple[str, ...],
    no_watch: bool,
    address: tuple[str, int] | None,
    **limits: Any,
) -> None:
    """Serve the tools to an MCP client.

    The server uses stdin and stdout, as clients start it, or HTTP. Skills are also served as
    resources, and by the MCP extension for skills. While it runs, the server follows changes in the
    folders. Over stdio, project skills are those of the client's roots, if it has any. An HTTP
    address that other machines can reach requires a token in SKILL_REGISTRY_TOKEN.
    """
    if ctx.invoked_subcommand is not None:
        return
    import logging

    session: Session = ctx.obj
    console = session.console
    level = logging.INFO if session.verbose else logging.WARNING
    logging.basicConfig(level=level, stream=console.err, format="%(levelname)s: %(message)s")
    with needs_extra("mcp", "The MCP server", EXTRA):
        from registry.mcp.server import ServerOptions, SkillServer
        from registry.mcp.stdio import serve_stdio

        if address is not None:
            from registry.mcp.http import serve_http
    serving = ServerOptions(
        toolsets=tuple(dict.fromkeys(toolsets)),
        workdir=limits.pop("workdir"),
        limits=limits,
        roots=address is None,
        watch=not no_watch,
    )
    registry = session.registry
    server = SkillServer(registry if address is None else registry.answering_others(), serving)
    if address is None:
        _report_if_empty(session)
        if console.is_terminal and sys.stdin.isatty():
            console.note(STDIO)
        serve_stdio(server)
        return
    host, port = address

    def on_start() -> None:
        console.note(f"Serving http://{host}:{port}/mcp; Ctrl-C ends it.")
        _report_if_empty(session)

    serve_http(server, host, port, os.environ.get(TOKEN) or None, on_start=on_start)


def _report_if_empty(session: Session) -> None:
    """If there is no database yet, print this.

    Otherwise a user would see only empty results in the client.
    """
    if session.registry.core.reader.empty:
        session.console.note(
            f"No database at {escape.line(session.registry.path)}, so there are no skills. "
            "To create it, run: skill-registry sync FOLDER"
        )


mcp.add_command(install)
mcp.add_command(uninstall)
