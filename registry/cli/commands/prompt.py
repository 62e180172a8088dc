"""`skill-registry prompt`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from registry.cli import escape, options
from registry.cli.group import session_command
from registry.cli.listing import Column, emit
from registry.cli.session import Session
from registry.model import record

if TYPE_CHECKING:
    from registry.catalog.visibility.rules import Decision
    from registry.model import Skill


@session_command(
    "skill-registry prompt",
    "skill-registry prompt --markdown --max-chars 8000",
    "skill-registry prompt --personality coder",
    "skill-registry prompt --personality coder --explain",
)
@click.option("--markdown", is_flag=True, help="A Markdown list instead of XML.")
@click.option(
    "--max-chars",
    metavar="N",
    type=click.IntRange(min=0),
    help="At most so many characters: descriptions are shortened, then skills left out.",
)
@options.personality_option
@click.option(
    "--explain",
    is_flag=True,
    help="Instead of the catalogue: which skills are in it or not, and by which rule.",
)
@options.format_options
def command(
    session: Session,
    *,
    markdown: bool,
    max_chars: int | None,
    personality: str | None,
    explain: bool,
) -> None:
    """Print the catalogue for a system prompt.

    The XML is that of the Agent Skills reference library: name, description and location of each
    skill that models may see. What a budget cost is said in the catalogue itself and on stderr.
    """
    registry, console = session.registry, session.console
    if explain:
        emit(session, registry.decisions(personality), COLUMNS, to_record=_record)
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
        console.note(f"{len(made.shortened):,} descriptions were shortened.")
    if made.left_out:
        console.note(f"{len(made.left_out):,} skills were left out: --max-chars is too small.")
    for skill, choice in made.decisions:
        if choice.warning:
            console.note(escape.line(f"{skill.ref}: {choice.warning}"))
    if not made.shown and not made.left_out:
        console.note("There are no skills to show; --explain says why.")


Decided = tuple["Skill", "Decision"]


def _record(decided: Decided) -> dict[str, Any]:
    skill, choice = decided
    return {"ref": skill.ref, "source": skill.source, **record(choice)}


COLUMNS: Final[Sequence[Column[Decided]]] = (
    Column("SKILL", lambda one: one[0].ref, cut="middle"),
    Column("SEEN", lambda one: "seen" if one[1].visible else "not seen"),
    Column("RULE", lambda one: one[1].rule, drop=1),
    Column("REASON", lambda one: one[1].reason, flexible=True),
)
