"""Write the generated pages of docs/reference: commands, findings, errors.

``python -m tests.reference`` writes all of them; tests/cli/test_help.py says whether they are current.
"""

import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from registry import errors
from registry.catalog.check import FOLDER_RULES, all_codes
from registry.cli import PROGRAM
from registry.cli.app import COMMANDS, exit_status, root
from registry.document.autofix import CHECK_ONLY_RULES, FIXABLE
from registry.document.findings import PARSER_RULES
from registry.document.rules import FORMAT_RULES
from registry.document.security import SECURITY_RULES
from registry.model import SECURITY_CODES
from tests.finding_examples import DESCRIBED, found

WIDTH: Final = 88
SHOWN: Final = 160
"""Characters of an example's line."""

REFERENCE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"

GROUPS: Final = {
    "sources-and-sync": ("Sources and sync", ("sync", "source")),
    "find-skills": (
        "Find and read skills",
        ("list", "search", "show", "why", "eval", "copies", "tags", "kinds", "categories", "stats"),
    ),
    "change-skills": (
        "Change skills",
        (
            *("create", "update", "rename", "edit", "delete"),
            *("restore", "undo", "trash", "history", "diff"),
        ),
    ),
    "check-skills": ("Check skills", ("check",)),
    "install-skills": ("Install, import and export", ("pull", "agents", "import", "export")),
    "publish-and-review": ("Publish and review", ("publish", "proposal", "version")),
    "tools-for-agents": ("Tools for agents", ("mcp", "tools", "prompt")),
    "web-catalogue": ("Web catalogue and tokens", ("serve", "token")),
    "database-and-settings": ("Database and settings", ("db", "config", "completion")),
}
"""The pages of commands: file name, title, commands."""

_MADE: Final = "`make docs` writes this page from the program."

_FINDINGS: Final = """\
# Findings

For authors and users of skills: this page explains every code that `skill-registry check` prints, with an
example and the fix. `make docs` writes this page from the program.

An *error* about the format means that the skill can't be used. A *security* error means that the skill almost
certainly does harm. If you see a *warning*, read the line. An *info* is only a note. `check --select CODE`
prints only the findings with this code. If a code is marked *Fixable*, `check --fix` can repair findings
with this code. [Security promises](../explanation/security.md#what-check-looks-for) describes the security check."""

_ERRORS: Final = """\
# Error codes

For programmers: this page lists every error of the Python API. Tools, JSON and the web catalogue return the
same codes. `make docs` writes this page from the program.

The code of an error is stable. You can catch the group classes `NotFound`, `Conflict`, `Invalid` and
`Unavailable`. After `Unavailable`, the same request may work later. The column "exit" is the exit status of the
command line. Words in capitals in the message are attributes of the error.

| code | class | group | exit | message |
|---|---|---|---:|---|"""


def pages() -> Iterator[tuple[Path, str]]:
    """Yield the path and the text of each page."""
    commands = REFERENCE / "commands"
    yield commands / "README.md", overview()
    for name, (title, names) in GROUPS.items():
        yield commands / f"{name}.md", group(title, names)
    yield REFERENCE / "findings.md", findings()
    yield REFERENCE / "errors.md", error_codes()


def overview() -> str:
    """Return the page that lists all commands."""
    place = {one: file for file, (_, names) in GROUPS.items() for one in names}
    rows = [
        f"| [`{name}`]({place[name]}.md#{PROGRAM}-{name}) | {_cell(about)} |"
        for name, about in COMMANDS.items()
    ]
    _, text = next(helps(root, PROGRAM, None))
    return "\n".join(
        [
            "# Commands",
            "",
            "For users of the command line: this page lists every command, with a link to its options.",
            _MADE,
            "",
            "| command | purpose |",
            "|---|---|",
            *rows,
            "",
            f"## {PROGRAM}",
            "",
            f"```text\n{text}\n```",
            "",
        ]
    )


def group(title: str, names: tuple[str, ...]) -> str:
    """Return the page of a group of commands."""
    listed = ", ".join(f"`{name}`" for name in names)
    sections = [
        f"# {title}\n\nFor users of the command line: this page describes the options of {listed}. {_MADE}\n"
    ]
    for path, text in helps(root, PROGRAM, None):
        words = path.split(" ")
        if len(words) > 1 and words[1] in names:
            level = "##" if len(words) == 2 else "###"
            sections.append(f"{level} {path}\n\n```text\n{text}\n```\n")
    return "\n".join(sections)


def helps(
    command: click.Command, name: str, parent: click.Context | None
) -> Iterator[tuple[str, str]]:
    """Yield the full name and the help of a command and of all its subcommands."""
    context = click.Context(
        command,
        parent=parent,
        info_name=name,
        terminal_width=WIDTH,
        max_content_width=WIDTH,
        **command.context_settings,
    )
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            subcommand = command.get_command(context, below)
            if subcommand is not None:
                yield from helps(subcommand, below, context)


def findings() -> str:
    """Return the page of all findings."""
    codes = all_codes()
    with tempfile.TemporaryDirectory() as base:
        examples = found(Path(base))
        shown = {
            code: _finding(code, finding.severity, finding.message, finding.fix, line, base)
            for code, (finding, line) in examples.items()
        }
    for code, one in DESCRIBED.items():
        shown[code] = _described(code, one.severity, one.example, one.fix)
    sections = [_FINDINGS]
    for title, chosen in (
        ("Security", codes & SECURITY_CODES),
        ("Format", codes - SECURITY_CODES - FOLDER_RULES.keys()),
        ("Files and folders", FOLDER_RULES.keys() - SECURITY_CODES),
    ):
        sections += ["", f"## {title}", ""]
        sections.append("\n\n".join(shown[code] for code in sorted(chosen)))
    return "\n".join(sections) + "\n"


def _meanings(code: str) -> Mapping[str, str]:
    tables = (PARSER_RULES, FORMAT_RULES, SECURITY_RULES, CHECK_ONLY_RULES, FOLDER_RULES)
    return {table[code].severity: table[code].meaning for table in tables if code in table}


def _finding(code: str, severity: str, message: str, fix: str | None, line: str, base: str) -> str:
    example = _code(_plain(line.strip())) if line.strip() else ""
    said = _code(_plain(message.replace(base, "~/skills")))
    return _described(code, severity, example, _text(_plain(fix or "")), said)


def _described(code: str, severity: str, example: str, fix: str, message: str = "") -> str:
    meanings = _meanings(code)
    if severity in meanings or len(meanings) > 1:
        about = [f"{kind.capitalize()}: {_text(said)}." for kind, said in meanings.items()]
    else:
        about = [f"{severity.capitalize()}: {_text(said)}." for said in meanings.values()]
    fixable = " Fixable." if code in FIXABLE else ""
    fix = fix[:1].upper() + fix[1:].rstrip(".")
    lines = [f"### `{code}`", "", " ".join(about) + fixable, ""]
    lines += [f"- Example: {example}"] if example else []
    lines += [f"- Message: {message}"] if message else []
    return "\n".join([*lines, f"- Fix: {fix}."])


def _plain(text: str) -> str:
    text = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    return f"{text[:SHOWN]}..." if len(text) > SHOWN else text


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _text(text: str) -> str:
    """Return a message as Markdown, with what is not in backticks escaped."""
    parts = text.split("`")
    return "`".join(
        part if number % 2 else re.sub(r"([<>*_])", r"\\\1", part)
        for number, part in enumerate(parts)
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def error_codes() -> str:
    """Return the page of all error codes."""
    rows = sorted(
        f"| `{one.code}` | `{one.__name__}` | {_groups(one)} | {exit_status(_made(one)).value} | "
        f"{_cell(_sentence(one))} |"
        for one in vars(errors).values()
        if isinstance(one, type) and issubclass(one, errors.RegistryError) and _is_raised(one)
    )
    return "\n".join(
        [
            _ERRORS,
            *rows,
            "",
        ]
    )


def _is_raised(kind: type[errors.RegistryError]) -> bool:
    names = ("RegistryError", "NotFound", "Conflict", "Invalid", "Unavailable")
    return kind.__name__ not in names


def _made(kind: type[errors.RegistryError]) -> errors.RegistryError:
    return kind.__new__(kind)


def _groups(kind: type[errors.RegistryError]) -> str:
    names = ("NotFound", "Conflict", "Invalid", "Unavailable")
    return ", ".join(f"`{one}`" for one in names if issubclass(kind, getattr(errors, one)))


def _sentence(kind: type[errors.RegistryError]) -> str:
    if not kind.sentence:  # it depends on the attributes
        return (kind.__doc__ or "").partition(":")[0] + "."
    return re.sub(
        r"\{(\w+)(?::(\w+))?\}",
        lambda match: f"'{match[1].upper()}'" if match[2] == "q" else match[1].upper(),
        kind.sentence,
    )


def main() -> None:
    """Write all pages."""
    if len(sys.argv) > 1:
        sys.exit("This command takes no file any more: it writes all pages of docs/reference.")
    for path, text in pages():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
