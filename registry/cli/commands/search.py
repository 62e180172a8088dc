"""`skill-registry search`."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import click

from registry.cli import escape, options, words
from registry.cli.column import Column
from registry.cli.console import Console
from registry.cli.group import session_command
from registry.cli.listing import emit, tell_nothing_found
from registry.cli.session import Session
from registry.cli.width import fit, width_of, wrap
from registry.model import SearchHit

INDENT: Final = "    "
_SPACED: Final = re.compile(r"[\u0000-\u0dff\u1100-\u2fff\ua960-\uabff]+")


@session_command(
    "skill-registry search fill pdf forms",
    "skill-registry search '\"pull request\" review' --tag git",
    "skill-registry search deploy --limit 5 --json | jq -r '.[].ref'",
    "skill-registry search -- --dry-run",
)
@click.argument("query", nargs=-1, required=True)
@options.filter_options
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="At most this many.",
)
@click.option(
    "--offset", metavar="N", type=click.IntRange(min=0), default=0, help="Leave out the best ones."
)
@options.format_options
def command(
    session: Session, /, *, query: tuple[str, ...], style: str | None, **given: Any
) -> None:
    """Find skills by what they do.

    Words in any language; a skill that has more of them, above all in its name and tags, comes
    first. A word also finds longer words that begin with it, and quotes keep words together.
    Finding nothing is not an error. In a pipe each line is a ref, a tab and the place that matched.
    """
    text = " ".join(query)
    if not text.strip():
        raise click.UsageError("Say what to search for.")
    chosen = options.filters(session, given)
    hits, total = session.registry.search(text, chosen, **given)
    told = emit(session.console, style, hits, COLUMNS, draw=partial(draw_hits, query=text))
    if not total:
        tell_nothing_found(session, chosen, narrowed=True)
    elif told:
        session.console.note(f"{len(hits):,} of {words.count(total, 'hit')}", "dim")


COLUMNS: Final[Sequence[Column[SearchHit]]] = (
    Column("SKILL", lambda hit: hit.ref),
    Column("MATCH", lambda hit: hit.snippet, prose=True),
)


def draw_hits(console: Console, hits: Sequence[SearchHit], query: str) -> Iterator[str]:
    """Yield ref and description of each hit, and the matching text below."""
    wanted = matcher(query)

    def light(text: str) -> str:
        return wanted.sub(lambda found: console.style(found[0], "match"), text) if wanted else text

    for hit in hits:
        ref = fit(escape.line(hit.ref), console.width, "middle", ellipsis=console.ellipsis)
        room = console.width - width_of(ref) - 2
        about = fit(escape.prose(hit.description), room, ellipsis=console.ellipsis)
        head = console.style(ref, "bold")
        # Where a narrow terminal leaves no room for the description, the snippet has to do.
        yield f"{head}  {console.style(about, 'dim')}" if room > len(INDENT) * 3 else head
        snippet = escape.prose(hit.snippet)
        for line in wrap(snippet, console.width - len(INDENT)):
            yield INDENT + light(line)


def matcher(query: str) -> re.Pattern[str] | None:
    """Return a pattern that matches the words of a query, for highlighting."""
    from registry.catalog.search import parse

    # Whole phrases before the words in them, and no words that say nothing.
    terms = sorted(parse(query), key=lambda term: len("".join(term)), reverse=True)
    patterns = []
    for term in terms:
        pattern = r"\W*".join(map(re.escape, term))
        patterns.append(rf"\b{pattern}\w*" if _SPACED.fullmatch("".join(term)) else pattern)
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None
