"""`skill-registry search`."""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import click

from registry.catalog.search.fit import FITS
from registry.cli import escape, formatting, options
from registry.cli.formatting import fit, width_of
from registry.cli.group import session_command
from registry.cli.listing import Column, emit, tell_left_out, tell_nothing_found
from registry.cli.session import Console, Session, Style
from registry.model import SearchHit
from registry.text import Fact

INDENT: Final = "    "
MAX_HITS: Final = 20
BELOW: Final = 3
"""Lines below the hits on a screen: their number, and where the next command is typed."""
AROUND: Final = 40
BEFORE: Final = 20
"""Characters of a description before a match: more than those are cut to these on a terminal."""
_SPACED: Final = re.compile(r"[\u0000-\u0dff\u1100-\u2fff\ua960-\uabff]+")


@session_command(
    "skill-registry search fill pdf forms",
    "skill-registry search '\"pull request\" review' --tag git",
    "skill-registry search 'redact pdf' 'black out text'",
    "skill-registry search deploy --limit 5 --json | jq -r '.[].ref'",
    "skill-registry search -- --dry-run",
)
@click.argument("query", nargs=-1, required=True)
@options.filter_options
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    help="At most this many: by default 20, and no more than a terminal shows at once.",
)
@click.option(
    "--offset", metavar="N", type=click.IntRange(min=0), default=0, help="Leave out the best ones."
)
@options.format_options
def command(
    session: Session, /, *, query: tuple[str, ...], limit: int | None, **given: Any
) -> None:
    """Find skills by what they do.

    Words in any language, best two to six that a skill's author would use; a skill that has more
    of them, above all in its name, tags and description, comes first. Double quotes keep words
    together. Several arguments that are quoted for the shell are queries of their own: their hits
    are shown in turn. Copies and near copies take one place ("+3 alike"). Finding nothing is not
    an error, and where the best hits lack the telling words, that is said.

    Below a skill is the place that matched, unless its description says it already. In a pipe each
    line is a ref, a tab and that place, or the description.
    """
    queries = _queries(query)
    if not queries:
        raise click.UsageError("Say what to search for.")
    chosen = options.filters(session, given)
    if limit is None:
        height = session.console.height if session.style in {None, "table"} else None
        limit = min(MAX_HITS, max(1, (height - BELOW) // 2)) if height else MAX_HITS
    hits = session.registry.search(queries, chosen, limit=limit, **given)
    wanted = matcher(" ".join(queries))
    columns = (
        Column[SearchHit]("SKILL", lambda hit: hit.ref),
        Column[SearchHit]("MATCH", lambda hit: _match(hit, wanted), prose=True),
    )
    told = emit(session, hits, columns, draw=partial(draw_hits, wanted=wanted))
    if not hits.total:
        tell_nothing_found(session, chosen, narrowed=True)
        tell_left_out(session, chosen, "finds")
        return
    if told:
        session.console.note(f"{len(hits):,} of {formatting.count(hits.total, 'hit')}", "dim")
    if hits.confidence < FITS:
        named = f": none of the best names {Fact(hits.missing):or}" if hits.missing else ""
        session.console.note(f"Perhaps nothing fits{named}. Try other keywords, or English ones.")


def _queries(given: Sequence[str]) -> list[str]:
    """Return what was typed as one query; where an argument has spaces, each is its own."""
    if len(given) > 1 and any(len(one.split()) > 1 for one in given):
        return [one for one in given if one.strip()]
    whole = " ".join(given)
    return [whole] if whole.strip() else []


def draw_hits(
    console: Console, hits: Sequence[SearchHit], wanted: re.Pattern[str] | None
) -> Iterator[str]:
    """Yield a line with ref and description of each hit, and one with the place that matched.

    The second is left out where the first shows it.
    """

    def light(text: str, style: Style | None = None) -> str:
        """Paint a text, and what was searched for in it apart."""
        if wanted is None:
            return console.style(text, style)
        end, parts = 0, []
        for found in wanted.finditer(text):
            parts += [console.style(text[end : found.start()], style)]
            parts += [console.style(found[0], "match")]
            end = found.end()
        return "".join([*parts, console.style(text[end:], style)])

    for hit in hits:
        ref = fit(escape.line(hit.ref), console.width, "middle", ellipsis=console.ellipsis)
        room = console.width - width_of(ref) - 2
        about = fit(escape.prose(hit.description), room, ellipsis=console.ellipsis)
        head = console.style(ref, "bold")
        if hit.alike:
            head += console.style(f"  +{len(hit.alike)} alike", "dim")
            room -= len(f"  +{len(hit.alike)} alike")
        # Where a narrow terminal leaves no room for the description, the match has to do.
        is_roomy = room > len(INDENT) * 3
        yield f"{head}  {light(about, 'dim')}" if is_roomy else head
        if not is_roomy or wanted is None or not wanted.search(about):
            match = escape.prose(_cut(_match(hit, wanted), wanted))
            is_unmarked = wanted is None or not wanted.search(match)
            if is_roomy and is_unmarked and _is_the_same(about, match):
                continue  # what was found stands for what was typed: its meaning, or nearly so
            yield INDENT + light(fit(match, console.width - len(INDENT), ellipsis=console.ellipsis))


def _match(hit: SearchHit, wanted: re.Pattern[str] | None) -> str:
    """Return the description where it holds what was searched for, else the place that does."""
    is_told = wanted is not None and wanted.search(hit.description)
    return hit.description if is_told or not hit.snippet else hit.snippet


def _is_the_same(one: str, other: str) -> bool:
    """Tell whether of two texts that may be cut one begins as the other."""
    one, other = one.rstrip(".\u2026"), other.rstrip(".\u2026")
    return one.startswith(other) or other.startswith(one)


def _cut(text: str, wanted: re.Pattern[str] | None) -> str:
    """Return a text from a little before the first match on."""
    found = wanted.search(text) if wanted else None
    if found is None or found.start() <= AROUND:
        return text
    return "\u2026" + text[text.rfind(" ", 0, found.start() - BEFORE) + 1 :]


def matcher(query: str) -> re.Pattern[str] | None:
    """Return a pattern that matches the words of a query, for highlighting."""
    from registry.catalog.search.query import parse, pattern

    # Whole phrases before the words in them, and no words that say nothing.
    terms = sorted(parse(query), key=lambda term: len("".join(term)), reverse=True)
    patterns = [
        pattern(term) + (r"\w*" if _SPACED.fullmatch("".join(term)) else "") for term in terms
    ]
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None
