"""The configuration files of MCP clients: where they are, and how a server is added to one.

An edit leaves every other byte as it was. What can't be edited so (JSON with comments, a table
written in another way) is refused with `Unclear`, and a person pastes the snippet.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

SERVER: Final = "skills"
"""What the server is called in a client."""


class Unclear(ValueError):
    """A file that can't be edited safely: the message says why."""


@dataclass(frozen=True, slots=True)
class Client:
    """Where a client looks for servers: for the user (below the home folder), and in a project.

    ``table`` is the key that holds them; ``typed``: an entry says that it speaks over stdio.
    """

    user: str
    project: str
    table: str
    typed: bool = False

    @property
    def is_toml(self) -> bool:
        """Whether its file is TOML, not JSON."""
        return self.user.endswith(".toml")

    def entry(self, command: str, arguments: Sequence[str]) -> dict[str, Any]:
        """Return what the client's file says of a server."""
        kind = {"type": "stdio"} if self.typed else {}
        return {**kind, "command": command, "args": list(arguments)}

    def snippet(self, entry: Mapping[str, Any]) -> str:
        """Return the text to paste into an empty file."""
        return self.added("", entry)

    def added(self, text: str, entry: Mapping[str, Any]) -> str:
        """Return the text of the file with the server in it. Raises `Unclear`."""
        return (
            _in_toml(text, self.table, entry) if self.is_toml else _in_json(text, self.table, entry)
        )


_CODE: Final = (
    "Library/Application Support/Code/User" if sys.platform == "darwin" else ".config/Code/User"
)

CLIENTS: Final[Mapping[str, Client]] = {
    "claude": Client(".claude.json", ".mcp.json", "mcpServers"),
    "cursor": Client(".cursor/mcp.json", ".cursor/mcp.json", "mcpServers"),
    "vscode": Client(f"{_CODE}/mcp.json", ".vscode/mcp.json", "servers", typed=True),
    "codex": Client(".codex/config.toml", ".codex/config.toml", "mcp_servers"),
}


def _in_toml(text: str, table: str, entry: Mapping[str, Any]) -> str:
    import tomllib

    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unclear(f"it is not valid TOML: {error}") from error
    known = data.get(table, {})
    if isinstance(known, dict) and SERVER in known:
        if known[SERVER] == entry:
            return text
        raise Unclear(f"it has another {table}.{SERVER} already")
    # A JSON string without surrogates is a TOML string, too.
    rows = (f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in entry.items())
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    made = f"{text}{gap}[{table}.{SERVER}]\n{''.join(rows)}"
    try:
        if tomllib.loads(made) == {**data, table: {**known, SERVER: dict(entry)}}:
            return made
    except (tomllib.TOMLDecodeError, TypeError):
        pass
    raise Unclear(f"its {table} is written in a way that nothing can be added to")


def _in_json(text: str, table: str, entry: Mapping[str, Any]) -> str:
    try:
        data = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise Unclear(f"it is not plain JSON, perhaps for its comments: {error}") from error
    known = data.get(table, {}) if isinstance(data, dict) else None
    if not isinstance(known, dict):
        raise Unclear("it does not hold what it should: an object of servers")
    if known.get(SERVER) == entry:
        return text
    if not text.strip():
        return json.dumps({table: {SERVER: entry}}, indent=2, ensure_ascii=False) + "\n"
    outer = _Object.at(text, text.index("{"))
    if table not in outer.members:
        made = outer.with_member(text, table, {SERVER: entry})
    else:
        made = _Object.at(text, outer.members[table].begin).with_member(text, SERVER, entry)
    if json.loads(made) != {**data, table: {**known, SERVER: dict(entry)}}:
        raise Unclear("it has a key twice")
    return made


class _Span(NamedTuple):
    begin: int
    end: int


class _Object(NamedTuple):
    """A JSON object in a text: where it begins, where its members' values are, and how it is set.

    ``indent``: of its members; None where it stands on one line.
    """

    begin: int
    end: int
    members: Mapping[str, _Span]
    indent: str | None

    @classmethod
    def at(cls, text: str, begin: int) -> "_Object":
        """Read the valid object at ``begin``."""
        members: dict[str, _Span] = {}
        at, indent, decoder = _skip(text, begin + 1), None, json.JSONDecoder()
        between = text[begin + 1 : at]
        if "\n" in between:
            indent = between.rpartition("\n")[2]
        while text[at] != "}":
            key, at = decoder.raw_decode(text, at)
            start = _skip(text, _skip(text, at) + 1)
            _, at = decoder.raw_decode(text, start)
            members[key] = _Span(start, at)
            at = _skip(text, at)
            if text[at] == ",":
                at = _skip(text, at + 1)
        return cls(begin, at, members, indent)

    def with_member(self, text: str, key: str, value: object) -> str:
        """Return the text with a member more, or with another value of it."""
        line_break = "\r\n" if "\r\n" in text else "\n"
        outer = text[: self.begin].rpartition("\n")[2]
        outer = outer[: len(outer) - len(outer.lstrip())]
        indent = self.indent if self.members and self.indent is not None else outer + "  "
        if self.members and self.indent is None:
            shown = json.dumps(value, ensure_ascii=False)
        else:
            step = indent.removeprefix(outer) or "  "
            shown = json.dumps(value, indent=step, ensure_ascii=False)
            shown = shown.replace("\n", line_break + indent)
        if key in self.members:
            span = self.members[key]
            return text[: span.begin] + shown + text[span.end :]
        member = f"{json.dumps(key)}: {shown}"
        if not self.members:
            inside = f"{line_break}{indent}{member}{line_break}{outer}"
            return text[: self.begin + 1] + inside + text[self.end :]
        last = max(span.end for span in self.members.values())
        gap = ", " if self.indent is None else f",{line_break}{indent}"
        return text[:last] + gap + member + text[last:]


def _skip(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at
