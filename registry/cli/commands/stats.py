"""`skill-registry stats`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from registry.cli import formatting, options
from registry.cli.group import session_command
from registry.cli.listing import Column, draw_facts, emit
from registry.cli.session import Session

if TYPE_CHECKING:
    from registry.db.read.summary import Stats
    from registry.db.read.usage import UsageCount


@session_command(
    "skill-registry stats",
    "skill-registry stats --json | jq .by_status",
    "skill-registry stats --usage",
)
@click.option(
    "--usage", is_flag=True, help="Which skills tools listed, found and read, and when last."
)
@options.json_option
def command(session: Session, *, usage: bool) -> None:
    """Say what the registry holds, how big and how fresh it is.

    With --usage: each skill that tools came upon, the most read first. The counts are kept in the
    database; the setting "usage: false" switches them off.
    """
    if usage:
        counts = session.registry.usage_counts()
        nothing = "No tool has listed, found or read a skill yet."
        if emit(session, counts, USAGE, nothing=nothing) and counts:
            session.console.note(formatting.count(len(counts), "skill"), "dim")
        return
    stats = session.registry.stats()
    session.answer(stats, draw_facts(session.console, _facts(session, stats)))


def _facts(session: Session, stats: "Stats") -> Iterator[tuple[str, str]]:
    yield "Skills", f"{stats.skills:,} in {formatting.count(stats.sources, 'source')}"
    yield "Listed", f"{stats.visible:,}"
    yield "Shadowed", f"{stats.shadowed:,}"
    if left := session.registry.left_out():
        yield "Left out", f"{left:,} of projects elsewhere"
    yield "Hidden", f"{stats.hidden:,} from models, by their own front matter"
    yield "Status", _counts(stats.by_status)
    yield "Scopes", _counts(stats.by_scope)
    if stats.by_origin:
        listed = ", ".join(f"{number:,} {url}" for url, number in stats.by_origin.items())
        yield "From elsewhere", listed
    yield "Names", f"{stats.names:,} different"
    yield "Tags", f"{stats.tags:,}"
    yield "Kinds", f"{stats.kinds:,}"
    yield "Categories", f"{stats.categories:,}"
    yield "Files", f"{stats.files:,}, {formatting.size(stats.bytes)}"
    oldest, newest = (
        formatting.moment(stamp, local=session.console.is_terminal)
        for stamp in (stats.oldest_sync, stats.newest_sync)
    )
    yield "Synced", newest if oldest == newest else f"{oldest} to {newest}"


def _counts(counts: Mapping[str, int]) -> str:
    return (
        ", ".join(f"{number:,} {formatting.state(name)}" for name, number in counts.items())
        or "none"
    )


USAGE: Final[Sequence[Column["UsageCount"]]] = (
    Column("SKILL", lambda one: one.ref, cut="middle"),
    Column("READ", lambda one: str(one.read), right=True, drop=1),
    Column("FOUND", lambda one: str(one.found), right=True, drop=2),
    Column("LISTED", lambda one: str(one.listed), right=True, drop=3),
    Column("LAST READ", lambda one: one.last_read_at, time=True, drop=4),
)
