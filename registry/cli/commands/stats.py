"""`skill-registry stats`."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from registry.cli import options, words
from registry.cli.facts import draw_facts
from registry.cli.group import Command
from registry.cli.session import Session

if TYPE_CHECKING:
    from registry.catalog.summary import Stats


@click.command(
    cls=Command, examples=("skill-registry stats", "skill-registry stats --json | jq .by_status")
)
@options.json_option
@click.pass_obj
def command(session: Session, *, as_json: bool) -> None:
    """Say what the registry holds, how big and how fresh it is."""
    stats = session.registry.stats()
    if as_json:
        session.console.json(asdict(stats))
    else:
        session.console.write(draw_facts(session.console, _facts(stats)))


def _facts(stats: "Stats") -> Iterator[tuple[str, str]]:
    yield "Skills", f"{stats.skills:,} in {words.count(stats.sources, 'source')}"
    yield "Listed", f"{stats.visible:,}"
    yield "Shadowed", f"{stats.shadowed:,}"
    yield "Hidden", f"{stats.hidden:,} from models, by their own front matter"
    yield "Status", _counts(stats.by_status)
    yield "Scopes", _counts(stats.by_scope)
    yield "Names", f"{stats.names:,} different"
    yield "Tags", f"{stats.tags:,}"
    yield "Kinds", f"{stats.kinds:,}"
    yield "Categories", f"{stats.categories:,}"
    yield "Files", f"{stats.files:,}, {words.size(stats.bytes)}"
    if stats.oldest_sync == stats.newest_sync:
        yield "Synced", words.moment(stats.newest_sync)
    else:
        yield "Synced", f"{words.moment(stats.oldest_sync)} to {words.moment(stats.newest_sync)}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {words.state(name)}" for name, number in counts.items()) or "none"
