"""`skill-registry tools` and `prompt`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from registry.cli import escape, options
from registry.cli.group import Group, session_command
from registry.cli.listing import Column, emit
from registry.cli.session import Session
from registry.model import SCOPES, record
from registry.toolsets.open import TOOLSETS
from registry.toolsets.schemas import STYLES, Style

if TYPE_CHECKING:
    from registry.catalog.visibility.rules import Decision
    from registry.model import Skill
    from registry.toolsets.schemas import Tool


read_only_option: Final = click.option(
    "--read-only", is_flag=True, help="Leave out all tools that change anything."
)
binding_options: Final = options.stack(
    options.source_option(
        help=(
            "Only skills from this source; changes are written to it. Required by the toolset "
            "basic."
        )
    ),
    click.option(
        "--scope", type=click.Choice(SCOPES), help="Only skills from sources of this scope."
    ),
    options.personality_option,
    click.option(
        "--workdir",
        metavar="DIR",
        type=click.Path(exists=True, file_okay=False),
        help=(
            "Include the skills of the project that contains this folder (default: the current "
            "folder)."
        ),
    ),
    read_only_option,
)
toolset_option: Final = click.option(
    "--toolset",
    type=click.Choice(TOOLSETS),
    default="native",
    show_default=True,
    help="The toolset to use.",
)


@click.group(
    cls=Group,
    examples=(
        "skill-registry tools list",
        "skill-registry tools schema --toolset wave --style openai",
        """skill-registry tools call search_skills '{"query": "fill pdf forms"}'""",
        """skill-registry tools call --toolset basic get_skill '{"skill_name": "haiku"}'""",
    ),
)
def tools() -> None:
    """List, describe and call the tools for agents.

    A toolset is a named set of tools. The toolset "native" is the registry's own; each of the
    others has the tools of another agent system. "mcp" serves any toolset. In Python, use
    SkillRegistry.toolset.
    """


@session_command("skill-registry tools list --toolset native", group=tools, starts_new=True)
@click.option("--toolset", type=click.Choice(TOOLSETS), help="Only this toolset.")
@read_only_option
@options.format_options
def list_(session: Session, *, toolset: str | None, read_only: bool) -> None:
    """List the toolsets and their tools."""
    from registry.toolsets.open import tools_of

    chosen = TOOLSETS if toolset is None else (toolset,)
    tools = [
        (one, tool) for one in chosen for tool in tools_of(one) if tool.read_only or not read_only
    ]
    emit(session, tools, COLUMNS, to_record=_record)


@session_command("skill-registry tools schema --style anthropic", group=tools, starts_new=True)
@toolset_option
@click.option(
    "--style",
    type=click.Choice(STYLES),
    default="openai",
    show_default=True,
    help="The format of the descriptions.",
)
@click.option(
    "--strict", is_flag=True, help="Write schemas for the strict mode of OpenAI or Anthropic."
)
@binding_options
def schema(
    session: Session, /, *, toolset: str, style: Style, strict: bool, **binding: Any
) -> None:
    """Print the JSON Schemas of a toolset for a framework.

    The descriptions are current: the toolset wave lists the available skills in its description.
    """
    chosen = session.registry.toolset(toolset, **binding)
    session.console.json(chosen.schemas(style, strict=strict))


@session_command(
    "skill-registry tools call list_skills",
    """skill-registry tools call --toolset wave Skill '{"skill_name": "haiku"}'""",
    """echo '{"name": "haiku"}' | skill-registry tools call read_skill -""",
    group=tools,
)
@toolset_option
@binding_options
@click.argument("name", metavar="TOOL")
@click.argument("arguments", metavar="[JSON|-]", default="{}")
def call(session: Session, /, *, toolset: str, name: str, arguments: str, **binding: Any) -> None:
    """Call one tool and print its answer.

    The arguments are a JSON object; - reads it from standard input. The exit status is 1 if the
    answer is an error.
    """
    import json

    from registry.toolsets.schemas import is_error

    try:
        if arguments == "-":
            with click.open_file("-", encoding="utf-8") as stream:
                arguments = stream.read()
        given = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"The arguments are not JSON: {error}.") from error
    answer = session.registry.toolset(toolset, **binding).call(name, given)
    session.console.json(answer)
    if is_error(answer):
        raise click.exceptions.Exit(1)


Listed = tuple[str, "Tool"]


def _record(listed: Listed) -> dict[str, Any]:
    toolset, tool = listed
    keys = ("name", "description", "read_only", "destructive", "idempotent")
    return {"toolset": toolset, **{key: getattr(tool, key) for key in keys}}


COLUMNS: Final[Sequence[Column[Listed]]] = (
    Column("TOOL", lambda one: f"{one[0]}/{one[1].name}", only="plain"),
    Column("TOOLSET", lambda one: one[0], only="table"),
    Column("TOOL", lambda one: one[1].name, only="table"),
    Column("WRITES", lambda one: "" if one[1].read_only else "yes", only="table", drop=1),
    Column("DESCRIPTION", lambda one: one[1].description, prose=True, flexible=True),
)


@session_command(
    "skill-registry prompt",
    "skill-registry prompt --markdown --max-chars 8000",
    "skill-registry prompt --personality coder",
    "skill-registry prompt --personality coder --explain",
)
@click.option("--markdown", is_flag=True, help="Print a Markdown list instead of XML.")
@click.option(
    "--max-chars",
    metavar="N",
    type=click.IntRange(min=0),
    help=("Limit the length, in characters: first shorten descriptions, then leave skills out."),
)
@options.personality_option
@click.option(
    "--explain",
    is_flag=True,
    help="Print instead which skills are in the list or not, and by which rule.",
)
@options.format_options
def prompt(
    session: Session,
    *,
    markdown: bool,
    max_chars: int | None,
    personality: str | None,
    explain: bool,
) -> None:
    """Print the list of skills for a system prompt.

    The XML format is that of the Agent Skills reference library: name, description and location of
    each skill that models may see. If --max-chars shortens the list, the list and a note on stderr
    report it.
    """
    registry, console = session.registry, session.console
    if explain:
        emit(session, registry.decisions(personality), DECISIONS, to_record=_prompt_record)
        return
    made = registry.prompt(
        personality, style="markdown" if markdown else "xml", max_chars=max_chars
    )
    if session.style in {"json", "jsonl"}:
        keys = ("text", "shown", "shortened", "left_out")
        console.json({key: getattr(made, key) for key in keys})
        return
    if session.style == "names":
        console.write(map(escape.line, made.shown))
        return
    text = escape.text(made.text) if console.is_terminal else made.text
    if text:
        console.write_bytes(text.encode("utf-8", "backslashreplace"))
        console.write_bytes(b"\n")
    if made.shortened:
        console.note(f"{len(made.shortened):,} descriptions were shortened to fit --max-chars.")
    if made.left_out:
        console.note(f"{len(made.left_out):,} skills were left out to fit --max-chars.")
    for skill, choice in made.decisions:
        if choice.warning:
            console.note(escape.line(f"{skill.ref}: {choice.warning}"))
    if not made.shown and not made.left_out:
        console.note("No skills to print. To see why, add --explain.")


Decided = tuple["Skill", "Decision"]


def _prompt_record(decided: Decided) -> dict[str, Any]:
    skill, choice = decided
    return {"ref": skill.ref, "source": skill.source, **record(choice)}


DECISIONS: Final[Sequence[Column[Decided]]] = (
    Column("SKILL", lambda one: one[0].ref, cut="middle"),
    Column("SEEN", lambda one: "seen" if one[1].visible else "not visible"),
    Column("RULE", lambda one: one[1].rule, drop=1),
    Column("REASON", lambda one: one[1].reason, flexible=True),
)
