"""`skill-registry copies`."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Final

import click

from registry.cli import completion, escape, formatting, options
from registry.cli.group import session_command
from registry.cli.listing import Column, emit
from registry.cli.progress import waiting
from registry.cli.session import Console, Session, Style
from registry.model import Skill, record

if TYPE_CHECKING:
    from registry.catalog.copies import Copies

SAYS: Final = {
    "identical": "the same files",
    "differing": "the files differ",
    "alike": "nearly the same text under another name",
}
STYLES: Final[dict[str, Style]] = {"identical": "green", "differing": "yellow", "alike": "dim"}


@session_command(
    "skill-registry copies",
    "skill-registry copies pdf-forms",
    "skill-registry copies --json | jq -r '.[] | select(.relation == \"differing\") | .name'",
)
@click.argument("name", required=False, shell_complete=completion.names)
@options.format_options
def command(session: Session, *, name: str | None) -> None:
    """List names in several places, what differs, and texts under several names.

    One name with the same files in several places is one skill: it is listed once, and a change
    of it leaves the others as they are unless --copies is given. Of one name the newest comes
    first. Texts are nearly the same where a few lines differ, or they are described in the same
    words; those of a NAME alone are looked for among all.
    """
    with waiting(session.console, "comparing"):
        found = session.registry.copies(name)
    alone = "It lies in one place, and nothing is like it." if name else ""
    emit(
        session,
        found,
        COLUMNS,
        to_record=_record,
        draw=partial(_draw, elsewhere=_elsewhere(session)),
        name=lambda one: one.name,
        nothing=alone or "Every name lies in one place, and no text is like another.",
    )


def _record(one: "Copies") -> dict[str, Any]:
    return {"name": one.name, "relation": one.relation, "skills": record(one.skills)}


def _elsewhere(session: Session) -> set[str]:
    """Return the names of the sources of projects that are not seen from here."""
    registry = session.registry
    shows = registry.core.reader.sight.shows
    sources = registry.sources(counted=False)
    return {source.name for source in sources if not shows(source.id, source.scope)}


def _draw(console: Console, found: "Sequence[Copies]", elsewhere: Collection[str]) -> Iterator[str]:
    now = time() if console.is_terminal else None
    for index, one in enumerate(found):
        if index:
            yield ""
        says = console.style(SAYS[one.relation], STYLES[one.relation])
        yield f"{console.style(escape.line(one.name), 'bold')}: {says}"
        for skill in one.skills:
            mark = _mark(one, skill)
            changed = skill.updated_at if now is None else formatting.ago(skill.updated_at, now)
            listed = "" if skill.shadowed else "listed"
            where = "of a project elsewhere" if skill.source in elsewhere else listed
            facts = [changed, mark, where]
            told = ", ".join(fact for fact in facts if fact)
            yield f"  {escape.line(skill.ref)}  {console.style(told, 'dim')}"
            yield f"    {escape.line(skill.path)}"


def _mark(one: "Copies", skill: Skill) -> str:
    """Return how the files of a skill compare with those listed above it; empty: nothing to say."""
    if one.relation == "identical":
        return ""
    if skill is one.skills[0]:
        return "newest"
    if one.relation == "alike":
        return ""
    same = next(other for other in one.skills if other.tree_hash == skill.tree_hash)
    if same is skill:
        return "differs"
    return "same as the newest" if same is one.skills[0] else f"same as {escape.line(same.ref)}"


COLUMNS: Final[Sequence[Column["Copies"]]] = (
    Column("NAME", lambda one: one.name),
    Column("RELATION", lambda one: one.relation),
    Column("SKILLS", lambda one: " ".join(skill.ref for skill in one.skills)),
)
