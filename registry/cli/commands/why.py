"""`skill-registry why`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from registry.cli import completion, escape, options
from registry.cli.findings import draw_findings
from registry.cli.group import session_command
from registry.cli.listing import Column, emit
from registry.cli.options import agent_option, target_of, tell_project
from registry.cli.placed_view import COLUMNS as PLACED
from registry.cli.placed_view import draw, handle
from registry.cli.session import Console, Session
from registry.db.read.listing import Filters
from registry.disk.agents import find_agent
from registry.model import record

if TYPE_CHECKING:
    from registry.catalog.why import Explanation


@session_command(
    "skill-registry why pdf-forms",
    "skill-registry why ~/.claude/skills/pdf-forms",
    "skill-registry why pdf-forms --agent claude-code",
    "skill-registry why pdf-forms --personality coder",
    "skill-registry why pdf-forms --json | jq '.[].listed'",
    "skill-registry why pdf-forms --query 'fill out a form'",
)
@click.argument("subject", metavar="NAME|PATH", shell_complete=completion.names_or_paths)
@click.option(
    "--personality",
    metavar="NAME",
    shell_complete=completion.personalities,
    help="Also whether this personality of the settings sees it, and by which rule.",
)
@agent_option(help="Also whether this agent reads the skill from disk, and from which folder.")
@click.option(
    "--query",
    metavar="TEXT",
    help="Where it stands among what this query finds, and which words it lacks.",
)
@options.narrowing_options
@options.format_options
def command(
    session: Session,
    *,
    subject: str,
    personality: str | None,
    agent: str | None,
    query: str | None,
    **given: Any,
) -> None:
    """Explain why a skill is, or isn't, listed.

    Takes a name (each skill of that name is explained), a ref, or the path of a folder: one that
    lies in no source, too deep, was not synced, is invalid, shadowed, hidden or changed.

    With --query, what the author of a skill needs to be found by it: the place that the skill has,
    which words of the query stand in its name, tags, description and body, how telling each is
    (0%: every skill has it), what comes before it and why, and which words its description lacks.
    Filters narrow such a search, as those of "search" do.
    """
    chosen = options.filters(session, {**given, "personality": None})
    if query is not None:
        if agent is not None:
            raise click.UsageError("--agent and --query can't be combined.")
        session.style = session.style or "table"  # in a pipe, too: the findings are the answer
        placed = session.registry.why_found(subject, query, chosen, personality)
        emit(session, placed, PLACED, to_record=record, draw=draw)
        return
    if chosen != Filters():
        raise click.UsageError("Filters go with --query.")
    found = session.registry.why(subject, personality)
    if agent is not None:
        from registry.install.inventory import explained_for

        project = target_of(None, is_global=False)
        tell_project(session, project)
        found = explained_for(session.registry.core, found, find_agent(agent), project)
    emit(session, found, COLUMNS, to_record=_record, draw=_draw)


def _record(one: "Explanation") -> dict[str, Any]:
    return {key: record(getattr(one, key)) for key in ("ref", "path", "listed", "reasons")}


def _draw(console: Console, explanations: "Iterable[Explanation]") -> Iterator[str]:
    for index, one in enumerate(explanations):
        if index:
            yield ""
        listed = console.style("listed", "green") if one.listed else "not listed"
        if not one.listed:
            listed = console.style(listed, "red")
        yield f"{console.style(escape.line(handle(one)), 'bold')}: {listed}"
        if one.ref is not None:
            yield f"  {escape.line(one.path)}"
        yield from draw_findings(console, one.reasons, console.width)


COLUMNS: Final[Sequence[Column["Explanation"]]] = (
    Column("SKILL", handle),
    Column("LISTED", lambda one: "listed" if one.listed else "not listed"),
    Column("REASONS", lambda one: "; ".join(reason.message for reason in one.reasons), prose=True),
)
