"""`skill-registry search`, `why` and `eval`."""

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click

from registry.catalog.search.rank import FITS
from registry.cli import completion, escape, formatting, options
from registry.cli.findings import INDENT, draw_findings
from registry.cli.formatting import fit, width_of, wrap
from registry.cli.group import session_command
from registry.cli.listing import (
    FIRST_SHARE,
    Column,
    draw_table,
    emit,
    report_nothing_found,
    report_quarantined,
)
from registry.cli.options import agent_of, agent_option, report_project, target_of
from registry.cli.progress import waiting
from registry.cli.session import Console, Session, Status, Style
from registry.db.read.labels import deprecated
from registry.db.read.listing import Filters
from registry.errors import RegistryError
from registry.model import SearchHit, record
from registry.text import Fact, quoted

if TYPE_CHECKING:
    from registry.catalog.evals import EvalResult, Evaluation, Score, SkillScore
    from registry.catalog.search.explain import Ahead, AskedWord, Placed
    from registry.catalog.why import Explanation
    from registry.disk.agents import Agent
    from registry.install.inventory import AgentSkill


T = TypeVar("T")


def draw_placed(console: Console, placed: "Iterable[Placed]") -> Iterator[str]:
    """Yield paragraphs about each skill: its rank, its words, the hits above it, missing words."""
    for index, one in enumerate(placed):
        if index:
            yield ""
        yield f"{console.style(escape.line(handle(one)), 'bold')}: {_standing(one)}"
        if one.ref is not None:
            yield f"{INDENT}{escape.line(one.path)}"
        if one.place is None:
            yield from draw_findings(console, one.reasons, console.width)
        yield from _table(console, WORDS, one.words)
        yield from _table(console, AHEAD, one.ahead)
        if one.to_write:
            yield ""
            message = f"Missing from its name, tags and description: {', '.join(one.to_write)}"
            yield from wrap(escape.prose(message), console.width)


def _standing(one: "Placed") -> str:
    if one.place is None:
        return f"not found among {formatting.count(one.total, 'hit')}"
    beside = "" if one.beside is None else f", as a near-duplicate of {escape.line(one.beside)}"
    return (
        f"rank {one.place:,} of {one.total:,}{beside}; its name, tags and description contain "
        f"{one.confidence:.0%} of the query"
    )


def _table(console: Console, columns: Sequence[Column[T]], rows: Sequence[T]) -> Iterator[str]:
    if rows:
        yield ""
        yield from draw_table(console, columns, rows)


def handle(one: "Placed | Explanation") -> str:
    """Return the ref of a skill, or its path if it has no ref."""
    return one.path if one.ref is None else one.ref


def _why(one: "Ahead") -> str:
    facts = ["its name is the query"] if one.named else []
    if one.words:
        facts.append(f"has {', '.join(one.words)}")
    if one.stronger:
        facts.append(f"has {', '.join(one.stronger)} in its name or tags")
    return "; ".join(facts) or "uses the same words more often, or in a shorter text"


WORDS: Final[Sequence[Column["AskedWord"]]] = (
    Column("WORD", lambda one: one.word, max_width=24),
    Column("TELLS", lambda one: f"{one.telling:.0%}", right=True),
    Column("FOUND IN", lambda one: ", ".join(one.parts) or "not in the skill"),
    Column("FOR", lambda one: one.said),
)

AHEAD: Final[Sequence[Column["Ahead"]]] = (
    Column("#", lambda one: one.place, right=True),
    Column("RANKED HIGHER", lambda one: one.ref, style="bold", share=0.45, cut="middle"),
    Column("BECAUSE IT", _why, prose=True, flexible=True),
)

PLACED: Final[Sequence[Column["Placed"]]] = (
    Column("SKILL", handle),
    Column("PLACE", lambda one: None if one.place is None else str(one.place)),
    Column("LACKS", lambda one: ", ".join(one.to_write), prose=True),
)


SNIPPET_INDENT: Final = "    "
MAX_HITS: Final = 20
BELOW: Final = 3
"""Number of terminal lines below the results, for the summary and the prompt."""
AROUND: Final = 40
BEFORE: Final = 20
"""Maximum number of characters of a description to show before a match, on a terminal."""
_SPACED: Final = re.compile(r"[\u0000-\u0dff\u1100-\u2fff\ua960-\uabff]+")


@session_command(
    "skill-registry search fill pdf forms",
    "skill-registry search '\"pull request\" review' --tag git",
    "skill-registry search 'redact pdf' 'black out text'",
    "skill-registry search deploy --limit 5 --json | jq -r '.[].ref'",
    "skill-registry search -- --dry-run",
)
@click.argument("query", nargs=-1)
@options.filter_options
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=0),
    help="Show at most N hits (default: 20, or fewer if the terminal is small).",
)
@click.option(
    "--offset",
    metavar="N",
    type=click.IntRange(min=0),
    default=0,
    help="Skip the first N hits (default: 0).",
)
@options.format_options
def search(session: Session, /, *, query: tuple[str, ...], limit: int | None, **given: Any) -> None:
    """Find skills by what they do.

    Use two to six keywords that the author of a skill would use, in any language. Matches in the
    name, tags and description count most. Double quotes keep words together. If you give several
    arguments that are quoted for the shell, each is a query, and their hits are interleaved. Copies
    and near-duplicates share one place ("+3 copies"). Finding nothing is not an error. If the best
    hits lack the rarest words of the query, a note reports it. With filters and no query, "search"
    does the same as "list".

    On a terminal the matching line is printed below a skill, unless the description already shows
    it. In a pipe each line is a ref, a tab and the matching line or the description.
    """
    queries = _queries(query)
    chosen = options.filters(session, given)
    if not query and chosen != Filters():
        from registry.cli.commands.list import show_list

        show_list(session, chosen, limit=limit, **given)
        return
    if not queries:
        raise click.UsageError("Give a QUERY to search for.")
    if limit is None:
        height = session.console.height if session.is_for_people else None
        limit = min(MAX_HITS, max(1, (height - BELOW) // 2)) if height else MAX_HITS
    hits = session.registry.search(queries, chosen, limit=limit, **given)
    wanted = matcher(" ".join(queries))
    columns = (
        Column[SearchHit]("SKILL", lambda hit: hit.ref),
        Column[SearchHit]("MATCH", lambda hit: _match(hit, wanted), prose=True),
    )
    marked = deprecated(session.registry.core.reader, list(hits))
    is_table = emit(
        session,
        hits,
        columns,
        to_record=lambda hit: (
            record(hit) | ({"deprecated": True} if (hit.source, hit.folder) in marked else {})
        ),
        draw=partial(draw_hits, wanted=wanted, marked=marked),
    )
    report_quarantined(session, chosen)
    for typed, used in hits.respelled:
        session.console.note(f"Searched for {quoted(used)} instead of {quoted(typed)}.")
    if not hits.total:
        every = replace(chosen, all=True)
        more = hits if chosen == every else session.registry.search(queries, every)
        report_nothing_found(session, chosen, more=more)
        return
    if is_table:
        session.console.note(f"{len(hits):,} of {formatting.count(hits.total, 'hit')}", "dim")
    if hits.confidence < FITS:
        named = f": no top result mentions {Fact(hits.missing):or}" if hits.missing else ""
        session.console.note(f"No close match{named}. Try other keywords, or English ones.")
        for one in hits.shorter:
            session.console.note(f"Try: skill-registry search {shlex.join(one.split())}", "dim")


def _queries(given: Sequence[str]) -> list[str]:
    """Join the arguments to one query; if an argument has spaces, each argument is a query."""
    if len(given) > 1 and any(len(one.split()) > 1 for one in given):
        return [one for one in given if one.strip()]
    whole = " ".join(given)
    return [whole] if whole.strip() else []


def draw_hits(
    console: Console,
    hits: Sequence[SearchHit],
    wanted: re.Pattern[str] | None,
    marked: Collection[tuple[str, str]] = (),
) -> Iterator[str]:
    """For each result, yield a line with its ref and description, and a line with the match.

    If the first line shows the match, there is no second line. ``marked`` has the sources and
    folders of deprecated skills.
    """

    def light(text: str, style: Style | None = None) -> str:
        """Return a text in a style, with its matches in another style."""
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
            more = f"  +{formatting.count(len(hit.alike), 'copy', 'copies')}"
            head += console.style(more, "dim")
            room -= len(more)
        if (hit.source, hit.folder) in marked:
            head += "  " + console.style("deprecated", formatting.STATUS_STYLES["deprecated"])
            room -= len("  deprecated")
        # If the terminal is too narrow for the description, show only the match.
        is_roomy = room > len(SNIPPET_INDENT) * 3
        yield f"{head}  {light(about, 'dim')}" if is_roomy else head
        if not is_roomy or wanted is None or not wanted.search(about):
            match = escape.prose(_cut(_match(hit, wanted), wanted))
            is_unmarked = wanted is None or not wanted.search(match)
            if is_roomy and is_unmarked and _is_the_same(about, match):
                # The description matches by a related word, so it needs no second line.
                continue
            yield SNIPPET_INDENT + light(
                fit(match, console.width - len(SNIPPET_INDENT), ellipsis=console.ellipsis)
            )


def _match(hit: SearchHit, wanted: re.Pattern[str] | None) -> str:
    """Return the description if it contains the match, otherwise the snippet."""
    has_match = wanted is not None and wanted.search(hit.description)
    return hit.description if has_match or not hit.snippet else hit.snippet


def _is_the_same(one: str, other: str) -> bool:
    """Tell whether one of the texts starts with the other; each of them may be shortened."""
    one, other = one.rstrip(".\u2026"), other.rstrip(".\u2026")
    return one.startswith(other) or other.startswith(one)


def _cut(text: str, wanted: re.Pattern[str] | None) -> str:
    """Return the rest of a text, from a few characters before the first match."""
    found = wanted.search(text) if wanted else None
    if found is None or found.start() <= AROUND:
        return text
    return "\u2026" + text[text.rfind(" ", 0, found.start() - BEFORE) + 1 :]


def matcher(query: str) -> re.Pattern[str] | None:
    """Return a pattern that matches the words of a query, for highlighting."""
    from registry.catalog.search.query import parse, pattern

    # Try phrases before their single words, and leave out stop words.
    terms = sorted(parse(query), key=lambda term: len("".join(term)), reverse=True)
    patterns = [
        pattern(term) + (r"\w*" if _SPACED.fullmatch("".join(term)) else "") for term in terms
    ]
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


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
    help=("Also explain whether this personality from the settings sees it, and by which rule."),
)
@agent_option(
    help="Also explain whether this agent reads the skill from disk, and from which folder."
)
@click.option(
    "--query",
    metavar="TEXT",
    help="Also explain the skill's rank for this query, and which words it lacks.",
)
@options.narrowing_options
@options.format_options
def why(
    session: Session,
    *,
    subject: str,
    personality: str | None,
    agent: str | None,
    query: str | None,
    **given: Any,
) -> None:
    """Explain why a skill is, or isn't, listed.

    NAME is a name (each skill of that name is explained) or a ref; PATH is a folder. The reasons
    include: outside all sources, too deep, not synced yet, invalid, shadowed, hidden, changed. If
    several skills have the name, a note says which of them each installed agent loads.

    With --query, see what the skill needs to be found: its rank, which words of the query are in
    its name, tags, description and body, how rare each word is (0%: every skill has it), which
    skills rank higher and why, and which words the description lacks. Filters narrow this search as
    in "search".
    """
    chosen = options.filters(session, {**given, "personality": None})
    if query is not None:
        if agent is not None:
            raise click.UsageError("--agent and --query can't be combined.")
        # Print a table even in a pipe, because the findings are the result.
        session.style = session.style or "table"
        placed = session.registry.why_found(subject, query, chosen, personality)
        emit(session, placed, PLACED, to_record=record, draw=draw_placed)
        return
    if chosen != Filters():
        raise click.UsageError("Filters require --query.")
    found = session.registry.why(subject, personality)
    if agent is not None:
        from registry.install.inventory import explained_for

        project = target_of(None, is_global=False)
        report_project(session, project)
        found = explained_for(session.registry.core, found, agent_of(agent), project)
    emit(session, found, WHY_COLUMNS, to_record=_record, draw=_draw)
    if agent is not None or found[1:]:
        _report_namesakes(session, found, agent)


def _report_namesakes(session: Session, found: "Sequence[Explanation]", agent: str | None) -> None:
    """Print which of several skills of a name the agent, or each installed agent, loads here."""
    from registry.disk.agents import installed_agents
    from registry.install.inventory import seen_by, told_of_namesakes

    names = {one.skill.name for one in found if one.skill is not None}
    # With ``agent``, such a finding says which skill the agent loads.
    is_told = any(
        (reason.code, reason.severity) == ("agent", "warning")
        for one in found
        for reason in one.reasons
    )
    project = target_of(None, is_global=False)
    for one in installed_agents(project.path) if agent is None else [agent_of(agent)]:
        with suppress(RegistryError):
            seen = seen_by(session.registry.core, one, project)
            named = [skill for skill in seen if skill.name in names]
            read = {skill.skill.tree_hash for skill in named if skill.skill is not None}
            others = [each.skill for each in found if each.skill is not None]
            unread = [each.ref for each in others if each.tree_hash not in read]
            for text, loaded in told_of_namesakes(one, named, singles=bool(unread)):
                if loaded is None or not is_told:
                    session.console.note(escape.line(text))
                if loaded is not None and loaded.state in {"registered", "unknown"}:
                    other = unread[0] if unread and len(named) == 1 else None
                    session.console.note(
                        "To load the other one, rename or remove this one: "
                        f"{_way_to_other(one, loaded, other)}"
                    )


def _way_to_other(agent: "Agent", loaded: "AgentSkill", other: str | None) -> str:
    """Return how to rename the skill that an agent loads, and how to install the ref ``other``."""
    if loaded.skill is None:
        way = f"rename the folder {escape.line(loaded.place)}"
    else:
        way = f"skill-registry rename {shlex.quote(escape.line(loaded.skill.ref))} NEW"
    if other is not None:
        everywhere = " --global" if loaded.where == "global" else ""
        pull = f"skill-registry pull {shlex.quote(escape.line(other))}"
        way += f" && {pull} --agent {agent.id}{everywhere}"
    return way


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


WHY_COLUMNS: Final[Sequence[Column["Explanation"]]] = (
    Column("SKILL", handle),
    Column("LISTED", lambda one: "listed" if one.listed else "not listed"),
    Column("REASONS", lambda one: "; ".join(reason.message for reason in one.reasons), prose=True),
)


EVERY: Final = 100
"""All prompts, in percent."""


class _Failed(NamedTuple):
    """A prompt that failed, and its skill."""

    ref: str
    answer: "EvalResult"


@session_command(
    "skill-registry eval",
    "skill-registry eval pdf-forms ./my-skill --failed",
    "skill-registry eval --source mine --min 80   # in a CI job",
    "skill-registry eval --json | jq '.skills[] | {ref, hits: .score.hit_at_5}'",
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=completion.names_or_paths)
@options.source_option(help="Only run the prompts of skills from this source.")
@click.option("--failed", is_flag=True, help="Print each failed prompt and the skill that won.")
@click.option(
    "--min",
    "least",
    metavar="PERCENT",
    type=click.FloatRange(0, EVERY),
    help=("Fail if fewer than this percentage of prompts find their skill among the first five."),
)
@options.json_option
def eval_(
    session: Session,
    *,
    names: tuple[str, ...],
    source: str | None,
    failed: bool,
    least: float | None,
) -> None:
    """Run the search prompts that skills ship, and report how often each skill is found.

    Prompts are read from a skill's evals folder, or from files such as evals.json,
    trigger-eval.json or tests/test-triggers.json (JSON, JSON lines, YAML or CSV). Each prompt is
    the query of a search in all listed skills. HIT@1 is the share of prompts that find the skill as
    the first result, HIT@5 the share that find it among the first five. A near-duplicate counts as
    a hit. WON BY names the skills that came first instead. A prompt that must not find the skill
    fails (FALSE) if the skill comes first and seems to fit.

    Exit status: 1 if fewer prompts than --min find their skill, or if no skill has prompts.
    """
    console = session.console
    with waiting(console, "asking"):
        skills = [options.named(session.registry, name) for name in names]
        found = session.registry.evaluate(skills, source=source)
    if session.as_json:
        console.json(_told(found, failed=failed))
    elif failed:
        emit(session, list(_failures(found)), FAILED)
    else:
        emit(session, found.skills, SKILLS)
    if not session.as_json:
        for line in _summary(found, named=failed or session.verbose):
            console.note(line)
    total = found.total
    reached = total.prompts and _percent(total.hit_at_5, total.prompts) >= (least or 0)
    if least is not None and not reached:
        raise click.exceptions.Exit(Status.FAILED)


def _told(found: "Evaluation", *, failed: bool) -> dict[str, object]:
    if failed:
        skills = (
            replace(one, answers=tuple(answer for answer in one.answers if not answer.passed))
            for one in found.skills
        )
        found = replace(found, skills=tuple(one for one in skills if one.answers))
    return found.to_dict()


def _failures(found: "Evaluation") -> Iterator[_Failed]:
    for one in found.skills:
        yield from (_Failed(one.ref, answer) for answer in one.answers if not answer.passed)


def _summary(found: "Evaluation", *, named: bool) -> Iterator[str]:
    total = found.total
    if not found.skills:
        yield (
            "No skill here has prompts. To see which files are read, run: skill-registry eval "
            "--help"
        )
    else:
        asked = formatting.count(total.prompts, "prompt")
        skills = formatting.count(len(found.skills), "skill")
        first, five = (
            f"{_percent(hits, total.prompts):.0f}%" for hits in (total.hit_at_1, total.hit_at_5)
        )
        message = f"{first} found their skill first, {five} among the first five"
        if total.negatives:
            message += (
                f"; of {total.negatives:,} prompts for other skills, {total.false_alarms:,} found "
                "it by mistake"
            )
        yield f"{asked} of {skills}: {message}"
    if total.competitors:
        won = ", ".join(f"{escape.line(one.ref)} ({one.wins:,})" for one in total.competitors)
        yield f"Most won by: {won}"
    if named:
        for one in found.problems:
            where = f"{one.ref}: {one.path}" if one.path else one.ref
            yield f"{escape.line(where)}: {escape.prose(one.reason)}"
    elif found.problems:
        files = formatting.count(len(found.problems), "file")
        yield f"{files} of prompts could not be read completely; to see why, add --failed."


def _percent(number: int, of: int) -> float:
    return EVERY * number / of if of else 0.0


def _share(number: int, of: int) -> str | None:
    return f"{_percent(number, of):.0f}%" if of else None


def _rivals(score: "Score") -> str:
    return ", ".join(
        one.ref if one.wins == 1 else f"{one.ref} ({one.wins})" for one in score.competitors
    )


def _place(answer: "EvalResult") -> str:
    return f"{answer.place or 'none'}" + ("" if answer.wanted else ", not intended")


def _alarms(score: "Score") -> str | None:
    return f"{score.false_alarms} of {score.negatives}" if score.negatives else None


SKILLS: Final[Sequence[Column["SkillScore"]]] = (
    Column("SKILL", lambda one: one.ref, style="bold", share=FIRST_SHARE, cut="middle"),
    Column("PROMPTS", lambda one: one.score.prompts, right=True),
    Column("HIT@1", lambda one: _share(one.score.hit_at_1, one.score.prompts), right=True),
    Column("HIT@5", lambda one: _share(one.score.hit_at_5, one.score.prompts), right=True),
    Column("FALSE", lambda one: _alarms(one.score), right=True, drop=2),
    Column("WON BY", lambda one: _rivals(one.score), flexible=True, drop=1),
)

FAILED: Final[Sequence[Column[_Failed]]] = (
    Column("SKILL", lambda one: one.ref, style="bold", share=0.3, cut="middle"),
    Column("PLACE", lambda one: _place(one.answer), right=True),
    Column("FIRST", lambda one: one.answer.first, share=0.3, cut="middle"),
    Column("PROMPT", lambda one: one.answer.prompt, prose=True, flexible=True),
)
